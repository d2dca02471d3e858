"""Both losses on tensors, with an intercept that is penalised or free.

The references are the second-order method in memory, and exact arithmetic.
"""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import certsvm.torch.rows as rows_module
from certsvm.fitting.fit_classes import fit_classes
from certsvm.fitting.sources import MemorySource
from certsvm.problem.base import Objective
from certsvm.problem.problems import Problem
from certsvm.problem.rows import Rows
from certsvm.solvers import Newton, Options, Start
from certsvm.torch import TensorNewton, TensorSource
from certsvm.torch.newton import Descent, primal_bound
from certsvm.training.loop import train
from certsvm.training.settings import SOLVER_FINISHED, Result, Settings
from tests.problems import Case, cases, exact, exact_dot
from tests.solvers.test_newton import degenerate
from tests.torch.problems import (
    DTYPES,
    OBJECTIVES,
    data,
    device,
    generated,
    host,
    in_tensors,
    overlap,
    tensor_problem,
)
from tests.torch.test_newton import coarse_gram

FORM = "dense-float64-int32"
SOLVER = TensorNewton()
objectives = st.sampled_from(sorted(OBJECTIVES)).map(OBJECTIVES.__getitem__)
dtypes = st.sampled_from(sorted(DTYPES))
seeds = st.integers(0, 2**32 - 1)
# Each loss, and each kind of intercept.
TWO = ["hinge, free intercept", "squared hinge"]


def solvable(case: Case, objective: Objective) -> bool:
    """Whether the optimum has a finite intercept."""
    labels = case.labels[case.row_weights() > 0]
    return objective.penalize_intercept or case.intercept_scaling == 0 or len(set(labels)) == 2


def in_memory(case: Case, objective: Objective) -> Problem:
    return Problem(
        Rows(case.X, intercept_scaling=case.intercept_scaling), case.labels, C=case.C,
        weights=case.weights, loss=objective.loss, penalize_intercept=objective.penalize_intercept,
    )  # fmt: skip


def regularised(case: Case, objective: Objective) -> slice:
    free = case.intercept_scaling > 0 and not objective.penalize_intercept
    return slice(None, -1 if free else None)


def exact_primal(case: Case, objective: Objective, w: Any) -> Fraction:
    """J, without rounding."""
    kept = w[regularised(case, objective)]
    total = exact_dot(kept, kept) / 2
    for y, s in zip(case.patterns(), case.row_weights(), strict=True):
        short = max(Fraction(0), 1 - exact_dot(y, w))
        total += exact(case.C) * exact(s) * (short**2 if objective.loss.is_smooth else short)
    return total


def balanced(case: Case, objective: Objective, alpha: Any) -> list[Fraction]:
    """Alpha, with the larger side scaled down to the other's sum if the intercept is free."""
    values = [exact(a) for a in alpha]
    if regularised(case, objective) == slice(None, None):
        return values
    sums = {
        label: sum((a for a, y in zip(values, case.labels, strict=True) if y == label), Fraction(0))
        for label in (-1.0, 1.0)
    }
    least = min(sums.values())
    factors = {label: least / total if total else Fraction(0) for label, total in sums.items()}
    return [factors[y] * a for a, y in zip(values, case.labels, strict=True)]


def exact_dual(case: Case, objective: Objective, alpha: list[Fraction]) -> Fraction:
    """L, without rounding."""
    total = sum(alpha, Fraction(0))
    v = [Fraction(0)] * case.patterns().shape[1]
    for y, s, a in zip(case.patterns(), case.row_weights(), alpha, strict=True):
        v = [u + a * exact(x) for u, x in zip(v, y, strict=True)]
        if objective.loss.is_smooth and a > 0:
            total -= a * a / (4 * exact(case.C) * exact(s))
    return total - sum((u * u for u in v), Fraction(0)) / 2


def require_true_bounds(case: Case, objective: Objective, result: Result) -> None:
    """J is that of w, and L that of alpha, which is feasible, both within their rounding."""
    certificate, alpha = result.certificate, result.alpha
    assert certificate.loss == objective.loss.name
    error = abs(exact_primal(case, objective, result.w) - exact(certificate.primal))
    assert error <= exact(certificate.primal_rounding)
    if alpha is None:
        # No better than alpha = 0.
        assert certificate.dual == 0.0
        return
    assert (alpha >= 0).all()
    assert (alpha[case.row_weights() == 0] == 0).all()
    if not objective.loss.is_smooth:
        assert (alpha <= case.C * case.row_weights()).all()
    feasible = balanced(case, objective, alpha)
    for a, b in zip(alpha, feasible, strict=True):
        assert abs(exact(a) - b) <= Fraction(1, 10**12) * b
    error = abs(exact_dual(case, objective, feasible) - exact(certificate.dual))
    # alpha itself is rounded to float64 in the end, once or twice per row.
    sizes = abs(exact(certificate.dual)) + 20 * exact(alpha.sum())
    assert error <= exact(certificate.dual_rounding) + Fraction(1, 10**13) * sizes


@given(case=cases(), objective=objectives, dtype=dtypes, seed=seeds, passes=st.integers(1, 20))
def test_bounds_are_true(
    case: Case, objective: Objective, dtype: str, seed: int, passes: int
) -> None:
    case, X = in_tensors(case, dtype)
    assume(solvable(case, objective))
    problem = tensor_problem(case, X, objective)
    result = train(problem, SOLVER, tol=0.0, max_iter=passes, seed=seed, keep_alpha=True)
    require_true_bounds(case, objective, result)
    reference = train(in_memory(case, objective), Newton(), tol=1e-9, max_iter=100).certificate
    overlap(result.certificate, reference)
    highest = reference.primal + reference.primal_rounding
    assert (result.history["dual"] <= highest * (1 + 1e-9) + 1e-9).all()


@settings(max_examples=30)
@given(case=cases(), objective=objectives, seed=seeds, size=st.floats(0, 1e3))
def test_any_start_is_certified_truly(
    case: Case, objective: Objective, seed: int, size: float
) -> None:
    case, X = in_tensors(case, "float32")
    assume(solvable(case, objective))
    rng = np.random.default_rng(seed)
    w = size * rng.standard_normal(case.patterns().shape[1])
    alpha = device(case.C * rng.standard_normal(len(X))) if seed % 2 else None
    start = Start(w, 1, alpha, smoothing=10.0 ** rng.integers(-3, 6) if seed % 3 else None)
    problem = tensor_problem(case, X, objective)
    result = train(problem, SOLVER, tol=0.0, max_iter=5, seed=seed, start=start, keep_alpha=True)
    require_true_bounds(case, objective, result)


@settings(max_examples=25)
@given(case=cases(), objective=objectives)
def test_it_reaches_the_optimum_of_small_problems(case: Case, objective: Objective) -> None:
    case, X = in_tensors(case, "float32")
    assume(solvable(case, objective))
    result = train(tensor_problem(case, X, objective), SOLVER, tol=1e-7, max_iter=300, seed=0)
    assert result.certificate.met, f"{result.certificate!r} after {result.passes} steps"


@pytest.mark.parametrize("name", OBJECTIVES)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
def test_the_optimum_is_that_in_memory(dtype: str, weighted: bool, name: str) -> None:
    X, y = generated(2000, 8)
    # More rows of one label than of the other, so that the intercept matters.
    X, y = X[(y > 0) | (X[:, 0] > 0)], y[(y > 0) | (X[:, 0] > 0)]
    weights = np.random.default_rng(1).uniform(0.0, 2.0, len(y)) if weighted else None
    case, tensor = in_tensors(Case(X, y, weights, 0.5, 2.0, FORM), dtype)
    objective = OBJECTIVES[name]
    problem = tensor_problem(case, tensor, objective)
    result = train(problem, SOLVER, tol=1e-9, max_iter=100, seed=0)
    reference = train(in_memory(case, objective), Newton(), tol=1e-9, seed=0)
    ours, theirs = result.certificate, reference.certificate
    assert ours.met
    overlap(ours, theirs)
    assert ours.primal == pytest.approx(theirs.primal, rel=3e-9)
    bound = primal_bound(problem, result.w)
    assert abs(bound.value - ours.primal) <= bound.rounding + ours.primal_rounding


@pytest.mark.parametrize("name", TWO)
@pytest.mark.parametrize("C", [1e-4, 1.0, 1e4])
@pytest.mark.parametrize("data", degenerate())
def test_degenerate_data(monkeypatch: pytest.MonkeyPatch, data: str, C: float, name: str) -> None:
    """With a Gram matrix as on a GPU."""
    monkeypatch.setattr(rows_module, "_gram", coarse_gram)
    X, y = degenerate()[data]
    case, objective = Case(X, y, None, C, 1.0, FORM), OBJECTIVES[name]
    if not solvable(case, objective):
        return
    problem = tensor_problem(case, device(X), objective)
    result = train(problem, SOLVER, tol=1e-6, max_iter=300, seed=0)
    assert result.certificate.met, f"{result.certificate!r} after {result.passes} steps"


@pytest.mark.parametrize("name", TWO)
def test_samples_and_blocks_change_no_optimum(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(rows_module, "_BLOCKS", (2**16, 2**28))
    X, y = generated(30_000, 12)
    weights = np.random.default_rng(1).uniform(0.0, 2.0, len(y))
    case, objective = Case(X.astype(float), y, weights, 0.5, 2.0, FORM), OBJECTIVES[name]
    reference = train(in_memory(case, objective), Newton(), tol=1e-6, seed=0).certificate
    tensor = device(X)
    for rows, samples in (({}, False), ({"memory": tensor.nbytes // 3}, True)):
        problem = tensor_problem(case, tensor, objective, **rows)
        assert (len(problem.rows._blocks) == 1) == (not rows)
        result = train(problem, TensorNewton(samples=samples), tol=1e-6, seed=0)
        assert result.certificate.met
        overlap(result.certificate, reference)


@pytest.mark.parametrize("penalize_intercept", [True, False])
def test_a_sample_without_one_class_is_not_begun_with(penalize_intercept: bool) -> None:
    X, _ = generated(20_000, 4)
    y = np.where(np.arange(20_000) == 7, 1.0, -1.0)
    objective = Objective(penalize_intercept=penalize_intercept)
    problem = tensor_problem(Case(X, y, None, 1.0, 1.0, FORM), device(X), objective)
    result = train(problem, SOLVER, tol=1e-4, seed=0)
    assert result.certificate.met


@pytest.mark.parametrize("name", TWO)
def test_a_warm_start_needs_fewer_steps(name: str) -> None:
    X, y = generated(3000, 10)
    objective = OBJECTIVES[name]
    problem = tensor_problem(Case(X, y, None, 1.0, 1.0, FORM), device(X), objective)
    cold = train(problem, TensorNewton(samples=False), tol=1e-8, seed=0)
    warm = train(problem, SOLVER, tol=1e-8, seed=0, start=cold.start)
    assert warm.certificate.met
    assert warm.passes < 0.5 * cold.passes


@pytest.mark.parametrize("name", TWO)
@pytest.mark.parametrize("classes", [2, 3])
def test_classes_with_weights_along_a_path(classes: int, name: str) -> None:
    X, y = data(800, classes=classes)
    weights = torch.rand(800, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    weights[:50] = 0.0
    options: dict[str, Any] = {"class_weight": "balanced", "intercept_scaling": 1.0}
    ours = TensorSource(X, y, weights, **options)
    theirs = MemorySource(host(X), host(y).astype(int), weights.numpy(), **options)
    objective = OBJECTIVES[name]
    start = None
    for C in (0.1, 0.11):
        settings = Settings(objective.at(C), tol=1e-7, solver="newton")
        results = fit_classes(ours, settings, start=start)
        for result, reference in zip(results, fit_classes(theirs, settings), strict=True):
            assert result.certificate.met
            assert result.certificate.penalize_intercept == objective.penalize_intercept
            overlap(result.certificate, reference.certificate)
            np.testing.assert_allclose(result.w, reference.w, rtol=1e-2, atol=1e-3)
        ends = [result.start for result in results]
        start = [ours.scaled_start(end, 1.1) for end in ends if end is not None]
        assert len(start) == len(ours.labels)


@pytest.mark.parametrize("name", OBJECTIVES)
def test_drift_stays_within_its_allowance(name: str) -> None:
    """Margins that were added up over many steps, against those from scratch."""
    X, y = generated(500, 6)
    case, objective = Case(X.astype(float), y, None, 10.0, 1.0, FORM), OBJECTIVES[name]
    problem = tensor_problem(case, device(X), objective)
    options = Options(np.random.default_rng(0), target=0.0)
    descent = Descent(problem, options, samples=False)
    for _ in range(40):
        descent.epoch()
        margins = problem.signs * problem.rows.products(device(descent.w))
        allowed = 2.0**-53 * (descent._error + 1.01 * np.linalg.norm(descent.w))
        sizes = problem.rows.product_roundings
        assert bool(((descent._margins - margins).abs() <= allowed * sizes).all())


@pytest.mark.parametrize("penalize_intercept", [True, False])
def test_a_smooth_loss_ends_where_rounding_does(penalize_intercept: bool) -> None:
    X, y = generated(400, 5)
    objective = Objective(
        loss=OBJECTIVES["squared hinge"].loss, penalize_intercept=penalize_intercept
    )
    problem = tensor_problem(Case(X, y, None, 1.0, 1.0, FORM), device(X), objective)
    result = train(problem, SOLVER, tol=0.0, max_iter=200, seed=0)
    assert result.reason == SOLVER_FINISHED
    assert result.certificate.gap <= 1e-12 * result.certificate.primal
