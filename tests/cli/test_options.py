"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from certsvm import Model
from certsvm.cli.app import app
from tests.cli.running import run, write


def test_options_that_do_not_apply_are_refused(tmp_path: Path) -> None:
    write(tmp_path / "data", n_rows=40)
    (tmp_path / "t.csv").write_text("a,label\n1,0\n2,1\n")
    assert run("convert", "data", "data.arrow", "-q", cwd=tmp_path).code == 0
    assert run("train", "data", "-q", cwd=tmp_path).code == 0
    for words in (
        ("train", "data", "--label", "y"), ("train", "data", "--no-header"),
        ("train", "t.csv", "--one-based"), ("train", "t.csv", "--features", 3),
        ("train", "data.arrow", "--float32"), ("train", "data.arrow", "--categorical"),
        ("train", "data.arrow", "--stream", "--weight", "w"), ("info", "data.model", "--float32"),
        ("verify", "data.model", "data", "--ignore", "a"),
        ("verify", "data.model", "data.arrow", "--ignore", "a"),
    ):  # fmt: skip
        refused = run(*words, cwd=tmp_path)
        assert refused.code == 2
        assert "does not apply to" in refused.err or "without names" in refused.err


@pytest.mark.parametrize(
    ("written", "separator"), [(";", ";"), ("tab", "\t"), ("\\t", "\t"), ("|", "|")]
)
def test_separators(written: str, separator: str, tmp_path: Path) -> None:
    rows = ("a,b,label", "1,2,0", "3,4,1")
    text = "\n".join(rows).replace(",", separator)
    (tmp_path / "t.csv").write_text(f"{text}\n")
    words = ("train", "t.csv", "-q", "-o", "m", "--separator")
    assert run(*words, written, cwd=tmp_path).code == 0
    assert Model.load(tmp_path / "m").feature_names == ("a", "b")
    for bad in ("", "::", "\n", '"', "é"):
        assert run(*words, bad, cwd=tmp_path).code == 2


@pytest.mark.parametrize(
    "words",
    ["--max-time nan", "--max-time -1", "--tol nan", "--tol inf", "--tol -1", "-c nan", "-c 0",
     "-B inf", "--checkpoint-every nan", "--deadline nan"],
)  # fmt: skip
def test_numbers_that_make_no_sense_are_refused_by_name(words: str, tmp_path: Path) -> None:
    (tmp_path / "data").write_text("1 1:1\n-1 2:1\n")
    done = run("train", "data", *words.split(), cwd=tmp_path)
    assert done.code == 2
    assert words.split()[0] in done.err
    assert "is not a finite number" in done.err or "is not in the range" in done.err


def test_the_help_shows_no_empty_range() -> None:
    assert "None]" not in CliRunner().invoke(app, ["train", "--help"]).output
