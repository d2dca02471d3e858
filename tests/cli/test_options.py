"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import numpy as np
import pytest
from click.testing import CliRunner

from certsvm.cli.app import BadInput, app
from certsvm.cli.options import (
    DataOptions,
    ObjectiveOptions,
    data_options,
    problem_options,
    size,
)
from tests.cli.running import run


def test_options_that_do_not_apply_are_refused() -> None:
    with pytest.raises(BadInput, match="--label is for tables"):
        DataOptions(label="y").for_text()
    with pytest.raises(BadInput, match="--zero-based is for libsvm text"):
        DataOptions(zero_based=False).for_table()
    for options in (DataOptions(float32=True), DataOptions(features=3), DataOptions(weight="w")):
        with pytest.raises(BadInput, match="is for text and tables"):
            options.for_blocks()
    DataOptions().for_blocks()
    for options in (DataOptions(zero_based=False), DataOptions(label="y"), DataOptions(weight="w")):
        with pytest.raises(BadInput, match="is for data files"):
            options.for_model()
    DataOptions().for_model()


def test_arguments_for_the_readers() -> None:
    text = DataOptions(zero_based=True, features=7, float32=True).for_text()
    assert text == {"zero_based": True, "n_features": 7, "dtype": np.float32}
    table = DataOptions(label="y", weight="w").for_table()
    assert table == {
        "label": "y", "weight": "w", "header": None, "separator": None, "categorical": False,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("word", "character"), [(";", ";"), ("tab", "\t"), ("\\t", "\t"), ("\t", "\t"), ("|", "|")]
)
def test_separators(word: str, character: str) -> None:
    parsed: list[DataOptions] = []

    @click.command()
    @data_options
    def command(options: DataOptions) -> None:
        parsed.append(options)

    assert CliRunner().invoke(command, ["--separator", word]).exit_code == 0
    assert parsed[0].separator == character
    for bad in ("", "::", "\n", '"', "é"):
        assert CliRunner().invoke(command, ["--separator", bad]).exit_code == 2


def test_parsing() -> None:
    parsed: dict[str, Any] = {}

    @click.command()
    @problem_options
    @data_options
    @click.option("--memory", callback=size)
    def command(**values: Any) -> None:
        parsed.update(values)

    words = ["-c", "2", "-e", "1e-3", "-B", "1", "--one-based", "--float32", "--memory", "1.5G"]
    assert CliRunner().invoke(command, words).exit_code == 0
    assert parsed["options"] == DataOptions(zero_based=False, float32=True)
    assert (parsed["C"], parsed["tol"]) == (2.0, 1e-3)
    assert parsed["objective"] == ObjectiveOptions(bias=1.0)
    assert parsed["memory"] == 1_500_000_000
    assert CliRunner().invoke(command, []).exit_code == 0
    assert (parsed["options"], parsed["memory"]) == (DataOptions(), None)
    assert parsed["objective"] == ObjectiveOptions()
    assert CliRunner().invoke(command, ["--memory", "much"]).exit_code == 2


@pytest.mark.parametrize(
    "words",
    [("--max-time", "nan"), ("--max-time", "inf"), ("--max-time", "-1"), ("--tol", "nan"),
     ("--tol", "inf"), ("--tol", "-1"), ("-c", "nan"), ("-c", "inf"), ("-c", "0"), ("-B", "nan"),
     ("-B", "inf"), ("--checkpoint-every", "nan"), ("--deadline", "nan")],
)  # fmt: skip
def test_numbers_that_make_no_sense_are_refused_by_name(
    words: tuple[str, str], tmp_path: Path
) -> None:
    (tmp_path / "data").write_text("1 1:1\n-1 2:1\n")
    commands = (
        ["train"] if words[0] in ("--checkpoint-every", "--deadline") else ["train", "compare"]
    )
    for command in commands:
        done = run(command, "data", *words, cwd=tmp_path)
        assert done.code == 2
        assert words[0] in done.err
        assert "is not a finite number" in done.err or "is not in the range" in done.err


@pytest.mark.parametrize("command", ["train", "compare"])
def test_the_help_shows_no_empty_range(command: str) -> None:
    text = CliRunner().invoke(app, [command, "--help"]).output
    assert "None]" not in text
    assert "LinearSVC has one of height 1" in " ".join(text.split())
