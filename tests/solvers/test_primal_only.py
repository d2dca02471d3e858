"""Every solver that proves nothing: it converges, and nothing overflows."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from certsvm import Problem, Rows, train
from certsvm.certificates.certificate import PRIMAL_ONLY
from certsvm.certificates.primal import primal_bound
from certsvm.solvers import DCD, NORMA, SGDQN, SOLVERS, Options, Pegasos, SGDr, Solver, SvmSgd
from tests.problems import Case, cases, noisy

PRIMAL: list[Solver] = [
    SGDr(), Pegasos(), Pegasos(project=False), NORMA(), NORMA(rate="constant", eta_0=1e-3),
    SvmSgd(), SvmSgd(precision="single"), SGDQN(), SGDQN(precision="single"),
]  # fmt: skip
primal_only = pytest.mark.parametrize("solver", PRIMAL, ids=lambda solver: solver.label)
seeds = st.integers(0, 2**32 - 1)


def test_every_such_solver_is_here() -> None:
    assert {s.name for s in PRIMAL} == {n for n, s in SOLVERS.items() if not s.certifies}


@primal_only
def test_it_converges(solver: Solver) -> None:
    best = train(noisy(), DCD(), tol=1e-6, seed=0, max_iter=10_000).certificate
    result = train(noisy(), solver, max_iter=500, seed=0)
    assert result.certificate.primal <= 1.02 * best.primal
    assert result.certificate.bound == PRIMAL_ONLY
    assert not result.certificate.met


@primal_only
@given(case=cases(), seed=seeds)
def test_nothing_is_ever_nan(solver: Solver, case: Case, seed: int) -> None:
    # The run itself: the training loop would drop what is not finite.
    run = solver.start(case.problem(), Options(np.random.default_rng(seed)))
    for _ in range(5):
        run.epoch()
        for w in run.candidates():
            assert np.isfinite(w).all()
    result = train(case.problem(), solver, max_iter=5, seed=seed)
    assert result.certificate.relative_gap == math.inf


@primal_only
def test_long_rows_and_large_c(solver: Solver) -> None:
    """Where the published Pegasos underflows: R sqrt(C m) in the thousands."""
    rng = np.random.default_rng(0)
    X = 30 * rng.standard_normal((2000, 5))
    problem = Problem(Rows(X), np.where(X[:, 0] + 20 * rng.standard_normal(2000) > 0, 1, -1), C=10)
    assert problem.R * math.sqrt(problem.C * problem.m) > 5000
    if isinstance(solver, NORMA) and solver.eta_0:
        solver = NORMA(rate="constant", eta_0=1e-6)
    run = solver.start(problem, Options(np.random.default_rng(0)))
    objectives = []
    for _ in range(50):
        run.epoch()
        w = next(run.candidates())
        assert np.isfinite(w).all()
        objectives.append(primal_bound(problem, w).value)
    # The rates that are found by trial may start well and stay there; none may diverge.
    assert objectives[-1] <= 2 * min(objectives)
    assert objectives[-1] < objectives[0] or objectives[0] < 3 * problem.C * problem.m
