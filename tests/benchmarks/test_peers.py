"""The comparison with peers: the command itself, on a tiny set; then its parts."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import venv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import dump_svmlight_file

from benchmarks.peers import growth, ladders, process, worker
from benchmarks.peers.__main__ import main
from benchmarks.peers.adapters import Adapter
from benchmarks.peers.oracle import Search, Trial, loosest

ROOT = Path(__file__).parents[2]


def tiny(n_rows: int = 300) -> tuple[sp.csr_matrix, Any]:
    rng = np.random.default_rng(0)
    X = sp.random(n_rows, 20, density=0.3, format="csr", random_state=0)
    return X, np.where(X @ rng.standard_normal(20) + 0.3 * rng.standard_normal(n_rows) > 0, 2, 1)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a data set, and with an environment that has no package in it."""
    folder = tmp_path_factory.mktemp("peers")
    dump_svmlight_file(*tiny(), str(folder / "tiny"))
    venv.create(folder / "environments" / "snapml", with_pip=False)
    return folder


def arguments(folder: Path, *options: str) -> list[str]:
    named = {
        "--data": folder,
        "--environments": folder / "environments",
        "--cache": folder / "cache",
        "--out": folder / "out",
        "--sets": "tiny",
        "--accuracies": "0.01",
        "--repeats": "1",
    }
    return [str(text) for option in named.items() for text in option] + list(options)


def results(folder: Path) -> dict[str, Any]:
    written: dict[str, Any] = json.loads((folder / "out" / "peers.json").read_text())
    return written


@pytest.fixture
def again(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> Callable[[list[str]], str]:
    """The command in this process, which has imported everything already; what it says."""

    def run(arguments: list[str]) -> str:
        monkeypatch.setattr(sys, "argv", ["benchmarks.peers", *arguments])
        main()
        return str(capsys.readouterr().err)

    return run


def test_the_command(folder: Path, again: Callable[[list[str]], str]) -> None:
    asked = arguments(folder, "--C", "1", "--peers", "sklearn-SGD", "snapml")
    said = subprocess.run(
        [sys.executable, "-m", "benchmarks.peers", *asked],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stderr  # fmt: skip
    assert "snapml is skipped" in said
    first = results(folder)
    assert list(first["skipped"]) == ["snapml"]
    assert "processor" in first["machine"]
    (cell,) = first["cells"]
    assert (cell["set"], cell["C"], cell["accuracy"]) == ("tiny", 1, 0.01)
    assert cell["reference"]["primal"] / cell["reference"]["dual"] - 1 <= 1e-4
    assert set(cell["systems"]) == {"certsvm", "sklearn-SGD"}
    for system in cell["systems"].values():
        assert system["seconds"] > 0
        assert -1e-9 <= system["accuracy"] <= 0.01
        assert len(system["rounds"]) == 1
    table = (folder / "out" / "peers.md").read_text()
    assert "| tiny, 300 x 20 | 1 |" in table
    assert "Not installed: snapml." in table
    assert (folder / "out" / "peers.png").stat().st_size > 1000

    said = again(asked)
    assert "tiny, C = 1, to 0.01: done before" in said
    assert "certsvm (tolerance" not in said
    assert results(folder)["cells"] == first["cells"]


def test_a_fit_over_the_limit_is_recorded(folder: Path, again: Callable[[list[str]], str]) -> None:
    said = again(
        arguments(folder, "--C", "2", "--peers", "sklearn-LinearSVC", "--max-seconds", "1e-6")
    )
    assert "over 1e-06 s" in said
    (cell,) = results(folder)["cells"]
    for system in cell["systems"].values():
        assert system["seconds"] is None
        assert system["why"].startswith("not reached in 1e-06 s")
    assert "| not reached | not reached | none |" in (folder / "out" / "peers.md").read_text()


def test_a_worker_that_dies_is_started_again(tmp_path: Path) -> None:
    X, labels = tiny()
    data = tmp_path / "data.npz"
    worker.save(data, X, np.where(labels == 2, 1.0, -1.0))
    with process.Worker(Path(sys.executable), "sklearn-LinearSVC", data, 1) as peer:
        first = peer.fit(1.0, "", 0.1, 60.0)
        assert first.w is not None
        assert first.w.shape == (20,)
        assert "parameter of LinearSVC must be" in str(peer.fit(-1.0, "", 0.1, 60.0).failed)
        assert peer._process is not None
        os.kill(peer._process.pid, signal.SIGKILL)
        assert peer.fit(1.0, "", 0.1, 60.0).failed == "the process ended with status -9"
        np.testing.assert_array_equal(peer.fit(1.0, "", 0.1, 60.0).w, first.w)


class Tolerant(Adapter):
    name = "tolerant"
    variants = ("slow", "quick")


class Passing(Tolerant):
    knob = "passes"

    @classmethod
    def ladder(cls, accuracy: float) -> list[float]:
        return ladders.passes()


def search(adapter: type[Adapter], target: float, fit: Any) -> tuple[Search, list[Trial]]:
    """The oracle's choice and all it tried; the optimum is 1."""
    tried: list[Trial] = []

    def trial(variant: str, setting: float, limit: float) -> Trial:
        tried.append(fit(variant, setting, limit))
        return tried[-1]

    return loosest(adapter, target, 60.0, trial, lambda objective: objective - 1.0), tried


def test_the_oracle_takes_the_loosest_setting_of_the_fastest_variant() -> None:
    def fit(variant: str, setting: float, limit: float) -> Trial:
        seconds = 2.0 if variant == "slow" else 1.0
        return Trial(variant, setting, seconds, 1.0 + setting / 16)

    best = search(Tolerant, 0.01, fit)[0].best
    assert best is not None
    assert (best.variant, best.setting) == ("quick", 0.1)


def test_the_oracle_stops_where_a_fit_takes_too_long() -> None:
    def fit(variant: str, setting: float, limit: float) -> Trial:
        if setting < 1.0:
            return Trial(variant, setting, exceeded=limit)
        return Trial(variant, setting, 30.0, 1.0 + setting)

    result, tried = search(Tolerant, 0.01, fit)
    assert result.best is None
    assert result.why == "not reached in 60 s; 1.0e+00 at best"
    assert sum(trial.exceeded is not None for trial in tried) == 2


def test_the_oracle_names_a_failure() -> None:
    def fit(variant: str, setting: float, limit: float) -> Trial:
        return Trial(variant, setting, failed="out of luck")

    assert search(Tolerant, 0.01, fit)[0].why == "failed: out of luck"


def test_an_answer_without_its_certificate_does_not_count() -> None:
    def fit(variant: str, setting: float, limit: float) -> Trial:
        return Trial(variant, setting, 1.0, 1.0, certified=False)

    assert search(Tolerant, 0.01, fit)[0].best is None


def test_more_passes_are_given_up_when_they_do_not_help() -> None:
    def diverging(variant: str, setting: float, limit: float) -> Trial:
        return Trial(variant, setting, setting / 100, 1.0 + setting)

    def slow(variant: str, setting: float, limit: float) -> Trial:
        return Trial(variant, setting, setting / 100, 1.0 + 1.0 / setting)

    assert max(trial.setting for trial in search(Passing, 1e-3, diverging)[1]) <= 12
    assert max(trial.setting for trial in search(Passing, 1e-6, slow)[1]) <= 2000
    best = search(Passing, 1e-3, slow)[0].best
    assert best is not None
    assert best.setting == 1200


def test_growth(tmp_path: Path) -> None:
    sizes = {
        "working-set": {"n_documents": 50, "n_words": 40, "length": 10},
        "newton": {"n_documents": 50, "n_words": 10, "length": 5},
    }
    growth.write(tmp_path, 1, sizes)
    table = json.loads((tmp_path / "growth.json").read_text())["table"]
    assert len(table) == 16
    assert {row["passes"] for row in table} == {growth.PASSES}
    assert "| newton | columns | 8 |" in (tmp_path / "growth.md").read_text()
    assert (tmp_path / "growth.png").exists()
