"""certsvm in benchopt's benchmark: the solver's file and the summary.

The file is read with a stand-in for benchopt's two classes, which have next to nothing to do in
it; where benchopt is installed, it is also run for real, in a benchmark of the same form.
"""

from __future__ import annotations

import importlib.util
import json
import shutil
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

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
@pytest.mark.parametrize("name", ["auto", "working-set", "newton", "dcd", "sgd-s", "sgd-m"])
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


@pytest.mark.parametrize(
    "form", [np.asfortranarray, sp.csr_matrix, sp.csc_matrix, lambda X: X.astype(np.float32)]
)
def test_data_is_taken_as_it_comes(module: ModuleType, form: Any) -> None:
    X, y = data()
    X = X.astype(np.float32).astype(np.float64)
    betas = []
    for rows, labels in ((X, y), (form(X), y.astype(float))):
        solver = made(module, "auto", rows, labels, 0.1)
        solver.run(1e-8)
        betas.append(solver.get_result()["beta"])
    assert betas[0].shape == (5,)
    np.testing.assert_allclose(betas[1], betas[0], rtol=1e-3)


def test_tolerances_descend_to_the_last(module: ModuleType) -> None:
    solver = module.Solver()
    tolerances = [solver.get_next(INFINITE)]
    while tolerances[-1] > module.TOLERANCES[-1]:
        tolerances.append(solver.get_next(tolerances[-1]))
    assert tuple(tolerances) == module.TOLERANCES[1:]
    assert tolerances[-1] == pytest.approx(1e-8)
    assert solver.get_next(0.0) == tolerances[-1]


def test_the_curve_ends_at_the_last_tolerance_or_the_first_that_is_missed(
    module: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = data()
    criterion = module.LastTolerance()
    criterion.solver = solver = made(module, "sgd-s", X, y, 1.0)
    assert criterion.check_convergence([{"stop_val": INFINITE}]) == (False, 1 / 17)
    # Flat curves go on: two tolerances may be met by the same pass.
    flat = [{"stop_val": tol, "objective_value": 1.0} for tol in (INFINITE, 0.3, 0.1, 0.03)]
    assert not criterion.check_convergence(flat)[0]
    assert criterion.check_convergence([*flat, {"stop_val": module.TOLERANCES[-1]}])[0]
    monkeypatch.setattr(module, "MOST_SECONDS", 0.0)
    solver.run(1e-6)
    assert solver.missed
    assert np.isfinite(solver.get_result()["beta"]).all()
    assert criterion.check_convergence(flat)[0]
    monkeypatch.undo()
    solver.run(0.5)
    assert not solver.missed


def test_what_does_not_apply_is_skipped(module: ModuleType) -> None:
    X, y = data()
    wide = sp.csr_matrix((40, 6000))
    for name, rows, labels, why in (
        ("pegasos", X, y, "proves nothing"),
        ("auto", X, (y + 1) // 2, "labels"),
        ("auto", X, np.ones(40), "labels"),
        ("smoothed-newton", wide, y, "does not take 40 x 6000"),
        ("newton", sp.csr_matrix((7000, 6000)), y, "does not take 7000 x 6000"),
    ):
        solver = module.Solver()
        solver.solver = name
        skipped, reason = solver.skip(X=rows, y=labels, C=1.0)
        assert skipped
        assert why in reason
    solver.solver = "newton"
    assert not solver.skip(X=wide, y=y, C=1.0)[0]
    solver.solver = "nothing"
    with pytest.raises(ValueError, match="unknown solver 'nothing'"):
        solver.skip(X=X, y=y, C=1.0)


def test_auto_takes_many_columns(module: ModuleType) -> None:
    X = sp.random(40, 6000, density=0.01, format="csr", random_state=0)
    solver = made(module, "auto", X, data()[1], 1.0)
    solver.run(0.1)
    assert not solver.missed


def test_each_problem_is_compiled_for_once(
    module: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    # One object serves all data sets and all repetitions.
    fits: list[tuple[str, bool]] = []
    monkeypatch.setattr(
        module.Solver,
        "_fit",
        lambda self, name, tol, max_iter: fits.append((name, sp.issparse(self.X))),
    )
    X, y = data()
    solver = made(module, "auto", X, y, 1.0)
    parts = ("working-set", "newton")
    assert fits == [(name, False) for name in parts]
    solver.set_objective(X=X, y=y, C=1.0)
    assert len(fits) == 2
    solver.set_objective(X=sp.csr_matrix(X), y=y, C=1.0)
    assert fits[2:] == [(name, True) for name in parts]
    solver.set_objective(X=solver.X, y=y, C=2.0)
    assert len(fits) == 6


def points(solver: str, values: list[list[tuple[float, float]]]) -> list[dict[str, Any]]:
    return [
        {
            "dataset_name": "set",
            "p_obj_C": 0.1,
            "solver_name": solver,
            "idx_rep": repetition,
            "time": time,
            "objective_value": value,
        }
        for repetition, curve in enumerate(values)
        for time, value in curve
    ]


def test_the_summary(tmp_path: Path) -> None:
    near, far = 10.0 * (1 + 5e-5), 10.05
    both = [
        # A later point may be the faster one; the repetitions' median counts.
        points(
            "a", [[(0.15, 10.5), (0.3, far), (0.2, near), (0.9, 10.0)], [(0.1, far)], [(0.5, near)]]
        ),
        points("b", [[(1.0, 20.0)]]),
    ]
    for name, part in zip("ab", both, strict=True):
        pd.DataFrame(part).to_parquet(tmp_path / name)
    out = tmp_path / "out.json"
    summary.main([str(tmp_path / "a"), str(tmp_path / "b"), "--out", str(out)])
    written = json.loads(out.read_text())
    assert {"processor", "certsvm"} <= set(written["machine"])
    a, b = written["table"]
    assert (a["data"], a["C"], a["solver"]) == ("set", 0.1, "a")
    assert (a["s to 0.01"], a["s to 0.0001"], a["s to 1e-06"]) == (0.2, None, None)
    assert (a["repetitions"], a["points"], a["objective"], a["above it"]) == (3, 6, 10.0, 0.0)
    assert (b["s to 0.01"], b["best seen"], b["above it"]) == (None, 10.0, 1.0)


OBJECTIVE = """
import numpy as np
from benchopt import BaseObjective


class Objective(BaseObjective):
    name = "hinge"
    parameters = {"C": [0.5]}

    def set_data(self, X, y):
        self.X, self.y = X, y

    def get_objective(self):
        return {"X": self.X, "y": self.y, "C": self.C}

    def get_one_result(self):
        return {"beta": np.zeros(self.X.shape[1])}

    def evaluate_result(self, beta):
        return 0.5 * beta @ beta + self.C * np.maximum(0.0, 1.0 - self.y * (self.X @ beta)).sum()
"""

DATASET = """
import numpy as np
from benchopt import BaseDataset


class Dataset(BaseDataset):
    name = "tiny"

    def get_data(self):
        with np.load({path!r}) as kept:
            return {{"X": kept["X"], "y": kept["y"]}}
"""


def test_it_runs_in_benchopt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    benchopt = pytest.importorskip("benchopt")
    X, y = data()
    np.savez(tmp_path / "tiny.npz", X=X, y=y)
    benchmark = tmp_path / "benchmark_hinge"
    for folder in ("datasets", "solvers"):
        (benchmark / folder).mkdir(parents=True)
    (benchmark / "objective.py").write_text(OBJECTIVE)
    (benchmark / "datasets" / "tiny.py").write_text(DATASET.format(path=str(tmp_path / "tiny.npz")))
    shutil.copy(FILE, benchmark / "solvers")
    monkeypatch.chdir(tmp_path)
    benchopt.run_benchmark(
        str(benchmark), solver_names=["certsvm[solver=[auto,dcd,pegasos]]"], max_runs=100,
        timeout=60, plot_result=False, output_file=str(tmp_path / "result.parquet"),
    )  # fmt: skip
    curves = pd.read_parquet(tmp_path / "result.parquet")
    table = summary.summarise(curves)
    # The third proves nothing, and is skipped.
    assert [row["solver"] for row in table] == ["certsvm[solver=auto]", "certsvm[solver=dcd]"]
    low, high = optimum(Case(X, y.astype(float), None, 0.5, 0.0, "dense-float64-int32"))
    for row in table:
        assert row["points"] == 17
        assert (1 - ROUNDING) * low <= row["objective"] <= (1 + 1e-8 + ROUNDING) * high
        assert row["s to 1e-06"] > 0
