"""The paper's experiments: the command itself on a tiny scale, and how it measures and judges."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_digits

from benchmarks.paper import accurate, lengths, page, report
from benchmarks.paper.__main__ import main
from benchmarks.paper.claims import CLAIMS, Claim
from benchmarks.paper.systems import (
    ACCURACY,
    SYSTEMS,
    ByGap,
    Gaps,
    Task,
    published,
)
from benchmarks.paper.tables import TABLES
from benchmarks.paper.verdicts import (
    CONFIRMED,
    NOT_CONFIRMED,
    UNCLEAR,
    Results,
    duel,
)
from benchmarks.reference import Reference
from certsvm.problem.memory import Problem
from certsvm.problem.rows import Rows
from certsvm.solvers import Newton
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


def test_unknown_sets_and_tables_are_refused(tmp_path: Path, capsys: Any) -> None:
    for option, name in (("--sets", "cancel"), ("--table", "12")):
        with pytest.raises(SystemExit):
            main(asked(tmp_path, option, name))
        assert f"{name}; known are" in capsys.readouterr().err


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


@pytest.mark.parametrize("name", ["SGD-s", "SGD-m, single"])
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


@pytest.mark.parametrize("name", SYSTEMS)
def test_a_failure_is_a_cell_too(name: str) -> None:
    # The first pass exceeds a billionth of a second.
    outcome = SYSTEMS[name].measure(
        task(100.0, seconds=1e-9, single=SYSTEMS[name].single), repeats=1
    )
    assert outcome.failure is not None
    assert outcome.failure.startswith("not reached in ")
    assert "inf" not in json.dumps(outcome.describe()).lower()


@given(seed=st.integers(0, 10**6), C=st.floats(0.01, 100.0))
def test_the_length_of_w_obeys_the_bounds_of_the_paper(seed: int, C: float) -> None:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((20, 3)) * 10.0 ** rng.uniform(-2, 2)
    ratios = lengths.measure(Problem(Rows(X), np.where(rng.random(20) < 0.5, 1.0, -1.0), C=C), seed)
    assert 0 < ratios["R / lambda"] <= 1 + 1e-9
    assert 0 < ratios["proposition"] <= 1 + 1e-9


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


def test_the_page_is_what_the_committed_results_say() -> None:
    tables = report.read(page.RESULTS)
    assert set(tables) == set(TABLES)
    assert page.page(tables, page.RESULTS, page.PAGE) == page.PAGE.read_text()
    for number, results in tables.items():
        text = (page.RESULTS / f"table-{number}.md").read_text()
        assert text == report.markdown(TABLES[number], results)
