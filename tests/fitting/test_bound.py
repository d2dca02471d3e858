"""bound(): a certificate for any linear classifier."""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import make_classification
from sklearn.linear_model import SGDClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC, LinearSVR, NuSVC
from sklearn.svm import LinearSVC as LiblinearSVC
from sklearn.utils import all_estimators

from certsvm import LinearSVC, LinearSVCCV, bound
from certsvm.files.liblinear import load_liblinear
from certsvm.kernels.losses import LOSSES
from tests.exact import exact_optimum
from tests.problems import Case, cases, exact, exact_objective

X, y = make_classification(n_samples=400, n_features=10, flip_y=0.1, random_state=0)
C = 0.1


@given(
    case=cases(losses=tuple(LOSSES), free_intercepts=True),
    seed=st.integers(0, 2**32 - 1),
    size=st.floats(0, 10),
)
def test_it_is_true_for_any_w(case: Case, seed: int, size: float) -> None:
    labels = case.labels
    if np.unique(labels).size < 2:
        return
    w: Any = size * np.random.default_rng(seed).standard_normal(case.patterns().shape[1])
    rho = case.intercept_scaling
    coef, intercept = (w[:-1], float(w[-1] * rho)) if rho else (w, None)
    certificate = bound(
        coef, case.matrix(), labels, C=case.C, loss=case.loss, intercept=intercept,
        intercept_scaling=rho or None, sample_weight=case.weights, max_iter=5,
        penalize_intercept=case.penalize_intercept,
    )  # fmt: skip
    assert certificate.loss == case.loss
    assert certificate.penalize_intercept != case.free_intercept
    found = exact_optimum(case)
    J = exact_objective(case, w)
    assert certificate.primal == pytest.approx(float(J), rel=1e-9, abs=1e-12)
    if found is not None:
        best = exact_objective(case, found.w)
        assert exact(certificate.dual) - exact(certificate.dual_rounding) <= best
        assert exact(certificate.primal) + exact(certificate.primal_rounding) >= best


@pytest.mark.parametrize("intercept_scaling", [1.0, 3.0])
def test_the_default_of_scikit_learn_is_certified(intercept_scaling: float) -> None:
    clf = LiblinearSVC(C=C, tol=1e-8, intercept_scaling=intercept_scaling).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        certificate = bound(clf, X, y, tol=1e-6)
    assert certificate.met
    assert (certificate.loss, certificate.penalize_intercept) == ("squared_hinge", True)
    assert certificate.intercept_scaling == intercept_scaling
    # On the hinge loss, it is not optimal.
    with pytest.warns(UserWarning, match="LinearSVC minimised another objective"):
        assert bound(clf, X, y, loss="hinge", tol=1e-3).proved_gap > 0.01


@pytest.mark.parametrize("class_weight", [None, "balanced", {0: 0.5, 1: 3.0}])
def test_libsvm_of_two_classes_is_certified(class_weight: Any) -> None:
    weights = np.linspace(0.5, 1.5, len(y))
    clf = SVC(C=C, kernel="linear", tol=1e-7, class_weight=class_weight)
    clf.fit(X + 1.0, y, sample_weight=weights)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        certificate = bound(clf, X + 1.0, y, sample_weight=weights, tol=1e-3, max_iter=2000)
    assert certificate.met
    assert (certificate.loss, certificate.penalize_intercept) == ("hinge", False)
    losses = np.maximum(0, 1 - np.where(y == 1, 1, -1) * clf.decision_function(X + 1.0))
    s = weights * clf.class_weight_[y]
    J = 0.5 * np.sum(clf.coef_**2) + C * s @ losses
    assert certificate.primal == pytest.approx(J)


SMALL, TWO = X[:40, :3].round(3), y[:40]
THREE = np.arange(40) % 3
KNOWN: list[tuple[Any, Any, tuple[float, str, float, bool]]] = [
    (LiblinearSVC(C=0.3), TWO, (0.3, "squared_hinge", 1.0, True)),
    (LiblinearSVC(C=0.3), THREE, (0.3, "squared_hinge", 1.0, True)),
    (LiblinearSVC(loss="hinge", intercept_scaling=4.0), TWO, (1.0, "hinge", 4.0, True)),
    (LiblinearSVC(fit_intercept=False), THREE, (1.0, "squared_hinge", 0.0, True)),
    (SGDClassifier(alpha=0.01), THREE, (2.5, "hinge", 1.0, False)),
    (SGDClassifier("squared_hinge", alpha=0.01), TWO, (2.5, "squared_hinge", 1.0, False)),
    (SGDClassifier(alpha=0.01, average=True), TWO, (2.5, "hinge", 1.0, False)),
    (SVC(C=0.3, kernel="linear"), TWO, (0.3, "hinge", 1.0, False)),
    (LinearSVC(0.3, loss="squared_hinge"), THREE, (0.3, "squared_hinge", 1.0, True)),
    (LinearSVC(0.3, penalize_intercept=False), TWO, (0.3, "hinge", 1.0, False)),
    (LinearSVCCV(Cs=[0.3], fit_intercept=False, cv=2), THREE, (0.3, "hinge", 0.0, True)),
    (GridSearchCV(LiblinearSVC(), {"C": [0.3]}, cv=2), TWO, (0.3, "squared_hinge", 1.0, True)),
]


@pytest.mark.parametrize(("clf", "labels", "objective"), KNOWN)
def test_the_objective_is_the_models_own(clf: Any, labels: Any, objective: Any) -> None:
    C, loss, rho, penalised = objective
    clf.fit(SMALL, labels)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = bound(clf, SMALL, labels, max_iter=1)
    fitted = getattr(clf, "best_estimator_", clf)
    certificates = found if isinstance(found, list) else [found]
    positive = [1] if labels is TWO else [0, 1, 2]
    intercepts = np.broadcast_to(fitted.intercept_, len(positive))
    problems = zip(positive, fitted.coef_, intercepts, certificates, strict=True)
    for label, coef, b, certificate in problems:
        signs = np.where(labels == label, 1.0, -1.0)
        case = Case(SMALL, signs, None, C, rho, loss=loss, penalize_intercept=penalised)
        J = exact_objective(case, [*coef, b / rho] if rho else coef)
        assert abs(exact(certificate.primal) - J) <= exact(certificate.primal_rounding)
        for text in (certificate.loss, certificate.problem):
            assert loss in text.replace(" ", "_")


OTHERS: list[tuple[Any, Any, float | None]] = [
    (LiblinearSVC(penalty="l1"), TWO, None),
    (LiblinearSVC(multi_class="crammer_singer"), THREE, None),
    (NuSVC(kernel="linear"), TWO, 1.0),
    (SGDClassifier(alpha=0.01, penalty="elasticnet"), TWO, None),
    (SGDClassifier(alpha=0.01, early_stopping=True), TWO, None),
    (SGDClassifier("modified_huber"), TWO, 1.0),
    # An objective of ours, but not this one.
    (LiblinearSVC(), TWO, 2.0),
    (LinearSVC(), TWO, 2.0),
]


@pytest.mark.parametrize(("clf", "labels", "C"), OTHERS)
def test_bound_warns_of_an_objective_that_is_not_the_models(clf: Any, labels: Any, C: Any) -> None:
    clf.fit(SMALL, labels)
    with pytest.warns(UserWarning, match=type(clf).__name__):
        bound(clf, SMALL, labels, C=C, max_iter=1)


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_no_other_linear_model_of_scikit_learn_is_taken_for_one_of_ours() -> None:
    silent: set[str] = set()
    heard: set[str] = set()
    for name, cls in all_estimators():
        if cls.__module__.split(".")[1] not in ("linear_model", "svm", "discriminant_analysis"):
            continue
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                model = cls(**({"kernel": "linear"} if "kernel" in cls().get_params() else {}))
                model.fit(SMALL, TWO)
            except (TypeError, ValueError):
                continue  # regressors of several outputs
            caught.clear()
            try:
                bound(model, SMALL, TWO, max_iter=1)
            except ValueError as error:
                caught.append(error)  # type: ignore[arg-type]
        (heard if caught else silent).add(name)
    assert silent == {"LinearSVC", "SGDClassifier", "SVC"}
    assert {"LogisticRegression", "Perceptron", "LinearSVR", "SGDOneClassSVM", "Ridge"} < heard


@pytest.mark.parametrize("solver", ["L2R_L2LOSS_SVC", "MCSVM_CS"])
def test_a_model_of_liblinear_has_a_loss_but_no_C(tmp_path: Path, solver: str) -> None:
    clf = LiblinearSVC(C=C).fit(X, THREE := np.arange(len(y)) % 3)
    weights = "\n".join(" ".join(map(repr, row)) for row in clf.coef_.T.tolist())
    (tmp_path / "a.txt").write_text(
        f"solver_type {solver}\nnr_class 3\nlabel 0 1 2\nnr_feature 10\nbias -1\nw\n{weights}\n"
    )
    model = load_liblinear(tmp_path / "a.txt")
    with pytest.raises(ValueError, match="pass the C"):
        bound(model, X, THREE)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        certificates: Any = bound(model, X, THREE, C=C, max_iter=1)
    assert len(caught) == (solver == "MCSVM_CS")
    expected = "hinge" if solver == "MCSVM_CS" else "squared_hinge"
    assert {certificate.loss for certificate in certificates} == {expected}


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
@pytest.mark.parametrize("clf", [LiblinearSVC(C=C), LinearSVCCV(Cs=[C], random_state=0)])
def test_columns_of_a_frame_are_matched_by_name(clf: Any, frame: Any) -> None:
    names = [f"x{i}" for i in range(10)]
    data = frame(dict(zip(names, X.T, strict=True)))
    certificate = bound(clf.fit(data, y), data, y)
    assert bound(clf, data[names[::-1]], y) == bound(clf, X, y) == certificate
    with pytest.raises(ValueError, match="'x0'"):
        bound(clf, data[names[1:]], y)
    # Without names, columns go by position.
    assert bound(clf.fit(X, y), data, y) == bound(clf, X, y)


def test_an_infinite_objective_has_the_best_lower_bound_all_the_same() -> None:
    optimum = LinearSVC(1.0, fit_intercept=False, random_state=0).fit(X, y).certificate_.dual
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        certificate = bound(np.full(X.shape[1], 1e160), X, y, C=1.0)
    assert not certificate.met
    assert certificate.dual > 0.9 * optimum


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: bound(np.zeros(10), X, y), "pass the C"),
        (lambda: bound(SGDClassifier("log_loss").fit(X, y), X, y), "no parameter C"),
        (lambda: bound(np.zeros(9), X, y, C=1.0), "10 columns"),
        (lambda: bound(np.zeros(10), X, y * 0, C=1.0), "two classes"),
        (lambda: bound(make_pipeline(LinearSVC()).fit(X, y), X, y, C=1.0), "its last step"),
        (lambda: bound(CalibratedClassifierCV(LinearSVC()).fit(X, y), X, y), "has no coef_"),
        (lambda: bound(LinearSVR().fit(X, y), X, y, C=1.0), "not a classifier"),
        (lambda: bound(np.full(10, np.nan), X, y, C=1.0), "finite"),
        (lambda: bound(np.zeros(10), X, y, C=1.0, intercept_scaling=-1.0), "intercept_scaling"),
        (lambda: bound(LiblinearSVC().fit(X, y), X, y, intercept=1.0), "its own intercept"),
        (lambda: bound(LiblinearSVC().fit(X, y), X, y + 5), "not trained on"),
        (lambda: bound(SVC(kernel="linear").fit(SMALL, THREE), SMALL, THREE), "not one linear"),
        (lambda: bound(LiblinearSVC(class_weight="balanced").fit(X, y), X, y), "class_weight"),
    ],
)
def test_errors(call: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()
