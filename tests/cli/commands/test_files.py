"""Files from the shell: converting, scaling, what is in them, and models of liblinear."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from certsvm import Certificate, Model
from certsvm.files import load_libsvm, save_libsvm
from certsvm.files.block_file import BlockFile
from tests.cli.running import noisy, refuse, run, run_process, succeed, write


def test_a_converted_file_gives_the_same_rows_and_a_certificate(tmp_path: Path) -> None:
    write(tmp_path / "data", n_rows=400)
    done = run_process("convert", "data", "data.arrow", "--memory", "600M", cwd=tmp_path)
    assert done.code == 0, done.err
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


def test_a_converted_file_is_not_converted_again(tmp_path: Path) -> None:
    write(tmp_path / "data")
    assert run("convert", "data", "a.arrow", "--keep-order", "-q", cwd=tmp_path).code == 0
    assert not BlockFile(tmp_path / "a.arrow").summary.shuffled
    refuse("not libsvm text or a table", "convert", "a.arrow", "b.arrow", cwd=tmp_path)


def test_the_order_depends_on_the_seed(tmp_path: Path) -> None:
    write(tmp_path / "data")
    for options in ("default.arrow", "0.arrow --seed 0", "1.arrow --seed 1"):
        succeed(f"convert data {options} -q", cwd=tmp_path)
    default, first, other = ((tmp_path / f"{n}.arrow").read_bytes() for n in ("default", 0, 1))
    assert default == first != other


def test_a_line_that_does_not_fit_in_the_memory_is_refused(tmp_path: Path) -> None:
    with (tmp_path / "data").open("wb") as file:
        file.write(b"1 1:1\n-1 2:1\n1 ")
        for first in range(1, 8_000_000, 10_000):
            file.write(b"".join(b"%d:1 " % i for i in range(first, first + 10_000)))
        file.write(b"\n")
    done = run_process("convert", "data", "data.arrow", "--memory", "500M", cwd=tmp_path)
    assert done.code == 2
    assert "data, line 3, column 1: this line is longer than" in done.err
    assert [path.name for path in tmp_path.iterdir()] == ["data"]


def test_text_is_scaled_like_the_training_data(tmp_path: Path) -> None:
    write(tmp_path / "train")
    # One column more than in training, which stays as it is.
    write(tmp_path / "test", n_columns=21, seed=1)
    assert run("scale", "train", "a", "-s", "s", cwd=tmp_path).code == 0
    assert run("scale", "test", "b", "-r", "s", cwd=tmp_path).code == 0
    X, y = load_libsvm(tmp_path / "train")[:2]
    sizes = np.append(abs(X).max(axis=0).toarray().ravel(), 1.0)
    scaled, labels = load_libsvm(tmp_path / "a")[:2]
    assert abs(scaled).max() == 1.0
    assert scaled.nnz == X.nnz
    assert (labels == y).all()
    other, found = load_libsvm(tmp_path / "test")[0], load_libsvm(tmp_path / "b")[0]
    np.testing.assert_allclose(found.toarray() * sizes, other.toarray(), rtol=1e-12)
    assert run("train", "a", "-q", "-o", "m", cwd=tmp_path).code == 0
    assert run("evaluate", "m", "b", cwd=tmp_path).code == 0


@pytest.mark.parametrize("zero_based", [False, True])
def test_deviations_of_sparse_rows(tmp_path: Path, zero_based: bool) -> None:
    rng = np.random.default_rng(0)
    X = sp.csr_matrix(np.where(rng.random((50, 4)) < 0.5, 0.0, rng.normal(3.0, 2.0, (50, 4))))
    save_libsvm(tmp_path / "t", X, np.arange(50) % 2, zero_based=zero_based)
    assert run("scale", "t", "out", "--standardize", cwd=tmp_path).code == 0
    scaled = load_libsvm(tmp_path / "out", n_features=4)[0].toarray()
    np.testing.assert_allclose(scaled.std(axis=0), 1.0)
    np.testing.assert_allclose(scaled, X.toarray() / X.toarray().std(axis=0))


def test_tables(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(100.0, 20.0, (60, 2)), columns=["a", "b, c"])
    frame["constant"], frame["w"], frame["id"] = 7.0, rng.random(60), [f"n{i}" for i in range(60)]
    frame["y"] = np.where(frame["a"] > 100, "high", "low")
    frame[::-1].to_csv(tmp_path / "t.csv", index=False)
    words = ("--weight", "w", "--drop", "id", "--standardize", "-s", "s")
    assert run("scale", "t.csv", "out.parquet", *words, cwd=tmp_path).code == 0
    scaled = pd.read_parquet(tmp_path / "out.parquet")
    assert list(scaled.columns) == ["a", "b, c", "constant", "w", "y"]
    np.testing.assert_allclose(scaled[["a", "b, c"]].mean(), 0.0, atol=1e-12)
    np.testing.assert_allclose(scaled[["a", "b, c"]].std(ddof=0), 1.0)
    assert (scaled["constant"] == 0.0).all()
    assert scaled["y"].tolist() == frame["y"].tolist()[::-1]
    np.testing.assert_allclose(scaled["w"], frame["w"][::-1])
    # New rows without labels, in another order of columns.
    frame[["id", "constant", "b, c", "a"]].to_csv(tmp_path / "new.csv", index=False)
    assert run("scale", "new.csv", "new.out", "-r", "s", "--label", "id", cwd=tmp_path).code == 0
    found = pd.read_csv(tmp_path / "new.out")
    np.testing.assert_allclose(found["a"], scaled["a"][::-1], rtol=1e-12)
    assert list(found.columns) == ["a", "b, c", "constant", "id"]


def test_what_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "data")
    (tmp_path / "t.csv").write_text("a,label\n1,0\n2,1\n")
    run("scale", "data", "out", "-s", "s", cwd=tmp_path)
    for words, why in (
        (("data", "out"), "would be overwritten"),
        (("data", "data"), "is an input"),
        (("data", "new", "-r", "out"), "is not a file of certsvm"),
        (("t.csv", "new", "-r", "s"), "is of text"),
        (("data", "new", "-r", "s", "--standardize"), "does not go with"),
    ):
        refuse(why, "scale", *words, cwd=tmp_path)
    assert not (tmp_path / "new").exists()
    # Numbers that float64 cannot scale.
    (tmp_path / "tiny").write_text("1 1:5e-324\n-1 1:-5e-324\n")
    assert "too small" in run("scale", "tiny", "new", cwd=tmp_path).err


def test_a_model(tmp_path: Path) -> None:
    write(tmp_path / "data")
    run("train", "data", "-q", "-c", 2, cwd=tmp_path)
    about = run("info", "data.model", "--json", cwd=tmp_path).json
    assert about["classes"] == [-1, 1]
    assert about["parameters"]["C"] == 2
    assert about["certificates"][0]["met"]
    assert about["fingerprint"]["n_rows"] == 300
    assert about["features"] == 20
    assert "2 classes: -1, 1" in run("info", "data.model", cwd=tmp_path).out


def test_data(tmp_path: Path) -> None:
    X, y = noisy()
    for zero_based in (False, True):
        save_libsvm(tmp_path / "data", X, y, zero_based=zero_based)
        about = run("info", "data", "--json", cwd=tmp_path).json
        assert (about["rows"], about["columns"], about["values"]) == (*X.shape, X.nnz)
        assert about["classes"] == {"-1": int((y == -1).sum()), "1": int((y == 1).sum())}
        assert about["kind"] == "libsvm text" + (", zero-based" if zero_based else "")


@pytest.mark.parametrize("zero_based", [False, True])
def test_the_number_of_columns_of_text_can_be_given(zero_based: bool, tmp_path: Path) -> None:
    X, y = noisy()
    save_libsvm(tmp_path / "data", X, y, zero_based=zero_based)
    assert run("info", "data", "--features", 50, "--json", cwd=tmp_path).json["columns"] == 50


def test_control_characters_do_not_reach_the_terminal(tmp_path: Path) -> None:
    nasty = "spam\x1b[2K\x9b1A\nclass x: proved"
    Model(
        coef=np.ones((3, 1)), intercept=np.zeros(3), classes=np.array(["a", "b", nasty]),
        class_weight=np.ones(3), feature_names=("f\x1b[1m",), certsvm_version="1\x1b[2J",
        certificates=(Certificate(1.0, 0.5, 0.1, bound="x\x07"),) * 3,
    ).save(tmp_path / "m")  # fmt: skip
    (tmp_path / "data.csv").write_text(f'"f\x1b[1m",label\n1,"{nasty}"\n2,b\n')
    for words in (("info", "m"), ("info", "m", "--json"), ("info", "data.csv"),
                  ("evaluate", "m", "data.csv"), ("predict", "m", "data.csv"),
                  ("train", "data.csv", "--label", "x")):  # fmt: skip
        done = run(*words, cwd=tmp_path)
        assert all(c.isprintable() or c == "\n" for c in done.out + done.err), words
        assert "\nclass x: proved" not in done.out
    assert "spam\\x1b[2K" in run("info", "m", cwd=tmp_path).out


def test_liblinear_models(tmp_path: Path) -> None:
    write(tmp_path / "data")
    run("train", "data", "-q", cwd=tmp_path)
    assert run("export", "data.model", "text", cwd=tmp_path).code == 0
    assert (tmp_path / "text").read_text().startswith("solver_type L2R_L1LOSS_SVC_DUAL")
    imported = run("import", "text", "back", cwd=tmp_path)
    assert (imported.code, "no certificate" in imported.out) == (0, True)
    first, *others = (
        run("predict", model, "data", "-q", cwd=tmp_path).out
        for model in ("data.model", "text", "back")
    )
    assert others == [first, first]
    refuse("no certificate", "verify", "back", "data", cwd=tmp_path)
