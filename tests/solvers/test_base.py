"""What solvers have in common: starts, labels and precision."""

from __future__ import annotations

import numpy as np
import pytest

from certsvm.problem.memory import Problem
from certsvm.problem.rows import Rows
from certsvm.solvers import DCD, SGDQN, Options, SGDs, Start, SvmSgd
from certsvm.solvers.base import float_type
from certsvm.training.loop import train
from tests.problems import noisy


@pytest.mark.parametrize(
    ("start", "message"),
    [
        (Start(np.zeros(1)), "start.w must be 3 finite numbers"),
        (Start(np.array([0, np.nan, 0])), "start.w"),
        (Start(np.zeros(3), -1), "start.epochs"),
        (Start(np.zeros(3), 1.5), "start.epochs"),  # type: ignore[arg-type]
        (Start(np.zeros(3), smoothing=0.0), "start.smoothing must be a number > 0"),
        (Start(np.zeros(3), 1, np.zeros(5)), "start.alpha must be 2 finite numbers"),
        (Start(np.zeros(3), 1, np.full(2, np.nan)), "start.alpha"),
    ],
)
def test_impossible_starts(start: Start, message: str) -> None:
    problem = Problem(Rows(np.eye(2, 3)), [1, -1])
    with pytest.raises(ValueError, match=message):
        train(problem, SGDs(), start=start)


def test_a_start_in_single_precision_is_widened() -> None:
    rng = np.random.default_rng(0)
    X = np.abs(rng.standard_normal((60, 5))) + 0.1
    labels = np.where(np.arange(60) % 2, 1.0, -1.0)
    problem = Problem(Rows(X * labels[:, None]), labels)
    far = Start(np.full(5, -1e6, dtype=np.float32), 100_000)
    certificate = train(problem, SGDs(), tol=0.01, seed=0, max_iter=50, start=far).certificate
    truth = train(problem, DCD(), tol=1e-6, seed=0).certificate
    assert certificate.dual <= truth.primal


def test_single_precision_is_single() -> None:
    for solver in (SvmSgd(precision="single"), SGDQN(precision="single")):
        run = solver.start(noisy(), Options(np.random.default_rng(0)))
        vector = run._state._v if isinstance(solver, SvmSgd) else run._state._w
        assert vector.dtype == np.float32
        run.epoch()
        assert next(run.candidates()).dtype == np.float64


def test_a_checked_start_is_a_copy() -> None:
    w, alpha = np.zeros(5), np.zeros(400)
    start = Start(w, alpha=alpha).checked(noisy())
    w[0] = alpha[0] = 1.0
    assert not start.w.any()
    assert not start.alpha.any()


def test_the_label_names_what_is_not_default() -> None:
    assert SGDs().label == "sgd-s"
    assert SGDs(windows=2, shuffled=True).label == "sgd-s(windows=2, shuffled=True)"


@pytest.mark.parametrize("scale", [1e10, 1e-10])
def test_single_precision_has_a_range(scale: float) -> None:
    problem = Problem(Rows(np.full((100, 1), 1e22)), np.ones(100), C=scale)
    assert float_type(DCD(), "double", problem) is np.float64
    with pytest.raises(ValueError, match="range of single precision is too small"):
        float_type(DCD(), "single", problem)
    assert float_type(DCD(), "single", noisy()) is np.float32
