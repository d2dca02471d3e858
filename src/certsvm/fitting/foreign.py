"""A certificate for any linear classifier, wherever it came from."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from certsvm.certificates.best import BestBounds
from certsvm.certificates.certificate import Certificate, relative_gap
from certsvm.certificates.dual import dual_point
from certsvm.certificates.primal import primal_bound
from certsvm.certificates.weights import dense
from certsvm.kernels.losses import HINGE, LOSSES, loss_named
from certsvm.matrices import refuse_masked
from certsvm.problem.memory import Problem
from certsvm.problem.objective import Objective
from certsvm.problem.room import require_room
from certsvm.problem.rows import Rows, Vector
from certsvm.solvers import Auto, Start
from certsvm.solvers.shared.dual_start import alpha_from_margins
from certsvm.training.loop import require_limits, train
from certsvm.training.result import INTERRUPTED, Progress

# Passes end when L could rise by this share of the accuracy to prove, at most.
_WORTH_IT = 0.1
# Or when the gap is below this share of it, which leaves room for rounding.
_CLEARLY = 0.9


def bound(
    model: Any,
    X: Any,
    y: ArrayLike,
    *,
    C: float | None = None,
    loss: str | None = None,
    intercept: float | None = None,
    intercept_scaling: float | None = None,
    penalize_intercept: bool | None = None,
    sample_weight: ArrayLike | None = None,
    tol: float = 0.01,
    max_iter: int = 100,
    random_state: int | None = 0,
) -> Certificate | list[Certificate]:
    """Prove how close to the optimum a given weight vector is.

    J is computed as it is. For L, a feasible dual point is read off the margins and improved by
    training from there, until the target is proved, or more passes could not help: the gap that
    remains is then the model's own.

    The objective is the classifier's own, if it is the hinge loss or its square with an L2 penalty:
    scikit-learn's ``LinearSVC`` minimises the squared hinge by default and penalises the intercept,
    its ``SGDClassifier`` and ``SVC`` minimise the hinge and do not. A model that was trained on
    something else may be optimal for that and not for this.

    Parameters
    ----------
    model : array-like of shape (n_features,) or fitted linear classifier
        The weight vector, or anything with ``coef_`` and ``intercept_``: a ``LinearSVC``,
        scikit-learn's ``LinearSVC`` or ``SGDClassifier``, an ``SVC`` with a linear kernel and two
        classes, ...
    X : array-like or sparse matrix of shape (n_samples, n_features)
        The training data.
    y : array-like of shape (n_samples,)
        Their labels. For a weight vector, the larger of two labels is the positive one.
    C : float, default=None
        Weight of the loss. None takes the classifier's own ``C``; of scikit-learn's
        ``SGDClassifier``, ``1 / (alpha * n_samples)``.
    loss : {"hinge", "squared_hinge"}, default=None
        The loss. None takes the classifier's own; of a weight vector, the hinge.
    intercept : float, default=None
        Intercept that goes with a weight vector; None means that there is none. A classifier
        brings its own.
    intercept_scaling : float, default=None
        Height of the constant column behind the intercept: if it is penalised, then as the weight
        of such a column. None takes the classifier's own, or 1.
    penalize_intercept : bool, default=None
        Whether the certificate is about the problem in which the intercept is penalised. None takes
        what the classifier does; an intercept of a weight vector, or with an ``intercept_scaling``,
        is penalised.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights >= 0 of the rows.
    tol : float, default=0.01
        The relative accuracy to prove.
    max_iter : int, default=100
        Limit on passes over the data.
    random_state : int, default=0
        Seed of the order of the rows.

    Returns
    -------
    certificate : Certificate, or list of Certificate for several classes
        About this weight vector, not about a better one that was found on the way.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.linear_model import SGDClassifier
    >>> import certsvm
    >>> X, y = make_classification(random_state=0)
    >>> clf = SGDClassifier(alpha=0.1, fit_intercept=False, random_state=0).fit(X, y)
    >>> certsvm.bound(clf, X, y).relative_gap < 0.5
    True
    """
    require_limits(tol, max_iter, None)
    if not (intercept_scaling is None or intercept_scaling > 0):
        raise ValueError(f"intercept_scaling must be > 0, got {intercept_scaling!r}")
    refuse_masked(y=y, sample_weight=sample_weight)
    labels = np.asarray(y).ravel()
    if hasattr(model, "coef_"):
        if intercept is not None:
            raise ValueError("a classifier brings its own intercept; leave intercept out")
        functions = _functions_of(model, labels)
        if penalize_intercept is None:
            penalize_intercept = intercept_scaling is not None or _penalizes_intercept(model)
        rho = intercept_scaling or float(getattr(model, "intercept_scaling", 1.0))
        rho = rho if getattr(model, "fit_intercept", True) else 0.0
        C = _C_of(model, labels.size) if C is None else C
        own = _loss_of(model)
        loss = own or HINGE.name if loss is None else loss
        if loss != own or _parameters(model).get("penalty", "l2") != "l2":
            _warn_of_other_objective(model, loss)
    else:
        functions = _function_of_vector(model, labels, intercept or 0.0)
        rho = 0.0 if intercept is None else intercept_scaling or 1.0
    if C is None:
        raise ValueError("pass the C of the problem")
    objective = Objective(
        C, loss_named(loss or HINGE.name), penalize_intercept is None or penalize_intercept
    )
    rows = Rows(X, intercept_scaling=rho)
    require_room(rows.dimension, Auto.n_vectors, rows)
    weights = _weights(model, labels, sample_weight, rows.n_rows)
    certificates = []
    for positive, coef, b in functions:
        if coef.shape != (rows.n_columns,):
            raise ValueError(f"X has {rows.n_columns} columns, the model {coef.size}")
        if not (np.isfinite(coef).all() and np.isfinite(b)):
            raise ValueError("the weights must be finite")
        if b != 0.0 and rho == 0.0:
            raise ValueError(
                f"the classifier has an intercept, {b:g}, but fit_intercept=False. Set "
                "fit_intercept=True to measure it with the intercept."
            )
        signs = np.where(labels == positive, 1.0, -1.0)
        problem = Problem(rows, signs, weights=weights, **objective.keywords)
        w = problem.weight_vector(coef.astype(np.float64), b)
        certificates.append(certify(problem, w, tol, max_iter, random_state))
    return certificates[0] if len(certificates) == 1 else certificates


Function: TypeAlias = tuple[Any, NDArray[Any], float]
"""A class, and the coefficients and the intercept of its linear function against the rest."""


def _functions_of(model: Any, labels: NDArray[Any]) -> list[Function]:
    """The linear functions of a classifier, one for each class against the rest."""
    classes = model.classes_
    positive = classes[1:] if len(classes) == 2 else classes
    coefs = np.atleast_2d(dense(model.coef_))
    # Between several classes, libsvm's are functions of one against another.
    if len(coefs) != len(positive) or (_is_libsvm(model) and len(classes) > 2):
        raise ValueError(
            f"{type(model).__name__} is not one linear function per class against the rest"
        )
    if np.setdiff1d(labels, classes).size:
        raise ValueError("y contains labels that the model was not trained on")
    intercepts = np.atleast_1d(model.intercept_)
    return [
        (label, np.ravel(coef), float(b))
        for label, coef, b in zip(positive, coefs, intercepts, strict=True)
    ]


def _is_libsvm(model: Any) -> bool:
    """Whether it is an ``SVC``, from scikit-learn or elsewhere."""
    return hasattr(model, "n_support_")


def _parameters(model: Any) -> dict[str, Any]:
    """The parameters of a classifier, as far as it tells."""
    parameters: dict[str, Any] = model.get_params() if hasattr(model, "get_params") else {}
    return parameters


def _loss_of(model: Any) -> str | None:
    """The loss that a classifier minimises; None if it is none that can be certified."""
    if getattr(model, "certificates_", None):
        # Parameters may have been changed since fit.
        return str(model.certificates_[0].loss)
    parameters = _parameters(model)
    if _is_libsvm(model) and "C" in parameters:
        return HINGE.name
    loss = parameters.get("loss")
    return loss if loss in LOSSES else None


def _penalizes_intercept(model: Any) -> bool:
    """Whether a classifier penalises its intercept."""
    if getattr(model, "certificates_", None):
        return bool(model.certificates_[0].penalize_intercept)
    parameters = _parameters(model)
    # An intercept has a scale where it is penalised like a weight.
    return bool(parameters.get("penalize_intercept", "intercept_scaling" in parameters))


def _C_of(model: Any, n_rows: int) -> float:
    """The weight of the sum of the losses."""
    parameters = _parameters(model)
    if "C" in parameters:
        return float(parameters["C"])
    # SGDClassifier minimises alpha/2 |w|^2 plus the mean of the losses.
    if parameters.get("alpha") and parameters.get("loss") in LOSSES:
        return 1.0 / (float(parameters["alpha"]) * n_rows)
    raise ValueError(f"{type(model).__name__} has no parameter C; pass the C of the problem")


def _function_of_vector(model: Any, labels: NDArray[Any], intercept: float) -> list[Function]:
    """A weight vector as the linear function of the larger of two labels."""
    if hasattr(model, "fit"):
        raise ValueError(
            f"this {type(model).__name__} has no coef_: pass a fitted linear classifier; of a "
            "pipeline, its last step with the transformed X"
        )
    classes = np.unique(labels)
    if classes.size != 2:
        raise ValueError(f"a weight vector separates two classes, y has {classes.size}")
    w = dense(model).astype(np.float64)
    # One row of a classifier's coef_ is welcome as it is.
    return [(classes[1], w[0] if w.shape[:-1] == (1,) else w, intercept)]


def certify(
    problem: Problem, w: Vector, tol: float = 0.01, max_iter: int = 100, seed: int | None = 0
) -> Certificate:
    """``bound`` for a problem and a weight vector that are at hand."""
    best = BestBounds(problem, tol)
    best.offer_primal(w, primal_bound(problem, w))
    alpha = alpha_from_margins(problem, w)
    best.offer_dual(dual_point(problem, alpha, "margins"))
    certificate = best.certificate()
    if certificate.met:
        return certificate

    def proved(progress: Progress) -> bool:
        return relative_gap(certificate.primal, progress.record.dual) <= _CLEARLY * tol

    result = train(
        problem, Auto(), tol=_WORTH_IT * tol, max_iter=max_iter, seed=seed,
        start=Start(w, alpha=alpha), callbacks=[proved],
    )  # fmt: skip
    if result.reason == INTERRUPTED:
        raise KeyboardInterrupt
    found = result.certificate
    better = replace(
        certificate, dual=found.dual, dual_rounding=found.dual_rounding, bound=found.bound,
        scale=found.scale,
    )  # fmt: skip
    return max(certificate, better, key=lambda c: c.dual - c.dual_rounding)


def _warn_of_other_objective(model: Any, loss: str) -> None:
    warnings.warn(
        f"{type(model).__name__} was not trained on the {loss.replace('_', ' ')} loss with an L2 "
        "penalty. The certificate is about that, and so is the gap: a model may be optimal for its "
        "own objective and far from optimal for this one.",
        stacklevel=3,
    )


def _weights(
    model: Any, labels: NDArray[Any], sample_weight: ArrayLike | None, n_rows: int
) -> NDArray[np.float64] | None:
    factors = getattr(model, "class_weight_", None)
    if factors is None and getattr(model, "class_weight", None) is not None:
        raise ValueError(
            f"{type(model).__name__} was trained with class_weight; pass the resulting weights of "
            "the rows as sample_weight, and instead of the classifier coef_[i] with intercept_[i], "
            "for the i-th class against the rest"
        )
    weights = None
    if sample_weight is not None:
        weights = np.broadcast_to(np.asarray(sample_weight, dtype=np.float64), (n_rows,))
    if factors is None or labels.shape != (n_rows,):
        return weights
    of_rows: NDArray[np.float64] = factors[
        np.minimum(np.searchsorted(model.classes_, labels), len(factors) - 1)
    ]
    return of_rows if weights is None else weights * of_rows
