"""The paper's experiments: the command itself on a tiny scale; then its parts."""

from __future__ import annotations

import itertools
import json
import math
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import dump_svmlight_file, load_digits

from benchmarks.data import DataSet
from benchmarks.paper import accurate, lengths, page, report, unfolded
from benchmarks.paper.__main__ import main
from benchmarks.paper.claims import CLAIMS, Claim
from benchmarks.paper.sets import RECIPES, Where, sets
from benchmarks.paper.systems import (
    ACCURACY,
    SYSTEMS,
    ByGap,
    ByPasses,
    ByRule,
    Gaps,
    Task,
    published,
)
from benchmarks.paper.tables import TABLES, combined
from benchmarks.paper.verdicts import (
    CONFIRMED,
    NOT_CONFIRMED,
    UNCLEAR,
    Ratio,
    Results,
    Span,
    duel,
    less,
    median,
    most,
    ratio,
    worst,
)
from benchmarks.reference import Reference
from certsvm.problem.memory import Problem
from certsvm.problem.rows import Rows
from certsvm.solvers import Newton, Pegasos
from certsvm.solvers.base import Options
from certsvm.training.loop import train

ROOT = Path(__file__).parents[2]


def asked(folder: Path, *options: str) -> list[str]:
    return [
        "--quick", "--sets", "cancer", "--seconds", "0.1", "--accurate-seconds", "0.3",
        "--cache", str(folder / "cache"), "--out", str(folder / "out"), *options,
    ]  # fmt: skip


def task(C: float = 1.0, seconds: float = 20.0, *, single: bool = False) -> Task:
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(y.size)
    X, y = X[order], y[order]
    values = X.astype(np.float32) if single else X
    problem = Problem(Rows(sp.csr_matrix(values / 16)), np.where(y % 2, 1.0, -1.0), C=C)
    certificate = train(problem, Newton(), tol=1e-8, seed=0).certificate
    return Task(problem, Reference(certificate.primal, certificate.dual, 0.0), seconds)


def test_the_command_makes_all_tables_and_resumes(tmp_path: Path, capsys: Any) -> None:
    main(asked(tmp_path))
    printed, said = capsys.readouterr()
    out = tmp_path / "out"
    assert printed.splitlines() == [
        f"tables and pictures: {out}", f"page about them: {out / 'README.md'}"
    ]  # fmt: skip
    for number, table in TABLES.items():
        results = json.loads((out / f"table-{number}.json").read_text())
        assert {cell["system"] for cell in results["cells"]} == set(table.systems)
        assert {cell["C"] for cell in results["cells"]} == set(table.C)
        for cell in results["cells"]:
            if "failure" not in cell and table.kind != "length":
                assert cell["gap"] <= accurate.GAP if number == 1 else cell["accuracy"] <= ACCURACY
            assert f"cancer, C = {cell['C']:g}, {cell['system']}, seed 0: " in said
        text = (out / f"table-{number}.md").read_text()
        assert "| cancer ² |" in text
        assert results["machine"]["processor"] in text
    written = (out / "README.md").read_text()
    assert all(claim.text.replace("|", "\\|") in written for claim in CLAIMS)
    assert "![cancer](./cancer.png)" in written
    assert (out / "cancer.png").stat().st_size > 1000

    before = (out / "table-5.json").read_text()
    main(asked(tmp_path))
    assert capsys.readouterr().err == ""
    assert (out / "table-5.json").read_text() == before


def test_a_killed_run_resumes(tmp_path: Path, capsys: Any) -> None:
    options = asked(tmp_path, "--table", "2", "3", "8", "--no-pictures")
    command = [sys.executable, "-m", "benchmarks.paper", *options]
    run = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True)
    assert run.stderr is not None
    done = []
    for line in run.stderr:
        if "took" in line:
            done.append(line.split(": ")[0])
        if len(done) == 3:
            break
    os.kill(run.pid, signal.SIGKILL)
    run.wait()
    # Printed after the third cell and before the signal.
    done += [line.split(": ")[0] for line in run.stderr if "took" in line]
    main(options)
    said = capsys.readouterr().err
    assert done
    assert not any(f"{cell}: " in said for cell in done)
    last = "cancer, C = 1, MPU, single, seed 0"
    assert f"{last}: " in said or last in done


def test_runs_in_several_processes(tmp_path: Path, capsys: Any) -> None:
    options = asked(tmp_path, "--table", "7", "10", "--no-pictures", "--seeds", "2", "--jobs", "2")
    main(options)
    said = capsys.readouterr().err
    results = json.loads((tmp_path / "out" / "table-7.json").read_text())
    assert results["settings"]["jobs"] == 2
    for cell in results["cells"]:
        assert cell["seeds"] == 2
        for seed in range(2):
            assert f"cancer, C = 0.05, {cell['system']}, seed {seed}: " in said
    assert "2 runs at a time" in (tmp_path / "out" / "table-7.md").read_text()


# In a process of its own, with an empty cache: here all kernels have been compiled long ago.
_COMPILES_WHILE_TIMED = """
import sys
import numba.core.event
from benchmarks.paper import runs
from benchmarks.paper.__main__ import main

names = []

class Listener(numba.core.event.Listener):
    def on_start(self, event):
        names.append(str(event.data["dispatcher"]))

    def on_end(self, event):
        pass

def after_compilation(kind, system, X, y, compile=runs._compile):
    compile(kind, system, X, y)
    assert names, "nothing was compiled at all"
    timed.append(len(names))

def kept(self, run, result, took, keep=runs.Bench._keep):
    if run.kind != "length":
        print(run, names[timed[-1]:], sep=": ", file=sys.stderr)
    keep(self, run, result, took)

timed = []
numba.core.event.register("numba:compile", Listener())
runs._compile, runs.Bench._keep = after_compilation, kept
main(sys.argv[1:])
"""


def test_nothing_is_compiled_while_a_clock_runs(tmp_path: Path) -> None:
    options = asked(tmp_path, "--table", "1", "3", "--systems", "SGD-s", "OCAS", "--no-pictures")
    finished = subprocess.run(
        [sys.executable, "-c", _COMPILES_WHILE_TIMED, *options], cwd=ROOT, text=True, check=True,
        capture_output=True, env=os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "numba")},
    )  # fmt: skip
    for name in ("C = 0.1, SGD-s", "C = 1, OCAS"):
        assert f"cancer, {name}, seed 0: []" in finished.stderr


def test_unknown_sets_and_tables_are_refused(tmp_path: Path, capsys: Any) -> None:
    for option, name in (("--sets", "cancel"), ("--table", "12")):
        with pytest.raises(SystemExit):
            main(asked(tmp_path, option, name))
        assert f"{name}; known are" in capsys.readouterr().err


def test_missing_sets_are_left_out_with_a_reason(
    tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path / "nothing"))
    names = [name for name, recipe in RECIPES.items() if recipe.of != "generated"]
    assert list(sets(names, Where(tmp_path), tmp_path)) == []
    said = capsys.readouterr().err
    for name in names:
        assert f"{name} is left out: " in said
        assert RECIPES[name].how in said


def test_the_physics_file_loses_the_columns_with_missing_values(
    tmp_path: Path, capsys: Any
) -> None:
    rng = np.random.default_rng(0)
    table = np.column_stack([np.arange(30), np.arange(30) % 2, rng.standard_normal((30, 78))])
    for column in range(8):
        table[column, 2 + 5 * column] = 999.0 if column < 6 else 9999.0
    np.savetxt(tmp_path / "phy_train.dat", table)
    ((_, data),) = sets(["Physics"], Where(tmp_path), tmp_path / "cache")
    kept = [j for j in range(78) if j not in range(0, 40, 5)]
    np.testing.assert_allclose(data.X.toarray(), 0.001 * table[:, 2:][:, kept])
    np.testing.assert_array_equal(data.y, np.where(np.arange(30) % 2, 1.0, -1.0))

    table[0, 2] = 1.0
    np.savetxt(tmp_path / "phy_train.dat", table)
    assert list(sets(["Physics"], Where(tmp_path), tmp_path / "cache")) == []
    assert "7 columns with missing values, not 8" in capsys.readouterr().err


def test_a_set_is_parsed_once_and_again_when_its_file_changes(tmp_path: Path) -> None:
    def adult() -> DataSet:
        ((_, data),) = sets(["Adult"], Where(tmp_path), tmp_path / "cache")
        return data

    X = sp.random(20, 6, density=0.5, format="csr", random_state=0)
    y = np.arange(20) % 2
    dump_svmlight_file(X, y, str(tmp_path / "a9a"))
    first = adult()
    (cached,) = (tmp_path / "cache" / "sets").iterdir()
    modified = cached.stat().st_mtime_ns
    np.testing.assert_array_equal(adult().X.toarray(), first.X.toarray())
    assert cached.stat().st_mtime_ns == modified
    time.sleep(0.01)
    dump_svmlight_file(2 * X, y, str(tmp_path / "a9a"))
    np.testing.assert_allclose(adult().X.toarray(), 2 * first.X.toarray())


values = st.floats(0.5, 100.0)


@given(st.lists(st.tuples(values, values, values), min_size=1, max_size=30), st.floats(1.0, 3.0))
def test_the_eps_of_a_search_stops_the_run_where_the_search_stopped(
    passes: list[tuple[float, float, float]], f: float
) -> None:
    gaps = Gaps(f)
    for primal, guess, dual in passes:
        gaps.add(primal, guess, dual)
        eps = gaps.stopping_now()
    if math.isnan(eps):
        return
    assert eps == float(f"{eps:.2g}")
    ends = [
        i
        for i, (primal, guess, dual) in enumerate(passes)
        if guess / dual - 1 <= f * eps and primal / dual - 1 <= eps
    ]
    assert ends[0] == len(passes) - 1


@pytest.mark.parametrize("name", ["SGD-s", "SGD-m", "SGD-m, single"])
def test_the_run_stops_where_the_search_did(name: str) -> None:
    system = SYSTEMS[name]
    assert isinstance(system, ByGap)
    on = task(0.05, single=system.single)
    outcome = system.measure(on, repeats=1)
    assert outcome.failure is None
    assert outcome.accuracy <= ACCURACY
    assert outcome.proved is not None
    assert outcome.value is not None
    assert outcome.proved <= outcome.value
    # One pass earlier it was less accurate, or no eps would have stopped it.
    if name == "SGD-s":
        always = published(on.problem, system.solver, 1e-9, 1e12, 60.0, 0)
        earlier = next(look for look in always if look.passes == outcome.passes - 1)
        assert (
            on.optimum.accuracy(earlier.primal) > ACCURACY
            or not earlier.primal / earlier.dual - 1 < 0.99 * outcome.value
        )


@pytest.mark.parametrize("name", ["Pegasos", "SGD-r", "SvmSgd, single"])
def test_passes_are_no_more_than_needed(name: str) -> None:
    system = SYSTEMS[name]
    assert isinstance(system, ByPasses)
    on = task(0.05, single=system.single)
    outcome = system.measure(on, repeats=2)
    assert outcome.failure is None
    assert outcome.accuracy <= ACCURACY
    assert outcome.value == outcome.passes < 50
    assert system.run(on, outcome.value - 1).accuracy > ACCURACY


@pytest.mark.parametrize("name", ["SVMperf", "DCD", "MPU"])
def test_the_parameter_is_the_loosest_of_its_ladder(name: str) -> None:
    system = SYSTEMS[name]
    assert isinstance(system, ByRule)
    on = task(0.05)
    outcome = system.measure(on, repeats=1)
    assert outcome.failure is None
    assert outcome.value is not None
    assert outcome.accuracy <= ACCURACY
    power = 10.0 ** math.floor(math.log10(outcome.value * 1.001))
    looser = min(d for d in (1.5, 2, 3, 5, 7, 10) if d * power > 1.001 * outcome.value) * power
    if looser <= 10.0 ** system.powers[0]:
        assert system.run(on, looser).accuracy > ACCURACY


@pytest.mark.parametrize("name", ["OCAS", "auto", "Newton", "SGD-s, windows"])
def test_systems_without_a_parameter_reach_the_accuracy(name: str) -> None:
    outcome = SYSTEMS[name].measure(task(0.05), repeats=2)
    assert outcome.failure is None
    assert outcome.accuracy <= ACCURACY
    assert outcome.seconds < math.inf
    if name != "OCAS":
        assert outcome.proved is not None
        assert outcome.accuracy <= outcome.proved <= ACCURACY


@pytest.mark.parametrize("name", SYSTEMS)
def test_a_failure_is_a_cell_too(name: str) -> None:
    # The first pass exceeds a billionth of a second.
    outcome = SYSTEMS[name].measure(
        task(100.0, seconds=1e-9, single=SYSTEMS[name].single), repeats=1
    )
    assert outcome.failure is not None
    assert outcome.failure.startswith("not reached in ")
    assert "inf" not in json.dumps(outcome.describe()).lower()


def test_weights_that_are_not_finite_are_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    from certsvm.solvers.published.pegasos import PegasosRun

    monkeypatch.setattr(PegasosRun, "candidates", lambda self: iter([np.full(64, np.nan)]))
    assert SYSTEMS["Pegasos"].measure(task(), 1).failure == "numerical failure"


def test_one_run_shows_where_each_coefficient_would_have_stopped() -> None:
    problem = task(0.01).problem
    cell = accurate.measure(problem, "SGD-s", 60.0, seed=0, gap=0.003)
    assert "failure" not in cell
    assert cell["J"] / cell["L"] - 1 <= 0.003
    for f, T in cell["T by f"].items():
        *_, last = published(problem, accurate.SOLVERS["SGD-s"], 0.003, float(f), 60.0, 0)
        assert last.epochs == T if T is not None else last.epochs > cell["epochs"]
    assert cell["T by f"][str(cell["f"] or accurate.COEFFICIENTS[-1])] == cell["epochs"]


@pytest.mark.parametrize("system", accurate.SOLVERS)
def test_systems_of_table_1_prove_their_gap(system: str) -> None:
    cell = accurate.measure(task(0.01).problem, system, 60.0, seed=1, gap=0.01)
    assert "failure" not in cell
    assert cell["J"] / cell["L"] - 1 == pytest.approx(cell["gap"], rel=0.01)
    assert cell["gap"] <= 0.01
    late = accurate.measure(task(100.0).problem, system, 1e-9, seed=1)
    assert late["failure"].startswith("not reached in ")


def test_coefficients_are_raised_until_nothing_changes() -> None:
    assert accurate.stable({1.2: 90, 2.0: 80, 3.0: 70, 5.0: 70}) == 3.0
    assert accurate.stable({1.2: 70, 2.0: 70, 3.0: 70}) == 1.2
    assert accurate.stable({1.2: 70, 2.0: 70, 3.0: 69}) is None


def test_pegasos_fails_where_its_scale_vanishes_and_ours_does_not() -> None:
    X, y = load_digits(return_X_y=True)
    signs = np.where(y % 2, 1.0, -1.0)
    short, long = sp.csr_matrix(X / 160), sp.csr_matrix(10.0 * X)
    assert unfolded.steps_until_failure(short, signs, 1.0, 5000) is None
    step = unfolded.steps_until_failure(long, signs, 1.0, 5000)
    assert step is not None
    assert step < 5000
    run = Pegasos().start(Problem(Rows(long), signs), Options(np.random.default_rng(0)))
    for _ in range(5):
        run.epoch()
    assert np.isfinite(next(run.candidates())).all()


def test_the_scale_may_fall_below_the_root_of_the_smallest_number() -> None:
    """|w|^2 is kept with its scale, so a scale of 1e-200 does not make it infinite."""
    X, y = load_digits(return_X_y=True)
    signs = np.where(y % 2, 1.0, -1.0)
    lengths_of_rows = np.sqrt((X * X).sum(axis=1))
    # The scale ends above exp(-R sqrt(C m)), since not every step is projected: at 1e-216 first.
    for digits, fails in ((500, False), (1500, True)):
        factor = digits * math.log(10) / (lengths_of_rows.max() * math.sqrt(y.size))
        step = unfolded.steps_until_failure(sp.csr_matrix(factor * X), signs, 1.0, 5000)
        assert (step is not None) == fails


@given(seed=st.integers(0, 10**6), C=st.floats(0.01, 100.0))
def test_the_length_of_w_obeys_the_bounds_of_the_paper(seed: int, C: float) -> None:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((20, 3)) * 10.0 ** rng.uniform(-2, 2)
    ratios = lengths.measure(Problem(Rows(X), np.where(rng.random(20) < 0.5, 1.0, -1.0), C=C), seed)
    assert 0 < ratios["R / lambda"] <= 1 + 1e-9
    assert 0 < ratios["proposition"] <= 1 + 1e-9


def test_a_system_that_comes_no_nearer_has_stalled(monkeypatch: pytest.MonkeyPatch) -> None:
    from certsvm.solvers.published.pegasos import PegasosRun

    far = itertools.chain([2.0, 1.0], itertools.repeat(3.0))
    monkeypatch.setattr(PegasosRun, "candidates", lambda self: iter([np.full(64, next(far))]))
    failure = SYSTEMS["Pegasos"].measure(task(seconds=1.0), 1).failure
    assert failure is not None
    assert failure.startswith("stalled: nearest ")
    assert " after 2 of " in failure


def test_a_cell_is_the_run_with_the_median_time() -> None:
    runs = [{"seconds": s, "epochs": e, "value": e / 10} for s, e in ((3, 7), (1, 9), (2, 8))]
    cell = combined(runs)
    assert (cell["seconds"], cell["epochs"], cell["value"]) == (2, 8, 0.8)
    assert cell["seconds range"] == [1, 3]
    assert cell["epochs range"] == [7, 9]
    assert "failures" not in cell
    failure = {"failure": "not reached in 3 passes", "passes": 3}
    one = combined([*runs[:2], failure])
    assert (one["seconds"], one["failures"], one["seconds range"]) == (3, 1, [1, 3])
    assert combined([runs[0], failure, failure])["failure"] == failure["failure"]


def made(**seconds: list[float | tuple[float, float]]) -> Results:
    """Results at C = 1, by set: the range of the times; an infinite time is a failure."""
    count = len(next(iter(seconds.values())))
    cells = []
    for system, times in seconds.items():
        for i, given_time in enumerate(times):
            low, high = given_time if isinstance(given_time, tuple) else (given_time,) * 2
            cell: dict[str, Any] = {"set": f"set {i}", "C": 1.0, "system": system}
            if math.isinf(low):
                cell |= {"failure": "not reached in 3 passes", "failures": 3}
            else:
                cell |= {"seconds": low, "seconds range": [low, min(high, 9.0)]}
                cell |= {"failures": 1} if math.isinf(high) else {}
            cells.append(cell)
    about = [{"set": f"set {i}", "of": "paper", "columns": 10, "nonzeros": i} for i in range(count)]
    return Results({2: {"sets": about, "cells": cells, "settings": {"seconds": 10.0}}})


def test_a_duel() -> None:
    results = made(
        A=[1, (1, 3), 1, 4, math.inf, (1, math.inf)],
        B=[2, 2, math.inf, 1, math.inf, 5],
    )
    result = duel(results, 1.0, "A", "B")
    assert (result.wins, result.losses, result.ties) == (2, 1, 2)
    # The third set counts with the limit of ten seconds; the fifth is not compared.
    assert result.ratio is not None
    assert result.ratio.high == pytest.approx((0.5 * 0.5 * 0.1 * 4 * 0.2) ** (1 / 5))
    assert result.ratio.low == 0.0
    assert result.word == UNCLEAR
    assert str(result) == "2 of 5 sets (2 overlap), at most 0.46 of the time"


def test_a_failure_of_the_first_counts_with_the_limit() -> None:
    """It won three sets of four in a tenth of the time, and ran out of it on the fourth."""
    results = made(A=[0.1, 0.1, 0.1, math.inf], B=[1, 1, 1, 0.01])
    result = duel(results, 1.0, "A", "B")
    assert (result.wins, result.losses, result.ties) == (3, 1, 0)
    assert result.ratio is not None
    assert result.ratio.low == pytest.approx((0.1**3 * 1000) ** (1 / 4))
    assert str(result) == "3 of 4 sets, at least 1 of the time"
    assert (result.word, result.much) == (CONFIRMED, NOT_CONFIRMED)


def test_a_ratio_with_failures_of_both_is_no_bound() -> None:
    results = made(A=[1, 1, 1, math.inf], B=[10, 10, math.inf, 10])
    result = duel(results, 1.0, "A", "B")
    assert str(result) == "3 of 4 sets, 0.18 (no bound) of the time"
    assert (result.word, result.much) == (CONFIRMED, UNCLEAR)


def test_a_failure_of_the_second_confirms_a_figure_that_is_low_enough() -> None:
    assert duel(made(A=[1, 1, 1], B=[9, 9, math.inf]), 1.0, "A", "B").much == CONFIRMED
    assert duel(made(A=[9, 9, 9], B=[9.5, 9.5, math.inf]), 1.0, "A", "B").much == UNCLEAR


def test_medians_are_known_between_the_limit_and_no_limit() -> None:
    exact, late = Span(2.0, 2.0), Span(10.0, math.inf)
    ratios = [ratio(a, b) for a, b in ((exact, exact), (late, exact), (late, exact))]
    known = [r for r in ratios if r is not None]
    assert ratio(late, late) is None
    assert str(median(known)) == "at least 5"
    assert str(median([*known, Ratio(6.0, 6.0, 6.0), Ratio(4.0, 4.0, 4.0)])) == "5 to 6"
    assert less(known[1], known[0]) == NOT_CONFIRMED
    assert less(known[0], known[1]) == CONFIRMED
    assert less(known[1], known[2]) == UNCLEAR


def test_the_rule() -> None:
    assert [most(n, 6) for n in range(7)] == [NOT_CONFIRMED] * 3 + [UNCLEAR] + [CONFIRMED] * 3
    assert most(2, 2) == UNCLEAR
    assert worst([CONFIRMED, UNCLEAR, NOT_CONFIRMED]) == NOT_CONFIRMED
    assert worst([CONFIRMED, UNCLEAR]) == UNCLEAR
    assert worst([CONFIRMED, CONFIRMED]) == CONFIRMED


def test_much_and_everywhere() -> None:
    little = duel(made(A=[1, 1, 1], B=[1.5, 1.5, 1.5]), 1.0, "A", "B")
    assert (little.word, little.much, little.everywhere) == (CONFIRMED, NOT_CONFIRMED, CONFIRMED)
    lost = duel(made(A=[1, 1, 1, 1, 2], B=[9, 9, 9, 9, 1]), 1.0, "A", "B")
    assert (lost.word, lost.much, lost.everywhere) == (CONFIRMED, CONFIRMED, NOT_CONFIRMED)


def claim_about(text: str) -> Claim:
    return next(claim for claim in CLAIMS if text in claim.text)


def test_claims_are_decided_by_the_figures() -> None:
    claim = claim_about("SGD-m is faster than SGD-s.")
    quick, slow = [1.0, 2.0, 3.0], [2.0, 3.0, math.inf]
    assert claim.check(made(**{"SGD-m": quick, "SGD-s": slow})).word == CONFIRMED
    assert claim.check(made(**{"SGD-m": slow, "SGD-s": quick})).word == NOT_CONFIRMED
    assert claim.check(made(**{"SGD-m": quick})).word == UNCLEAR
    for other in CLAIMS:
        assert other.check(made(**{"SGD-m": quick})).word in {UNCLEAR, NOT_CONFIRMED}


def test_the_fastest_and_the_slowest_of_table_8_are_so_with_every_seed() -> None:
    claim = claim_about("SvmSgd is the slowest")
    systems = ("SvmSgd, single", "SGD-QN, single", "SGD-m, single", "MPU, single")

    def word(*times: float | tuple[float, float]) -> str:
        return claim.check(made(**{s: [t] * 3 for s, t in zip(systems, times, strict=True)})).word

    assert word((5, 6), (3, 4), 2, 1) == CONFIRMED
    assert word((5, 6), (3, 4), 2, math.inf) == NOT_CONFIRMED
    # A seed of SGD-QN is slower than one of SvmSgd, or faster than one of MPU.
    assert word((5, 6), (3, 5.5), 2, 1) == NOT_CONFIRMED
    assert word((5, 6), (3, 4), 2, (1, 2.5)) == NOT_CONFIRMED
    assert word(math.inf, (3, 4), 2, 1) == CONFIRMED


def test_a_growth_that_the_limit_hides_is_unclear() -> None:
    claim = claim_about("scales much better")

    def word(slow: float) -> str:
        cells = [
            {"set": f"set {i}", "C": C, "system": system}
            | ({"failure": "not reached"} if seconds > 10.0 else {"seconds": seconds})
            for i in range(3)
            for system, times in (("SGD-m", (1.0, slow)), ("OCAS", (1.0, 6.0)))
            for C, seconds in zip((1.0, 10.0), times, strict=True)
        ]
        about = [{"set": f"set {i}", "of": "paper", "columns": 1, "nonzeros": 1} for i in range(3)]
        table = {"sets": about, "cells": cells, "settings": {"seconds": 10.0}}
        return claim.check(Results({2: table})).word

    # It grows by 10 or more, OCAS by 6: that is less, but perhaps not half.
    assert (word(5.0), word(10.0), word(11.0)) == (NOT_CONFIRMED, NOT_CONFIRMED, UNCLEAR)


def test_seeds_that_reached_the_goal_are_shown() -> None:
    late = {"failure": "not reached in 67 passes"}
    cell = combined([late, {"seconds": 6.41, "epochs": 53}, late])
    assert report.timed_entries(cell)[0].endswith("67 passes; 1 of 3 seeds reached it, in 6.4")
    assert report.timed_entries(combined([late, late]))[0] == "not reached in 67 passes"


def news20(**cells: dict[str, Any]) -> Results:
    about = [{"set": "news20", "of": "stand-in", "columns": 10**6, "nonzeros": 1}]
    rows = [{"set": "news20", "C": 1.0, "system": name} | cell for name, cell in cells.items()]
    return Results({8: {"sets": about, "cells": rows, "settings": {"seconds": 10.0}}})


def test_running_out_of_time_shows_no_failure() -> None:
    claim = claim_about("SGD-QN does not reach")
    other = {"SGD-QN, single, corrected": {"passes": 9}}
    for cell, word in (
        ({"failure": "not reached in 72 passes"}, UNCLEAR),
        ({"failure": "stalled: nearest 1e-1 after 3 of 60 passes"}, CONFIRMED),
        ({"passes": 60}, NOT_CONFIRMED),
    ):
        assert claim.check(news20(**{"SGD-QN, single": cell}, **other)).word == word


def test_the_page_is_what_the_committed_results_say() -> None:
    tables = report.read(page.RESULTS)
    assert set(tables) == set(TABLES)
    assert page.page(tables, page.RESULTS, page.PAGE) == page.PAGE.read_text()
    for number, results in tables.items():
        text = (page.RESULTS / f"table-{number}.md").read_text()
        assert text == report.markdown(TABLES[number], results)
