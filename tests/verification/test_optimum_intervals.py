"""Balls and intervals contain the exact optimum, which is known in rational numbers."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from certsvm import Certificate, train
from certsvm.certificates.held_out_error import OptimumBall
from certsvm.kernels.losses import LOSSES
from certsvm.problem.rows import split
from certsvm.solvers import DCD, Newton, Pegasos, SGDs, Solver, WorkingSet
from certsvm.verification.evidence import added_up
from certsvm.verification.optimum_intervals import OptimumIntervals, radius, row_sizes, unflippable
from tests.certificates.test_path_bounds import an_end
from tests.exact import exact_rows, known_optimum
from tests.problems import Case, cases, exact, exact_dot, squared_distance

SOLVERS: list[Solver] = [DCD(), SGDs(), Pegasos()]
moderate = st.one_of(st.floats(-1e100, 1e100), st.floats(-10, 10), st.integers(-3, 3).map(float))


@st.composite
def hard_cases(draw: st.DrawFn, **kinds: Any) -> Case:
    """Cases with C from tiny to huge, and any height of the constant column."""
    case: Case = draw(cases(**kinds))
    C = draw(st.sampled_from([case.C, case.C, 1e-9, 1e-4, 1e3, 1e6]))
    rho = draw(st.sampled_from([case.intercept_scaling, 1e-3, 7.0]))
    return case._replace(C=C, intercept_scaling=rho)


@pytest.mark.parametrize(
    ("solver", "loss"),
    [(solver, "hinge") for solver in SOLVERS]
    + [(solver, "squared_hinge") for solver in (WorkingSet(), Newton())],
    ids=lambda given: getattr(given, "label", given),
)
@given(case=hard_cases(), passes=st.integers(1, 12), new=st.integers(0, 2**32 - 1))
def test_the_exact_optimum_is_there(
    solver: Solver, loss: str, case: Case, passes: int, new: int
) -> None:
    case = case._replace(loss=loss)
    result = train(case.problem(), solver, tol=0.0, max_iter=passes, seed=0)
    optimum = known_optimum(case)
    r = exact(radius(result.certificate))
    assert squared_distance(result.w, optimum.w) <= r * r
    rho = case.intercept_scaling
    coef, intercept = split(result.w, rho)
    intervals = OptimumIntervals(coef[np.newaxis], np.array([intercept]), [result.certificate])
    # All weights, the intercept, and the scores of old and of new rows.
    n = coef.size
    low, high = intervals.coef_intervals()
    for a, value, z in zip(low[0], optimum.w[:n], high[0], strict=True):
        assert exact(a) <= value <= exact(z)
    b = optimum.w[n] * exact(rho) if rho else Fraction(0)
    (low_b,), (high_b,) = intervals.intercept_intervals()
    assert exact(low_b) <= b <= exact(high_b)
    rng = np.random.default_rng(new)
    X = np.vstack([case.patterns()[:, :n], 3 * rng.standard_normal((4, n)), np.zeros(n)])
    low, high = intervals.score_intervals(X @ intervals.coef.T + intervals.intercept, row_sizes(X))
    for x, (a,), (z,) in zip(exact_rows(X), low, high, strict=True):
        score = sum((p * q for p, q in zip(x, optimum.w[:n], strict=True)), b)
        assert exact(a) <= score <= exact(z)


@given(
    case=hard_cases(losses=tuple(LOSSES), free_intercepts=True),
    size=st.sampled_from([0.0, 1e-9, 0.1, 3.0]),
    seed=st.integers(0, 2**32 - 1),
)
def test_the_optimum_is_in_the_ball_of_any_point(case: Case, size: float, seed: int) -> None:
    """Whether the intercept is free or not; with and without the vector of the dual point."""
    optimum = known_optimum(case)
    rng, box = np.random.default_rng(seed), case.C * case.row_weights()
    w = np.array([float(v) for v in optimum.w])
    w = w + size * rng.choice([0.0, 1.0]) * rng.standard_normal(w.size)
    alpha = np.array([float(a) for a in optimum.alpha])
    alpha = alpha + size * rng.choice([0.0, 1.0]) * box * rng.standard_normal(box.size)
    alpha = np.clip(alpha, 0.0, box if case.loss == "hinge" else math.inf)
    end, _ = an_end(case, w, alpha)
    n = w.size - int(case.free_intercept)
    r = exact(radius(end.certificate))
    assert squared_distance(w[:n], optimum.w[:n]) <= r * r
    coef, intercept = split(w, case.intercept_scaling)
    intervals = OptimumIntervals(coef[np.newaxis], np.array([intercept]), [end.certificate])
    low, high = intervals.coef_intervals()
    for a, value, z in zip(low[0], optimum.w, high[0], strict=False):
        assert exact(a) <= value <= exact(z)
    ball = OptimumBall.of(end.certificate, w, end.vector)
    if case.free_intercept:
        # Nothing is claimed about intercepts and scores.
        assert ball.square == math.inf
        for claim in (
            intervals.intercept_intervals,
            lambda: intervals.score_intervals(np.zeros((1, 1)), row_sizes(np.zeros((1, 1)))),
        ):
            with pytest.raises(ValueError, match="the intercept is free"):
                claim()
        return
    reach = exact(math.sqrt(ball.square)) * (1 + Fraction(1, 10**15)) + exact(ball.error)
    assert squared_distance(ball.centre, optimum.w) <= reach**2


@given(
    primal=st.floats(0, 1e300), part=st.floats(-0.5, 1), above=st.floats(0, 1e290),
    below=st.floats(0, 1e290),
)  # fmt: skip
@example(primal=1.0, part=1.0, above=0.0, below=0.0)
@example(primal=5e-324, part=0.0, above=0.0, below=0.0)
def test_the_radius_is_rounded_up(primal: float, part: float, above: float, below: float) -> None:
    dual = primal * part
    r = radius(Certificate(primal, dual, 0.01, primal_rounding=above, dual_rounding=below))
    gap = exact(primal) + exact(above) - max(Fraction(0), exact(dual) - exact(below))
    assert exact(r) ** 2 >= 2 * gap
    assert exact(r) ** 2 <= 2 * gap * (1 + Fraction(1, 10**15)) + Fraction(1, 10**320)


@pytest.mark.parametrize(
    "certificate",
    [
        None,
        Certificate(math.inf, 0.0, 0.01),
        Certificate(1.0, math.nan, 0.01),
        Certificate(1.0, 0.0, 0.01, dual_rounding=math.inf),
        Certificate(1.0, 1.1, 0.01, dual_rounding=0.05),
    ],
)
def test_what_proves_nothing_leaves_everything_open(certificate: Certificate | None) -> None:
    assert certificate is None or radius(certificate) == math.inf
    proofs = None if certificate is None else [certificate]
    intervals = OptimumIntervals(np.ones((1, 2)), np.zeros(1), proofs)
    rows = np.array([[1.0, 2.0], [0.0, 0.0]])
    ends = intervals.score_intervals(rows @ intervals.coef.T, row_sizes(rows))
    for low, high in (ends, intervals.coef_intervals()):
        assert (low == -math.inf).all()
        assert (high == math.inf).all()


def test_an_intercept_without_a_constant_column_proves_nothing() -> None:
    intervals = OptimumIntervals(np.ones((1, 1)), np.ones(1), [Certificate(1.0, 1.0, 0.01)])
    assert intervals.radii.tolist() == [math.inf]
    low, high = intervals.intercept_intervals()
    assert (low.item(), high.item()) == (-math.inf, math.inf)


@given(data=st.data(), n=st.integers(1, 5), sparse=st.booleans())
def test_rounding_is_allowed_for(data: st.DataObject, n: int, sparse: bool) -> None:
    """At the far ends of the ball, with numbers of any size."""
    w = data.draw(hnp.arrays(np.float64, n, elements=moderate))
    X = data.draw(hnp.arrays(np.float64, (2, n), elements=moderate))
    rho = data.draw(st.sampled_from([0.0, 1e-3, 1.0, 1e5]))
    gap = data.draw(st.sampled_from([0.0, 1e-9, 3.0]))
    b = data.draw(moderate) if rho else 0.0
    certificate = Certificate(1.0 + gap, 1.0, target=0.0, intercept_scaling=rho)
    intervals = OptimumIntervals(w[np.newaxis], np.array([b]), [certificate])
    rows: Any = sp.csr_array(X) if sparse else X
    with np.errstate(all="ignore"):
        low, high = intervals.score_intervals(rows @ intervals.coef.T + b, row_sizes(rows))
    for x, (a,), (z,) in zip(X, low, high, strict=True):
        centre = exact_dot(x, w) + exact(b)
        square = 2 * (exact(1.0 + gap) - 1) * (exact_dot(x, x) + exact(rho) ** 2)
        # Everything up to the ends of the ball: the distance from the centre, squared.
        for end, sign in ((a, -1), (z, 1)):
            if math.isfinite(end):
                reach = sign * (exact(end) - centre)
                assert reach >= 0
                assert reach**2 >= square


def test_a_zero_row_is_decided_exactly() -> None:
    intervals = OptimumIntervals(np.ones((1, 2)), np.zeros(1), [Certificate(9.0, 1.0, 0.01)])
    for rows in (np.zeros((1, 2)), sp.csr_array((1, 2))):
        low, high = intervals.score_intervals(np.zeros((1, 1)), row_sizes(rows))
        assert (low.item(), high.item()) == (0.0, 0.0)
        assert unflippable(low[:, 0], high[:, 0]).all()


@pytest.mark.parametrize("flag", [True, None])
def test_values_stored_twice_are_added_up(flag: bool | None) -> None:
    twice = sp.csr_array((np.array([3.0, 3.0]), np.array([0, 0]), np.array([0, 2])), shape=(1, 2))
    if flag:
        # A lie.
        twice.has_canonical_format = True
    assert row_sizes(added_up(twice)).squares.tolist() == [36.0]
    assert twice.nnz == 2


@given(
    ends=hnp.arrays(
        np.float64, st.tuples(st.just(2), st.integers(1, 5), st.integers(3, 4)),
        elements=st.integers(-2, 2).map(float),
    ),
    seed=st.integers(0, 2**32 - 1),
)  # fmt: skip
def test_several_classes(ends: Any, seed: int) -> None:
    """A row is sure exactly if its label is the same for all scores in the intervals."""
    low, high = ends.min(axis=0), ends.max(axis=0)
    sure = unflippable(low, high)
    labels = np.stack([
        np.where(np.arange(low.shape[1]) == j, low, high).argmax(axis=1)
        for j in range(low.shape[1])
    ])  # fmt: skip
    # The label is sure if its class wins against all others although it has its lowest score.
    expected = (labels == np.arange(low.shape[1])[:, np.newaxis]).any(axis=0)
    np.testing.assert_array_equal(sure, expected)
    rng = np.random.default_rng(seed)
    for _ in range(5):
        scores = np.where(rng.random(low.shape) < 0.5, low, high)
        assert (scores.argmax(axis=1) == low.argmax(axis=1))[sure].all()
