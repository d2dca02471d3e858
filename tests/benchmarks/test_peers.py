"""The comparison with peers: the command itself, on a tiny set."""

import json
import subprocess
import sys
import venv
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import dump_svmlight_file

from benchmarks.peers import growth

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


def test_the_command(folder: Path) -> None:
    places = [f"--{name}={folder / name}" for name in ("environments", "cache", "out")]
    asked = "--sets tiny --accuracies 0.01 --repeats 1 --C 1 --peers sklearn-SGD snapml"
    words = [sys.executable, "-m", "benchmarks.peers", f"--data={folder}", *places, *asked.split()]
    said = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True).stderr
    assert "snapml is skipped" in said
    first = json.loads((folder / "out" / "peers.json").read_text())
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
