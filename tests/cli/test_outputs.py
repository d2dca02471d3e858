"""No command overwrites or removes an input, or a file that is not of its kind."""

import os
import shutil
import subprocess
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import feather

from tests.cli.running import arguments, refuse, run, write
from tests.platforms import posix


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("prepared")
    write(folder / "data", n_rows=40)
    write(folder / "out.witness", n_rows=40)
    assert run("train", "data", "-o", "m", "--witness", "-q", cwd=folder).code == 0
    assert run("export", "m", "text", cwd=folder).code == 0
    (folder / "link").symlink_to("data")
    (folder / "hard").hardlink_to(folder / "data")
    (folder / "parts").mkdir()
    shutil.copy(folder / "m", folder / "parts" / "part")
    return folder


def contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


OVERWRITING = [
    # Data that are called like the witness of the output.
    ("train", "out.witness", "-o", "out"),
    ("select", "out.witness", "-o", "out", "--values", "2"),
    # A file that is no witness, and no input either.
    ("train", "data", "-o", "out"),
    ("import", "text", "out"),
    # The witness of an input.
    ("predict", "m", "data", "-o", "m.witness"),
    ("report", "m", "-o", "m.witness"),
    ("export", "m", "m.witness"),
    ("convert", "data", "m.witness"),
    ("compare", "data", "--plot", "m.witness"),
    # Data that a model would replace, as in "train a9a a9a.t".
    ("train", "data", "out.witness"),
    ("convert", "data", "out.witness"),
    # Inputs.
    ("train", "data", "data"),
    ("predict", "m", "data", "-o", "m"),
    ("predict", "m", "data", "-o", "data"),
    ("convert", "data", "data"),
    ("convert", "data", "./data"),
    ("predict", "m", "link", "-o", "data"),
    ("predict", "m", "hard", "-o", "data"),
    # A file in a folder of inputs.
    ("train", "parts", "--dask", "local:1", "-o", "parts/part"),
    ("export", "m", "m"),
    ("import", "text", "text"),
    ("report", "m", "-o", "m"),
    ("compare", "data", "--plot", "data"),
    # One name for two outputs.
    ("select", "data", "--values", "2", "-o", "new", "--plot", "new"),
    ("select", "data", "--values", "2", "-o", "new.png", "--plot", "./new.png"),
]


@posix
def test_predictions_are_not_appended_to_the_data(prepared: Path, tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.write_bytes((prepared / "data").read_bytes())
    before = data.read_bytes()
    with data.open("ab") as out:
        words = arguments("predict", prepared / "m", data)
        refused = subprocess.run(words, stdout=out, stderr=subprocess.PIPE, check=False)
    assert refused.returncode == 2
    assert b"standard output is an input" in refused.stderr
    assert data.read_bytes() == before


@posix
@pytest.mark.parametrize("words", OVERWRITING)
def test_files_that_are_kept(words: tuple[str, ...], prepared: Path) -> None:
    before = contents(prepared)
    refuse("", *words, cwd=prepared)
    assert contents(prepared) == before


def test_a_folder_of_models_with_a_file_of_another_kind(tmp_path: Path) -> None:
    (tmp_path / "models").mkdir()
    data = write(tmp_path / "models" / "C=0.001.model.witness", n_rows=40)
    before = data.read_bytes()
    refuse("is an input or another output", "path", data, "-o", "models", "-q", cwd=tmp_path)
    assert data.read_bytes() == before
    assert os.listdir(tmp_path / "models") == [data.name]


def test_files_of_other_programs_are_kept(prepared: Path, tmp_path: Path) -> None:
    for name in ("data", "m"):
        (tmp_path / name).write_bytes((prepared / name).read_bytes())
    feather.write_feather(pa.table({"x": [1.0]}), tmp_path / "mine", compression="uncompressed")
    (tmp_path / "index.html").write_text("<!DOCTYPE html>\n<p>mine</p>\n")
    before = contents(tmp_path)
    for words in (("convert", "data", "mine"), ("report", "m", "-o", "index.html")):
        refuse("of another program", *words, cwd=tmp_path)
    assert contents(tmp_path) == before


def test_outputs_of_the_same_kind_are_replaced(prepared: Path, tmp_path: Path) -> None:
    """Also a model without a witness: the old model's goes."""
    for name in ("data", "m", "m.witness"):
        (tmp_path / name).write_bytes((prepared / name).read_bytes())
    for words in (
        ("train", "data", "-c", "3", "-o", "m", "-q"),
        ("export", "m", "text"),
        ("report", "m", "-o", "page"),
        ("convert", "data", "blocks", "-q"),
        ("predict", "m", "data", "-o", "labels", "-q"),
    ):
        assert [run(*words, cwd=tmp_path).code for _ in range(2)] == [0, 0]
    assert not (tmp_path / "m.witness").exists()
    assert run("verify", "m", "data", cwd=tmp_path).code == 3


def test_a_checkpoint_overwrites_neither_data_nor_model(prepared: Path, tmp_path: Path) -> None:
    shutil.copy(prepared / "data", tmp_path / "class-0.checkpoint")
    data = (tmp_path / "class-0.checkpoint").read_bytes()
    words = ("--checkpoint", ".", "--checkpoint-every", "0")
    refuse(
        "is an input or another output", "train", "class-0.checkpoint", "m", *words, cwd=tmp_path
    )
    assert (tmp_path / "class-0.checkpoint").read_bytes() == data
    shutil.copy(prepared / "data", tmp_path / "data")
    refuse("is not a model", "train", "data", "-o", "class-0.checkpoint", *words, cwd=tmp_path)
    assert (tmp_path / "class-0.checkpoint").read_bytes() == data
