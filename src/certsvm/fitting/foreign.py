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
from certsvm.fitting.class_weights import positive_classes
from certsvm.kernels.losses import HINGE, LOSSES, loss_named
from certsvm.matrices import columns_in_order, exact_labels, refuse_masked
from certsvm.models.model import Model
from certsvm.problem.memory import Problem
from certsvm.problem.memory_limits import require_memory_for
from certsvm.problem.objective import Objective, positive_C
from certsvm.problem.rows import Rows, Vector
from certsvm.scalars import as_float
from certsvm.solvers import Auto, Start
from certsvm.solvers.shared.dual_start import alpha_from_margins
from certsvm.training.loop import train
from certsvm.training.result import INTERRUPTED, Progress
from certsvm.training.settings import Settings
from certsvm.verification.verify import positions, weights_in_problem

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

    The objective is the classifier's own, if that is known to be the hinge loss or its square with
    an L2 penalty, for each class against the rest: of certsvm's models what their certificates are
    about, and of scikit-learn's ``LinearSVC``, ``SGDClassifier`` and ``SVC`` what their parameters
    say. ``LinearSVC`` minimises the squared hinge by default and penalises the intercept, the
    others minimise the hinge and do not. ``bound`` warns if the certificate is about another
    objective than the classifier's own, or if that is not known: a model may be optimal for its
    own objective and far from optimal for another.

    Parameters
    ----------
    model : array-like of shape (n_features,), Model or fitted linear classifier
        The weight vector, a ``Model``, or a classifier with ``coef_``, ``intercept_`` and
        ``classes_``: a ``LinearSVC``, scikit-learn's ``LinearSVC`` or ``SGDClassifier``, an ``SVC``
        with a linear kernel and two classes, ... Of a search, such as ``LinearSVCCV`` or
        scikit-learn's ``GridSearchCV``, it is the ``best_estimator_``.
    X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
        The training data. The columns of a frame are matched by name if the model has names.
    y : array-like of shape (n_samples,)
        Their labels. For a weight vector, the larger of two labels is the positive one.
    C : float, default=None
        Weight of the loss. None takes the classifier's own ``C``; of scikit-learn's
        ``SGDClassifier``, ``1 / (alpha * n_samples)``.
    loss : {"hinge", "squared_hinge"}, default=None
        The loss. None takes the classifier's own, or the hinge.
    intercept : float, default=None
        Intercept that goes with a weight vector; None means that there is none. A classifier
        brings its own.
    intercept_scaling : float, default=None
        Height of the constant column behind the intercept: if it is penalised, then as the weight
        of such a column. None takes the classifier's own; of a weight vector, 1 if it has an
        intercept.
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
        About this weight vector, not about a better one that was found on the way. ``problem`` says
        what the objective is.

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
    tol = Settings(tol=tol, max_iter=max_iter).tol
    intercept, intercept_scaling = (
        None if number is None else as_float(number, "an intercept")
        for number in (intercept, intercept_scaling)
    )
    if not (intercept_scaling is None or intercept_scaling > 0):
        raise ValueError(f"intercept_scaling must be > 0, got {intercept_scaling!r}")
    refuse_masked(sample_weight=sample_weight)
    labels = exact_labels(y).ravel()
    names = _fitted(model, "feature_names")
    model = getattr(model, "best_estimator_", model)
    is_vector = _fitted(model, "coef") is None
    if is_vector:
        classes = np.unique(labels)
        functions = _function_of_vector(model, classes, intercept or 0.0)
        minimised = {**_DEFAULTS, "intercept_scaling": 0.0 if intercept is None else 1.0}
    else:
        if intercept is not None:
            raise ValueError("a classifier brings its own intercept; leave intercept out")
        classes = _fitted(model, "classes")
        if classes is None:
            raise ValueError(f"{type(model).__name__} has no classes_: it is not a classifier")
        functions = _functions_of(model, len(classes))
        minimised = _minimised(model, labels.size)
        X = columns_in_order(X, names)
    if penalize_intercept is None and intercept_scaling is not None:
        penalize_intercept = True
    given = {
        "C": C, "loss": loss, "intercept_scaling": intercept_scaling,
        "penalize_intercept": penalize_intercept,
    }  # fmt: skip
    asked = {**minimised, **{name: value for name, value in given.items() if value is not None}}
    if "C" not in asked:
        raise ValueError(f"{type(model).__name__} has no parameter C; pass the C of the problem")
    asked["C"] = positive_C(asked["C"])
    objective = Objective(asked["C"], loss_named(asked["loss"]), asked["penalize_intercept"])
    if not is_vector:
        _warn_of_other_objective(model, {**asked, **minimised}, asked)
    rows = Rows(X, intercept_scaling=asked["intercept_scaling"])
    require_memory_for(rows.dimension, Auto.n_vectors)
    position = positions(classes, labels, rows.n_rows)
    given_weights = _row_weights(sample_weight, rows.n_rows)
    factors = np.ones(len(classes)) if is_vector else _class_weights(model, len(classes))
    certificates = []
    for positive, coef, b in functions:
        if coef.shape != (rows.n_columns,):
            raise ValueError(f"X has {rows.n_columns} columns, the model {coef.size}")
        if not (np.isfinite(coef).all() and np.isfinite(b)):
            raise ValueError("the weights must be finite")
        if b != 0.0 and rows.intercept_scaling == 0.0:
            raise ValueError(
                f"the classifier has an intercept, {b:g}, but was trained without one "
                "(fit_intercept=False). Pass intercept_scaling, or penalize_intercept=False, too, "
                "to measure it with an intercept."
            )
        signs = np.where(position == positive, 1.0, -1.0)
        weights = weights_in_problem(factors, position, positive, given_weights)
        problem = Problem(rows, signs, weights=weights, **objective.keywords)
        w = problem.weight_vector(coef.astype(np.float64), b)
        certificates.append(certify(problem, w, tol, max_iter, random_state))
    return certificates[0] if len(certificates) == 1 else certificates


Function: TypeAlias = tuple[int, NDArray[Any], float]
"""Position of a class, coefficients and intercept of its linear function against the rest."""


# What is assumed where a model does not tell.
_DEFAULTS: dict[str, Any] = {"loss": HINGE.name, "penalize_intercept": True}


def _fitted(model: Any, name: str) -> Any:
    """What a ``Model`` has under this name, and a fitted classifier under scikit-learn's."""
    if isinstance(model, Model):
        return getattr(model, name)
    return getattr(model, "feature_names_in_" if name == "feature_names" else f"{name}_", None)


def _functions_of(model: Any, n_classes: int) -> list[Function]:
    """The linear functions of a classifier, one for each class against the rest."""
    positive = positive_classes(n_classes)
    coefs = np.atleast_2d(dense(_fitted(model, "coef")))
    # Between several classes, libsvm's are functions of one against another.
    if len(coefs) != len(positive) or (hasattr(model, "n_support_") and n_classes > 2):
        raise ValueError(
            f"{type(model).__name__} is not one linear function per class against the rest"
        )
    # Without an intercept, scikit-learn has a single zero.
    intercepts = np.broadcast_to(np.ravel(_fitted(model, "intercept")), len(coefs))
    return [
        (i, np.ravel(coef), float(b))
        for i, coef, b in zip(positive, coefs, intercepts, strict=True)
    ]


def _minimised(model: Any, n_rows: int) -> dict[str, Any]:
    """What a classifier minimised, as far as it tells."""
    certificates = _fitted(model, "certificates")
    if certificates:
        # Parameters may have been changed since fit.
        names = ("C", "intercept_scaling", *_DEFAULTS)
        return {name: getattr(certificates[0], name) for name in names}
    parameters = _parameters(model)
    if isinstance(model, Model):
        told = {name: parameters[name] for name in ("C", *_DEFAULTS) if name in parameters}
        return {**_DEFAULTS, **told, "intercept_scaling": model.intercept_scaling}
    rho = parameters.get("intercept_scaling", 1.0) if parameters.get("fit_intercept", True) else 0.0
    # An intercept has a scale where it is penalised like a weight.
    penalised = parameters.get("penalize_intercept", "intercept_scaling" in parameters)
    objective = {**_DEFAULTS, "intercept_scaling": rho, "penalize_intercept": penalised}
    if parameters.get("loss") in LOSSES:
        objective["loss"] = parameters["loss"]
        # SGDClassifier minimises alpha/2 |w|^2 plus the mean of the losses.
        if parameters.get("alpha"):
            objective["C"] = 1.0 / (float(parameters["alpha"]) * n_rows)
    if parameters.get("C") is not None:
        objective["C"] = parameters["C"]
    return objective


def _parameters(model: Any) -> dict[str, Any]:
    """The parameters of a classifier, as far as it tells."""
    if isinstance(model, Model):
        return model.parameters
    parameters: dict[str, Any] = model.get_params() if hasattr(model, "get_params") else {}
    return parameters


def _is_known(model: Any) -> bool:
    """Whether a classifier is known to minimise the objective that ``_minimised`` tells."""
    if _fitted(model, "certificates"):
        return True
    parameters = _parameters(model)
    if isinstance(model, Model):
        # A model from liblinear has no C, and a loss if its solver minimises one of ours.
        return not parameters.keys().isdisjoint({"C", "loss"})
    # By name, since scikit-learn is not imported here.
    bases = {f"{cls.__module__.split('.')[0]}.{cls.__name__}" for cls in type(model).__mro__}
    l2 = parameters.get("penalty", "l2") == "l2"
    if "sklearn.LinearSVC" in bases:
        return bool(l2 and parameters.get("multi_class", "ovr") == "ovr")
    if "sklearn.SGDClassifier" in bases:
        # Early stopping leaves rows out. The passive-aggressive rates are no gradient descent.
        descends = parameters.get("learning_rate") not in ("pa1", "pa2")
        all_rows = not parameters.get("early_stopping")
        ours = parameters.get("loss") in LOSSES and parameters.get("alpha", 0.0) > 0
        return bool(l2 and ours and descends and all_rows)
    # After partial_fit, certsvm's classifier has no certificates.
    return not bases.isdisjoint({"certsvm.LinearSVC", "sklearn.SVC"})


def _function_of_vector(model: Any, classes: NDArray[Any], intercept: float) -> list[Function]:
    """A weight vector as the linear function of the larger of two labels."""
    if hasattr(model, "fit"):
        raise ValueError(
            f"this {type(model).__name__} has no coef_: pass a fitted linear classifier; of a "
            "pipeline, its last step with the transformed X"
        )
    if classes.size != 2:
        raise ValueError(f"a weight vector separates two classes, y has {classes.size}")
    w = dense(model).astype(np.float64)
    # One row of a classifier's coef_ is welcome as it is.
    return [(1, w[0] if w.shape[:-1] == (1,) else w, intercept)]


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


def _warn_of_other_objective(model: Any, minimised: dict[str, Any], asked: dict[str, Any]) -> None:
    """Warn unless the model is known to have minimised what is asked about."""
    problem, own = (Certificate(np.inf, 0.0, 0.0, **o).problem for o in (asked, minimised))
    if not _is_known(model):
        what = "is not known to minimise an objective of certsvm with its parameters"
    elif own != problem:
        what = f"minimised another objective ({own})"
    else:
        return
    warnings.warn(
        f"{type(model).__name__} {what}. The certificate is about {problem}, and so is the gap: "
        "a model may be optimal for its own objective and far from optimal for this one.",
        stacklevel=3,
    )


def _class_weights(model: Any, n_classes: int) -> NDArray[np.float64]:
    """The factors of a classifier's class weights."""
    factors = _fitted(model, "class_weight")
    if factors is not None:
        return np.asarray(factors, dtype=np.float64)
    if getattr(model, "class_weight", None) is not None:
        raise ValueError(
            f"{type(model).__name__} was trained with class_weight; pass the resulting weights of "
            "the rows as sample_weight, and instead of the classifier coef_[i] with intercept_[i], "
            "for the i-th class against the rest"
        )
    return np.ones(n_classes)


def _row_weights(sample_weight: ArrayLike | None, n_rows: int) -> NDArray[np.float64]:
    given = 1.0 if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    return np.broadcast_to(given, (n_rows,))
