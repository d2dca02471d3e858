"""Models for several values of C."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import clone

from certsvm.estimators.linear_svc import LinearSVC
from certsvm.estimators.rollback import fitted_attributes
from certsvm.training.result import Result


def fit_path(
    estimator: LinearSVC, X: Any, y: Any, Cs: Sequence[float], sample_weight: Any = None
) -> list[LinearSVC]:
    """Train the same model for several C.

    They are trained one after the other, in ascending order, each beginning where the last one
    ended. The data are checked, and moved to a ``device``, once. Ctrl-C keeps the models that were
    trained; the others have zero weights and prove nothing.

    Parameters
    ----------
    estimator : LinearSVC
        With all other parameters. It is not changed.
    X : array-like, sparse matrix or tensor of shape (n_samples, n_features)
        The data.
    y : array-like or tensor of shape (n_samples,)
        Labels.
    Cs : sequence of float
        The values of C.
    sample_weight : array-like or tensor of shape (n_samples,), default=None
        Weights >= 0 of the rows.

    Returns
    -------
    models : list of LinearSVC
        Fitted, in the order of ``Cs``, each with its own certificate.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from certsvm import LinearSVC, fit_path
    >>> X, y = make_classification(random_state=0)
    >>> models = fit_path(LinearSVC(tol=0.001, random_state=0), X, y, [0.01, 0.1, 1.0])
    >>> [model.C for model in models], all(model.certificate_.met for model in models)
    ([0.01, 0.1, 1.0], True)
    """
    if not isinstance(estimator, LinearSVC):
        raise TypeError(
            "fit_path takes a certsvm.LinearSVC, whose other parameters hold for all C, got "
            f"{_described(estimator)}"
        )
    if not np.iterable(Cs):
        raise TypeError(f"Cs must be a sequence of numbers, got {Cs!r}")
    values = [float(C) for C in Cs]
    if not values or not all(np.isfinite(C) and C > 0 for C in values):
        raise ValueError(f"Cs must be finite numbers > 0, at least one, got {list(Cs)!r}")
    estimator._validate_params()
    given = {"X": X, "y": y, "metadata": {"sample_weight": sample_weight}}
    # Made once: it holds the data, checked and where they are trained on.
    first = clone(estimator)
    source = first._source(X, y, sample_weight)
    solver = source.solver(estimator.solver)
    fitted: dict[int, tuple[LinearSVC, list[Result]]] = {}
    before = first
    # One for all: after an interruption none goes on.
    stop = threading.Event()
    for i in np.argsort(values).tolist():
        model = clone(estimator).set_params(C=values[i], warm_start=True)
        vars(model).update(fitted_attributes(before))
        try:
            results = model._fit_source(source, solver, given, stop)
        except KeyboardInterrupt:
            if not fitted:
                raise
            stop.set()
            results = model._fit_source(source, solver, given, stop)
        fitted[i] = model, results
        before = model
    models = []
    for model, results in (fitted[i] for i in range(len(values))):
        models.append(model.set_params(warm_start=estimator.warm_start))
        if not estimator.warm_start:
            model._warm = model._warm.without_alphas()
        model._warn_if_missed(results, solver, stacklevel=3)
    return models


def _described(estimator: Any) -> str:
    if isinstance(estimator, type):
        return f"the class {estimator.__module__}.{estimator.__qualname__}; make an object of it"
    kind = type(estimator)
    return f"an object of {kind.__module__}.{kind.__qualname__}"
