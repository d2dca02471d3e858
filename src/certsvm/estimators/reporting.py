"""What the reports of a fitted estimator are made of."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certsvm.certificates.certificate import tidy
from certsvm.estimators import tensors
from certsvm.files.model import Model
from certsvm.matrices import exact_labels
from certsvm.report.fit import Evaluation, Fit
from certsvm.training.history import History
from certsvm.verification.fingerprint import Fingerprint

_VERIFICATION = "import certsvm\n\nprint(certsvm.verify(clf, X, y))  # with the training data"


def are_right(answers: Any, y: Any) -> NDArray[np.bool_]:
    """Which predicted labels are the given ones."""
    answers, labels = np.asarray(answers), exact_labels(y)
    # A column of labels, or a single one, would be compared with all answers.
    if labels.shape != answers.shape:
        raise ValueError(f"{answers.size} rows do not go with labels of shape {labels.shape}")
    right: NDArray[np.bool_] = answers == labels
    return right


def fit_facts(clf: Any, X: Any, y: Any) -> Fit:
    """The model, its history and what it answers on X, if given."""
    # None after partial_fit.
    histories = getattr(clf, "history_", None)
    return Fit(
        Model.from_estimator(clf),
        _VERIFICATION,
        dual_kept=hasattr(clf, "dual_coef_"),
        evaluation=_evaluation(clf, X, y),
        histories=[histories] if isinstance(histories, History) else histories,
        n_rows=getattr(clf, "n_samples_seen_", None),
    )


def _evaluation(clf: Any, X: Any, y: Any) -> Evaluation | None:
    if X is None:
        if y is not None:
            raise ValueError("y without X: give the rows to predict, too")
        return None
    answers, confusion, fingerprint = clf.predict(X), None, None
    # A free intercept has no interval, and so no score has one.
    free = any(certificate.free_intercept for certificate in clf.certificates_ or ())
    stability = None if free else float(clf.stability(X))
    if y is not None:
        confusion = _confusion(clf.classes_, tensors.on_host(answers), tensors.on_host(y))
        if not tensors.are_tensors(X) and not hasattr(X, "dask"):
            fingerprint = Fingerprint.of(X, y)
    return Evaluation(int(X.shape[0]), stability, confusion, fingerprint)


def _confusion(classes: Any, answers: Any, y: Any) -> dict[tuple[str, str], float]:
    """How many rows there are of each pair of a true and a predicted label."""
    are_right(answers, y)
    # Labels are found by equality, as 1.0 is the class 1; those of no class by themselves.
    names = {label: tidy(label) for label in np.asarray(classes).tolist()}
    counted: dict[tuple[str, str], float] = {}
    pairs = Counter(zip(exact_labels(y).tolist(), np.asarray(answers).tolist(), strict=True))
    for (true, answer), n in pairs.items():
        pair = names.get(true, tidy(true)), names[answer]
        counted[pair] = counted.get(pair, 0.0) + n
    return counted
