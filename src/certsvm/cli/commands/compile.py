"""certsvm compile and demo: what needs no data."""

from __future__ import annotations

import contextlib
import io
import os
import tempfile

import click

from certsvm.cli import say
from certsvm.cli.app import BadInput, app
from certsvm.cli.progress import UNKEPT, seconds_compiled, watch_compilation

# Rows, columns, and the share of values that are not zero: each makes other kernels run.
_SHAPES = (60, 5, 0.5), (300, 80, 1.0), (300, 80, 0.1), (80, 300, 0.1)


@click.command()
def compile_command() -> None:
    """Compile the kernels that most commands need, and keep them, so that nobody has to wait.

    These are the kernels of train, predict, verify and convert for rows that are dense or sparse,
    in double or single precision, with the default solvers and both losses. Others are compiled
    when they are first used. They are kept for processors like this one in the folder that is
    printed; the environment variable NUMBA_CACHE_DIR names another.
    """
    import numpy as np

    from certsvm.files import save_libsvm
    from certsvm.kernels.jit import kernel_folders

    if None in kernel_folders():
        raise BadInput(UNKEPT)
    watch_compilation(quiet=True)
    say("compiling the kernels that are not kept yet; all of them take a minute or so")
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for n_rows, n_columns, density in _SHAPES:
            X = rng.standard_normal((n_rows, n_columns))
            X *= rng.random(X.shape) < density
            y = (X.sum(axis=1) + rng.standard_normal(n_rows) > 0).astype(int)
            save_libsvm("text", X, y)
            np.savetxt("t.csv", np.column_stack([X, y]), delimiter=",")
            for data in ("text", "t.csv --no-header"):
                _use_kernels(data)
                _use_kernels(f"{data} --float32")
        _run("train blocks -q -o model --stream --solver sgd-s")
    folders = filter(None, kernel_folders())
    click.echo(f"kernels are in {os.path.commonpath(folders)}; {seconds_compiled():.1f} s")


def _use_kernels(data: str) -> None:
    """Use the kernels that a kind of file needs."""
    for loss in ("hinge", "squared_hinge"):
        how = f"-q -s {loss} -B 1 --witness -o model"
        for solver in ("auto", "working-set", "newton"):
            _run(f"train {data} {how} --solver {solver}")
        _run(f"verify model {data}")
        _run(f"predict model {data} -o labels")
        _run(f"convert {data} -q --memory 8G blocks")
        _run(f"train blocks {how}")
        _run(f"train blocks {how} --stream")


def _run(words: str) -> None:
    quiet = io.StringIO()
    with (
        contextlib.redirect_stdout(quiet), contextlib.redirect_stderr(quiet),
        # It may end with the exit code that the target was not met.
        contextlib.suppress(SystemExit),
    ):  # fmt: skip
        app.main(words.split(), "certsvm", standalone_mode=False)


@click.command()
def demo_command() -> None:
    """Train, verify and compare on generated data: 100,000 documents, some ten seconds."""
    from certsvm.demo import main

    main()
