"""certsvm path, select and compare, liblinear's -v and -C, and what is shown meanwhile."""

import os
import subprocess
from pathlib import Path

import numpy as np
import pytest

from certsvm import LinearSVC, Model
from certsvm.files import load_libsvm
from tests.cli.running import arguments, noisy, refuse, run, succeed, write


def test_the_full_round(tmp_path: Path) -> None:
    write(tmp_path / "data", n_classes=3)
    words = "path data --range 0.01 10 --tol 0.02 -B 1 -o models --at 0.5 --witness"
    done = run(words, cwd=tmp_path)
    assert done.code == 0
    assert "every C from 0.01 to 10 has a model within" in done.out
    models = sorted((tmp_path / "models").glob("*.model"))
    assert f"{len(models)} models in models" in done.out
    Cs = sorted(Model.load(path).parameters["C"] for path in models)
    assert 0.5 in Cs
    assert (Cs[0], Cs[-1]) == (0.01, 10.0)
    # The interpolated model is as any other: verified from the data alone, and it predicts.
    verified = succeed("verify", "models/C=0.5.model", "data", cwd=tmp_path)
    assert "confirmed: both halves" in verified.out
    assert run("evaluate", "models/C=0.5.model", "data", cwd=tmp_path).code == 0
    between = Model.load(tmp_path / "models" / "C=0.5.model")
    assert all(certificate.met for certificate in between.certificates)


def test_json(tmp_path: Path) -> None:
    write(tmp_path / "data")
    done = succeed("path", "data", "--range", 0.1, 10, "--json", cwd=tmp_path)
    assert done.err == ""
    told = done.json
    assert told["met"]
    assert told["worst_gap"] <= told["tol"] == 0.01
    assert told["range"] == [0.1, 10.0]
    assert told["proved_up_to"] == 10.0
    assert [fit["C"] for fit in told["fits"]] == sorted(fit["C"] for fit in told["fits"])
    assert max(fit["gap_up_to_next"] or 0.0 for fit in told["fits"]) <= 0.01
    assert told["models"] == []


def test_the_proof_is_not_reached(tmp_path: Path) -> None:
    write(tmp_path / "data")
    done = run("path data --range 0.1 10 --tol 1e-07 --max-fits 3 -o m", cwd=tmp_path)
    assert done.code == 3
    assert "1e-05 % is not proved for every C from 0.1 to 10, but up to C = " in done.out
    assert len(list((tmp_path / "m").glob("*.model"))) == 3
    # The lowest C has no model of the accuracy, either.
    done = run("path data --range 0.1 10 --tol 1e-07 --solver sgd-s --max-iter 1", cwd=tmp_path)
    assert done.code == 3
    assert "1e-05 % is not proved for every C from 0.1 to 10, nor at C = 0.1;" in done.out


def test_values_without_a_proof(tmp_path: Path) -> None:
    write(tmp_path / "data", n_classes=3)
    done = run("select data --range 0.01 10 --values 4 --folds 3 -o m --json", cwd=tmp_path)
    assert done.code == 0
    told = done.json
    assert [value["C"] for value in told["values"]] == pytest.approx([0.01, 0.1, 1.0, 10.0])
    assert all(len(value["scores"]) == 3 for value in told["values"])
    assert told["error"] == min(value["error"] for value in told["values"])
    assert "certified" not in told
    model = Model.load(tmp_path / "m")
    assert model.parameters["C"] == told["C"]
    assert told["met"]
    # The errors are those of fits on the folds.
    X, y = load_libsvm(tmp_path / "data")[:2]
    fit = LinearSVC(C=told["C"], fit_intercept=False).fit(X, y)
    assert abs((1 - told["error"]) - fit.score(X, y)) < 0.2


def test_a_choice_with_a_proof(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    write(tmp_path / "data", n_rows=200)
    words = ["select", "data", "--range", 0.1, 10, "--certify", 0.2, "--folds", 3]
    done = succeed(*words, "--plot", "p.png", cwd=tmp_path)
    assert "C is within 20 percentage points of the best, proved" in done.out
    assert (tmp_path / "p.png").stat().st_size > 1000
    told = run(*words, "--json", cwd=tmp_path).json
    assert told["certified"]
    assert told["error_bound"] >= told["error"] - 0.2 - 1e-9
    assert told["curve"]["edges"][0] == 0.1
    assert told["curve"]["edges"][-1] == 10.0
    assert min(told["curve"]["lower"]) == pytest.approx(told["error_bound"])


def test_a_proof_that_is_not_reached(tmp_path: Path) -> None:
    write(tmp_path / "data")
    done = run("select", "data", "--certify", 1e-3, "--max-fits", 3, "-o", "m", cwd=tmp_path)
    assert done.code == 3
    assert "are not proved: max_fits reached" in done.out
    assert (tmp_path / "m").exists()


def test_liblinears_letters(tmp_path: Path) -> None:
    write(tmp_path / "data")
    done = succeed("train", "data", "-v", 4, "-c", 0.5, cwd=tmp_path)
    assert done.out.startswith("Cross Validation Accuracy = ")
    accuracy = float(done.out.split("=")[1].strip().removesuffix("%"))
    assert 50.0 < accuracy <= 100.0
    same = run("train", "data", "-v", 4, "-c", 0.5, "--json", cwd=tmp_path).json
    assert 100 * same["accuracy"] == pytest.approx(accuracy, abs=1e-3)
    found = succeed("train", "data", "-C", cwd=tmp_path)
    assert found.out.startswith("Best C = ")
    assert "CV accuracy = " in found.out
    values = run("train", "data", "-C", "-v", 3, "--json", cwd=tmp_path).json["values"]
    assert [value["C"] for value in values] == [2.0**k for k in range(-10, 11)]
    assert [path.name for path in tmp_path.iterdir()] == ["data"]


def test_different_errors_look_different(tmp_path: Path) -> None:
    # Of so many rows, one makes a difference in the fifth digit.
    write(tmp_path / "data", n_rows=3000, n_columns=5)
    words = ("select", "data", "--range", 0.01, 1, "--values", 12, "--folds", 2)
    values = run(*words, "--json", cwd=tmp_path).json["values"]
    printed = run(*words, cwd=tmp_path).out.splitlines()[1:-1]
    shown = {value["error"]: line.split()[1] for value, line in zip(values, printed, strict=True)}
    assert len(set(shown.values())) == len(shown) > 2


def test_comparing(tmp_path: Path) -> None:
    write(tmp_path / "data")
    words = "compare data --solvers auto,dcd,pegasos --max-iter 20 --json"
    table = run(words, cwd=tmp_path).json["table"]
    assert [row["solver"] for row in table] == ["auto", "dcd", "pegasos"]


def test_more_than_two_classes(tmp_path: Path) -> None:
    write(tmp_path / "data", n_classes=3)
    words = ("compare", "data", "--solvers", "dcd", "--json")
    refuse("--positive LABEL", *words, cwd=tmp_path)
    found = [run(*words, "--positive", k, cwd=tmp_path).json["primal"] for k in range(3)]
    assert len(set(found)) == 3
    refuse("there is no class 7; there are 0, 1, 2", *words, "--positive", "7", cwd=tmp_path)


def _on_a_terminal(*words: object, cwd: Path) -> tuple[int, bytes]:
    """Run a command whose standard error is a terminal, and return what it showed there."""
    terminal, line = os.openpty()
    process = subprocess.Popen(
        arguments(*words), cwd=cwd, stderr=line, stdout=subprocess.PIPE,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "200"},
    )  # fmt: skip
    os.close(line)
    shown = b""
    while True:
        try:
            shown += os.read(terminal, 1 << 16)
        except OSError:
            break
    process.communicate(timeout=60)
    os.close(terminal)
    return process.returncode, shown


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="no terminals here")
def test_a_live_line_on_a_terminal(tmp_path: Path) -> None:
    write(tmp_path / "data")
    how = "--tol 1e-12 --max-iter 4000"
    code, shown = _on_a_terminal(f"train data --solver sgd-s {how}", cwd=tmp_path)
    assert code in (0, 3)
    assert b"training: pass" in shown
    code, shown = _on_a_terminal(f"compare data --solvers sgd-s {how}", cwd=tmp_path)
    assert code == 0
    assert b"sgd-s: pass" in shown


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="no terminals here")
def test_notes_and_ended_classes_on_a_terminal(tmp_path: Path) -> None:
    X, y = noisy(n_classes=3)
    rows = np.column_stack([X.toarray(), y])
    names = ",".join([*(f"f{j}" for j in range(X.shape[1])), "label"])
    np.savetxt(tmp_path / "t.csv", rows, delimiter=",", header=names, comments="")
    words = "train t.csv --solver sgd-s --tol 1e-12 --max-iter 3000 --n-jobs 1"
    code, shown = _on_a_terminal(words, cwd=tmp_path)
    assert code == 3
    # A note is on a line of its own, which is cleared before.
    assert b"\x1b[2Kt.csv: labels are in column" in shown
    assert b"class 0" not in shown[shown.index(b"class 2") :]
