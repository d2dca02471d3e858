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
    from certsvm.certificates.certificate import Certificate
    from certsvm.estimators import LinearSVC
    from certsvm.estimators.linear_svc_cv import LinearSVCCV
    from certsvm.estimators.path import fit_path
    from certsvm.files import Model
    from certsvm.fitting.bound import bound
    from certsvm.fitting.comparison import compare
    from certsvm.fitting.fit_model import fit_stream
    from certsvm.problem.problems import Problem
    from certsvm.problem.rows import Rows
    from certsvm.training.history import History
    from certsvm.training.loop import train
    from certsvm.verification.optimum_intervals import SupportStatus
    from certsvm.verification.verify import verify, verify_model

# Loaded when first used: the core does without scikit-learn, whose import takes a second.
_HOMES = {
    "Certificate": "certsvm.certificates.certificate",
    "History": "certsvm.training.history",
    "LinearSVC": "certsvm.estimators",
    "LinearSVCCV": "certsvm.estimators.linear_svc_cv",
    "Model": "certsvm.files",
    "Problem": "certsvm.problem.problems",
    "Rows": "certsvm.problem.rows",
    "SupportStatus": "certsvm.verification.optimum_intervals",
    "bound": "certsvm.fitting.bound",
    "compare": "certsvm.fitting.comparison",
    "fit_path": "certsvm.estimators.path",
    "fit_stream": "certsvm.fitting.fit_model",
    "train": "certsvm.training.loop",
    "verify": "certsvm.verification.verify",
    "verify_model": "certsvm.verification.verify",
}

__all__ = [
    "Certificate", "History", "LinearSVC", "LinearSVCCV", "Model", "Problem", "Rows",
    "SupportStatus", "__version__", "bound", "compare", "fit_path", "fit_stream", "train", "verify",
    "verify_model",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'certsvm' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return __all__
