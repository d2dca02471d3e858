"""`certsvm train --dask`, as a process."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.datasets import dump_svmlight_file

import certsvm
from certsvm.files import Model
from tests.dask.problems import data


def certsvm_command(*arguments: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "certsvm.cli", *map(str, arguments)],
        capture_output=True, text=True, check=False, timeout=180,
    )  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("command")
    X, y = data()
    (folder / "blocks").mkdir()
    for i, part in enumerate((slice(0, 250), slice(250, 600))):
        text = folder / f"part-{i}"
        dump_svmlight_file(sp.csr_matrix(X[part]), np.where(y[part] == "yes", 1, -1), str(text))
        made = certsvm_command("convert", text, folder / "blocks" / f"{i}.arrow")
        assert made.returncode == 0, made.stderr
    return folder


def test_train_on_a_folder(folder: Path) -> None:
    X, y = data()
    run = certsvm_command(
        "train", folder / "blocks", "--dask", "local:2", "-c", 0.1, "-B", 1, "-o",
        folder / "model", "--json", "--class-weight", "1=2",
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    told = json.loads(run.stdout)
    assert told["met"]
    model = Model.load(folder / "model")
    local = certsvm.LinearSVC(0.1, class_weight={1: 2.0, -1: 1.0}, tol=1e-6).fit(
        X, np.where(y == "yes", 1, -1)
    )
    (ours,), theirs = model.certificates, local.certificate_
    assert theirs is not None
    assert ours.dual <= theirs.primal * (1 + 1e-9)
    assert theirs.dual <= ours.primal * (1 + 1e-9)


def test_a_target_that_is_missed(folder: Path) -> None:
    run = certsvm_command(
        "train", folder / "blocks", "--dask", "local:1", "--tol", 1e-9, "--max-iter", 2, "-o",
        folder / "missed",
    )  # fmt: skip
    assert run.returncode == 3, run.stderr
    assert "max_iter reached" in run.stdout
    assert Model.load(folder / "missed").certificates


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--dask", "local:none"], "local:N"),
        (["--dask", "tcp://127.0.0.1:1", "--deadline", "2"], "no scheduler answers"),
        (["--dask", "local:1", "--witness"], "--witness does not go with --dask"),
        (["--dask", "local:1", "--memory", "1G"], "--memory does not go with --dask"),
        (["--dask", "local:1", "--n-jobs", "2"], "--n-jobs does not go with --dask"),
        (["--deadline", "5"], "--deadline goes with --dask only"),
        ([], "only --dask trains on one"),
    ],
)
def test_words_about_what_will_not_do(folder: Path, options: list[str], message: str) -> None:
    run = certsvm_command("train", folder / "blocks", "-o", folder / "none", *options)
    assert run.returncode == 2
    assert message in run.stderr
    assert not (folder / "none").exists()


def test_labels_of_class_weights_are_of_the_data_s_type(tmp_path: Path) -> None:
    X, y = data(60)
    table = pd.DataFrame(X, columns=[f"x{i}" for i in range(X.shape[1])])
    table["label"] = np.where(y == "yes", "1", "0")
    table.to_parquet(tmp_path / "table.parquet")
    made = certsvm_command("convert", tmp_path / "table.parquet", tmp_path / "blocks.arrow")
    assert made.returncode == 0, made.stderr
    run = certsvm_command(
        "train", tmp_path / "blocks.arrow", "--dask", "local:1", "-o", tmp_path / "model",
        "--class-weight", "1=3",
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    model = Model.load(tmp_path / "model")
    assert model.classes.tolist() == ["0", "1"]
    assert model.class_weight.tolist() == [1.0, 3.0]
