"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path

import click
import numpy as np
import pytest
from click.testing import CliRunner

from certsvm.cli.app import BadInput, app
from certsvm.cli.options import AT_C, DATA, PROBLEM, STREAM, Options, shared
from certsvm.kernels.losses import SQUARED_HINGE
from certsvm.problem.objective import Objective
from tests.cli.running import run


def test_options_that_do_not_apply_are_refused() -> None:
    with pytest.raises(BadInput, match="--label is for tables"):
        Options(label="y").for_text()
    with pytest.raises(BadInput, match="--zero-based is for libsvm text"):
        Options(zero_based=False).for_table()
    for options in (Options(float32=True), Options(features=3), Options(weight="w")):
        with pytest.raises(BadInput, match="is for text and tables"):
            options.refuse_for_data()
    Options().refuse_for_data()


def test_parsing() -> None:
    parsed: list[Options] = []

    @click.command()
    @shared(AT_C, *PROBLEM, *DATA, *STREAM, click.option("--own"))
    def command(options: Options, own: str | None) -> None:
        parsed.append(options)

    words = ["-c", "2", "-e", "1e-3", "-B", "1", "--one-based", "--float32", "--memory", "1.5G",
             "--features", "7"]  # fmt: skip
    assert CliRunner().invoke(command, words).exit_code == 0
    assert parsed[-1] == Options(
        C=2.0, tol=1e-3, bias=1.0, zero_based=False, float32=True, memory=1_500_000_000, features=7
    )
    text = {"zero_based": False, "n_features": 7, "dtype": np.float32}
    assert parsed[-1].for_text() == text
    assert CliRunner().invoke(command, []).exit_code == 0
    assert parsed[-1] == Options()
    for word, character in ((";", ";"), ("tab", "\t"), ("\\t", "\t"), ("|", "|")):
        assert CliRunner().invoke(command, ["--separator", word]).exit_code == 0
        assert parsed[-1].separator == character
    for bad in ("", "::", "\n", '"', "é"):
        assert CliRunner().invoke(command, ["--separator", bad]).exit_code == 2
    assert CliRunner().invoke(command, ["--memory", "much"]).exit_code == 2


def test_the_objective() -> None:
    assert Options().objective(2.0) == Objective(2.0)
    assert Options(bias=-1.0).intercept_scaling == 0.0
    free = Options(loss="squared_hinge", bias=2.0, free_intercept=True)
    assert free.intercept_scaling == 1.0
    assert free.objective(2.0) == Objective(2.0, SQUARED_HINGE, penalize_intercept=False)
    with pytest.raises(click.UsageError):
        Options(free_intercept=True)


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
