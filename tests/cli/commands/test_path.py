"""certsvm path."""

from __future__ import annotations

from pathlib import Path

from certsvm import Model
from tests.cli.running import run, write


def test_the_full_round(tmp_path: Path) -> None:
    write(tmp_path / "data", n_classes=3)
    done = run(
        "path", "data", "--range", 0.01, 10, "--tol", 0.02, "-B", 1, "-o", "models",
        "--at", 0.5, "--witness", cwd=tmp_path,
    )  # fmt: skip
    assert done.code == 0
    assert "every C from 0.01 to 10 has a model within" in done.out
    models = sorted((tmp_path / "models").glob("*.model"))
    assert f"{len(models)} models in models" in done.out
    Cs = sorted(Model.load(path).parameters["C"] for path in models)
    assert 0.5 in Cs
    assert (Cs[0], Cs[-1]) == (0.01, 10.0)
    # The interpolated model is as any other: verified from the data alone, and it predicts.
    verified = run("verify", "models/C=0.5.model", "data", cwd=tmp_path)
    assert verified.code == 0
    assert "confirmed: both halves" in verified.out
    assert run("evaluate", "models/C=0.5.model", "data", cwd=tmp_path).code == 0
    between = Model.load(tmp_path / "models" / "C=0.5.model")
    assert all(certificate.met for certificate in between.certificates)


def test_json(tmp_path: Path) -> None:
    write(tmp_path / "data")
    done = run("path", "data", "--range", 0.1, 10, "--json", cwd=tmp_path)
    assert done.code == 0
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
    done = run(
        "path", "data", "--range", 0.1, 10, "--tol", 1e-7, "--max-fits", 3, "-o", "m", cwd=tmp_path
    )
    assert done.code == 3
    assert "1e-05 % is proved from C = 0.1 up to C = " in done.out
    assert len(list((tmp_path / "m").glob("*.model"))) == 3
    # The lowest C has no model of the accuracy, either.
    done = run(
        "path", "data", "--range", 0.1, 10, "--tol", 1e-7, "--solver", "sgd-s", "--max-iter", 1,
        cwd=tmp_path,
    )  # fmt: skip
    assert done.code == 3
    assert "1e-05 % is not proved for every C from 0.1 to 10, nor at C = 0.1;" in done.out
