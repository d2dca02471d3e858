"""Data files of all kinds, right and wrong, and their columns."""

import gzip
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from safetensors.numpy import save_file

from certsvm import LinearSVC, Model
from certsvm.files import save_libsvm
from certsvm.files.block_file import BlockFile
from tests.cli.running import Ran, noisy, refuse, run, succeed, write


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


BAD = {
    "one class": (b"1 1:1\n1 2:1\n", "only one class"),
    "empty": (b"", "no rows"),
    "garbage": (b"1 1:1\n-1 hello\n", 'line 2, column 4: expected index:value, found "hello"'),
}


@pytest.mark.parametrize("kind", BAD)
def test_bad_files(kind: str, tmp_path: Path) -> None:
    text, message = BAD[kind]
    (tmp_path / "data").write_bytes(text)
    Model(np.ones((1, 1)), np.zeros(1), np.arange(2), np.ones(2)).save(tmp_path / "data.model")
    before = (tmp_path / "data.model").read_bytes()
    refuse(message, "train", "data", cwd=tmp_path)
    assert (tmp_path / "data.model").read_bytes() == before


def test_zero_based_files(tmp_path: Path) -> None:
    X, y = noisy()
    save_libsvm(tmp_path / "data", X, y, zero_based=True)
    trained = run("train", "data", "--witness", cwd=tmp_path)
    assert "count from zero" in trained.err
    # The model remembers.
    assert run("verify", "data.model", "data", cwd=tmp_path).code == 0
    words = ("verify", "data.model", "data", "--one-based")
    refuse("index 0 is out of range: counted from one", *words, cwd=tmp_path)


@pytest.mark.parametrize("command", ["predict", "verify", "evaluate"])
def test_data_in_place_of_a_model(command: str, tmp_path: Path) -> None:
    write(tmp_path / "data")
    refuse("data is not a file of certsvm", f"{command} data data", cwd=tmp_path)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A table: labels first, two features, one without information, and an identifier."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.standard_normal((80, 3)), columns=["a", "b", "noise"])
    frame.insert(0, "y", np.where(frame["a"] + 0.3 * frame["b"] > 0, "yes", "no"))
    frame["id"] = [f"row {i}" for i in range(80)]
    frame.to_csv(tmp_path / "t.csv", index=False)
    return tmp_path


@pytest.mark.parametrize(
    "options",
    [("--drop", "id", "--drop", "noise"), ("--drop", "id,noise"), ("--columns", 'b, "a"')],
    ids=" ".join,
)
def test_columns_that_are_left_out(folder: Path, options: tuple[str, ...]) -> None:
    assert run("train", "t.csv", "--label", "y", "-o", "m", *options, cwd=folder).code == 0
    model = Model.load(folder / "m")
    assert model.feature_names == ("a", "b")
    assert model.parameters["label"] == "y"
    predicted = succeed("predict", "m", "t.csv", cwd=folder)
    assert "'y' (as the model says)" in predicted.err
    for command in ("evaluate", "verify"):
        refuse("does not use: 'noise', 'id'", command, "m", "t.csv", "--label", "y", cwd=folder)
    left_out = ("--ignore", "id, noise")
    assert run("verify", "m", "t.csv", "--label", "y", *left_out, cwd=folder).code == 3


def test_converted_files_and_choices_of_C(folder: Path) -> None:
    words = ("--label", "y", "--columns", "a,b")
    assert run("convert", "t.csv", "t.arrow", *words, cwd=folder).code == 0
    assert run("train", "t.arrow", "-o", "m", cwd=folder).code == 0
    assert Model.load(folder / "m").feature_names == ("a", "b")
    # The file remembers the labels, and its model does.
    told = run("evaluate m t.csv --ignore id --ignore noise --json", cwd=folder).json
    assert told["data"]["label"] == told["data"]["model_label"] == "y"
    assert run("select", "t.csv", *words, "--values", 2, "--folds", 2, cwd=folder).code == 0
    assert run("path", "t.csv", *words, "-o", "p", "--tol", 0.5, cwd=folder).code == 0
    assert Model.load(next((folder / "p").iterdir())).feature_names == ("a", "b")
    assert "does not apply" in run("train", "t.arrow", "--drop", "a", cwd=folder).err


def test_mistaken_columns_are_named(folder: Path) -> None:
    wrong = "has no column 'noisy' for --ignore or --drop"
    refuse(wrong, "train t.csv --label y --drop noisy", cwd=folder)
    refuse("one role only", "train t.csv --label y --columns a,y", cwd=folder)
    # The message about a column of text says how to leave it out.
    refuse("--drop", "train t.csv --label y", cwd=folder)


def test_verify_does_not_believe_the_model_about_its_labels(folder: Path) -> None:
    lines = [line.rsplit(",", 1)[0] for line in (folder / "t.csv").read_text().splitlines()]
    # A second column that could have the labels: the last one.
    lines = [f"{line},{('z', 'no', 'yes')[(i > 0) + i % 2]}" for i, line in enumerate(lines)]
    lines[0] = "y,a,b,noise,z"
    (folder / "t.csv").write_text("\n".join(lines) + "\n")
    run("train", "t.csv", "--label", "y", "--drop", "z", "-o", "m", cwd=folder)
    done = run("evaluate", "m", "t.csv", "--ignore", "z", cwd=folder)
    assert "'y' (as the model says)" in done.out
    other = run("verify", "m", "t.csv", "--ignore", "y", cwd=folder)
    assert other.code == 1
    assert "labels in 'z' (the model says 'y')" in other.out
    refuse("does not use: 'y'", "verify", "m", "t.csv", cwd=folder)
    # The user's word counts more than the model's.
    asked = run("evaluate", "m", "t.csv", "--label", "z", "--ignore", "y", "--json", cwd=folder)
    assert asked.json["data"]["label"] == "z"


def test_a_report_says_which_labels_it_is_about(folder: Path) -> None:
    run("train", "t.csv", "--label", "y", "--drop", "id", "-o", "m", cwd=folder)
    done = succeed("report", "m", "t.csv", "--ignore", "id", cwd=folder)
    assert "labels in 'y' (as the model says)" in done.err


def rows(seed: int = 0) -> pd.DataFrame:
    rng, n = np.random.default_rng(seed), 120
    colour, size = rng.choice(["red", "green", "blue"], n), rng.choice(["S", "M"], n)
    x, noise = rng.standard_normal(n), 0.3 * rng.standard_normal(n)
    bought = np.where(x + (colour == "red") - (size == "S") + noise > 0, "yes", "no")
    return pd.DataFrame({"colour": colour, "x": x, "size": size, "bought": bought})


NAMES = ("colour=blue", "colour=green", "colour=red", "x", "size=M", "size=S")


@pytest.fixture(params=["memory", "loaded", "streamed"])
def trained(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A folder with a model from a table, or from the file that it was converted to."""
    rows().to_csv(tmp_path / "t.csv", index=False)
    if request.param == "memory":
        done = run("train", "t.csv", "--categorical", "-o", "m", "--tol", 1e-6, cwd=tmp_path)
    else:
        words = ("convert", "t.csv", "t.arrow", "--categorical", "--keep-order", "-q")
        assert run(*words, cwd=tmp_path).code == 0
        stream = ["--stream"] if request.param == "streamed" else []
        done = run("train", "t.arrow", "-o", "m", "--tol", 1e-4, *stream, cwd=tmp_path)
    assert done.code == 0
    return tmp_path


def test_new_tables_are_encoded_as_in_training(trained: Path) -> None:
    model = Model.load(trained / "m")
    assert model.feature_names == NAMES
    assert model.parameters["one_hot"] == {"colour": [0, 3], "size": [4, 6]}
    made = rows()
    pairs = (name.split("=") for name in NAMES)
    columns = [made[name] == value[0] if value else made[name] for name, *value in pairs]
    X = np.column_stack(columns).astype(float)
    exact = LinearSVC(tol=1e-8, fit_intercept=False).fit(X, made["bought"]).certificate_
    assert model.certificates[0].primal == pytest.approx(exact.primal, rel=1e-3)
    expected = model.predict(X).tolist()
    others = made[["size", "x", "colour"]]
    others.to_csv(trained / "new.tsv", index=False, sep="\t")
    # Few rows, so that not all values occur.
    others[:1].to_csv(trained / "few.csv", index=False, sep=";")
    for name, n_rows in (("t.csv", 120), ("new.tsv", 120), ("few.csv", 1)):
        found = run("predict", "m", name, cwd=trained)
        assert (found.code, found.out.split()) == (0, expected[:n_rows])
    for command in ("verify", "evaluate"):
        assert run(command, "m", "t.csv", cwd=trained).code in (0, 3)


def test_values_that_were_not_seen_are_none(trained: Path) -> None:
    made = rows(seed=1)
    made.loc[[3, 9], "colour"], made.loc[4, "size"] = "mauve", "XXL"
    made.to_csv(trained / "new.csv", index=False)
    model = Model.load(trained / "m")
    done = succeed("predict", "m", "new.csv", "--scores", cwd=trained)
    warned = [line for line in done.err.splitlines() if "has not seen" in line]
    assert warned == [
        "new.csv: 3 values of features that the model has not seen (in 'colour', 'size') were "
        "left out"
    ]
    score = float(done.out.splitlines()[3].split()[1])
    coef = dict(zip(NAMES, model.coef[0].tolist(), strict=True))
    assert score == pytest.approx(coef["x"] * made.x[3] + coef[f"size={made['size'][3]}"])
    refuse("it was not trained on this file", "verify", "m", "new.csv", cwd=trained)
    # A file that was converted by itself has other columns, in another order.
    words = ("convert", "new.csv", "new.arrow", "--categorical", "--keep-order", "-q")
    assert run(*words, cwd=trained).code == 0
    converted = run("predict", "m", "new.arrow", "--scores", cwd=trained)
    assert _numbers(converted) == pytest.approx(_numbers(done))
    assert "3 values of features that the model has not seen were left out" in converted.err


def _numbers(ran: Ran) -> list[float]:
    return [float(line.split()[1]) for line in ran.out.splitlines()]


def test_without_the_option_strings_are_refused(tmp_path: Path) -> None:
    rows().to_csv(tmp_path / "t.csv", index=False)
    wrong = "'colour' holds string, not numbers"
    for command in ("train t.csv", "convert t.csv t.arrow"):
        refuse(wrong, command, cwd=tmp_path)
    (tmp_path / "text").write_text("1 1:1\n-1 2:1\n")
    refuse("--categorical does not apply to libsvm text", "train text --categorical", cwd=tmp_path)


def test_a_model_whose_one_hot_columns_make_no_sense(tmp_path: Path) -> None:
    rows().to_csv(tmp_path / "t.csv", index=False)
    run("train", "t.csv", "--categorical", "-q", "-o", "m", cwd=tmp_path)
    model = Model.load(tmp_path / "m")
    for spans in ({"x": [0, 1]}, "colour"):
        replace(model, parameters={**model.parameters, "one_hot": spans}).save(tmp_path / "bad")
        refuse("make no sense", "predict", "bad", "t.csv", cwd=tmp_path)


needs_torch = pytest.mark.skipif(not find_spec("torch"), reason="needs PyTorch")
DEVICES = (None, pytest.param("cpu", marks=needs_torch))
KINDS = np.array([f"kind {i}" for i in range(8)])


@pytest.fixture
def embedded(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 8, 400)
    X = rng.standard_normal((8, 10))[codes] + 2.0 * rng.standard_normal((400, 10))
    X = (X / np.linalg.norm(X, axis=1, keepdims=True)).astype(np.float16)
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", KINDS[codes])
    save_file({"X": X, "labels": codes}, tmp_path / "X.safetensors")
    return tmp_path


@pytest.mark.parametrize("device", DEVICES)
def test_a_probe(embedded: Path, device: str | None) -> None:
    data = ("X.npy", "--labels", "y.npy")
    where = () if device is None else ("--device", device)
    trained = run("train", *data, *where, "-B", 1, "--tol", 0.001, "-o", "m", cwd=embedded)
    assert trained.code == 0, trained.err
    X, y = np.load(embedded / "X.npy").astype(float), np.load(embedded / "y.npy")
    model = Model.load(embedded / "m")
    assert model.classes.tolist() == KINDS.tolist()
    # Rows on a device are not hashed.
    assert (model.fingerprint is None) == (device is not None)
    optimum = LinearSVC(tol=1e-8).fit(X, y)
    for claim, true in zip(model.certificates, optimum.certificates_ or (), strict=True):
        assert claim.dual <= true.primal * (1 + 1e-9)
        assert true.dual <= claim.primal * (1 + 1e-9)
    verified = run("verify", "m", *data, "--json", cwd=embedded)
    assert verified.json["verdict"] == "half confirmed"

    predicted = run("predict", "m", "X.npy", cwd=embedded)
    assert predicted.out.splitlines() == model.predict(X).tolist()
    assert "accuracy" not in predicted.err
    accuracy = np.mean(model.predict(X) == y)
    assert f"accuracy {accuracy:.4%}" in run("predict", "m", *data, cwd=embedded).err
    measured = run("evaluate", "m", *data, "--json", cwd=embedded).json
    assert measured["accuracy"] == pytest.approx(accuracy)
    assert measured["top_5_accuracy"] == pytest.approx(optimum.top_k_accuracy(X, y, 5), abs=0.01)
    assert accuracy < measured["top_5_accuracy"] < 1.0


def test_embeddings_that_are_refused(embedded: Path) -> None:
    run("train", "X.safetensors", "-o", "m", cwd=embedded)
    for words, wrong in [
        (("train", "X.npy"), "X.npy has no labels: say where they are"),
        (("evaluate", "m", "X.npy"), "X.npy has no labels"),
        (("train", "X.npy", "--labels", "no.npy"), "no.npy"),
        (("train", "X.safetensors", "--weight", "w"), "--weight does not apply to embeddings"),
        (("train", "X.safetensors", "--device", "cpu", "--witness"), "does not go with"),
        (("train", "X.npy", "--labels", "y.npy", "--memory", "200M"), "fit_stream in Python"),
        (("train", "m"), "m is a model, and rows are needed here"),
        (("convert", "X.npy", "out"), "not libsvm text or a table"),
        (("scale", "X.npy", "out"), "not libsvm text or a table"),
    ]:
        ran = run(*words, cwd=embedded)
        assert ran.code == 2
        assert wrong in ran.err


def test_info_about_embeddings(embedded: Path) -> None:
    told = run("info", "X.npy", cwd=embedded)
    assert "400 rows, 10 columns" in told.out
    assert "class" not in told.out
    told = run("info", "X.safetensors", cwd=embedded)
    assert "embeddings: 400 rows, 10 columns" in told.out


def test_of_many_classes_the_worst_certificate_is_printed(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    np.save(tmp_path / "X.npy", rng.standard_normal((164, 4)))
    np.save(tmp_path / "y.npy", np.tile(np.arange(41), 4))
    ran = run("train", "X.npy", "--labels", "y.npy", "--tol", 0.1, "-o", "m", cwd=tmp_path)
    lines = ran.out.splitlines()
    assert lines[0] == "41 of 41 classes proved; the worst:"
    claims = Model.load(tmp_path / "m").certificates
    worst = max(range(41), key=lambda i: claims[i].proved_gap)
    assert lines[1] == f"class {worst}: {claims[worst]}"
    assert len(lines) == 3
