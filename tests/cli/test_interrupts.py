"""Signals at any moment; kill, full disk and little memory, for real."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from certsvm import Model
from certsvm.files import save_libsvm
from certsvm.files.conversion import convert
from tests.cli.running import arguments, catches, limited, refuse, run, run_process, wait_for, write
from tests.platforms import linux

pytestmark = linux

# Many passes, each of them short.
SLOW = ("--solver", "sgd-s", "--tol", "1e-7", "--max-iter", 10**6, "--n-jobs", "1")


def start(*words: object, cwd: Path, **options: object) -> subprocess.Popen[bytes]:
    """A command that has taken over SIGTERM; before that, the system's default holds."""
    process = subprocess.Popen(arguments(*words), cwd=cwd, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, **options)  # type: ignore[call-overload]  # fmt: skip
    while process.poll() is None and not catches(process.pid, signal.SIGTERM):
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


def test_too_little_memory(tmp_path: Path) -> None:
    write(tmp_path / "data")
    refuse("convert data OUT.arrow", "train", "data", "--memory", "260M", cwd=tmp_path)
    refuse("Give at least", "convert", "data", "data.arrow", "--memory", "50M", cwd=tmp_path)
    convert(tmp_path / "data", tmp_path / "data.arrow")
    refuse("are not enough", "train", "data.arrow", "--memory", "100M", cwd=tmp_path)


# The kernel's own count of the most memory that this process, and not its parent, had.
PEAK = """
import re, sys
from certsvm.cli import main
try:
    main()
except SystemExit as end:
    assert end.code in (0, 3), end.code
print(re.search(r"VmHWM:\\s+(\\d+) kB", open("/proc/self/status").read()).group(1))
"""


def peak_of(*words: object, cwd: Path) -> int:
    done = subprocess.run([sys.executable, "-c", PEAK, *map(str, words)], cwd=cwd,
                          capture_output=True, text=True, check=True)  # fmt: skip
    return 1024 * int(done.stdout)


@pytest.mark.parametrize(
    ("shape", "options", "memory"),
    [((4000, 60), [], "365M"), ((4000, 1200), ["--n-jobs", "2"], "420M"),
     ((2000, 200_000), ["--solver", "sgd-s", "-c", "0.01"], "365M"),
     ((40_000, 20_000), [], "380M")],
)  # fmt: skip
def test_what_is_accepted_is_enough(shape: Any, options: Any, memory: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X = sp.random(*shape, density=min(1.0, 30 / shape[1]), format="csr", random_state=rng)
    y = np.where(X @ rng.standard_normal(shape[1]) + rng.standard_normal(shape[0]) > 0, 1, -1)
    save_libsvm(tmp_path / "data", X, y)
    convert(tmp_path / "data", tmp_path / "data.arrow")
    words = ("train", "data.arrow", "--stream", "--memory", memory, *options, "-q")
    assert peak_of(*words, cwd=tmp_path) <= float(memory[:-1]) * 1e6


def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    write(tmp_path / "one", n_rows=20_000, n_columns=60)
    peaks = []
    for copies in (2, 8):
        (tmp_path / "data").write_bytes(copies * (tmp_path / "one").read_bytes())
        convert(tmp_path / "data", tmp_path / "a.arrow", block_bytes=10**6)
        words = "train a.arrow --memory 400M --stream -o m -q --max-iter 5 --n-jobs 1"
        peaks.append(peak_of(*words.split(), cwd=tmp_path))
    size = (tmp_path / "a.arrow").stat().st_size
    assert size > 40e6
    assert max(peaks) < 400e6
    assert peaks[1] - peaks[0] < 0.2 * size
