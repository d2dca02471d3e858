"""certsvm compile."""

from __future__ import annotations

import contextlib
import io
import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import click

from certsvm.cli.app import BadInput, app, say
from certsvm.cli.compilation import UNKEPT

# Rows, columns, and the share of values that are not zero: each makes other kernels run.
_SHAPES = {
    "small": (60, 5, 0.5), "large": (300, 80, 1.0), "sparse": (300, 80, 0.1), "wide": (80, 300, 0.1)
}  # fmt: skip
_SOLVERS = ("auto", "working-set", "newton")


@click.command()
def command() -> None:
    """Compile the kernels that most commands need, and keep them, so that nobody has to wait.

    These are the kernels of train, predict, verify and convert for rows that are dense or sparse,
    in double or single precision, with the default solvers and both losses. Others are compiled
    when they are first used. They are kept for processors like this one in the folder that is
    printed; the environment variable NUMBA_CACHE_DIR names another.
    """
    import certsvm.files.libsvm  # noqa: F401  its kernels tell where all are kept
    from certsvm.kernels.jit import kernel_folders

    if None in kernel_folders():
        raise BadInput(UNKEPT)
    say("compiling kernels, which takes a minute or so")
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        _write_data(Path(folder))
        for words in _commands(Path(folder)):
            with (
                contextlib.redirect_stdout(io.StringIO()),
                contextlib.redirect_stderr(io.StringIO()),
                # It may end with the exit code that the target was not met.
                contextlib.suppress(SystemExit),
            ):
                app.main(list(map(str, words)), "certsvm", standalone_mode=False)
    seconds, folders = time.perf_counter() - began, kernel_folders()
    click.echo(f"kernels are in {os.path.commonpath(filter(None, folders))}; {seconds:.1f} s")


def _write_data(folder: Path) -> None:
    """The same rows as text and as tables, in each shape."""
    import numpy as np

    from certsvm.files import save_libsvm
    from certsvm.files.batch import Batch
    from certsvm.files.scaling import save_table

    rng = np.random.default_rng(0)
    for name, (n_rows, n_columns, density) in _SHAPES.items():
        X = rng.standard_normal((n_rows, n_columns))
        X *= rng.random(X.shape) < density
        y = (X.sum(axis=1) + rng.standard_normal(len(X)) > 0).astype(int)
        save_libsvm(folder / f"{name}.txt", X, y)
        columns = [f"f{j}" for j in range(n_columns)]
        save_table(str(folder / f"{name}.csv"), Batch(X, y), columns, label="label", weight=None)


def _commands(folder: Path) -> Iterator[tuple[object, ...]]:
    """The commands that use the kernels, one after the other."""
    model, blocks = folder / "model", folder / "blocks.arrow"
    for name in _SHAPES:
        for kind in ("txt", "csv"):
            data = folder / f"{name}.{kind}"
            for precision in ((), ("--float32",)):
                for loss in ("hinge", "squared_hinge"):
                    how = ("-q", "-s", loss, "-B", 1, "--witness", "-o", model)
                    for solver in _SOLVERS:
                        yield "train", data, *precision, *how, "--solver", solver
                    yield "convert", data, blocks, *precision, "-q", "--memory", "8G"
                    yield "train", blocks, *how
                    yield "train", blocks, *how, "--stream"
                yield "verify", model, data, *precision
                yield "predict", model, data, *precision, "-o", folder / "labels"
    yield "train", blocks, "-q", "-o", model, "--stream", "--solver", "sgd-s"
