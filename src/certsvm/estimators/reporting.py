"""Models and reports of fitted estimators: models may have a proof that others can recompute."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certsvm.certificates.certificate import tidy
from certsvm.certificates.primal import primal_bound
from certsvm.estimators.classifier import are_tensors, on_host
from certsvm.files.model import Model
from certsvm.fitting.fit_model import joined, proof
from certsvm.fitting.sources import MemorySource
from certsvm.kernels.losses import loss_named
from certsvm.matrices import exact_labels
from certsvm.problem.objective import Objective
from certsvm.report.fit import Evaluation, Fit
from certsvm.training.history import History
from certsvm.verification.fingerprint import Fingerprint
from certsvm.verification.verify import verify

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
        confusion = _confusion(clf.classes_, on_host(answers), on_host(y))
        if not are_tensors(X) and not hasattr(X, "dask"):
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


def proved_model(clf: Any, X: Any, y: Any, sample_weight: Any) -> Model:
    """The model of a classifier with a witness, after verification with the training data."""
    if not hasattr(clf, "dual_coef_"):
        raise ValueError(
            "a proof of these data needs the dual point: fit with store_dual=True. Without data, "
            "to_model() is the model with its certificate as a claim."
        )
    X, y, weights = clf._validate(*map(on_host, (X, y, sample_weight)), reset=False)
    report = verify(clf, X, y, weights)
    if not report.dual_verified:
        raise ValueError(
            f"The certificate is {report.verdict} by these data, so they do not seem to be the "
            f"training data, with their weights and in their order:\n{report}"
        )
    model = Model.from_estimator(clf, Fingerprint.of(X, y))
    claim = clf.certificates_[0]
    source = MemorySource(
        X, y, weights, class_weight=dict(zip(clf.classes_, clf.class_weight_, strict=True)),
        intercept_scaling=claim.intercept_scaling,
    )  # fmt: skip
    if not np.array_equal(source.classes, clf.classes_):
        raise ValueError(f"y lacks some of the classes of the fit, {clf.classes_.tolist()}")
    objective = Objective(claim.C, loss_named(claim.loss), claim.penalize_intercept)
    proofs = []
    for i, certificate in enumerate(clf.certificates_):
        problem = source.problem(i, objective)
        # What was verified may differ in the last digits, so J is that of these data, as L is.
        w = problem.weight_vector(model.coef[i], float(model.intercept[i]))
        J = primal_bound(problem, w)
        certificate = replace(certificate, primal=J.value, primal_rounding=J.rounding)
        proofs.append(proof(problem, certificate, clf.dual_coef_[i]))
    certificates, witnesses = zip(*proofs, strict=True)
    parameters = model.parameters | ({"float32": True} if source.float32 else {})
    return replace(
        model, certificates=certificates, witness=joined(witnesses), parameters=parameters
    )
