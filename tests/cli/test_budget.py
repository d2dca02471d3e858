"""Memory limits."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from certsvm.cli.app import BadInput
from certsvm.cli.budget import require_memory
from certsvm.files import save_libsvm
from certsvm.files.block_file import BlockFile
from certsvm.files.conversion import convert
from certsvm.files.streams import BlockStream
from certsvm.fitting.sources import StreamSource
from tests.cli.running import run, write
from tests.platforms import linux
from tests.settings import settings_of


def test_too_little_memory(tmp_path: Path) -> None:
    write(tmp_path / "data")
    text = run("train", "data", "--memory", "260M", cwd=tmp_path)
    assert text.code == 2
    assert "certsvm convert data data.arrow" in text.err
    few = run("convert", "data", "data.arrow", "--memory", "50M", cwd=tmp_path)
    assert few.code == 2
    assert "Give at least" in few.err
    assert run("convert", "data", "data.arrow", "-q", cwd=tmp_path).code == 0
    blocks = run("train", "data.arrow", "--memory", "100M", cwd=tmp_path)
    assert blocks.code == 2
    assert "are not enough" in blocks.err


MEASURED = """
import re, sys
import certsvm.cli.training_data as train

def require(memory, source, settings, *, witness):
    try:
        require_memory(1, source, settings, witness=witness)
    except Exception as error:
        print(re.findall("about ([0-9]+) MB", str(error))[0])

require_memory, train.require_memory = train.require_memory, require
from certsvm.cli import main
try:
    main()
except SystemExit as end:
    assert not end.code
print(int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1]) // 1000)
"""


@linux
@pytest.mark.parametrize(
    ("shape", "options"),
    [((4000, 60), []), ((4000, 1200), []), ((2000, 200_000), ["--solver", "sgd-s", "-c", "0.01"])],
)
def test_the_estimate_is_what_is_used(
    shape: tuple[int, int], options: list[str], tmp_path: Path
) -> None:
    rng = np.random.default_rng(0)
    X = sp.random(*shape, density=min(1.0, 30 / shape[1]), format="csr", random_state=rng)
    y = np.where(X @ rng.standard_normal(shape[1]) + rng.standard_normal(shape[0]) > 0, 1, -1)
    save_libsvm(tmp_path / "data", X, y)
    made = run("convert", "data", "data.arrow", "--memory", "500M", "-q", cwd=tmp_path)
    assert made.code == 0
    words = ["train", "data.arrow", "--stream", "--memory", "500M", *options, "-q"]
    # What converting took is enough for training.
    assert run(*words, cwd=tmp_path).code == 0
    done = subprocess.run([sys.executable, "-c", MEASURED, *words], cwd=tmp_path,
                          capture_output=True, text=True, check=True)  # fmt: skip
    estimate, used = map(int, done.stdout.split())
    assert used <= estimate <= 1.25 * used


def test_the_advice_depends_on_what_takes_the_memory(tmp_path: Path) -> None:
    write(tmp_path / "data", n_columns=1800)
    run("convert", "data", "data.arrow", "-q", cwd=tmp_path)
    words = ("train", "data.arrow", "--stream", "--memory", "100M")
    for solver, advice in (("newton", "--solver sgd-s"), ("sgd-s", "certsvm convert --block-size")):
        refused = run(*words, "--solver", solver, cwd=tmp_path)
        assert refused.code == 2
        assert advice in refused.err
    # SGD-s is no way out.
    source = StreamSource(BlockStream(BlockFile(tmp_path / "data.arrow"), intercept_scaling=1.0))
    for objective in ({"loss": "squared_hinge"}, {"penalize_intercept": False}):
        with pytest.raises(BadInput, match="there is Newton's method only"):
            require_memory(10**6, source, settings_of(**objective), witness=False)


def test_the_message_says_how_much_is_needed(tmp_path: Path) -> None:
    path = write(tmp_path / "data", n_rows=200)
    convert(path, tmp_path / "data.arrow", block_bytes=2000)
    source = StreamSource(BlockStream(BlockFile(tmp_path / "data.arrow")))
    settings = settings_of(solver="sgd-s")
    with pytest.raises(BadInput, match="make smaller blocks") as caught:
        require_memory(10**6, source, settings, witness=True)
    (needed,) = re.findall(r"about (\d+) MB", str(caught.value))
    require_memory(2 * 10**6 * int(needed), source, settings, witness=True)
