"""Every solver that certifies: its bounds are true, pass after pass."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from certsvm import Certificate, Problem, Rows, train
from certsvm.kernels.losses import LOSSES
from certsvm.solvers import DCD, MPU, OCAS, SOLVERS, Auto, BlockDCD, SGDm, SGDs, SVMperf
from certsvm.solvers.base import Options, Solver, Start
from certsvm.solvers.newton import Newton, NewtonRun
from certsvm.solvers.published.cutting_planes import CuttingPlaneRun
from certsvm.solvers.smoothed_newton import SmoothedNewton, SmoothedNewtonRun
from certsvm.solvers.working_set import WorkingSet
from certsvm.training.settings import Result
from tests import problems
from tests.exact import known_optimum
from tests.problems import Case, cases, exact, exact_dot, exact_objective, require_proof, streamed

Cases = st.SearchStrategy[Case]

CERTIFYING: list[Solver] = [
    Auto(),
    *(solver() for solver in SOLVERS.values() if solver.certifies),
    *(SGDs(windows=windows) for windows in (0, 1)),
    *(SGDm(**other) for other in ({"windows": 0}, {"precision": "single"})),
    DCD(shrinking=False),
    *(MPU(**other) for other in ({"delta": 0.5}, {"precision": "single"})),
    WorkingSet(omega=1.0, shuffled=True),
    BlockDCD(sweeps=1, visits=2.5, cache=0.5),
]


def of(solvers: list[Solver]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("solver", solvers, ids=lambda solver: solver.label)


seeds = st.integers(0, 2**32 - 1)
# Problems with the squared hinge, or a free intercept, or both.
others = cases(losses=("hinge", "squared_hinge"), free_intercepts=True).filter(
    lambda case: case.free_intercept or case.loss != "hinge"
)
on_all_problems = pytest.mark.parametrize(
    ("solver", "problems"),
    [pytest.param(solver, cases(), id=solver.label) for solver in CERTIFYING]
    + [
        pytest.param(solver, others, id=f"{solver.label}, others")
        for solver in CERTIFYING
        if solver.frees_intercept
    ],
)


def bounds(case: Case) -> tuple[float | Fraction, float | Fraction]:
    """Bounds on J_opt by another method."""
    if not case.free_intercept:
        return problems.optimum(case)
    found = known_optimum(case)
    value = exact_objective(case, found.w)
    assert value == problems.exact_dual(case, found.alpha)
    return value, value


def require_true(certificate: Certificate, case: Case) -> None:
    """Assert that J_opt is between the bounds."""
    low, high = bounds(case)
    assert exact(certificate.dual) - exact(certificate.dual_rounding) <= high
    assert exact(certificate.primal) + exact(certificate.primal_rounding) >= low


def test_the_general_solvers_are_here() -> None:
    general = {s.name for s in CERTIFYING if s.frees_intercept}
    assert general == {"auto", "working-set", "dcd", "newton", "smoothed-newton", "block-dcd"}
    assert general == {s.name for s in CERTIFYING if len(s.losses) == len(LOSSES)}


def require_answer(case: Case, result: Result) -> None:
    """Assert that J of the answer is the one that is certified."""
    error = abs(exact_objective(case, result.w) - Fraction(result.certificate.primal))
    assert error <= Fraction(result.certificate.primal_rounding)


@on_all_problems
@given(data=st.data(), seed=seeds, passes=st.integers(1, 30), keep_alpha=st.booleans())
def test_bounds_are_true_and_those_of_the_answer(
    solver: Solver, problems: Cases, data: st.DataObject, seed: int, passes: int, keep_alpha: bool
) -> None:
    """L <= J_opt <= J at the end of every pass, against another solver at 1e-8."""
    case, how = data.draw(problems), {"max_iter": passes, "seed": seed, "keep_alpha": keep_alpha}
    result = train(case.problem(), solver, tol=0.0, **how)
    require_true(result.certificate, case)
    require_answer(case, result)
    if keep_alpha:
        require_proof(case, result)
    assert (result.history["dual"] <= float(bounds(case)[1]) * (1 + 1e-9) + 1e-9).all()
    assert result.certificate.loss == case.loss
    assert result.certificate.penalize_intercept == (not case.free_intercept)


@on_all_problems
@given(data=st.data(), seed=seeds, size=st.floats(0, 1e3))
def test_any_start(
    solver: Solver, problems: Cases, data: st.DataObject, seed: int, size: float
) -> None:
    case, rng = data.draw(problems), np.random.default_rng(seed)
    problem = case.problem()
    w = size * rng.standard_normal(problem.rows.dimension)
    alpha = case.C * rng.standard_normal(problem.rows.n_rows) if seed % 2 else None
    start = Start(w, int(rng.integers(0, 1000)), alpha)
    result = train(problem, solver, tol=0.0, max_iter=5, seed=seed, start=start, keep_alpha=True)
    require_true(result.certificate, case)
    if result.alpha is not None:
        require_proof(case, result)


@of([Auto(), Newton(), SmoothedNewton(), BlockDCD(), BlockDCD(cache=0.4)])
@given(data=st.data(), seed=seeds, passes=st.integers(1, 20), block=st.integers(1, 10))
def test_streams(solver: Solver, data: st.DataObject, seed: int, passes: int, block: int) -> None:
    case = data.draw(others if solver.frees_intercept else cases(losses=tuple(LOSSES)))
    assume(case.labels.min() < case.labels.max())
    problem = streamed(case, block)
    result = train(problem, solver, tol=0.0, max_iter=passes, seed=seed, keep_alpha=True)
    require_true(result.certificate, case)
    require_proof(case, result)
    require_answer(case, result)


@of([DCD(), BlockDCD(), MPU(delta=1e-6), SGDs(), SGDm()])
@pytest.mark.parametrize("seed", range(4))
def test_long_runs_drift_within_their_allowance(solver: Solver, seed: int) -> None:
    """Thousands of updates: what rounding did to w is covered by what is allowed for it."""
    rng = np.random.default_rng(seed)
    X, labels = rng.standard_normal((12, 3)), rng.choice([-1.0, 1.0], 12)
    case = Case(X, labels, rng.random(12) + 0.1, 1.7, 0.3)
    run = solver.start(case.problem(), Options(rng, target=0.0, keep_alpha=True))
    for passes in range(2000):
        run.epoch()
        if passes % 400 == 399:
            point = run.dual()
            assert point is not None
            assert point.alpha is not None
            for value, column in zip(point.w, case.patterns().T, strict=True):
                expected = exact_dot(point.alpha(), column)
                # alpha itself was rounded once more, where it is made from counts.
                allowed = exact(point.w_rounding) + abs(expected) / 10**15
                assert abs(exact(value) - expected) <= allowed


@of(CERTIFYING)
@given(case=cases(), seed=seeds)
def test_half_a_pass_has_no_dual_point(solver: Solver, case: Case, seed: int) -> None:
    run = solver.start(case.problem(), Options(np.random.default_rng(seed), keep_alpha=True))
    run.epoch()
    assert run.dual() is not None

    def interrupt(*args: object) -> None:
        raise KeyboardInterrupt

    # Wherever a pass first turns to the rows.
    inner: Any = getattr(run, "_run", run)
    if isinstance(inner, CuttingPlaneRun):
        vars(inner)["_move"] = interrupt
    elif isinstance(inner, NewtonRun):
        vars(inner._along)["compute"] = interrupt
    elif isinstance(inner, SmoothedNewtonRun):
        vars(inner._problem)["parts"] = interrupt
    else:
        inner._problem.slices = interrupt
    with pytest.raises(KeyboardInterrupt):
        run.epoch()
    assert run.dual() is None


@pytest.mark.parametrize("scale", [1e-80, 1e-20, 1e20, 1e80])
@pytest.mark.parametrize(
    ("solver", "loss", "free_intercept"),
    [(solver, "hinge", False) for solver in CERTIFYING]
    + [(s, "squared_hinge", free) for s in CERTIFYING if s.frees_intercept for free in (0, 1)],
    ids=lambda value: getattr(value, "label", value),
)
def test_extreme_scales(solver: Solver, loss: str, free_intercept: bool, scale: float) -> None:
    """Rows near the ends of the range: the scale of a dual point may be tiny."""
    X, labels = np.array([[scale], [-scale]]), np.array([1.0, -1.0])
    case = Case(X, labels, C=1e5, intercept_scaling=float(free_intercept), loss=loss)
    case = case._replace(penalize_intercept=not free_intercept)
    # By symmetry the intercept is zero: the least of w^2 / 2 + 2 C loss(w scale).
    square = Fraction(scale) ** 2
    least = min(1 / (2 * square), Fraction(2 * 10**5))
    if loss == "squared_hinge":
        least = 2 * 10**5 / (1 + 4 * 10**5 * square)
    try:
        result = train(case.problem(), solver, tol=1e-3, max_iter=50, seed=0)
    except ValueError as error:
        assert "Scale the columns" in str(error)  # noqa: PT017
        return
    certificate = result.certificate
    assert Fraction(certificate.dual) - Fraction(certificate.dual_rounding) <= least
    assert Fraction(certificate.primal) + Fraction(certificate.primal_rounding) >= least


@of([DCD(), WorkingSet(), MPU(), OCAS(), SVMperf()])
def test_dual_methods_reach_high_accuracy(solver: Solver) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((500, 8))
    labels = np.where(X[:, 0] + rng.standard_normal(500) > 0, 1, -1)
    problem = Problem(Rows(X), labels, C=0.1, weights=rng.random(500) + 0.5)
    result = train(problem, solver, tol=1e-6, max_iter=20_000, seed=0)
    assert result.certificate.met
