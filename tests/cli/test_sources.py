"""Where the rows to train on come from, and in how much memory."""

from __future__ import annotations

import gzip
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from certsvm.files import save_libsvm
from certsvm.files.conversion import convert
from tests.cli.running import refuse, run_process, write
from tests.platforms import linux


def test_too_little_memory(tmp_path: Path) -> None:
    write(tmp_path / "data")
    (tmp_path / "data.gz").write_bytes(gzip.compress((tmp_path / "data").read_bytes()))
    # How much a compressed file becomes is not known.
    refuse("Convert it first", "train", "data.gz", "--memory", "8G", cwd=tmp_path)
    text = run_process("train", "data", "--memory", "260M", cwd=tmp_path)
    assert text.code == 2
    assert "certsvm convert data data.arrow" in text.err
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


@linux
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


@linux
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
