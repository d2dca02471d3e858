"""What is said about support vectors is true of the exact optimum."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.optimize import linprog

from certsvm.certificates.certificate import Certificate
from certsvm.certificates.support import SupportStatus, free_rows
from certsvm.kernels.losses import LOSSES
from certsvm.models.optimum import Optimum, scored_blocks
from certsvm.problem.rows import split
from certsvm.solvers import DCD, Newton
from certsvm.training.loop import train
from certsvm.training.result import Result
from tests.certificates.test_balls import hard_cases
from tests.exact import ExactOptimum, exact_optimum
from tests.problems import Case, exact


def statuses(case: Case, result: Result, n_rows: int | None, blocks: int = 1) -> Any:
    """Of the rows of a case, in a number of blocks."""
    coef, intercept = split(result.w, case.intercept_scaling)

    def scored(X: Any) -> Any:
        return scored_blocks(X, (X @ coef + intercept)[:, np.newaxis], coef.size)

    X = case.matrix()
    optimum = Optimum(coef[np.newaxis], np.array([intercept]), [result.certificate], scored)
    cuts = np.linspace(0, X.shape[0], blocks + 1).astype(int)
    parts = [slice(a, b) for a, b in pairwise(cuts.tolist())]
    stream = iter([(X[p], case.labels[p], case.row_weights()[p]) for p in parts])
    return optimum.support_status(
        stream, None, None, classes=np.array([-1.0, 1.0]), class_weight=np.ones(2), n_rows=n_rows
    )


def require_true(case: Case, optimum: ExactOptimum, status: Any) -> None:
    """Assert every statement about a row of every optimal dual point."""
    weights = case.row_weights()
    for k, (margin, alpha) in enumerate(zip(optimum.margins, optimum.alpha, strict=True)):
        box = exact(case.C) * exact(weights[k])
        if status[k] == SupportStatus.NONE:
            assert margin > 1 or box == 0
        elif case.loss == "squared_hinge":
            assert status[k] in (SupportStatus.FREE, SupportStatus.UNDECIDED)
            assert status[k] == SupportStatus.UNDECIDED or alpha > 0
        elif status[k] == SupportStatus.BOUNDED:
            assert margin < 1
        elif status[k] == SupportStatus.FREE:
            assert margin == 1
            assert 0 < alpha < box
            low, high = range_of_alpha(case, optimum, k)
            # There may be other optimal dual points.
            if high - low > 1e-6 * float(box):
                assert low > 1e-8 * float(box)
                assert high < (1 - 1e-8) * float(box)


def range_of_alpha(case: Case, optimum: ExactOptimum, k: int) -> tuple[float, float]:
    """The least and the largest alpha_k among all optimal dual points, by linear programming."""
    box = case.C * case.row_weights()
    on = [i for i, m in enumerate(optimum.margins) if m == 1 and box[i] > 0]
    Y = case.patterns()[on]
    # In units of alpha, since C may be tiny or huge.
    size = max(float(optimum.alpha[i]) for i in on)
    target = Y.T @ np.array([float(optimum.alpha[i]) / size for i in on])
    aim = np.array([float(i == k) for i in on])
    limits = [(0.0, box[i] / size) for i in on]
    ends = [linprog(sign * aim, A_eq=Y.T, b_eq=target, bounds=limits).fun for sign in (1.0, -1.0)]
    if None in ends:
        # Rounding made the equations contradict each other; one point is known.
        return float(optimum.alpha[k]), float(optimum.alpha[k])
    return ends[0] * size, -ends[1] * size


@given(
    case=hard_cases(losses=tuple(LOSSES)), passes=st.integers(1, 40), newton=st.booleans(),
    blocks=st.integers(1, 3),
)  # fmt: skip
def test_every_statement_is_true(case: Case, passes: int, newton: bool, blocks: int) -> None:
    solver = Newton() if newton else DCD()
    result = train(case.problem(), solver, tol=0.0, max_iter=passes, seed=0)
    optimum = exact_optimum(case)
    assume(optimum is not None)
    assert optimum is not None
    n_rows = len(case.labels)
    status = statuses(case, result, n_rows, min(blocks, n_rows))
    require_true(case, optimum, status)
    # Without all rows, there is less to say, and it is the same.
    part = statuses(case, result, None)
    if case.loss == "hinge":
        status = np.where(status == SupportStatus.FREE, SupportStatus.UNDECIDED, status)
    np.testing.assert_array_equal(part, status)


def overlapping(
    seed: int = 0, n: int = 60, rho: float = 1.0, form: str = "dense", loss: str = "hinge"
) -> Case:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 4))
    labels = np.where(X[:, 0] + rng.standard_normal(n) > 0, 1.0, -1.0)
    return Case(X, labels, rng.random(n) + 0.5, 0.7, rho, f"{form}-float64-int32", loss)


@pytest.mark.parametrize("form", ["dense", "csr"])
@pytest.mark.parametrize("rho", [0.0, 1.0, 3.0])
@pytest.mark.parametrize("seed", range(3))
def test_an_accurate_certificate_decides_all_rows(seed: int, rho: float, form: str) -> None:
    case = overlapping(seed, rho=rho, form=form)
    result = train(case.problem(), Newton(), tol=0.0, max_iter=200, seed=0)
    optimum = exact_optimum(case)
    assert optimum is not None
    status = statuses(case, result, 60, 4)
    require_true(case, optimum, status)
    assert (status != SupportStatus.UNDECIDED).all()
    assert (status == SupportStatus.FREE).sum() == sum(m == 1 for m in optimum.margins)


@pytest.mark.parametrize("rho", [0.0, 1.0])
@pytest.mark.parametrize("seed", range(3))
def test_with_the_squared_hinge_all_support_vectors_are_free(seed: int, rho: float) -> None:
    """It takes neither all rows nor their number."""
    case = overlapping(seed, rho=rho, loss="squared_hinge")
    result = train(case.problem(), Newton(), tol=0.0, max_iter=200, seed=0)
    optimum = exact_optimum(case)
    assert optimum is not None
    status = statuses(case, result, None, 4)
    expected = [SupportStatus.FREE if a > 0 else SupportStatus.NONE for a in optimum.alpha]
    assert status.tolist() == expected
    part = case._replace(X=case.X[:20], labels=case.labels[:20], weights=case.row_weights()[:20])
    assert statuses(part, result, 60).tolist() == expected[:20]


def test_a_rough_certificate_decides_few() -> None:
    for loss in LOSSES:
        case = overlapping(loss=loss)
        result = train(case.problem(), DCD(), tol=0.0, max_iter=1, seed=0)
        assert (statuses(case, result, 60) == SupportStatus.UNDECIDED).sum() > 30


def test_duplicates_on_the_margin_are_not_free() -> None:
    """One of them may have all of alpha. The others are as they were."""
    case = overlapping()
    result = train(case.problem(), Newton(), tol=0.0, max_iter=200, seed=0)
    before = statuses(case, result, 60)
    free = int(np.argmax(before == SupportStatus.FREE))
    again = [*range(60), free]
    twice = case._replace(
        X=case.X[again], labels=case.labels[again], weights=case.row_weights()[again]
    )
    result = train(twice.problem(), Newton(), tol=0.0, max_iter=200, seed=0)
    for form in ("dense", "csr"):
        status = statuses(twice._replace(form=f"{form}-float64-int32"), result, 61, 2)
        assert status[free] == status[-1] == SupportStatus.UNDECIDED
        np.testing.assert_array_equal(np.delete(status, [free, 60]), np.delete(before, free))


def test_a_multiple_of_a_row_on_the_margin() -> None:
    """Two rows share what they carry; a third is not concerned."""
    X = np.array([[1.0, 0.0], [2.0, 0.0], [0.0, 1.0]])
    w = np.array([0.9, 0.5, 0.0])
    free = free_rows(X, 0.0, np.ones(3), np.ones(3), w, np.zeros(3), 1e-9, 0.0)
    # alpha_0 + 2 alpha_1 = 0.9: the first is between 0 and 0.9, the second between 0 and 0.45.
    assert free.tolist() == [False, False, True]
    w[0] = 1.5
    free = free_rows(X, 0.0, np.ones(3), np.ones(3), w, np.zeros(3), 1e-9, 0.0)
    # Now the second is between 0.25 and 0.75, which may be found or not.
    assert not free[0]
    assert free[2]


@pytest.mark.parametrize("loss", LOSSES)
def test_other_data_are_refused(loss: str) -> None:
    case = overlapping(loss=loss)
    result = train(case.problem(), Newton(), tol=0.0, max_iter=200, seed=0)
    with pytest.raises(ValueError, match="not the rows, labels and weights"):
        statuses(case._replace(labels=-case.labels), result, 60)


def test_a_part_of_the_rows_has_no_free_ones() -> None:
    case = overlapping()
    result = train(case.problem(), Newton(), tol=0.0, max_iter=200, seed=0)
    whole = statuses(case, result, 60)
    free = int(np.argmax(whole == SupportStatus.FREE))
    kept = np.arange(60) != free
    part = case._replace(X=case.X[kept], labels=case.labels[kept], weights=case.row_weights()[kept])
    status = statuses(part, result, 60)
    assert not (status == SupportStatus.FREE).any()
    settled = whole[kept] != SupportStatus.FREE
    np.testing.assert_array_equal(status[settled], whole[kept][settled])


@given(
    seed=st.integers(0, 2**32 - 1), n=st.integers(1, 5), rho=st.sampled_from([0.0, 0.5]),
    sparse=st.booleans(), size=st.sampled_from([1e-12, 1e-4, 0.1]),
)  # fmt: skip
def test_free_rows_from_any_point_of_the_ball(
    seed: int, n: int, rho: float, sparse: bool, size: float
) -> None:
    """alpha is known, and w and z are off by as much as they are allowed to be."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 5))
    X *= rng.random((n, 5)) < 0.7
    signs, boxes = rng.choice([-1.0, 1.0], n), rng.random(n) + 0.1
    alpha = np.clip(boxes * rng.uniform(-0.5, 1.5, n), 0.0, boxes)
    Y = signs[:, np.newaxis] * np.column_stack([X, np.full(n, rho)])
    z = rng.standard_normal(6) * ([1.0] * 5 + [float(rho > 0)])
    away, off = rng.standard_normal((2, 6))
    away, off = (size * v / np.linalg.norm(v) for v in (away, off))
    w = z + alpha @ Y
    rows: Any = sp.csr_array(X) if sparse else X
    free = free_rows(rows, rho, signs, boxes, w + away, z + off, 1.001 * size, 1.001 * size)
    assert not (free & ((alpha <= 0.0) | (alpha >= boxes))).any()
    if size == 1e-12 and np.linalg.cond(Y @ Y.T) < 1e6:
        np.testing.assert_array_equal(free, (alpha > 0.0) & (alpha < boxes))


@pytest.mark.parametrize("closeness", [1e-3, 1e-5, 1e-6, 1e-7])
def test_nearly_dependent_rows(closeness: float) -> None:
    """The computed inverse is then far from the inverse, and this is allowed for."""
    rng = np.random.default_rng(0)
    claims = 0
    for _ in range(200):
        X = np.ones((3, 4)) + closeness * rng.integers(-8, 9, (3, 4))
        signs, boxes = np.ones(3), np.ones(3)
        alpha = rng.choice([0.0, 0.5, 1.0], 3)
        z = rng.integers(-4, 5, 5).astype(float) * [1, 1, 1, 1, 0]
        w = z + np.append(alpha @ X, 0.0)
        # w and z are off by a few roundings of numbers below ten.
        free = free_rows(X, 0.0, signs, boxes, w, z, 1e-14, 0.0)
        claims += int(free.sum())
        assert not (free & (alpha != 0.5)).any()
    assert claims > 0 or closeness < 1e-5


@pytest.mark.parametrize("limit", ["_MOST_ROWS", "_MOST_VALUES", "_MOST_DIFFERENT"])
def test_too_many_undecided_rows(limit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    case = overlapping()
    result = train(case.problem(), Newton(), tol=0.0, max_iter=200, seed=0)
    whole = statuses(case, result, 60)
    monkeypatch.setattr(f"certsvm.certificates.support.{limit}", 2)
    status = statuses(case, result, 60)
    np.testing.assert_array_equal(status, np.where(whole == SupportStatus.FREE, -1, whole))


def test_nothing_is_said_without_a_certificate() -> None:
    case = overlapping()
    result = train(case.problem(), Newton(), tol=0.0, max_iter=200, seed=0)
    coef, intercept = split(result.w, 1.0)
    X = case.X

    def scored(X: Any) -> Any:
        return scored_blocks(X, (X @ coef + intercept)[:, np.newaxis], 4)

    for proofs in (None, [Certificate(np.inf, 0.0, 0.01, intercept_scaling=1.0)]):
        optimum = Optimum(coef[np.newaxis], np.array([intercept]), proofs, scored)
        status = optimum.support_status(
            X, case.labels, case.weights, classes=np.array([-1.0, 1.0]), class_weight=np.ones(2),
            n_rows=60,
        )  # fmt: skip
        assert (status == SupportStatus.UNDECIDED).all()
        assert optimum.stability(X) == 0.0
