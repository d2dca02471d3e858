"""LinearSVC: classes, data of all kinds, both losses and intercepts, streams, checkpoints."""

import pickle
import tracemalloc
import warnings
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC
from sklearn.svm import LinearSVC as LiblinearSVC

from certsvm import Certificate, LinearSVC
from certsvm.fitting.sources import MemorySource
from certsvm.training.loop import CheckpointError


@pytest.fixture(scope="module")
def binary() -> tuple[Any, Any]:
    return make_classification(n_samples=500, n_features=10, flip_y=0.1, random_state=0)


@pytest.fixture(scope="module")
def several() -> tuple[Any, Any]:
    return make_classification(500, 10, n_informative=6, n_classes=4, random_state=0)


def overlap(a: Certificate, b: Certificate) -> bool:
    """Whether both certified intervals, which hold the same optimum, have a point in common."""
    lows = [c.dual - c.dual_rounding for c in (a, b)]
    highs = [c.primal + c.primal_rounding for c in (a, b)]
    return max(lows) <= min(highs)


def test_several_classes(several: Any) -> None:
    X, y = several
    clf = LinearSVC(C=0.1, random_state=0).fit(X, y)
    assert clf.coef_.shape == (4, 10)
    assert len(clf.certificates_) == len(clf.history_) == 4
    assert clf.certificate_ is max(clf.certificates_, key=lambda c: c.proved_gap)
    assert clf.n_iter_ == max(len(history) for history in clf.history_)
    frame = pickle.loads(pickle.dumps(clf)).history_.to_frame()
    assert frame.groupby("class").passes.max().tolist() == [*map(len, clf.history_)]
    for i in range(4):
        one = LinearSVC(C=0.1, tol=1e-3, random_state=0, max_iter=10_000).fit(X, y == i)
        assert overlap(one.certificate_, clf.certificates_[i])


@pytest.mark.parametrize("n_jobs", [3, -1])
def test_the_same_seed_gives_the_same_bits_for_any_n_jobs(several: Any, n_jobs: int) -> None:
    X, y = several
    one = LinearSVC(C=0.1, random_state=7, store_dual=True).fit(X, y)
    many = LinearSVC(C=0.1, random_state=7, store_dual=True, n_jobs=n_jobs).fit(X, y)
    assert one.coef_.tobytes() == many.coef_.tobytes()
    assert one.dual_coef_.tobytes() == many.dual_coef_.tobytes()
    assert one.certificates_ == many.certificates_


@pytest.mark.parametrize("make", [sp.csr_array, sp.csc_matrix])
def test_sparse_and_dense_agree(binary: Any, make: Any) -> None:
    X, y = binary
    dense = LinearSVC(C=0.1, random_state=0).fit(X, y)
    sparse = LinearSVC(C=0.1, random_state=0).fit(make(X), y)
    np.testing.assert_allclose(dense.coef_, sparse.coef_, rtol=1e-6)
    np.testing.assert_array_equal(dense.predict(X), sparse.predict(make(X)))


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
def test_data_frames(binary: Any, frame: Any) -> None:
    X, y = binary
    names = [f"x{j}" for j in range(10)]
    table = frame(dict(zip(names, X.T, strict=True)))
    clf = LinearSVC(C=0.1, random_state=0).fit(table, y)
    assert clf.feature_names_in_.tolist() == names
    np.testing.assert_allclose(clf.coef_, LinearSVC(C=0.1, random_state=0).fit(X, y).coef_)
    wrong = frame(dict(zip(reversed(names), X.T, strict=True)))
    with pytest.raises(ValueError, match="feature names"):
        clf.predict(wrong)


def test_data_are_not_copied(binary: Any) -> None:
    X, y = binary
    for data in (X.astype(np.float32), X, sp.csr_matrix(X, dtype=np.float32)):
        source = LinearSVC()._source(data, y, None)
        values = data.data if sp.issparse(data) else data
        assert np.shares_memory(source.rows.arrays.values, values)


def test_missing_the_target_is_told_with_numbers(binary: Any) -> None:
    X, y = binary
    message = r"max_iter reached after 2 passes\. .* target 0\.00123456 % not met"
    with pytest.warns(ConvergenceWarning, match=message) as record:
        clf = LinearSVC(solver="newton", tol=1.23456e-5, max_iter=2, random_state=0).fit(X, y)
    assert "raise max_iter" in str(record[0].message)
    assert str(clf.certificate_) in str(record[0].message)
    assert not clf.certificate_.met
    assert clf.certificate_.relative_gap > 1e-5
    assert record[0].filename == __file__


@pytest.mark.filterwarnings("error")
def test_a_warning_that_is_an_error_does_not_cost_the_model(binary: Any) -> None:
    clf = LinearSVC(solver="newton", tol=1e-9, max_iter=2, random_state=0)
    with pytest.raises(ConvergenceWarning):
        clf.fit(*binary)
    assert clf.n_iter_ == 2
    assert not clf.certificate_.met


@pytest.mark.parametrize(
    ("parameters", "weights", "message"),
    [
        ({"C": 10**400}, None, "C is too large for float64"),
        ({"tol": 10**400}, None, "tol is too large for float64"),
        ({"intercept_scaling": 10**400}, None, "intercept_scaling is too large for float64"),
        ({"class_weight": {"0": 1.0}}, None, "mind the type"),
        ({"class_weight": {0: -1.0}}, None, "not negative"),
        ({"class_weight": {0: np.nan}}, None, "finite"),
        ({"class_weight": {0: 0.0}}, None, "only one class, 1"),
        ({}, np.full(500, -1.0), "must not be negative"),
        ({}, np.full(500, np.nan), "NaN"),
        ({}, np.ones(3), "shape"),
        ({}, np.zeros(500), "non-zero|no class"),
    ],
)
def test_bad_numbers(binary: Any, parameters: Any, weights: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        LinearSVC(**parameters).fit(*binary, sample_weight=weights)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_bad_values_are_located(binary: Any, bad: float) -> None:
    X, y = binary
    X = X.copy()
    X[17, 3] = bad
    with pytest.raises(ValueError, match="row 17, column 3"):
        LinearSVC().fit(X, y)
    with pytest.raises(ValueError, match="row 17, column 3"):
        LinearSVC().fit(sp.csr_matrix(X), y)
    clf = LinearSVC(random_state=0).fit(*binary)
    with pytest.raises(ValueError, match=r"NaN|infinity"):
        clf.predict(X)


FAILURES = {
    "nan": lambda clf, X, y: clf.fit(np.full((40, 3), np.nan), np.arange(40) % 2),
    "one class": lambda clf, X, y: clf.fit(X[:, :2], np.zeros(len(y))),
    "n_jobs": lambda clf, X, y: clf.set_params(n_jobs=0).fit(X, np.where(y, "yes", "no")),
    "weights": lambda clf, X, y: clf.fit(X[:, :2], y, sample_weight=-np.ones(len(y))),
    "store_dual": lambda clf, X, y: clf.set_params(solver="sgd-r", store_dual=True).fit(X, y),
    "partial labels": lambda clf, X, y: clf.partial_fit(X, y + 5),
    "partial total": lambda clf, X, y: clf.partial_fit(X, y, total_samples=0),
}


@pytest.mark.parametrize("failure", FAILURES)
def test_a_failed_fit_loses_nothing(binary: Any, failure: str) -> None:
    X, y = binary
    clf = LinearSVC(C=0.1, random_state=0).fit(X, y)
    before = {name: value for name, value in vars(clf).items() if name.endswith("_")}
    scores = clf.decision_function(X)
    with pytest.raises(ValueError, match=r"\w"):
        FAILURES[failure](clf, X, y)
    assert {name: value for name, value in vars(clf).items() if name.endswith("_")} == before
    np.testing.assert_array_equal(clf.decision_function(X), scores)
    first = LinearSVC()
    with pytest.raises(ValueError, match=r"\w"):
        first.partial_fit(np.full_like(X, np.nan), y, classes=[0, 1])
    assert not hasattr(first, "classes_")


def test_predictions_on_float32_do_not_copy_the_data() -> None:
    X = np.random.default_rng(0).standard_normal((60_000, 50)).astype(np.float32)
    clf = LinearSVC(C=1e-5, random_state=0).fit(X, X[:, 0] > 0)
    tracemalloc.start()
    scores = clf.decision_function(X)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < X.nbytes
    np.testing.assert_allclose(scores, X.astype(float) @ clf.coef_[0] + clf.intercept_)


def test_partial_fit_is_sgd_over_the_stream(binary: Any) -> None:
    """With total_samples, T passes in batches are the paper's SGD without permutations."""
    X, y = binary
    clf = LinearSVC(C=0.1, fit_intercept=False)
    lambda_ = 1 / (0.1 * 500)
    a, t = np.zeros(10), 0
    signs = np.where(y == 1, 1.0, -1.0)
    for _ in range(2):
        for start in range(0, 500, 130):
            batch = slice(start, start + 130)
            clf.partial_fit(X[batch], y[batch], classes=[0, 1], total_samples=500)
        for k in range(500):
            if signs[k] * (a @ X[k]) <= lambda_ * t:
                a += signs[k] * X[k]
            t += 1
    assert clf.t_ == t == 1000
    np.testing.assert_allclose(clf.coef_[0], a / (lambda_ * t), rtol=1e-6)


def test_partial_fit_learns_and_does_not_certify(several: Any) -> None:
    X, y = several
    clf = LinearSVC(C=0.1)
    for start in range(0, 500, 50):
        clf.partial_fit(X[start : start + 50], y[start : start + 50], classes=[0, 1, 2, 3])
    assert clf.certificate_ is None
    assert clf.n_samples_seen_ == 500
    assert clf.score(X, y) > 0.5
    clf.set_params(warm_start=True, random_state=0).fit(X, y)
    assert clf.certificate_.met
    clf.partial_fit(X[:50], y[:50])
    assert clf.certificate_ is None
    assert not hasattr(clf, "history_")


def test_partial_fit_weighs_rows(several: Any) -> None:
    X, y = several

    def streamed(C: float, rows: slice, weights: Any = None) -> LinearSVC:
        clf = LinearSVC(C=C)
        return clf.partial_fit(X[rows], y[rows], [0, 1, 2, 3], weights, total_samples=500)

    every = slice(None)
    plain = streamed(0.1, every)
    twice = streamed(0.1, every, np.full(500, 2.0))
    np.testing.assert_allclose(twice.coef_, streamed(0.2, every).coef_)
    assert not np.allclose(twice.coef_, plain.coef_)
    # Rows of weight zero count as absent.
    half = streamed(0.1, every, np.repeat([1.0, 0.0], 250))
    np.testing.assert_allclose(half.coef_, streamed(0.1, slice(250)).coef_)
    with pytest.raises(ValueError, match="must not be negative"):
        streamed(0.1, every, np.full(500, -1.0))


def test_partial_fit_errors(binary: Any) -> None:
    X, y = binary
    with pytest.raises(ValueError, match="classes must be passed on the first call"):
        LinearSVC().partial_fit(X, y)
    with pytest.raises(ValueError, match="at least two classes"):
        LinearSVC().partial_fit(X, y, classes=[1])
    clf = LinearSVC().partial_fit(X, y, classes=[0, 1])
    with pytest.raises(ValueError, match="not the same as on last call"):
        clf.partial_fit(X, y, classes=[0, 2])
    with pytest.raises(ValueError, match="not trained on"):
        clf.partial_fit(X, y + 1)
    with pytest.raises(ValueError, match="balanced"):
        LinearSVC(class_weight="balanced").partial_fit(X, y, classes=[0, 1])


def test_verbose_prints_the_gap(binary: Any, capsys: Any) -> None:
    LinearSVC(C=0.1, random_state=0, verbose=2).fit(*binary)
    *lines, summary = capsys.readouterr().err.splitlines()
    assert summary.endswith("target 0.01 % met")
    assert lines[0].startswith("pass     1")
    assert all("primal" in line and "dual" in line and "gap" in line for line in lines)


def test_a_fit_continues_from_its_checkpoint(several: Any, tmp_path: Any) -> None:
    X, y = several
    how: dict[str, Any] = {"solver": "sgd-s", "tol": 1e-12, "random_state": 0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        first = LinearSVC(max_iter=8, checkpoint=tmp_path, **how).fit(X, y)
        again = LinearSVC(max_iter=20, checkpoint=str(tmp_path), **how).fit(X, y)
        with pytest.raises(CheckpointError, match="C = "):
            LinearSVC(C=2.0, max_iter=20, checkpoint=tmp_path, **how).fit(X, y)
    assert again.n_iter_ == 20
    assert [history["passes"][0] for history in again.history_] == [8] * len(first.certificates_)
    for now, before in zip(again.certificates_, first.certificates_, strict=True):
        assert now.primal <= before.primal
        assert now.dual >= before.dual


def test_a_checkpoint_is_not_for_warm_starts(several: Any, tmp_path: Any) -> None:
    with pytest.raises(ValueError, match="warm starts"):
        LinearSVC(checkpoint=tmp_path, warm_start=True).fit(*several)
    assert not list(tmp_path.iterdir())


def liblinear(X: Any, y: Any, **parameters: Any) -> LiblinearSVC:
    """The optimum of scikit-learn's default problem, by Newton's method in the primal."""
    clf = LiblinearSVC(loss="squared_hinge", dual=False, tol=1e-10, max_iter=10**5, **parameters)
    return clf.fit(X, y)


def without_penalty(X: Any, y: Any, C: float, loss: str) -> tuple[Any, float]:
    """The optimum with a free intercept: of the hinge by libsvm, of its square by BFGS."""
    if loss == "hinge":
        clf = SVC(kernel="linear", C=C, tol=1e-10).fit(X, y)
        return clf.coef_[0], float(clf.intercept_[0])
    signs = np.where(y == 1, 1.0, -1.0)

    def objective(v: Any) -> tuple[float, Any]:
        violations = np.maximum(0.0, 1.0 - signs * (X @ v[:-1] + v[-1]))
        slopes = -2.0 * C * signs * violations
        value = 0.5 * v[:-1] @ v[:-1] + C * violations @ violations
        return value, np.append(v[:-1] + X.T @ slopes, slopes.sum())

    found = minimize(objective, np.zeros(X.shape[1] + 1), jac=True, method="BFGS", tol=1e-8)
    return found.x[:-1], float(found.x[-1])


@pytest.mark.parametrize(("solver", "C"), [("auto", 0.01), ("auto", 100.0), ("dcd", 1.0)])
def test_the_squared_hinge_is_that_of_scikit_learn(solver: str, C: float, binary: Any) -> None:
    X, y = binary
    ours = LinearSVC(C=C, loss="squared_hinge", tol=1e-9, solver=solver, max_iter=10_000).fit(X, y)
    theirs = liblinear(X, y, C=C)
    assert ours.certificate_.met
    assert ours.certificate_.loss == "squared_hinge"
    # |w - w*|^2 <= 2 (J - J*), by strong convexity.
    atol = np.sqrt(2.0 * 1e-9 * ours.certificate_.primal)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=0, atol=atol)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, rtol=0, atol=atol)
    signs = np.where(y == 1, 1.0, -1.0)
    losses = np.maximum(0.0, 1.0 - signs * ours.decision_function(X)) ** 2
    w = np.append(ours.coef_, ours.intercept_)
    assert ours.certificate_.primal == pytest.approx(0.5 * w @ w + C * losses.sum(), rel=1e-12)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("solver", ["auto", "dcd"])
def test_an_intercept_without_penalty(solver: str, loss: str) -> None:
    X, y = make_classification(300, 8, weights=[0.8], flip_y=0.1, random_state=1)
    # Away from the origin, the penalty on the intercept makes a difference.
    X += 2.0
    for C in (0.01, 1.0):
        coef, intercept = without_penalty(X, y, C, loss)
        parameters: Any = {"C": C, "loss": loss, "solver": solver, "tol": 1e-9, "max_iter": 10**5}
        for height in (1.0, 7.0):
            ours = LinearSVC(penalize_intercept=False, intercept_scaling=height, **parameters)
            ours.fit(X, y)
            assert ours.certificate_.met
            assert not ours.certificate_.penalize_intercept
            atol = np.sqrt(2.0 * 1e-9 * ours.certificate_.primal)
            np.testing.assert_allclose(ours.coef_[0], coef, rtol=0, atol=2 * atol)
            assert ours.intercept_[0] == pytest.approx(intercept, abs=2e-3)
        penalized = LinearSVC(**parameters).fit(X, y)
        assert abs(penalized.intercept_[0] - intercept) > 0.5
        assert penalized.certificate_.primal > ours.certificate_.primal


def test_without_an_intercept_there_is_none_to_penalise(binary: Any) -> None:
    free, usual = (
        LinearSVC(fit_intercept=False, penalize_intercept=penalize, random_state=0).fit(*binary)
        for penalize in (False, True)
    )
    np.testing.assert_array_equal(free.coef_, usual.coef_)
    assert free.certificate_ == usual.certificate_
    with pytest.raises(ValueError, match="penalize_intercept=True"):
        LinearSVC(solver="ocas", penalize_intercept=False).fit(*binary)
    LinearSVC(solver="ocas", penalize_intercept=False, fit_intercept=False).fit(*binary)


@pytest.mark.parametrize(
    ("parameters", "reason"),
    [
        ({"loss": "squared_hinge"}, "partial_fit is for loss='hinge'"),
        ({"penalize_intercept": False}, "not for penalize_intercept=False"),
    ],
)
def test_partial_fit_is_for_the_hinge(parameters: Any, reason: str, binary: Any) -> None:
    X, y = binary
    clf = LinearSVC(**parameters)
    assert not hasattr(clf, "partial_fit")
    with pytest.raises(AttributeError) as error:
        clf.partial_fit(X, y, classes=[0, 1])
    assert reason in str(error.value.__cause__)
    # Without an intercept there is none to penalise.
    other = LinearSVC(penalize_intercept=False, fit_intercept=False)
    assert other.partial_fit(X, y, classes=[0, 1]).score(X, y) > 0.7


@pytest.mark.parametrize("solver", ["working-set", "newton"])
def test_a_warm_start_knows_for_which_loss_its_dual_point_is(solver: str, binary: Any) -> None:
    X, y = binary
    clf = LinearSVC(C=0.5, loss="squared_hinge", tol=1e-6, warm_start=True, solver=solver)
    passes = clf.fit(X, y).n_iter_
    assert clf.fit(X, y).n_iter_ <= passes
    for objective in ({"loss": "hinge"}, {"penalize_intercept": False}):
        (start,) = clf.set_params(**objective)._starts(MemorySource(X, y, intercept_scaling=1.0))
        assert (start.alpha, start.smoothing) == (None, None)
        np.testing.assert_array_equal(start.w, np.append(clf.coef_, clf.intercept_))
        cold = clone(clf).fit(X, y)
        warm = pickle.loads(pickle.dumps(clf)).fit(X, y)
        assert warm.certificate_.met
        assert warm.certificate_.problem == cold.certificate_.problem
        assert warm.certificate_.primal == pytest.approx(cold.certificate_.primal, rel=2e-6)


def test_a_warm_start_needs_the_same_columns_and_classes(binary: Any) -> None:
    X, y = binary
    clf = LinearSVC(C=0.5, tol=1e-6, warm_start=True, solver="dcd", random_state=0).fit(X, y)
    for other, labels in ((X[:, :5], y), (X, y + 1), (X, np.arange(len(y)) % 3), (X[:50], y[:50])):
        cold = clone(clf).fit(other, labels)
        assert pickle.loads(pickle.dumps(clf)).fit(other, labels).certificate_.primal == (
            pytest.approx(cold.certificate_.primal, rel=2e-6)
        )
