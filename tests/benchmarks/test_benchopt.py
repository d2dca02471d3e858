"""certsvm in benchopt's benchmark: the solver's file and the summary.

The file is read with a stand-in for benchopt's two classes, which have next to nothing to do in it.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from benchmarks.benchopt import summary
from tests.problems import Case, optimum

FILE = Path(summary.__file__).parent / "certsvm_solver.py"
INFINITE = 3e38
"""The first tolerance that benchopt asks for."""
ROUNDING = 1e-12


class StandIn:
    def get_seed(self, *, use_repetition: bool) -> int:
        return 7 if use_repetition else 0


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The solver's file, read without benchopt."""
    benchopt, criteria = ModuleType("benchopt"), ModuleType("benchopt.stopping_criterion")
    vars(benchopt)["BaseSolver"] = StandIn
    vars(criteria)["StoppingCriterion"] = type("StoppingCriterion", (), {})
    monkeypatch.setitem(sys.modules, "benchopt", benchopt)
    monkeypatch.setitem(sys.modules, "benchopt.stopping_criterion", criteria)
    spec = importlib.util.spec_from_file_location("certsvm_solver", FILE)
    assert spec is not None
    assert spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


def data() -> tuple[Any, Any]:
    rng = np.random.default_rng(3)
    X = rng.standard_normal((40, 5))
    y = np.where(X @ rng.standard_normal(5) + rng.standard_normal(40) > 0, 1, -1)
    return X, y


def made(module: ModuleType, name: str, X: Any, y: Any, C: float) -> Any:
    solver = module.Solver()
    solver.solver = name
    assert solver.skip(X=X, y=y, C=C) == (False, None)
    solver.set_objective(X=X, y=y, C=C)
    return solver


def objective(X: Any, y: Any, C: float, beta: Any) -> float:
    """J, as the benchmark computes it."""
    return C * np.maximum(1 - y * (X @ beta), 0.0).sum() + 0.5 * np.dot(beta, beta)


@pytest.mark.parametrize("C", [0.01, 2.0])
@pytest.mark.parametrize("name", ["auto", "sgd-s"])
def test_each_point_is_as_good_as_its_tolerance(module: ModuleType, name: str, C: float) -> None:
    assert name in module.Solver.parameters["solver"]
    X, y = data()
    low, high = optimum(Case(X, y.astype(float), None, C, 0.0, "dense-float64-int32"))
    solver = made(module, name, X, y, C)
    assert solver.seed == 7
    finest = 1e-2 if name.startswith("sgd") else 1e-8
    tol, values = INFINITE, []
    while tol >= finest:
        solver.run(tol)
        result = solver.get_result()
        assert list(result) == ["beta"]
        assert not solver.missed
        values.append(objective(X, y, C, result["beta"]))
        # The bounds and this value may round differently.
        assert (1 - ROUNDING) * low <= values[-1] <= (1 + min(tol, 1.0) + ROUNDING) * high
        following = solver.get_next(tol)
        if following == tol:
            break
        tol = following
    assert len(values) == (5 if name.startswith("sgd") else 17)
