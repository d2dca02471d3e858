"""Linear SVMs that prove how close to the optimum they are.

>>> from sklearn.datasets import make_classification
>>> from certsvm import LinearSVC
>>> X, y = make_classification(n_samples=200, random_state=0)
>>> clf = LinearSVC(C=0.1, random_state=0).fit(X, y)
>>> clf.certificate_.met
True
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from certsvm._version import __version__

if TYPE_CHECKING:
    from certsvm.certificate import Certificate
    from certsvm.certify import bound
    from certsvm.comparison import compare
    from certsvm.estimators import LinearSVC, fit_path
    from certsvm.fitting import fit_stream
    from certsvm.history import History
    from certsvm.models import Model
    from certsvm.problem import Problem
    from certsvm.rows import Rows
    from certsvm.training import train
    from certsvm.verification import verify, verify_model

# Loaded when first used: the core does without scikit-learn, whose import takes a second.
_HOMES = {
    "Certificate": "certsvm.certificate",
    "History": "certsvm.history",
    "LinearSVC": "certsvm.estimators",
    "Model": "certsvm.models",
    "Problem": "certsvm.problem",
    "Rows": "certsvm.rows",
    "bound": "certsvm.certify",
    "compare": "certsvm.comparison",
    "fit_path": "certsvm.estimators",
    "fit_stream": "certsvm.fitting",
    "train": "certsvm.training",
    "verify": "certsvm.verification",
    "verify_model": "certsvm.verification",
}

__all__ = [
    "Certificate",
    "History",
    "LinearSVC",
    "Model",
    "Problem",
    "Rows",
    "__version__",
    "bound",
    "compare",
    "fit_path",
    "fit_stream",
    "train",
    "verify",
    "verify_model",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'certsvm' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return __all__
