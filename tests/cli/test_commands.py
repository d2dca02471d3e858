"""The full round with the real command, and what it says when something is wrong."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from certsvm import LinearSVC, Model, verify_model
from certsvm.data import load_libsvm, save_libsvm
from certsvm.data.block_file import BlockFile
from tests.cli.running import arguments, noisy, run, write


def test_the_full_round(tmp_path: Path) -> None:
    write(tmp_path / "data", n_rows=400)
    write(tmp_path / "new", seed=1)
    trained = run("train", "data", "-c", 2, "--tol", 1e-4, "--witness", "-B", 1, cwd=tmp_path)
    assert trained.code == 0
    assert "proved" in trained.out
    assert "data.model" in trained.out
    model = Model.load(tmp_path / "data.model", witness=True)
    X, y = load_libsvm(tmp_path / "data")
    reference = LinearSVC(C=2, tol=1e-9, random_state=0).fit(X, y)
    gap = model.certificates[0].primal / reference.certificate_.primal - 1
    assert -1e-9 <= gap <= 1e-4
    assert model.intercept_scaling == 1
    assert verify_model(model, [(X, y, None)]).dual_verified

    verified = run("verify", "data.model", "data", cwd=tmp_path)
    assert (verified.code, verified.out.splitlines()[-1][:9]) == (0, "confirmed")

    predicted = run("predict", "data.model", "new", "-o", "out.txt", cwd=tmp_path)
    assert predicted.code == 0
    X_new, y_new = load_libsvm(tmp_path / "new")
    labels = (tmp_path / "out.txt").read_text().splitlines()
    assert labels == [f"{label:g}" for label in model.predict(X_new)]
    right = int((model.predict(X_new) == y_new).sum())
    assert f"({right} of {y_new.size})" in predicted.err

    evaluated = run("evaluate", "data.model", "new", "--json", cwd=tmp_path)
    assert evaluated.json["accuracy"] == pytest.approx(right / y_new.size)
    assert evaluated.json["rows"] == y_new.size

    assert run("info", "data.model", "--json", cwd=tmp_path).json["features"] == X.shape[1]
    about = run("info", "data", "--json", cwd=tmp_path).json
    assert (about["rows"], about["columns"], about["values"]) == (*X.shape, X.nnz)


def test_a_converted_file_gives_the_same_rows_and_a_certificate(tmp_path: Path) -> None:
    write(tmp_path / "data", n_rows=400)
    assert run("convert", "data", "data.arrow", "--memory", "600M", cwd=tmp_path).code == 0
    X, _ = load_libsvm(tmp_path / "data")
    summary = BlockFile(tmp_path / "data.arrow").summary
    assert (summary.n_rows, summary.n_columns, summary.n_values) == (*X.shape, X.nnz)
    trained = run("train", "data.arrow", "--tol", 1e-3, "-o", "m", "--json", cwd=tmp_path)
    assert trained.json["met"]
    # The order of the rows is another one; J is not.
    verified = run("verify", "m", "data", "--json", cwd=tmp_path)
    assert verified.code == 3
    assert verified.json["ok"]
    assert verified.json["same_data"] is False


def test_streaming_is_certified_like_memory(tmp_path: Path) -> None:
    write(tmp_path / "data", n_rows=4000, n_columns=30)
    run("convert", "data", "data.arrow", "--block-size", "100k", "-q", cwd=tmp_path)
    optimum = run("train", "data", "--tol", 1e-9, "--json", "-o", "m", cwd=tmp_path).json
    for solver in ("auto", "sgd-s", "sgd-m", "newton"):
        streamed = run(
            "train", "data.arrow", "--stream", "--solver", solver, "--tol", 0.02, "--json",
            "--witness", cwd=tmp_path,
        )  # fmt: skip
        certificate = streamed.json["certificates"][0]
        assert streamed.json["met"]
        primal, dual = optimum["certificates"][0]["primal"], optimum["certificates"][0]["dual"]
        assert certificate["dual"] <= primal * (1 + 1e-12)
        assert dual <= certificate["primal"] * (1 + 1e-12)
        assert run("verify", "data.arrow.model", "data.arrow", cwd=tmp_path).code == 0


def test_too_little_memory(tmp_path: Path) -> None:
    write(tmp_path / "data")
    text = run("train", "data", "--memory", "100M", cwd=tmp_path)
    assert text.code == 2
    assert "certsvm convert data data.arrow" in text.err
    few = run("convert", "data", "data.arrow", "--memory", "50M", cwd=tmp_path)
    assert few.code == 2
    assert "Give at least" in few.err
    assert run("convert", "data", "data.arrow", "-q", cwd=tmp_path).code == 0
    blocks = run("train", "data.arrow", "--memory", "100M", cwd=tmp_path)
    assert blocks.code == 2
    assert "are not enough" in blocks.err


def test_several_classes(tmp_path: Path) -> None:
    write(tmp_path / "data", n_classes=3)
    trained = run("train", "data", "--witness", "--json", cwd=tmp_path)
    assert trained.code == 0
    assert [c["class"] for c in trained.json["certificates"]] == [0, 1, 2]
    assert run("verify", "data.model", "data", cwd=tmp_path).code == 0
    scored = run("predict", "data.model", "data", "--scores", cwd=tmp_path)
    X, _ = load_libsvm(tmp_path / "data")
    scores = np.array([line.split()[1:] for line in scored.out.splitlines()], dtype=float)
    np.testing.assert_array_equal(scores, Model.load(tmp_path / "data.model").decision_function(X))


def test_standard_input_and_output(tmp_path: Path) -> None:
    write(tmp_path / "data")
    text = (tmp_path / "data").read_bytes()
    assert run("train", "-", "-o", "m", "-q", cwd=tmp_path, stdin=text).code == 0
    assert run("train", "data", "-o", "same", "-q", cwd=tmp_path).code == 0
    assert (tmp_path / "m").read_bytes() == (tmp_path / "same").read_bytes()
    out = run("predict", "m", "-", "-q", cwd=tmp_path, stdin=gzip.compress(text))
    assert len(out.out.splitlines()) == 300
    assert not out.err
    assert run("verify", "m", "-", cwd=tmp_path, stdin=text).code == 3
    assert run("convert", "-", "a.arrow", "-q", cwd=tmp_path, stdin=text).code == 0
    assert BlockFile(tmp_path / "a.arrow").summary.n_rows == 300


def test_a_target_that_is_not_reached(tmp_path: Path) -> None:
    write(tmp_path / "data", n_rows=3000, n_columns=50)
    ended = run(
        "train", "data", "--solver", "sgd-s", "--max-iter", 2, "-c", 100, "--tol", 1e-6,
        cwd=tmp_path,
    )  # fmt: skip
    assert ended.code == 3
    assert "not met" in ended.out
    assert "max_iter reached after 2 passes" in ended.out
    assert not Model.load(tmp_path / "data.model").certificates[0].met


def test_tables(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 3))
    names = np.where(X[:, 0] + 0.3 * rng.standard_normal(200) > 0, "spam", "ham")
    lines = [",".join([*map(repr, row.tolist()), name]) for row, name in zip(X, names, strict=True)]
    (tmp_path / "t.csv").write_text("\n".join(["a,b,c,kind", *lines]) + "\n")
    assert run("train", "t.csv", "-B", 1, "--witness", "-q", cwd=tmp_path).code == 0
    model = Model.load(tmp_path / "t.csv.model")
    assert model.feature_names == ("a", "b", "c")
    assert model.classes.tolist() == ["ham", "spam"]
    assert run("verify", "t.csv.model", "t.csv", cwd=tmp_path).code == 0
    out = run("predict", "t.csv.model", "t.csv", cwd=tmp_path)
    assert out.out.splitlines() == model.predict(X).tolist()
    wrong = run("train", "t.csv", "--label", "a", cwd=tmp_path)
    assert wrong.code == 2
    assert "'kind' holds string" in wrong.err


def test_letters_of_liblinear(tmp_path: Path) -> None:
    write(tmp_path / "data")
    ours = run("train", "data", "-c", 3, "-e", 0.001, "-w1", 2, "-w-1", 0.5, "-B", 1, "-s", 3,
               "-q", "-o", "a", cwd=tmp_path)  # fmt: skip
    assert ours.code == 0
    run("train", "data", "--C", 3, "--tol", 0.001, "--class-weight", "1=2", "--class-weight",
        "-1=0.5", "--bias", 1, "-q", "-o", "b", cwd=tmp_path)  # fmt: skip
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert Model.load(tmp_path / "a").class_weight.tolist() == [0.5, 2.0]
    for letter, word in (("-s", "--solver"), ("-v", "cross_val_score"), ("-m", "--n-jobs")):
        refused = run("train", "data", letter, 5, cwd=tmp_path)
        assert refused.code == 2
        assert word in refused.err


def test_liblinear_models(tmp_path: Path) -> None:
    write(tmp_path / "data")
    run("train", "data", "-q", cwd=tmp_path)
    assert run("export", "data.model", "text", cwd=tmp_path).code == 0
    assert (tmp_path / "text").read_text().startswith("solver_type L2R_L1LOSS_SVC_DUAL")
    assert run("import", "text", "back", cwd=tmp_path).code == 0
    first, *others = (
        run("predict", model, "data", "-q", cwd=tmp_path).out
        for model in ("data.model", "text", "back")
    )
    assert others == [first, first]
    refused = run("verify", "back", "data", cwd=tmp_path)
    assert refused.code == 2
    assert "no certificate" in refused.err


def test_zero_based_files(tmp_path: Path) -> None:
    X, y = noisy()
    save_libsvm(tmp_path / "data", X, y, zero_based=True)
    trained = run("train", "data", "--witness", cwd=tmp_path)
    assert "count from zero" in trained.err
    # The model remembers.
    assert run("verify", "data.model", "data", cwd=tmp_path).code == 0
    refused = run("verify", "data.model", "data", "--one-based", cwd=tmp_path)
    assert refused.code == 2
    assert "index 0, although indices count from one" in refused.err


def test_other_data_are_refuted(tmp_path: Path) -> None:
    write(tmp_path / "data")
    write(tmp_path / "other", seed=5)
    run("train", "data", "--witness", "-q", cwd=tmp_path)
    refuted = run("verify", "data.model", "other", cwd=tmp_path)
    assert refuted.code == 1
    assert "not the data that the model was trained on" in refuted.out


def test_comparing(tmp_path: Path) -> None:
    write(tmp_path / "data")
    table = run("compare", "data", "--solvers", "auto,dcd,pegasos", "--max-iter", 20, "--json",
                cwd=tmp_path).json["table"]  # fmt: skip
    assert [row["solver"] for row in table] == ["auto", "dcd", "pegasos"]


BAD = {
    "nan": (b"1 1:nan\n-1 1:1\n", "line 1, column 5"),
    "one class": (b"1 1:1\n1 2:1\n", "only one class"),
    "empty": (b"", "no rows"),
    "descending": (b"1 1:1\n-1 3:1 2:1\n", "line 2, column 8"),
    "garbage": (b"1 1:1\n-1 hello\n", 'line 2, column 4: expected index:value, found "hello"'),
    "overflow": (b"1 1:1e999\n-1 1:1\n", "line 1, column 5"),
}


@pytest.mark.parametrize("kind", BAD)
def test_bad_files(kind: str, tmp_path: Path) -> None:
    text, message = BAD[kind]
    (tmp_path / "data").write_bytes(text)
    (tmp_path / "data.model").write_text("precious")
    refused = run("train", "data", cwd=tmp_path)
    assert refused.code == 2
    assert message.split(":")[0] in refused.err
    assert "Traceback" not in refused.err
    assert (tmp_path / "data.model").read_text() == "precious"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["train", "missing"], "does not exist"),
        (["train", "data", "-c", "-1"], "C must be"),
        (["train", "data", "-c", "nan"], "C must be"),
        (["train", "data", "--tol", "-1"], "tol must be"),
        (["train", "data", "--solver", "magic"], "unknown solver"),
        (["train", "data", "-o", "no/where/model"], "there is no folder"),
        (["train", "data", "--memory", "much"], "not a size"),
        (["train", "data", "--label", "x"], "--label is for tables"),
        (["train", "data", "--class-weight", "7=2"], "there is no class 7"),
        (["train", "data", "--witness", "--solver", "pegasos"], "needs a solver with a dual"),
        (["predict", "data", "data"], "is not a model"),
        (["verify", "data", "data"], "is not a model"),
        (["convert", "data", "data"], "the same file"),
        (["compare", "data", "--solvers", "auto,auto"], "named twice"),
        (["frobnicate"], "No such command"),
    ],
)
def test_bad_usage(words: list[str], message: str, tmp_path: Path) -> None:
    write(tmp_path / "data")
    refused = run(*words, cwd=tmp_path)
    assert refused.code == 2
    assert message in refused.err
    assert "Traceback" not in refused.err


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    write(tmp_path / "data")
    (tmp_path / "locked").mkdir(mode=0o500)
    if os.access(tmp_path / "locked", os.W_OK):
        pytest.skip("whoever runs this may write anywhere")
    refused = run("train", "data", "-o", "locked/model", cwd=tmp_path)
    assert refused.code == 2
    assert "cannot be written to" in refused.err


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


def test_an_old_witness_does_not_refute_a_new_model(tmp_path: Path) -> None:
    write(tmp_path / "data")
    run("train", "data", "--witness", "-q", cwd=tmp_path)
    old = (tmp_path / "data.model.witness").read_bytes()
    run("train", "data", "-c", 5, "-q", cwd=tmp_path)
    assert not (tmp_path / "data.model.witness").exists()
    assert run("verify", "data.model", "data", cwd=tmp_path).code == 3
    # Put back by hand, it is recognised.
    (tmp_path / "data.model.witness").write_bytes(old)
    refused = run("verify", "data.model", "data", cwd=tmp_path)
    assert refused.code == 2
    assert "belongs to another model" in refused.err


def test_columns_of_tables_are_found_by_name(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 3))
    kinds = np.where(X[:, 0] > 0, "b", "a")

    def table(name: str, columns: str) -> None:
        values = {"x": X[:, 0], "y": X[:, 1], "z": X[:, 2], "kind": kinds}
        rows = zip(*(values[c] for c in columns.split(",")), strict=True)
        lines = [",".join(map(str, row)) for row in rows]
        (tmp_path / name).write_text("\n".join([columns, *lines]) + "\n")

    table("train.csv", "x,y,z,kind")
    table("other.csv", "z,kind,x,y")
    table("bare.csv", "y,x,z")
    table("short.csv", "y,x,kind")
    run("train", "train.csv", "-q", "-o", "m", cwd=tmp_path)
    expected = run("predict", "m", "train.csv", cwd=tmp_path)
    assert "accuracy" in expected.err
    assert run("predict", "m", "other.csv", cwd=tmp_path) == expected
    bare = run("predict", "m", "bare.csv", cwd=tmp_path)
    assert (bare.out, bare.err) == (expected.out, "")
    short = run("predict", "m", "short.csv", cwd=tmp_path)
    assert short.code == 2
    assert "no column 'z'" in short.err


def test_inputs_are_not_overwritten(tmp_path: Path) -> None:
    before = write(tmp_path / "data").read_bytes()
    assert run("train", "data", "data", cwd=tmp_path).code == 2
    run("train", "data", "-q", cwd=tmp_path)
    assert run("predict", "data.model", "data", "-o", "data", cwd=tmp_path).code == 2
    assert run("predict", "data.model", "data", "-o", "data.model", cwd=tmp_path).code == 2
    assert (tmp_path / "data").read_bytes() == before
    Model.load(tmp_path / "data.model")


def test_a_place_for_checkpoints_is_looked_for_first(tmp_path: Path) -> None:
    write(tmp_path / "data")
    (tmp_path / "taken").write_text("a file")
    refused = run("train", "data", "--checkpoint", "taken/state", cwd=tmp_path)
    assert refused.code == 2
    assert "no checkpoints can be kept there" in refused.err
    assert not (tmp_path / "data.model").exists()


def test_a_closed_pipe_is_no_refutation(tmp_path: Path) -> None:
    write(tmp_path / "data")
    run("train", "data", "--witness", "-q", cwd=tmp_path)
    words = " ".join([*map(str, arguments("verify", "data.model", "data"))])
    done = subprocess.run(
        ["bash", "-c", f"{words} | true; exit ${{PIPESTATUS[0]}}"], cwd=tmp_path, check=False,
        capture_output=True,
    )  # fmt: skip
    assert done.returncode in (0, 141)
