"""The second-order method on tensors: the same propositions as on NumPy's arrays."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import certsvm.torch.rows as rows_module
from certsvm.certificates.dual import dual_bound
from certsvm.problem.memory import Problem
from certsvm.problem.rows import Rows
from certsvm.solvers import Newton, Options, Start
from certsvm.torch import TensorNewton
from certsvm.training.loop import train
from tests.problems import Case, cases, exact_objective, optimum, require_proof
from tests.solvers.test_newton import degenerate
from tests.torch.problems import (
    DEVICE,
    DTYPES,
    device,
    generated,
    host,
    in_tensors,
    tensor_problem,
)

seeds = st.integers(0, 2**32 - 1)
dtypes = st.sampled_from(sorted(DTYPES))
SOLVER = TensorNewton()


def coarse_gram(rows: torch.Tensor) -> torch.Tensor:
    """What a GPU makes of it."""
    half = rows.to(torch.bfloat16).float()
    return (half.T @ half).double()


@pytest.fixture(params=["as on a CPU", "as on a GPU"])
def either_gram(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "as on a GPU" and DEVICE == "cpu":
        monkeypatch.setattr(rows_module, "_gram", coarse_gram)


@given(case=cases(), dtype=dtypes, seed=seeds, passes=st.integers(1, 30))
def test_proposition_2(case: Case, dtype: str, seed: int, passes: int) -> None:
    """L <= J_opt <= J at the end of every step, against another solver at 1e-8."""
    case, X = in_tensors(case, dtype)
    low, high = optimum(case)
    result = train(tensor_problem(case, X), SOLVER, tol=0.0, max_iter=passes, seed=seed)
    certificate = result.certificate
    assert certificate.dual - certificate.dual_rounding <= high
    assert certificate.primal + certificate.primal_rounding >= low
    assert (result.history["dual"] <= high * (1 + 1e-9) + 1e-9).all()


@given(case=cases(), dtype=dtypes, seed=seeds, passes=st.integers(1, 30))
def test_alpha_lies_in_the_box_and_gives_the_bound(
    case: Case, dtype: str, seed: int, passes: int
) -> None:
    case, X = in_tensors(case, dtype)
    problem = tensor_problem(case, X)
    result = train(problem, SOLVER, tol=0.0, max_iter=passes, seed=seed, keep_alpha=True)
    require_proof(case, result)


@given(case=cases(), dtype=dtypes, seed=seeds, passes=st.integers(1, 20))
def test_the_answer_is_the_one_that_is_certified(
    case: Case, dtype: str, seed: int, passes: int
) -> None:
    case, X = in_tensors(case, dtype)
    result = train(tensor_problem(case, X), SOLVER, tol=0.0, max_iter=passes, seed=seed)
    error = abs(exact_objective(case, result.w) - Fraction(result.certificate.primal))
    assert error <= Fraction(result.certificate.primal_rounding)


@given(case=cases(), seed=seeds, size=st.floats(0, 1e3))
def test_any_start_is_certified_truly(case: Case, seed: int, size: float) -> None:
    case, X = in_tensors(case, "float32")
    low, high = optimum(case)
    rng = np.random.default_rng(seed)
    w = size * rng.standard_normal(case.patterns().shape[1])
    alpha = device(case.C * rng.standard_normal(len(X))) if seed % 2 else None
    start = Start(w, 1, alpha, smoothing=10.0 ** rng.integers(-3, 6) if seed % 3 else None)
    problem = tensor_problem(case, X)
    result = train(problem, SOLVER, tol=0.0, max_iter=5, seed=seed, start=start, keep_alpha=True)
    certificate = result.certificate
    assert certificate.dual - certificate.dual_rounding <= high
    assert certificate.primal + certificate.primal_rounding >= low
    assert result.alpha is not None
    assert (result.alpha >= 0).all()
    assert (result.alpha <= case.C * case.row_weights()).all()


@given(case=cases())
def test_it_reaches_the_optimum_of_small_problems(case: Case) -> None:
    case, X = in_tensors(case, "float32")
    low, high = optimum(case)
    result = train(tensor_problem(case, X), SOLVER, tol=1e-7, max_iter=300, seed=0)
    assert result.certificate.met
    assert result.certificate.primal >= low * (1 - 1e-9) - 1e-9
    assert result.certificate.primal <= high * (1 + 1e-6) + 1e-9


@pytest.mark.parametrize("C", [1e-4, 1e-2, 1.0, 1e2, 1e4])
@pytest.mark.parametrize("name", degenerate())
@pytest.mark.usefixtures("either_gram")
def test_degenerate_data(name: str, C: float) -> None:
    X, y = degenerate()[name]
    case = Case(X, y, None, C, 0.0, "dense-float64-int32")
    problem = tensor_problem(case, device(X))
    result = train(problem, SOLVER, tol=1e-6, max_iter=300, seed=0)
    assert result.certificate.met, f"{result.certificate!r} after {result.passes} steps"
    assert np.isfinite(result.w).all()


@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
@pytest.mark.parametrize("corrections", [0, 4])
@pytest.mark.usefixtures("either_gram")
def test_columns_of_very_different_scales(C: float, corrections: int) -> None:
    """A coarse Gram matrix leads astray here; that is noticed."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((20_000, 40)) * np.logspace(0, -3, 40) + 3.0
    y = np.where(X[:, 0] - 3.0 + 0.5 * rng.standard_normal(20_000) > 0, 1.0, -1.0)
    case = Case(X, y, None, C, 1.0, "dense-float64-int32")
    case, tensor = in_tensors(case, "float32")
    solver = TensorNewton(corrections=corrections)
    result = train(tensor_problem(case, tensor), solver, tol=1e-5, max_iter=60, seed=0)
    assert result.certificate.met, f"{result.certificate!r} after {result.passes} steps"


@pytest.mark.parametrize("scale", [1e-30, 1e-12, 1e12, 1e30])
def test_rows_whose_squares_leave_single_precision(scale: float) -> None:
    X, y = generated(200, 5)
    case = Case(scale * X.astype(float), y, None, scale**-2.0, 0.0, "dense-float64-int32")
    result = train(tensor_problem(case, device(case.X)), SOLVER, tol=1e-6, seed=0)
    assert result.certificate.met


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("intercept_scaling", [0.0, 2.0])
def test_samples_and_blocks_change_no_optimum(
    monkeypatch: pytest.MonkeyPatch, weighted: bool, intercept_scaling: float
) -> None:
    monkeypatch.setattr(rows_module, "_BLOCKS", (2**16, 2**28))
    X, y = generated(30_000, 12)
    weights = np.random.default_rng(1).uniform(0.0, 2.0, len(y)) if weighted else None
    case = Case(X.astype(float), y, weights, 0.5, intercept_scaling, "dense-float64-int32")
    tensor = device(X)
    reference = train(case.problem(), Newton(), tol=1e-6, seed=0).certificate
    for rows in ({}, {"memory": tensor.nbytes // 3}):
        problem = tensor_problem(case, tensor, **rows)
        assert (len(problem.rows._blocks) == 1) == (not rows)
        for samples in (True, False):
            problem = tensor_problem(case, tensor, **rows)
            result = train(problem, TensorNewton(samples=samples), tol=1e-6, seed=0)
            assert result.certificate.met
            assert result.certificate.dual <= reference.primal
            assert result.certificate.primal >= reference.dual


def test_half_precision_is_exact() -> None:
    """The certificate is about the values as they are stored."""
    X, y = generated(5000, 8)
    half = device(X).to(torch.bfloat16)
    case = Case(X.astype(float), y, None, 1.0, 0.0, "dense-float64-int32")
    result = train(tensor_problem(case, half), SOLVER, tol=1e-8, seed=0).certificate
    stored = Problem(Rows(host(half)), y, C=1.0)
    reference = train(stored, Newton(), tol=1e-8, seed=0).certificate
    assert result.dual <= reference.primal + reference.primal_rounding
    assert reference.dual <= result.primal + result.primal_rounding
    rounded = train(Problem(Rows(X), y, C=1.0), Newton(), tol=1e-8, seed=0).certificate
    assert rounded.dual > result.primal or rounded.primal < result.dual


def test_a_warm_start_needs_fewer_steps() -> None:
    X, y = generated(3000, 10)
    case = Case(X.astype(float), y, None, 1.0, 0.0, "dense-float64-int32")
    problem = tensor_problem(case, device(X))
    cold = train(problem, TensorNewton(samples=False), tol=1e-6, seed=0)
    start = cold.start
    assert start is not None
    assert isinstance(start.alpha, torch.Tensor)
    assert start.alpha.device == problem.rows.device
    assert start.epochs == cold.epochs
    warm = train(problem, SOLVER, tol=1e-6, seed=0, start=start)
    assert warm.certificate.met
    assert warm.passes < 0.5 * cold.passes


def test_drift_stays_within_its_allowance() -> None:
    """Margins that were added up over many steps, against those from scratch."""
    X, y = generated(500, 6)
    case = Case(X.astype(float), y, None, 10.0, 0.0, "dense-float64-int32")
    problem = tensor_problem(case, device(X))
    rng = np.random.default_rng(0)
    run = TensorNewton(samples=False).start(problem, Options(rng, target=0.0))
    descent = run._descent
    for _ in range(40):
        run.epoch()
        exact = problem.signs * problem.rows.products(descent.w[None])[0]
        allowed = 2.0**-53 * (descent._error + 1.01 * float(descent.w.norm()))
        assert bool(((descent._margins - exact).abs() <= allowed * descent._sizes).all())
        point = run.dual()
        assert point is not None
        assert dual_bound(point)[0].low <= descent.answer.primal.high


def test_what_it_does_not_take() -> None:
    X, y = generated(20, 3)
    case = Case(X.astype(float), y, None, 1.0, 0.0, "dense-float64-int32")
    with pytest.raises(ValueError, match="more than max_size = 2"):
        train(tensor_problem(case, device(X)), TensorNewton(max_size=2))
    with pytest.raises(ValueError, match="needs rows in tensors"):
        SOLVER.start(case.problem(), Options(np.random.default_rng(0)))
    with pytest.raises(ValueError, match="corrections must be >= 0"):
        TensorNewton(corrections=-1)
    with pytest.raises(ValueError, match="no row has a positive weight"):
        tensor_problem(case._replace(weights=np.zeros(20)), device(X))


def test_separable_classes_at_a_huge_C() -> None:
    X, _ = generated(300, 10)
    y = np.where(X[:, 0] > 0, 1.0, -1.0)
    case = Case(X.astype(float), y, None, 1e8, 0.0, "dense-float64-int32")
    result = train(tensor_problem(case, device(X)), SOLVER, tol=1e-5, max_iter=100, seed=0)
    assert result.certificate.met, f"{result.certificate!r} after {result.passes} steps"


def test_a_start_is_not_changed() -> None:
    X, y = generated(50, 3)
    case = Case(X.astype(float), y, np.full(50, 0.5), 1.0, 0.0, "dense-float64-int32")
    alpha, w = -torch.ones(50, dtype=torch.float64, device=DEVICE), np.ones(3)
    train(tensor_problem(case, device(X)), SOLVER, tol=1e-3, start=Start(w, 1, alpha))
    assert bool((alpha == -1.0).all())
    assert (w == 1.0).all()
