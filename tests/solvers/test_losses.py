"""Both losses, with a free intercept or a penalised one: solvers against other programs."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC as Liblinear

from certsvm import Problem, Rows, train
from certsvm.kernels.losses import SQUARED_HINGE, loss_named
from certsvm.solvers import DCD, SOLVERS, Auto, Newton, SmoothedNewton, Solver, Start, WorkingSet
from tests.problems import Case, objective, streamed

LOSSES = ("hinge", "squared_hinge")
GENERAL: list[Solver] = [Auto(), WorkingSet(), DCD(), Newton(), SmoothedNewton()]
both_losses = pytest.mark.parametrize("loss", LOSSES)
both_intercepts = pytest.mark.parametrize("penalize_intercept", [True, False])


def random_case(
    shape: tuple[int, int] = (60, 4),
    *,
    loss: str = "squared_hinge",
    penalize_intercept: bool = True,
    C: float = 0.3,
    seed: int = 0,
    form: str = "dense-float64-int32",
) -> Case:
    """Overlapping classes, away from the origin, with weights."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal(shape)
    labels = np.where(X[:, 0] + rng.standard_normal(shape[0]) > 0.5, 1.0, -1.0)
    labels[:2] = 1.0, -1.0
    weights = rng.integers(0, 4, shape[0]) / 2.0
    weights[:2] = 1.0
    return Case(X + 0.7, labels, weights, C, 1.0, form, loss, penalize_intercept)


def best_value(case: Case, solver: Solver, tol: float = 1e-7) -> float:
    result = train(case.problem(), solver, tol=tol, max_iter=20_000, seed=0)
    assert result.certificate.met
    assert objective(case, result.w) == pytest.approx(result.certificate.primal, rel=1e-10)
    return result.certificate.primal


@pytest.mark.parametrize("dual", [True, False])
def test_liblinear_agrees_on_the_squared_hinge(dual: bool) -> None:
    case = random_case()
    peer = Liblinear(loss="squared_hinge", C=case.C, dual=dual, tol=1e-10, max_iter=200_000)
    peer.fit(case.X, case.labels, sample_weight=case.weights)
    value = objective(case, np.append(peer.coef_[0], peer.intercept_))
    for solver in GENERAL:
        assert best_value(case, solver) == pytest.approx(value, rel=1e-6)


@both_losses
@both_intercepts
@pytest.mark.parametrize("form", ["dense-float64-int32", "csr-float32-int32"])
@pytest.mark.parametrize("shape", [(80, 5), (25, 60)])
def test_all_forms(shape: tuple[int, int], form: str, loss: str, penalize_intercept: bool) -> None:
    """Newton in the space of the columns and of the rows, compiled or not, and on a stream."""
    case = random_case(shape, loss=loss, penalize_intercept=penalize_intercept, form=form)
    value = best_value(case, Newton())
    for solver in (Auto(), WorkingSet(), SmoothedNewton()):
        assert best_value(case, solver) == pytest.approx(value, rel=1e-6)
    for on_stream in (Auto(), Newton()):
        result = train(streamed(case, 17), on_stream, tol=1e-7, max_iter=1000, seed=0)
        assert result.certificate.met
        assert result.certificate.primal == pytest.approx(value, rel=1e-6)


@both_losses
@both_intercepts
def test_a_warm_start_is_at_the_optimum(loss: str, penalize_intercept: bool) -> None:
    case = random_case(loss=loss, penalize_intercept=penalize_intercept)
    problem = case.problem()
    cold = train(problem, Newton(), tol=1e-9, max_iter=200, seed=0, keep_alpha=True)
    assert cold.alpha is not None
    for solver in (Auto(), WorkingSet(), DCD(), Newton()):
        for start, tol in ((Start(cold.w, 1, cold.alpha), 1e-6), (Start(cold.w, 1), 1e-2)):
            warm = train(problem, solver, tol=tol, max_iter=20, seed=0, start=start)
            assert warm.certificate.met


@both_losses
def test_a_free_intercept_follows_a_shift_of_the_rows(loss: str) -> None:
    case = random_case(loss=loss, penalize_intercept=False)
    moved = case._replace(X=case.X + np.array([3.0, -8.0, 0.5, 20.0]))
    for solver in (Auto(), Newton(), SmoothedNewton()):
        assert best_value(moved, solver) == pytest.approx(best_value(case, solver), rel=1e-6)


def refusing(attribute: Callable[[Solver], bool]) -> list[str]:
    return sorted(name for name, solver in SOLVERS.items() if not attribute(solver))


HINGE_ALONE = refusing(lambda solver: len(solver.losses) == 2)
PENALISED = refusing(lambda solver: solver.frees_intercept)


@pytest.mark.parametrize(
    ("name", "how", "message"),
    [(n, {"loss": SQUARED_HINGE}, "hinge.*squared_hinge") for n in HINGE_ALONE]
    + [(n, {"penalize_intercept": False}, "penalize_intercept=True") for n in PENALISED],
)
def test_solvers_say_what_they_do_not_solve(name: str, how: dict[str, Any], message: str) -> None:
    problem = Problem(Rows(np.eye(2), intercept_scaling=1.0), [1, -1], **how)
    with pytest.raises(ValueError, match=rf"{name}.*{message}.*'newton'"):
        train(problem, SOLVERS[name]())


@both_losses
@pytest.mark.parametrize("weights", [None, [1.0, 2.0, 0.0]])
def test_one_class_has_no_free_intercept(loss: str, weights: list[float] | None) -> None:
    labels = [1, 1, 1 if weights is None else -1]
    rows, of_loss = Rows(np.eye(3), intercept_scaling=1.0), loss_named(loss)
    with pytest.raises(ValueError, match="same side"):
        Problem(rows, labels, weights=weights, loss=of_loss, penalize_intercept=False)


def scaled_case(seed: int, shape: tuple[int, int], C: float, rho: float, loss: str) -> Case:
    """Columns whose scales differ by several orders of magnitude."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal(shape)
    labels = np.where(X[:, 0] + 0.1 * rng.standard_normal(shape[0]) > 0.3, 1.0, -1.0)
    labels[:2] = 1.0, -1.0
    X = X * np.exp(3.0 * rng.standard_normal(shape[1])) + 3.0
    return Case(X, labels, None, C, rho, loss=loss, penalize_intercept=False)


@both_losses
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("shape", [(4, 60), (40, 150), (120, 20)])
def test_scales_and_a_free_intercept(shape: tuple[int, int], seed: int, loss: str) -> None:
    """In the space of the rows, the intercept must not be lost beside long rows."""
    case = scaled_case(seed, shape, 300.0, 10.0, loss)
    for solver in (Newton(), Auto()):
        result = train(case.problem(), solver, tol=1e-5, max_iter=500, seed=0)
        assert result.certificate.met


def test_smoothed_newton_does_not_give_up_while_the_objective_falls() -> None:
    case = scaled_case(4, (200, 150), 300.0, 10.0, "squared_hinge")
    for penalised in (True, False):
        case = case._replace(penalize_intercept=penalised)
        result = train(case.problem(), SmoothedNewton(), tol=1e-4, max_iter=2000, seed=0)
        assert result.certificate.met


def test_auto_notices_that_the_intercept_moves_slowly() -> None:
    """With little weight on the loss, working sets need many passes to balance alpha."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((120, 300)) + 3.0
    problem = Problem(
        Rows(X, intercept_scaling=1.0), np.where(X[:, 0] > 2.0, 1.0, -1.0), C=1.5e-3,
        loss=SQUARED_HINGE, penalize_intercept=False,
    )  # fmt: skip
    assert train(problem, Auto(), tol=1e-6, max_iter=150, seed=0).certificate.met


@both_losses
def test_a_sample_from_a_stream_leaves_the_intercept_free(loss: str) -> None:
    """With a column of 0.01, a penalised intercept would be near zero."""
    case = random_case((400, 3), loss=loss, penalize_intercept=False)
    case = case._replace(X=case.X + 3.0, intercept_scaling=0.01)
    first = train(streamed(case, 100), SmoothedNewton(), tol=0.0, max_iter=1, seed=0)
    assert first.certificate.primal <= 1.25 * best_value(case, Newton(), 1e-4)


@both_losses
def test_a_stream_whose_first_block_has_one_class(loss: str) -> None:
    case = random_case((400, 3), loss=loss, penalize_intercept=False)
    order = np.argsort(case.labels, kind="stable")
    X, labels, weights = case.X[order], case.labels[order], case.row_weights()[order]
    case = case._replace(X=X, labels=labels, weights=weights)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        result = train(streamed(case, 60), SmoothedNewton(), tol=1e-4, max_iter=500, seed=0)
    assert result.certificate.met
