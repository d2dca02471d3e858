"""`certsvm train --dask`."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner, Result
from distributed import LocalCluster

import certsvm
from certsvm.cli.app import app
from certsvm.files import Model
from tests.dask.problems import data


def command(*arguments: Any) -> Result:
    return CliRunner().invoke(app, list(map(str, arguments)))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("command")
    X, y = data()
    table = pd.DataFrame(X, columns=[f"x{i}" for i in range(X.shape[1])])
    table["label"] = np.where(y == "yes", "1", "-1")
    (folder / "blocks").mkdir()
    for i, part in enumerate((slice(0, 250), slice(250, 600))):
        table[part].to_parquet(folder / f"{i}.parquet")
        files = folder / f"{i}.parquet", folder / "blocks" / f"{i}.arrow"
        # This process holds more than a command.
        made = command("convert", *files, "--memory", "8G")
        assert made.exit_code == 0, made.output
    return folder


def test_train_on_a_folder(folder: Path, cluster: LocalCluster) -> None:
    X, y = data()
    run = command(
        "train", folder / "blocks", "--dask", cluster.scheduler_address, "-c", 0.1, "-B", 1, "-o",
        folder / "model", "--json", "--class-weight", "1=2",
    )  # fmt: skip
    assert run.exit_code == 0, run.output
    assert json.loads(run.stdout)["met"]
    model = Model.load(folder / "model")
    assert (model.classes.tolist(), model.class_weight.tolist()) == (["-1", "1"], [1.0, 2.0])
    labels = np.where(y == "yes", "1", "-1")
    local = certsvm.LinearSVC(0.1, class_weight={"1": 2.0}, tol=1e-6).fit(X, labels)
    (ours,), theirs = model.certificates, local.certificate_
    assert theirs is not None
    assert ours.dual <= theirs.primal * (1 + 1e-9)
    assert theirs.dual <= ours.primal * (1 + 1e-9)


def test_a_target_that_is_missed(folder: Path) -> None:
    run = command(
        "train", folder / "blocks", "--dask", "local:1", "--tol", 1e-9, "--max-iter", 2, "-o",
        folder / "missed",
    )  # fmt: skip
    assert run.exit_code == 3, run.output
    assert Model.load(folder / "missed").certificates


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--dask", "local:none"], "local:N"),
        (["--dask", "tcp://127.0.0.1:1", "--deadline", "2"], "no scheduler answers"),
        (["--dask", "local:1", "--memory", "1G"], "--memory does not go with --dask"),
        (["--deadline", "5"], "--deadline goes with --dask only"),
        ([], "only --dask trains on one"),
    ],
)
def test_options_that_will_not_do(folder: Path, options: list[str], message: str) -> None:
    run = command("train", folder / "blocks", "-o", folder / "none", *options)
    assert run.exit_code == 2
    assert message in run.output
    assert not (folder / "none").exists()
