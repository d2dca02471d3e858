"""Converting from the shell."""

from __future__ import annotations

from pathlib import Path

from certsvm.files import load_libsvm
from certsvm.files.block_file import BlockFile
from tests.cli.running import run, run_process, write


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
    refused = run("convert", "a.arrow", "b.arrow", cwd=tmp_path)
    assert refused.code == 2
    assert "Arrow file already" in refused.err


def test_an_order_that_is_kept_has_no_seed(tmp_path: Path) -> None:
    write(tmp_path / "data")
    for seed in (0, 1):
        words = ("convert", "data", f"{seed}.arrow", "--seed", seed, "-q")
        refused = run(*words, "--keep-order", cwd=tmp_path)
        assert refused.code == 2
        assert "--seed does not go with --keep-order" in refused.err
        assert not (tmp_path / f"{seed}.arrow").exists()
        assert run(*words, cwd=tmp_path).code == 0
    first = (tmp_path / "0.arrow").read_bytes()
    assert first != (tmp_path / "1.arrow").read_bytes()
    assert run("convert", "data", "default.arrow", "-q", cwd=tmp_path).code == 0
    assert (tmp_path / "default.arrow").read_bytes() == first


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
