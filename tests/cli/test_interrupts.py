"""Signals at any moment; kill, full disk and little memory, for real."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest

from certsvm import Model
from tests.cli.running import arguments, run, run_process, wait_for, write
from tests.platforms import linux

pytestmark = linux

# Many passes, each of them short.
SLOW = ("--solver", "sgd-s", "--tol", "1e-7", "--max-iter", 10**6, "--n-jobs", "1")


def start(*words: object, cwd: Path, **options: object) -> subprocess.Popen[bytes]:
    """A command that has taken over SIGTERM; before that, the system's default holds."""
    process = subprocess.Popen(arguments(*words), cwd=cwd, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, **options)  # type: ignore[call-overload]  # fmt: skip
    bit = 1 << (signal.SIGTERM - 1)
    while process.poll() is None:
        with contextlib.suppress(OSError, IndexError):
            status = Path(f"/proc/{process.pid}/status").read_text()
            if int(status.split("SigCgt:")[1].split()[0], 16) & bit:
                break
        time.sleep(0.0005)
    return process


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize(
    "words", ["train data -o out -q", "predict model data -o out -q", "convert data out -q"]
)
def test_a_signal_at_any_moment(words: str, number: signal.Signals, tmp_path: Path) -> None:
    write(tmp_path / "data", n_rows=500)
    run("train", "data", "-o", "model", "-q", cwd=tmp_path)
    began = time.monotonic()
    assert run_process(words, cwd=tmp_path).code == 0
    length = time.monotonic() - began
    complete = (tmp_path / "out").read_bytes()
    names = {path.name for path in tmp_path.iterdir()}
    # Early, when everything is imported, and late, when the interpreter ends.
    for share in [0.0, *np.random.default_rng(int(number)).uniform(0, 1.1, size=2)]:
        process = start(words, cwd=tmp_path)
        time.sleep(float(share * length))
        process.send_signal(number)
        _, error = process.communicate(timeout=60)
        err = error.decode()
        assert process.returncode in (0, 3, 130), err
        assert err.strip() == ("interrupted" if process.returncode == 130 else "")
        assert {path.name for path in tmp_path.iterdir()} == names
        if words.startswith("train"):
            Model.load(tmp_path / "out")
        else:
            assert (tmp_path / "out").read_bytes() == complete


@pytest.mark.parametrize("words", [("train", "-c", 50), ("path", "--range", 49, 50)])
def test_what_is_proved_so_far_is_written(words: tuple[object, ...], tmp_path: Path) -> None:
    write(tmp_path / "data", n_rows=3000, n_columns=40)
    name, *others = words
    process = start(name, "data", *SLOW, *others, "-o", "m", cwd=tmp_path)
    time.sleep(3.0)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode in (3, 130), err.decode()
    if process.returncode == 3:
        model = tmp_path / "m"
        certificate = Model.load(next(model.glob("*")) if model.is_dir() else model).certificates[0]
        assert 0 < certificate.dual <= certificate.primal
        assert name != "train" or b"interrupted after" in out


def test_a_second_signal_ends_at_once(tmp_path: Path) -> None:
    write(tmp_path / "data", n_rows=3000, n_columns=40)
    process = start("train", "data", "-c", 50, *SLOW, "-o", "m", "--checkpoint", "state",
                    "--checkpoint-every", 0, cwd=tmp_path)  # fmt: skip
    wait_for(tmp_path / "state" / "class-0.checkpoint", process)
    process.send_signal(signal.SIGSTOP)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGCONT):
        process.send_signal(number)
    assert process.wait(60) in (3, 130)


def test_standard_input_that_never_comes(tmp_path: Path) -> None:
    write(tmp_path / "data", n_rows=50)
    run("train", "data", "-o", "model", "-q", cwd=tmp_path)
    for words in (("convert", "-", "out"), ("predict", "model", "-", "-o", "out")):
        read, keep = os.pipe()
        process = start(*words, cwd=tmp_path, stdin=read)
        time.sleep(2.0)
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130
        os.close(read)
        os.close(keep)
        assert {path.name for path in tmp_path.iterdir()} == {"data", "model"}


def test_a_job_that_ignores_ctrl_c_goes_on(tmp_path: Path) -> None:
    write(tmp_path / "data")
    process = start("train", "data", "-o", "m", "-q", cwd=tmp_path,
                    preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN))  # fmt: skip
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 0


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("data") / "data", n_rows=3000, n_columns=40)


def limited(size: int, kind: str = "RLIMIT_FSIZE"):  # type: ignore[no-untyped-def]
    import resource

    def limit() -> None:
        # Python ignores SIGXFSZ, so that a write beyond fails as it does on a full disk.
        resource.setrlimit(getattr(resource, kind), (size, size))

    return limit


def test_a_full_disk_leaves_the_old_checkpoint(data: Path, tmp_path: Path) -> None:
    words = ("train", data, *SLOW, "-c", 50, "--max-iter", 5, "-o", "m", "--checkpoint", "state",
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
    process = start("train", "data.arrow", *SLOW, "-c", 50, "--stream", "-o", "m",
                    "--checkpoint", "state", "--checkpoint-every", 0, cwd=tmp_path)  # fmt: skip
    wait_for(tmp_path / "state" / "class-0.checkpoint", process)
    with (tmp_path / "data.arrow").open("r+b") as file:
        middle = file.seek(0, os.SEEK_END) // 2
        file.seek(middle)
        byte = file.read(1)
        file.seek(middle)
        file.write(bytes([byte[0] ^ 1]))
    _, err = process.communicate(timeout=60)
    assert process.returncode == 2, err.decode()
    assert b"data.arrow" in err
    assert not (tmp_path / "m").exists()


def test_a_small_address_space_is_enough_or_ends_with_a_message(data: Path, tmp_path: Path) -> None:
    for kind, option in (("RLIMIT_AS", "-v"), ("RLIMIT_DATA", "-d")):
        limit = limited(150_000_000, kind)
        refused = run_process("train", data, "-o", "m", cwd=tmp_path, preexec=limit)
        assert refused.code == 2
        assert f"ulimit {option}" in refused.err
        assert not (tmp_path / "m").exists()
    (tmp_path / "table.csv").write_text("a,label\n1,0\n2,1\n3,0\n4,1\n")
    for file in (data, "table.csv"):
        limit = limited(1_300_000_000, "RLIMIT_AS")
        done = run_process("train", file, "-o", "m", cwd=tmp_path, preexec=limit)
        assert done.code == 0, done.err
