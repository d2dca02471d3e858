"""Start-up, exit codes and messages."""

from __future__ import annotations

import math
import os
import subprocess
import sys
import warnings
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from certsvm.cli.app import Commands, app, without_infinities
from tests.cli.running import arguments, run, write
from tests.platforms import posix


def test_what_is_not_needed_is_not_imported(tmp_path: Path) -> None:
    write(tmp_path / "data")
    code = (
        "import sys; from certsvm.cli import main\n"
        "try: main()\nexcept SystemExit as end: assert not end.code\n"
        "print([m for m in ('sklearn', 'pyarrow', 'numba') if m in sys.modules])"
    )

    def imported(*words: str) -> str:
        done = subprocess.run([sys.executable, "-c", code, *words], cwd=tmp_path,
                              capture_output=True, text=True, check=True)  # fmt: skip
        return done.stdout.splitlines()[-1]

    assert imported("--help") == "[]"
    assert imported("train", "--help") == "[]"
    assert imported("train", "data", "-q") == "['numba']"


def test_a_closed_pipe_is_no_refutation(tmp_path: Path) -> None:
    write(tmp_path / "data")
    run("train", "data", "--witness", "-q", cwd=tmp_path)
    words = " ".join([*map(str, arguments("verify", "data.model", "data"))])
    done = subprocess.run(
        ["bash", "-c", f"{words} | true; exit ${{PIPESTATUS[0]}}"], cwd=tmp_path, check=False,
        capture_output=True,
    )  # fmt: skip
    assert done.returncode in (0, 141)


def test_every_command_of_the_list_exists() -> None:
    context = click.Context(app)
    for name in app.list_commands(context):
        command = app.get_command(context, name)
        assert command is not None
        assert command.help
    assert CliRunner().invoke(app, ["frobnicate"]).exit_code == 2


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (ValueError("C must be positive"), "C must be positive"),
        (FileNotFoundError(2, "No such file", "rows.txt"), "rows.txt: No such file"),
        (ModuleNotFoundError("no rich", name="rich.progress"), "needs the package rich:"),
        (MemoryError(), "out of memory"),
    ],
)
def test_foreseeable_errors_become_messages(error: Exception, message: str) -> None:
    group = Commands("group")

    @group.command("fail")
    def fail() -> None:
        raise error

    group.get_command = lambda ctx, name: fail  # type: ignore[method-assign]
    with warnings.catch_warnings():
        result = CliRunner().invoke(group, ["fail"])
    assert result.exit_code == 2
    assert message in result.output


def test_numbers_that_json_does_not_have() -> None:
    told = {"a": [math.inf, 1.5], "b": {"c": math.nan}}
    assert without_infinities(told) == {"a": [None, 1.5], "b": {"c": None}}


def test_a_fault_of_the_program_does_not_mean_refuted(tmp_path: Path) -> None:
    script = """
import certsvm.cli, certsvm.cli.app
def broken(*_):
    raise RuntimeError("out of order")
certsvm.cli.app.Commands.get_command = broken
certsvm.cli.main()
"""
    done = subprocess.run(
        [sys.executable, "-c", script, "verify", "model", "data"], cwd=tmp_path, check=False,
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 70
    assert "out of order" in done.stderr


def test_warnings_as_errors_are_messages(tmp_path: Path) -> None:
    code = (
        "import sys, warnings; from certsvm.cli.app import Commands, app; import click\n"
        "@click.command()\n"
        "def command():\n"
        "    warnings.warn('careful'); print('done')\n"
        "Commands.get_command = lambda *_: command\n"
        "app(['train'])"
    )
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], cwd=tmp_path,
                          capture_output=True, text=True, check=False)  # fmt: skip
    assert (done.returncode, done.stdout.strip()) == (0, "done")
    assert done.stderr.strip() == "warning: careful"


@posix
def test_names_that_are_not_text(tmp_path: Path) -> None:
    data = tmp_path / os.fsdecode(b"d\xe4")
    write(data, n_rows=40)
    for words in (
        ("train", data.name),
        ("report", f"{data.name}.model"),
        ("verify", f"{data.name}.model", data.name),
        ("export", f"{data.name}.model", f"{data.name}.txt"),
    ):
        done = subprocess.run(arguments(*words), cwd=tmp_path, capture_output=True, check=False)
        assert done.returncode == 3 * (words[0] == "verify"), done.stderr
    assert "certsvm verify" in (tmp_path / f"{data.name}.model.html").read_text(encoding="utf-8")
