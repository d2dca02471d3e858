"""A certificate for any linear classifier, wherever it came from."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from certsvm.certificates.best import BestBounds
from certsvm.certificates.certificate import DEFAULT_TOL, Certificate, Certificates, relative_gap
from certsvm.certificates.dual import dual_point
from certsvm.certificates.primal import primal_bound
from certsvm.files.model import Model
from certsvm.kernels.losses import HINGE, LOSSES, loss_named
from certsvm.matrices import columns_in_order, dense, exact_labels
from certsvm.problem.base import Objective
from certsvm.problem.problems import Problem
from certsvm.problem.rows import Rows, Vector
from certsvm.resources import require_memory_for
from certsvm.scalars import as_float
from certsvm.solvers import Auto, Start
from certsvm.solvers.dual_coordinates import alpha_from_margins
from certsvm.training.loop import train
from certsvm.training.settings import INTERRUPTED, Progress, Settings
from certsvm.verification.verify import binary_problems, positive_classes

# Passes end when L could rise by this share of the accuracy to prove, at most.
_WORTH_IT = 0.1
# Or when the gap is below this share of it, which leaves room for rounding.
_CLEARLY = 0.9
_OBJECTIVE = ("C", "loss", "intercept_scaling", "penalize_intercept")


def bound(
    model: Any, X: Any, y: ArrayLike, *, C: float | None = None, loss: str | None = None,
    intercept: float | None = None, intercept_scaling: float | None = None,
    penalize_intercept: bool | None = None, sample_weight: ArrayLike | None = None,
    tol: float = DEFAULT_TOL, max_iter: int = 100, random_state: int | None = 0,
) -> Certificate | list[Certificate]:  # fmt: skip
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
    tol : float, default=1e-4
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
    labels = exact_labels(y).ravel()
    given = getattr(model, "best_estimator_", model)
    is_vector = not (isinstance(given, Model) or hasattr(given, "coef_"))
    if is_vector:
        model, is_known = _of_vector(given, labels, intercept), False
    elif intercept is not None:
        raise ValueError("a classifier brings its own intercept; leave intercept out")
    else:
        model, is_known = _of_classifier(given, labels.size)
    if intercept_scaling is not None and penalize_intercept is None:
        penalize_intercept = True
    stated = {"loss": model.loss, "intercept_scaling": model.intercept_scaling}
    stated |= {name: model.parameters[name] for name in _OBJECTIVE if name in model.parameters}
    values = zip(_OBJECTIVE, (C, loss, intercept_scaling, penalize_intercept), strict=True)
    asked = {"penalize_intercept": True, **stated}
    asked |= {name: value for name, value in values if value is not None}
    if "C" not in asked:
        what = "has no parameter C: pass the C of the problem (C=..., or -c)"
        raise ValueError(f"{type(given).__name__} {what}")
    rho = asked["intercept_scaling"]
    objective = Objective(asked["C"], loss_named(asked["loss"]), asked["penalize_intercept"])
    asked["C"] = objective.C
    about, minimised = (
        Certificate(np.inf, 0.0, 0.0, **of).problem for of in (asked, {**asked, **stated})
    )
    if not (is_vector or (is_known and about == minimised)):
        what = "is not known to minimise an objective of certsvm with its parameters"
        what = f"minimised another objective ({minimised})" if is_known else what
        about = f"The certificate is about {about}, from whose optimum the model may be far."
        warnings.warn(f"{type(given).__name__} {what}. {about}", stacklevel=2)
    rows = Rows(columns_in_order(X, model.feature_names), intercept_scaling=rho)
    require_memory_for(rows.dimension, Auto.n_vectors)
    if model.n_features != rows.n_columns:
        raise ValueError(f"X has {rows.n_columns} columns, the model weights of {model.n_features}")
    if rho == 0.0 and model.intercept.any():
        raise ValueError(
            f"the classifier has an intercept, {model.intercept[model.intercept != 0.0][0]:g}, but "
            "was trained without one: pass intercept_scaling, or penalize_intercept=False, too"
        )
    certificates = []
    problems = binary_problems(
        model.classes, model.class_weight, labels, sample_weight, rows.n_rows
    )
    for (signs, weights), coef, b in zip(problems, model.coef, model.intercept, strict=True):
        problem = Problem(rows, signs, weights=weights, **objective.keywords)
        w = problem.weight_vector(coef, float(b))
        certificates.append(certify(problem, w, tol, max_iter, random_state))
    return certificates[0] if len(certificates) == 1 else Certificates(certificates, model.classes)


def _of_vector(w: Any, labels: NDArray[Any], intercept: float | None) -> Model:
    """A weight vector as a model of two classes, with the hinge loss."""
    if hasattr(w, "fit"):
        what = "pass a fitted linear classifier; of a pipeline, its last step and its X"
        raise ValueError(f"this {type(w).__name__} has no coef_: {what}")
    if (classes := np.unique(labels)).size != 2:
        raise ValueError(f"a weight vector separates two classes, y has {classes.size}")
    return Model(
        np.atleast_2d(dense(w)), np.array([as_float(intercept or 0.0, "intercept")]), classes,
        np.ones(2), parameters={"intercept_scaling": 0.0 if intercept is None else 1.0},
    )  # fmt: skip


def _of_classifier(clf: Any, n_rows: int) -> tuple[Model, bool]:
    """A fitted classifier as a model, and whether it is known to minimise what that says."""
    if isinstance(clf, Model):
        # One from liblinear has no C, and a loss if its solver minimises one of ours.
        return clf, "C" in clf.parameters or "loss" in clf.parameters
    if hasattr(clf, "certificates_"):
        return Model.from_estimator(clf), True
    name = type(clf).__name__
    if not hasattr(clf, "classes_"):
        raise ValueError(f"{name} has no classes_: it is not a classifier")
    coef, n_classes = np.atleast_2d(dense(clf.coef_)), len(clf.classes_)
    n_problems = len(positive_classes(n_classes))
    # Between several classes, libsvm's are functions of one against another.
    if len(coef) != n_problems or (hasattr(clf, "n_support_") and n_classes > 2):
        raise ValueError(f"{name} is not one linear function for each class")
    has: dict[str, Any] = clf.get_params() if hasattr(clf, "get_params") else {}
    if has.get("class_weight") is not None and not hasattr(clf, "class_weight_"):
        raise ValueError(
            f"{name} was trained with class_weight; pass coef_[i] with intercept_[i] for the i-th "
            "class, and the weights of the rows as sample_weight"
        )
    parameters: dict[str, Any] = {
        "loss": has["loss"] if has.get("loss") in LOSSES else HINGE.name,
        "intercept_scaling": float(has.get("intercept_scaling", 1) * has.get("fit_intercept", 1)),
        # An intercept has a scale where it is penalised like a weight.
        "penalize_intercept": "intercept_scaling" in has,
    }
    if has.get("C") is not None:
        parameters["C"] = float(has["C"])
    elif has.get("loss") in LOSSES and has.get("alpha"):
        # SGDClassifier minimises alpha/2 |w|^2 plus the mean of the losses.
        parameters["C"] = 1.0 / (float(has["alpha"]) * n_rows)
    model = Model(
        # Without an intercept, scikit-learn has a single zero.
        coef, np.broadcast_to(np.ravel(clf.intercept_), n_problems), clf.classes_,
        getattr(clf, "class_weight_", np.ones(n_classes)), parameters=parameters,
        feature_names=getattr(clf, "feature_names_in_", None),
    )  # fmt: skip
    # Classes are known by package and name, since scikit-learn is not imported here.
    bases = {f"{cls.__module__.split('.')[0]}.{cls.__name__}" for cls in type(clf).__mro__}
    plain = has.get("penalty", "l2") == "l2" and has.get("multi_class", "ovr") == "ovr"
    # Early stopping leaves rows out. The passive-aggressive rates are no gradient descent.
    descends = has.get("learning_rate") not in ("pa1", "pa2") and not has.get("early_stopping")
    sgd = descends and has.get("loss") in LOSSES and has.get("alpha", 0.0) > 0
    is_known = "sklearn.LinearSVC" in bases or ("sklearn.SGDClassifier" in bases and sgd)
    return model, "sklearn.SVC" in bases or (plain and is_known)


def certify(
    problem: Problem, w: Vector, tol: float = DEFAULT_TOL, max_iter: int = 100, seed: int | None = 0
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
        start=Start(w, alpha=alpha), callbacks=[proved], name="bound",
    )  # fmt: skip
    if result.reason == INTERRUPTED:
        raise KeyboardInterrupt
    better = replace(
        result.certificate, primal=certificate.primal, primal_rounding=certificate.primal_rounding,
        target=tol,
    )  # fmt: skip
    return max(certificate, better, key=lambda c: c.dual - c.dual_rounding)
