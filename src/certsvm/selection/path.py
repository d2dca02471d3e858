"""Models for several values of C."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import clone

from certsvm.estimators.linear_svc import LinearSVC
from certsvm.estimators.rollback import is_fitted_attribute
from certsvm.estimators.tensors import are_tensors, fit_on_tensors


def fit_path(
    estimator: LinearSVC, X: Any, y: Any, Cs: Sequence[float], sample_weight: Any = None
) -> list[LinearSVC]:
    """Train the same model for several C.

    On tensors (or with a ``device``) all are trained at once, and read the rows together;
    otherwise one after the other, in ascending order, each beginning where the last one ended.

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
    values = [float(C) for C in Cs]
    if not values or not all(np.isfinite(C) and C > 0 for C in values):
        raise ValueError(f"Cs must be finite numbers > 0, at least one, got {list(Cs)!r}")
    models = [clone(estimator).set_params(C=C) for C in values]
    if are_tensors(X) or estimator.device is not None:
        estimator._validate_params()
        each, solver = fit_on_tensors(models, X, y, sample_weight)
        for model, results in zip(models, each, strict=True):
            model._warn_if_missed(results, solver)
        return models
    before: LinearSVC | None = None
    for i in np.argsort(values):
        model = models[i].set_params(warm_start=True)
        if before is not None:
            fitted = {
                name: value for name, value in vars(before).items() if is_fitted_attribute(name)
            }
            vars(model).update(fitted)
        before = model.fit(X, y, sample_weight)
    return [model.set_params(warm_start=estimator.warm_start) for model in models]
