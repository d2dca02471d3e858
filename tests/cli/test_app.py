"""Start-up, compiling, exit codes, messages, and options that several commands share."""

import json
import math
import os
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import click
import numpy as np
import pytest
from click.testing import CliRunner

from certsvm import Model, demo
from certsvm.cli.app import Commands, app
from certsvm.cli.options import Options
from tests.cli.running import arguments, refuse, run, run_process, succeed, write
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


ERRORS: list[Any] = [
    (ValueError("C must be positive"), "C must be positive"),
    (FileNotFoundError(2, "No such file", "rows.txt"), "rows.txt: No such file"),
    (ModuleNotFoundError("no rich", name="rich.progress"), "no rich (pip install"),
    (MemoryError(), "out of memory"),
]


@pytest.mark.parametrize(("error", "message"), ERRORS)
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


def test_numbers_that_json_does_not_have(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        Options(as_json=True).answer({"a": [math.inf, 1.5], "b": {"c": math.nan}}, "")
    assert json.loads(capsys.readouterr().out) == {"a": [None, 1.5], "b": {"c": None}}


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
        refuse("does not apply to", *words, cwd=tmp_path)


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


BAD_USAGE: list[Any] = [
    ("train missing", "does not exist"),
    ("train data --max-time nan", "'--max-time': nan is not a finite number"),
    ("train data --max-time -1", "'--max-time': -1.0 is not in the range"),
    ("train data --tol nan", "'--tol': nan is not a finite number"),
    ("train data --tol -1", "'--tol': -1.0 is not in the range"),
    ("train data -c nan", "'--C': nan is not a finite number"),
    ("train data -c 0", "'--C': 0.0 is not in the range"),
    ("train data -B inf", "'--bias': inf is not a finite number"),
    ("train data --checkpoint-every nan", "nan is not a finite number"),
    ("train data --deadline nan", "nan is not a finite number"),
    ("train data --solver magic", "unknown solver"),
    ("train data -o no/where/model", "there is no folder"),
    ("train data --memory much", "not a size"),
    ("train data --memory 0", "need a converted file"),
    ("train data --stream", "need a converted file"),
    ("train data --witness --solver pegasos", "needs a solver with a dual"),
    ("train data --checkpoint-every 5", "--checkpoint-every goes with --checkpoint only"),
    ("train data m -o n", "--output does not go with MODEL"),
    ("train data m -v 3", "MODEL does not go with --folds"),
    ("train data -C --witness", "--witness does not go with --find-C"),
    ("train data -v 1", "not in the range"),
    ("train data -v 1000", "1000 folds need at least as many rows"),
    ("train data -w balanced -w 1=2", '"balanced" alone'),
    ("train data -w 1=much", "write LABEL=W"),
    ("train data -w1", "write LABEL=W"),
    ("train data -w7 2", "there is no class 7; there are -1, 1"),
    ("train data -w x=2", "there is no class x"),
    ("convert data out --seed 0 --keep-order", "--seed does not go with --keep-order"),
    ("train data -s 0", "is not one of 'hinge', 'squared_hinge', '1', '2', '3'"),
    ("train data --loss squared_hinge --solver sgd-s", "loss='squared_hinge'"),
    ("train data -B 1 -R --solver sgd-s", "penalize_intercept=True"),
    ("train data -R", "--free-intercept (-R) needs an intercept: -B 1"),
    ("path data -R -B 0", "--free-intercept (-R) needs an intercept: -B 1"),
    ("path data --range 1 0.1", "the first must be less"),
    ("path data --range 0 1", "0.0 is not in the range"),
    ("path data --tol 0", "needs tol > 0"),
    ("path data --solver pegasos", "a solver with a dual bound, got 'pegasos'"),
    ("path data --at 1", "--at goes with --output only"),
    ("path data --witness", "--witness goes with --output only"),
    ("path data --range 0.1 1 --at 2 -o m", "--at 2.0 is outside the range"),
    ("select data --max-fits 3", "--max-fits goes with --certify only"),
    ("select data --certify 0", "not in the range"),
    ("select data --certify 0.1 --solver pegasos", "a solver with a dual bound"),
    ("select data -B 1 -R --certify 0.1", "--free-intercept does not go with --certify"),
    ("compare data --loss squared_hinge --solvers ocas", "loss='squared_hinge'"),
]


@pytest.mark.parametrize(("words", "message"), BAD_USAGE)
def test_bad_usage(words: str, message: str, tmp_path: Path) -> None:
    write(tmp_path / "data", n_rows=40)
    refuse(message, *words.split(), cwd=tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["data"]


def test_the_default_accuracy_is_coarser_on_a_stream(tmp_path: Path) -> None:
    write(tmp_path / "data")
    assert run("convert", "data", "data.arrow", "-q", cwd=tmp_path).code == 0
    for words, tol in (
        (["data"], 1e-4),
        (["data.arrow", "--stream"], 0.01),
        (["data.arrow", "--stream", "--tol", 0.002], 0.002),
    ):
        assert run("train", *words, "-q", "-o", "m", cwd=tmp_path).code == 0
        assert Model.load(tmp_path / "m").parameters["tol"] == tol


def test_compiling_is_said_once_and_timed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "kept"))
    write(tmp_path / "data")
    first = run_process("scale", "data", "out", cwd=tmp_path)
    assert first.code == 0
    assert first.err.count("compiling kernels, once") == 1
    second = run_process("info", "data", cwd=tmp_path)
    assert (second.code, second.err) == (0, "")


def test_a_cache_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    caching = pytest.importorskip("numba.core.caching")
    if not hasattr(caching, "UserProvidedCacheLocator"):
        pytest.skip("this Numba looks for other folders, too")
    (tmp_path / "file").touch()
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "file"))
    monkeypatch.setenv("NUMBA_CACHE_LOCATOR_CLASSES", "UserProvidedCacheLocator")
    write(tmp_path / "data")
    done = run_process("info", "data", cwd=tmp_path)
    assert done.code == 0
    assert done.err.count("NUMBA_CACHE_DIR") == 1
    assert "in every run" in done.err
    assert run_process("info", "data", "--json", cwd=tmp_path).err == ""
    refused = run_process("compile", cwd=tmp_path)
    assert refused.code == 2
    assert "NUMBA_CACHE_DIR" in refused.err


def test_after_compile_nothing_is_compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "kept"))
    done = run_process("compile", cwd=tmp_path)
    assert done.code == 0
    assert str(tmp_path / "kept") in done.out
    write(tmp_path / "data", n_rows=500, n_columns=90)
    X = np.random.default_rng(0).standard_normal((400, 70))
    rows = [",".join(map(repr, [*row, int(row[0] > 0.5)])) for row in X.tolist()]
    (tmp_path / "t.csv").write_text("\n".join([",".join(f"f{j}" for j in range(71)), *rows]))
    for name in ("data", "t.csv"):
        for options in ((), ("--float32",), ("-s", "1", "-B", "1", "-R")):
            told = run_process("train", name, "-o", "m", "--json", *options, cwd=tmp_path)
            assert told.code == 0
            assert told.json["seconds_to_compile"] == 0.0


def test_the_demonstration(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    X, y = demo.text_like(n_documents=1000, n_words=300, length=30)
    np.testing.assert_allclose(X.multiply(X).sum(axis=1), 1.0)
    assert 0.4 < (y == 1).mean() < 0.6
    monkeypatch.setattr(demo, "text_like", lambda: (X, y))
    shown = succeed("demo", cwd=tmp_path)
    assert "target 1e-05 % met" in shown.err
    assert "certificate confirmed" in shown.out
    assert "SGDClassifier" in shown.out
