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
    ("words", "message"),
    [
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
        ("train data --memory 0", "memory are not enough"),
        ("train data --memory 1", "Give at least"),
        ("train data --stream", "--stream needs a file made by `certsvm convert`"),
        ("train data --witness --solver pegasos", "needs a solver with a dual"),
        ("train data --checkpoint-every 5", "--checkpoint-every goes with --checkpoint only"),
        ("train data m -o n", "--output does not go with MODEL"),
        ("train data m -v 3", "MODEL does not go with --folds"),
        ("train data -C --witness", "--witness does not go with --find-C"),
        ("train data -v 1", "not in the range"),
        ("train data -v 1000", "1000 folds need at least as many rows"),
        ("train data -s 0", "is not one of 'hinge', 'squared_hinge', '1', '2', '3'"),
        ("train data --loss squared_hinge --solver sgd-s", "not loss="),
        ("train data -B 1 -R --solver sgd-s", "needs penalize_intercept=True"),
        ("train data -R", "--free-intercept (-R) needs an intercept: -B 1"),
        ("path data -R -B 0", "--free-intercept (-R) needs an intercept: -B 1"),
        ("path data --range 1 0.1", "the first must be less"),
        ("path data --range 0 1", "0.0 is not in the range"),
        ("path data --tol 0", "needs tol > 0"),
        ("path data --solver pegasos", "a solver with a dual bound, and 'pegasos' has none"),
        ("path data --at 1", "--at goes with --output only"),
        ("path data --witness", "--witness goes with --output only"),
        ("path data --range 0.1 1 --at 2 -o m", "--at 2.0 is outside the range"),
        ("select data --max-fits 3", "--max-fits goes with --certify only"),
        ("select data --certify 0", "not in the range"),
        ("select data --certify 0.1 --solver pegasos", "a solver with a dual bound"),
        ("select data -B 1 -R --certify 0.1", "--free-intercept does not go with --certify"),
        ("compare data --loss squared_hinge --solvers ocas", "not loss="),
    ],
)
def test_bad_usage(words: str, message: str, tmp_path: Path) -> None:
    write(tmp_path / "data", n_rows=40)
    refused = run(*words.split(), cwd=tmp_path)
    assert refused.code == 2
    assert message in " ".join(refused.err.split())
    assert "Traceback" not in refused.err
    assert [path.name for path in tmp_path.iterdir()] == ["data"]


def test_the_help_shows_no_empty_range() -> None:
    assert "None]" not in CliRunner().invoke(app, ["train", "--help"]).output


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
