"""Kill, interrupt, full disk and little memory, for real."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from certsvm import Model
from certsvm.files.container import read_container, write_container
from tests.cli.running import arguments, run, run_process, wait_for, write
from tests.platforms import linux, posix

# Many passes, each of them short.
SLOW = ("--solver", "sgd-s", "-c", "50", "--tol", "1e-7", "--max-iter", "400", "--n-jobs", "1")


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("data") / "data", n_rows=3000, n_columns=40)


def start(*words: object, cwd: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        arguments(*words), cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


def test_a_forged_checkpoint_costs_time_not_truth(data: Path, tmp_path: Path) -> None:
    words = ("train", data, "--solver", "dcd", "--tol", 1e-6, "-o", "m", "--witness",
             "--checkpoint", "state", "--json")  # fmt: skip
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


def test_another_run_is_not_resumed(data: Path, tmp_path: Path) -> None:
    words = (*SLOW, "--max-iter", 3, "-o", "m", "--checkpoint", "state")
    assert run("train", data, *words, cwd=tmp_path).code == 3
    (tmp_path / "m").unlink()
    write(tmp_path / "fewer", n_rows=2999, n_columns=40)
    for file, change, reason in (
        (data, ("-c", "51"), "C = 51.0"),
        (data, ("--loss", "squared_hinge", "--solver", "dcd"), "loss = squared_hinge"),
        (data, ("-B", "1"), "intercept_scaling = 1.0"),
        ("fewer", (), "2999 rows"),
    ):
        refused = run("train", file, *words, *change, cwd=tmp_path)
        assert refused.code == 2
        assert reason in refused.err
        assert not (tmp_path / "m").exists()


def limited(size: int, kind: str = "RLIMIT_FSIZE"):  # type: ignore[no-untyped-def]
    import resource

    def limit() -> None:
        # Python ignores SIGXFSZ, so that a write beyond fails as it does on a full disk.
        resource.setrlimit(getattr(resource, kind), (size, size))

    return limit


@posix
def test_a_full_disk_leaves_the_old_checkpoint(data: Path, tmp_path: Path) -> None:
    words = ("train", data, *SLOW, "--max-iter", 5, "-o", "m", "--checkpoint", "state",
             "--checkpoint-every", 0)  # fmt: skip
    run(*words, cwd=tmp_path)
    before = (tmp_path / "state" / "class-0.checkpoint").read_bytes()
    full = run_process(*words, "--max-iter", 9, "-q", cwd=tmp_path, preexec=limited(2200))
    # The model is smaller, and finds room.
    assert full.code == 3
    assert "no checkpoint was written" in full.err
    assert Model.load(tmp_path / "m").parameters["passes"] == 9
    assert (tmp_path / "state" / "class-0.checkpoint").read_bytes() == before
    assert [p.name for p in (tmp_path / "state").iterdir()] == ["class-0.checkpoint"]


def test_a_file_that_changes_underneath_is_an_error(tmp_path: Path) -> None:
    write(tmp_path / "data", n_rows=20_000, n_columns=40)
    run("convert", "data", "data.arrow", "--block-size", "200k", "-q", cwd=tmp_path)
    whole = (tmp_path / "data.arrow").read_bytes()
    process = start("train", "data.arrow", *SLOW, "--max-iter", 10**6, "--stream", "-o", "m",
                    "--checkpoint", "state", "--checkpoint-every", 0, cwd=tmp_path)  # fmt: skip
    wait_for(tmp_path / "state" / "class-0.checkpoint", process)
    with (tmp_path / "data.arrow").open("r+b") as file:
        file.seek(len(whole) // 2)
        byte = file.read(1)
        file.seek(len(whole) // 2)
        file.write(bytes([byte[0] ^ 1]))
    _, err = process.communicate(timeout=60)
    assert process.returncode == 2, err.decode()
    assert b"data.arrow" in err
    assert not (tmp_path / "m").exists()


@linux
@pytest.mark.parametrize(("kind", "option"), [("RLIMIT_AS", "-v"), ("RLIMIT_DATA", "-d")])
def test_a_tiny_address_space_ends_with_a_message(
    kind: str, option: str, data: Path, tmp_path: Path
) -> None:
    limit = limited(150_000_000, kind)
    refused = run_process("train", data, "-o", "m", cwd=tmp_path, preexec=limit)
    assert refused.code == 2
    assert f"ulimit {option}" in refused.err
    assert not (tmp_path / "m").exists()


@linux
def test_the_address_space_that_is_asked_for_is_enough(data: Path, tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_text("a,label\n1,0\n2,1\n3,0\n4,1\n")
    for file in (data, "table.csv"):
        limit = limited(1_300_000_000, "RLIMIT_AS")
        done = run_process("train", file, "-o", "m", cwd=tmp_path, preexec=limit)
        assert done.code == 0, done.err
