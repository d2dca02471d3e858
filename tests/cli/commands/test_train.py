"""Training from the shell."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.svm import SVC
from sklearn.svm import LinearSVC as LiblinearSVC

from certsvm import LinearSVC, Model, verify_model
from certsvm.files import load_libsvm, save_libsvm
from certsvm.files.container import read_container, write_container
from tests.cli.running import noisy, refuse, run, succeed, write


def test_the_full_round(tmp_path: Path) -> None:
    write(tmp_path / "data", n_rows=400)
    write(tmp_path / "new", seed=1)
    trained = succeed("train", "data", "-c", 2, "--tol", 1e-4, "--witness", "-B", 1, cwd=tmp_path)
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

    predicted = succeed("predict", "data.model", "new", "-o", "out.txt", cwd=tmp_path)
    X_new, y_new = load_libsvm(tmp_path / "new")
    labels = (tmp_path / "out.txt").read_text().splitlines()
    assert labels == [f"{label:g}" for label in model.predict(X_new)]
    right = int((model.predict(X_new) == y_new).sum())
    assert f"({right} of {y_new.size})" in predicted.err

    evaluated = run("evaluate", "data.model", "new", "--json", cwd=tmp_path)
    assert evaluated.json["accuracy"] == pytest.approx(right / y_new.size)
    assert evaluated.json["rows"] == y_new.size


def test_streaming_is_certified_like_memory(tmp_path: Path) -> None:
    write(tmp_path / "data", n_rows=4000, n_columns=30)
    run("convert", "data", "data.arrow", "--block-size", "100k", "-q", cwd=tmp_path)
    optimum = run("train", "data", "--tol", 1e-9, "--json", "-o", "m", cwd=tmp_path).json
    for solver in ("auto", "block-dcd", "sgd-s", "sgd-m", "newton"):
        words = f"train data.arrow --stream --solver {solver} --tol 0.02 --json --witness"
        streamed = run(words, cwd=tmp_path)
        certificate = streamed.json["certificates"][0]
        assert streamed.json["met"]
        primal, dual = optimum["certificates"][0]["primal"], optimum["certificates"][0]["dual"]
        assert certificate["dual"] <= primal * (1 + 1e-12)
        assert dual <= certificate["primal"] * (1 + 1e-12)
        assert run("verify", "data.arrow.model", "data.arrow", cwd=tmp_path).code == 0


def test_a_target_that_is_not_reached(tmp_path: Path) -> None:
    write(tmp_path / "data", n_rows=3000, n_columns=50)
    ended = run("train data --solver sgd-s --max-iter 2 -c 100 --tol 1e-06", cwd=tmp_path)
    assert ended.code == 3
    assert "not met" in ended.out
    assert "max_iter reached after 2 passes" in ended.out
    assert not Model.load(tmp_path / "data.model").certificates[0].met


def test_letters_of_liblinear(tmp_path: Path) -> None:
    write(tmp_path / "data")
    succeed("train data -c 3 -e 0.001 -w1 2 -w-1 0.5 -B 1 -s 3 -q -o a", cwd=tmp_path)
    words = "train data --C 3 --tol 0.001 --class-weight 1=2 --class-weight -1=0.5 --bias 1 -q -o b"
    run(words, cwd=tmp_path)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert Model.load(tmp_path / "a").class_weight.tolist() == [0.5, 2.0]


def test_a_place_for_checkpoints_is_looked_for_first(tmp_path: Path) -> None:
    write(tmp_path / "data")
    (tmp_path / "taken").write_text("a file")
    refuse("taken/state: Not a directory", "train data --checkpoint taken/state", cwd=tmp_path)
    assert not (tmp_path / "data.model").exists()


def test_csv_without_names(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("1.5,2,0\n3,4,1\n5,6,0\n2,9,1\n")
    for words in (("train", "a.csv"), ("info", "a.csv"), ("convert", "a.csv", "a.arrow")):
        refuse("--no-header", *words, cwd=tmp_path)
    assert run("train", "a.csv", "--no-header", "-o", "m", cwd=tmp_path).code == 0
    for command in ("predict", "evaluate"):
        assert "--no-header" in run(command, "m", "a.csv", cwd=tmp_path).err
    predicted = run("predict", "m", "a.csv", "--no-header", cwd=tmp_path)
    assert len(predicted.out.splitlines()) == 4
    evaluated = run("evaluate", "m", "a.csv", "--no-header", "--json", cwd=tmp_path)
    assert evaluated.json["rows"] == 4
    converted = run("convert", "a.csv", "a.arrow", "--no-header", "--json", cwd=tmp_path)
    assert converted.json["n_rows"] == 4


@pytest.mark.parametrize("kind", ["csv", "text", "parquet"])
def test_a_label_for_each_row_is_no_class(kind: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.standard_normal(30), "id": np.arange(30)})
    if kind == "csv":
        frame.to_csv(tmp_path / "t.csv", index=False)
    elif kind == "parquet":
        frame.to_parquet(tmp_path / "t.parquet")
    else:
        lines = [f"{i} 1:{a!r}" for a, i in zip(frame["a"].tolist(), frame["id"], strict=True)]
        (tmp_path / "t.text").write_text("\n".join(lines) + "\n")
    for command in (["train", f"t.{kind}"], ["convert", f"t.{kind}", "t.arrow"]):
        refuse("each of the 30 rows has a label of its own", *command, cwd=tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [f"t.{kind}"]


CLASS_WEIGHTS: list[Any] = [
    ("-1 1", ["-w", "balanced"], [1.5, 0.75]),
    ("-1 1", ["-w1", "5", "-w-1", "0.5"], [0.5, 5.0]),
    ("-1 1", ["--class-weight", "1.0=5", "-w", "-1=2"], [2.0, 5.0]),
    ("1 a=b", ["-w", "a=b=2"], [1.0, 2.0]),
    ("1 x", ["-w", "1=5"], [5.0, 1.0]),
]


@pytest.mark.parametrize(("labels", "words", "weights"), CLASS_WEIGHTS)
def test_labels_of_the_file(labels: str, words: Any, weights: Any, tmp_path: Path) -> None:
    first, second = labels.split()
    rows = [f"1,{first}", f"2,{second}", f"3,{second}"]
    (tmp_path / "t.csv").write_text("\n".join(["x,label", *rows]) + "\n")
    assert run("train", "t.csv", *words, "-o", "m", "-q", cwd=tmp_path).code == 0
    assert Model.load(tmp_path / "m").class_weight.tolist() == weights


def test_weights_of_several_classes_are_those_of_the_estimator(tmp_path: Path) -> None:
    X, y = noisy(n_classes=3)
    save_libsvm(tmp_path / "data", X, y)
    options = ["-w0", 3, "-w2", 0.2, "-e", 1e-10, "-B", 1, "--witness"]
    assert run("train", "data", *options, cwd=tmp_path).code == 0
    assert run("verify", "data.model", "data", cwd=tmp_path).code == 0
    model = Model.load(tmp_path / "data.model")
    clf = LinearSVC(tol=1e-10, class_weight={0: 3.0, 1: 1.0, 2: 0.2}).fit(X, y)
    np.testing.assert_allclose(model.coef, clf.coef_, atol=1e-3)


def trained(folder: Path, *words: object) -> Model:
    done = run("train", "data", "--tol", 1e-10, "-q", "-o", "m", *words, cwd=folder)
    assert (done.code, done.err) == (0, "")
    return Model.load(folder / "m")


def liblinear(folder: Path, **parameters: Any) -> Any:
    X, y = load_libsvm(folder / "data")
    return LiblinearSVC(tol=1e-10, max_iter=10**6, **parameters).fit(X, y)


TYPES: list[Any] = [
    (("-s", 1), {"loss": "squared_hinge", "dual": True}),
    (("-s", 2), {"loss": "squared_hinge", "dual": False}),
    (("-s3",), {"loss": "hinge"}),
    ((), {"loss": "hinge"}),
    (("--loss", "squared_hinge"), {"loss": "squared_hinge"}),
]


@pytest.mark.parametrize(("words", "parameters"), TYPES)
def test_types_of_liblinear(words: Any, parameters: Any, tmp_path: Path) -> None:
    write(tmp_path / "data", n_rows=200, n_columns=8)
    for bias in (-1, 1):
        model = trained(tmp_path, *words, "-c", 0.5, "-B", bias)
        theirs = liblinear(tmp_path, C=0.5, fit_intercept=bias > 0, **parameters)
        np.testing.assert_allclose(model.coef, theirs.coef_, atol=1e-4)
        np.testing.assert_allclose(model.intercept, theirs.intercept_, atol=1e-4)
        assert model.parameters["loss"] == parameters["loss"]
        assert [c.loss for c in model.certificates] == [parameters["loss"]]


def test_an_intercept_without_penalty(tmp_path: Path) -> None:
    write(tmp_path / "data", n_rows=200, n_columns=8)
    X, y = load_libsvm(tmp_path / "data")
    theirs = SVC(kernel="linear", C=2.0, tol=1e-10).fit(X.toarray(), y)
    for height, letter in ((1, "-R"), (5, "--free-intercept")):
        model = trained(tmp_path, "-c", 2, "-B", height, letter)
        np.testing.assert_allclose(model.coef, theirs.coef_, atol=1e-3)
        np.testing.assert_allclose(model.intercept, theirs.intercept_, atol=1e-3)
        assert model.parameters["penalize_intercept"] is False
        assert not model.certificates[0].penalize_intercept
    penalized = trained(tmp_path, "-c", 2, "-B", 1)
    assert abs(penalized.intercept - theirs.intercept_).max() > 1e-3
    assert penalized.certificates[0].penalize_intercept


def test_nothing_is_proved_about_scores_with_a_free_intercept(tmp_path: Path) -> None:
    write(tmp_path / "data")
    trained(tmp_path, "-B", 1, "-R")
    done = run("evaluate", "m", "data", "--json", cwd=tmp_path)
    assert (done.code, done.json["stability"]) == (0, None)
    assert done.json["accuracy"] > 0.5
    assert "more training" not in run("evaluate", "m", "data", cwd=tmp_path).out
    assert len(run("predict", "m", "data", cwd=tmp_path).out.splitlines()) == 300


def test_a_forged_checkpoint_costs_time_not_truth(tmp_path: Path) -> None:
    data = write(tmp_path / "data", n_rows=3000, n_columns=40)
    options = "--solver dcd --tol 1e-6 -o m --witness --checkpoint state --json"
    words = ("train", data, *options.split())
    run(*words, "--max-iter", 1, cwd=tmp_path)
    path = tmp_path / "state" / "class-0.checkpoint"
    file = read_container(path, "checkpoint")
    file.arrays["alpha"][:] = 1e9
    file.arrays["numbers"][0] = 7
    write_container(path, "checkpoint", file.content, file.arrays)
    forged = run(*words, "--max-iter", 8, cwd=tmp_path)
    assert forged.code == 3
    assert forged.json["passes"] == [8]
    assert run("verify", "m", data, cwd=tmp_path).code == 0
    assert run(*words, "--max-iter", 20_000, cwd=tmp_path).code == 0
    assert run("verify", "m", data, cwd=tmp_path).code == 0


def test_another_run_is_not_resumed(tmp_path: Path) -> None:
    data = write(tmp_path / "data", n_rows=3000, n_columns=40)
    words = "--solver sgd-s -c 50 --tol 1e-7 --max-iter 3 -o m --checkpoint state"
    assert run("train", data, *words.split(), cwd=tmp_path).code == 3
    (tmp_path / "m").unlink()
    write(tmp_path / "fewer", n_rows=2999, n_columns=40)
    for file, change, reason in (
        (data, ("-c", "51"), "C = 51.0"),
        (data, ("--loss", "squared_hinge", "--solver", "dcd"), "loss = squared_hinge"),
        (data, ("-B", "1"), "intercept_scaling = 1.0"),
        ("fewer", (), "2999 rows"),
    ):
        refuse(reason, "train", file, *words.split(), *change, cwd=tmp_path)
        assert not (tmp_path / "m").exists()
