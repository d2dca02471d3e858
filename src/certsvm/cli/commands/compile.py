"""certsvm compile."""

from __future__ import annotations

import contextlib
import io
import os
import tempfile
import time
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import click

from certsvm.cli.app import BadInput, app, say
from certsvm.cli.compilation import UNKEPT

# Rows, columns, and the share of values that are not zero: each makes other kernels run.
_SHAPES = {
    "small": (60, 5, 0.5), "large": (300, 80, 1.0), "sparse": (300, 80, 0.1), "wide": (80, 300, 0.1)
}  # fmt: skip


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
    """The same rows as text and as a table, in each shape."""
    import numpy as np

    from certsvm.files import save_libsvm

    rng = np.random.default_rng(0)
    for name, (n_rows, n_columns, density) in _SHAPES.items():
        X = rng.standard_normal((n_rows, n_columns))
        X *= rng.random(X.shape) < density
        y = (X.sum(axis=1) + rng.standard_normal(n_rows) > 0).astype(int)
        save_libsvm(folder / f"{name}.txt", X, y)
        np.savetxt(folder / f"{name}.csv", np.column_stack([X, y]), delimiter=",")


def _commands(folder: Path) -> Iterator[tuple[object, ...]]:
    """The commands that use the kernels, one after the other."""
    model, blocks, labels = folder / "model", folder / "blocks.arrow", folder / "labels"
    kinds = ("txt",), ("csv", "--no-header")
    losses = "hinge", "squared_hinge"
    for name, kind, precision, loss in product(_SHAPES, kinds, ((), ("--float32",)), losses):
        data = (folder / f"{name}.{kind[0]}", *kind[1:], *precision)
        how = ("-q", "-s", loss, "-B", 1, "--witness", "-o", model)
        for solver in ("auto", "working-set", "newton"):
            yield "train", *data, *how, "--solver", solver
        yield "verify", model, *data
        yield "predict", model, *data, "-o", labels
        yield "convert", data[0], blocks, *data[1:], "-q", "--memory", "8G"
        yield "train", blocks, *how
        yield "train", blocks, *how, "--stream"
    yield "train", blocks, "-q", "-o", model, "--stream", "--solver", "sgd-s"
