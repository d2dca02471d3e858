"""No command writes over what it reads, by whatever name."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.running import run, write
from tests.platforms import posix


def same(path: Path) -> str:
    return path.name


def relative(path: Path) -> str:
    return os.path.join("..", path.parent.name, path.name)


def symbolic(path: Path) -> str:
    (path.parent / "link").symlink_to(path.name)
    return "link"


def hard(path: Path) -> str:
    (path.parent / "hard").hardlink_to(path)
    return "hard"


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("prepared")
    write(folder / "data")
    assert run("train", "data", "-o", "model", "--witness", "-q", cwd=folder).code == 0
    assert run("export", "model", "text", cwd=folder).code == 0
    return folder


@pytest.mark.parametrize("name", [same, relative, pytest.param(symbolic, marks=posix), hard])
@pytest.mark.parametrize(
    ("words", "read"),
    [
        (("train", "data", "-o", "OUTPUT"), "data"),
        (("train", "data", "OUTPUT"), "data"),
        (("predict", "model", "data", "-o", "OUTPUT"), "data"),
        (("predict", "model", "data", "-o", "OUTPUT"), "model"),
        (("convert", "data", "OUTPUT"), "data"),
        (("export", "model", "OUTPUT"), "model"),
        (("import", "text", "OUTPUT"), "text"),
        (("compare", "data", "--plot", "OUTPUT"), "data"),
    ],
)
def test_the_output_is_no_input(
    words: tuple[str, ...], read: str, name: Callable[[Path], str], prepared: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "folder"
    shutil.copytree(prepared, folder)
    output = name(folder / read)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    done = run(*(output if word == "OUTPUT" else word for word in words), cwd=folder)
    assert done.code == 2
    assert "is an input, and would be overwritten" in done.err
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


@pytest.mark.parametrize("name", [same, symbolic, hard])
def test_the_witness_is_no_input(
    name: Callable[[Path], str], prepared: Path, tmp_path: Path
) -> None:
    shutil.copytree(prepared, tmp_path, dirs_exist_ok=True)
    other = name(tmp_path / "data")
    os.rename(tmp_path / other, tmp_path / "new.witness")
    file = "data" if (tmp_path / "data").exists() else "new.witness"
    done = run("train", file, "-o", "new", "--witness", cwd=tmp_path)
    assert done.code == 2
    assert "would be overwritten" in done.err


def test_a_checkpoint_overwrites_neither_data_nor_model(prepared: Path, tmp_path: Path) -> None:
    shutil.copy(prepared / "data", tmp_path / "class-0.checkpoint")
    data = (tmp_path / "class-0.checkpoint").read_bytes()
    words = ("--checkpoint", ".", "--checkpoint-every", "0")
    done = run("train", "class-0.checkpoint", "-o", "m", *words, cwd=tmp_path)
    assert done.code == 2
    assert "is an input, and would be overwritten" in done.err
    assert (tmp_path / "class-0.checkpoint").read_bytes() == data
    shutil.copy(prepared / "data", tmp_path / "data")
    done = run("train", "data", "-o", "class-0.checkpoint", *words, cwd=tmp_path)
    assert done.code == 2
    assert (tmp_path / "class-0.checkpoint").read_bytes() == data
