"""certsvm in benchopt's benchmark: the solver's file and the summary.

The file is read with a stand-in for benchopt's two classes, which have next to nothing to do in it.
"""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from benchmarks.benchopt import summary
from certsvm import LinearSVC

FILE = Path(summary.__file__).parent / "certsvm_solver.py"
INFINITE = 3e38
"""The first tolerance that benchopt asks for."""


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


@pytest.mark.parametrize("name", ["auto", "sgd-s"])
def test_points_become_as_good_as_asked(module: ModuleType, name: str) -> None:
    rng = np.random.default_rng(3)
    X = rng.standard_normal((40, 5))
    y = np.where(X @ rng.standard_normal(5) + rng.standard_normal(40) > 0, 1, -1)
    solver = module.Solver()
    solver.solver = name
    assert name in solver.parameters["solver"]
    assert solver.skip(X=X, y=y, C=2.0) == (False, None)
    solver.set_objective(X=X, y=y, C=2.0)
    tol = INFINITE
    while tol >= 1e-2:
        solver.run(tol)
        tol = solver.get_next(tol)
    w = solver.get_result()["beta"]
    J = 2.0 * np.maximum(1 - y * (X @ w), 0.0).sum() + 0.5 * w @ w
    best = LinearSVC(2.0, fit_intercept=False, tol=1e-6).fit(X, y).certificate_.dual
    assert 1.1 * best >= J
