"""What solvers have in common: names, parameters, starts and precision."""

import pickle
from typing import Any

import numpy as np
import pytest

from certsvm import Problem, Rows, train
from certsvm.solvers import DCD, SOLVERS, SGDs, Start, SvmSgd, make_solver


@pytest.mark.parametrize("name", SOLVERS)
def test_solvers_by_name(name: str) -> None:
    solver = make_solver(name)
    assert solver.name == solver.label == name
    assert pickle.loads(pickle.dumps(solver)) == solver
    with pytest.raises(AttributeError):
        solver.f = 2.0


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("sgd-s", {"f": 0.0}), ("sgd-s", {"windows": -1}), ("sgd-m", {"precision": "half"}),
        ("dcd", {"eps": 0.0}), ("working-set", {"omega": 2.0}), ("mpu", {"delta_stop": -1.0}),
        ("mpu", {"precision": 16}), ("ocas", {"mu": 1.5}), ("svmperf", {"eps": -1.0}),
        ("pegasos", {"first_t": 0}), ("norma", {"rate": "linear"}), ("svmsgd", {"eta_0": 0.0}),
        ("sgd-qn", {"skip": 0}),
    ],
)  # fmt: skip
def test_bad_parameters(name: str, parameters: dict[str, Any]) -> None:
    solver = SOLVERS[name]
    with pytest.raises(ValueError, match=f"{solver.__name__}: {next(iter(parameters))} must be"):
        solver(**parameters)


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


@pytest.mark.parametrize("scale", [1e10, 1e-10])
def test_single_precision_has_a_range(scale: float) -> None:
    problem = Problem(Rows(np.full((100, 1), 1e22)), np.ones(100), C=scale)
    with pytest.raises(ValueError, match="range of single precision is too small"):
        train(problem, SvmSgd(eta_0=1e-30, precision="single"))
