"""certsvm convert, scale, compile and demo: data files to train from, and what needs no data."""

from __future__ import annotations

import contextlib
import io
import itertools
import os
import tempfile
from dataclasses import asdict, replace
from typing import Any

import click

from certsvm import files
from certsvm.cli import options as o
from certsvm.cli import say
from certsvm.cli.app import app
from certsvm.cli.files import kind_of, load, require_outputs, source_of, tell
from certsvm.cli.progress import UNKEPT, live_lines, seconds_compiled, watch_compilation

# Rows, columns, and the share of values that are not zero: each makes other kernels run.
_SHAPES = (60, 5, 0.5), (300, 80, 1.0), (300, 80, 0.1), (80, 300, 0.1)
# What uses the kernels of a kind of file.
_USES = (
    "train {data} {how}", "train {data} {how} --solver working-set", "verify model {data}",
    "train {data} {how} --solver newton", "predict model {data} -o labels",
    "convert {data} -q --memory 8G blocks", "train blocks {how}", "train blocks {how} --stream",
    "train blocks -q -o model --stream --solver sgd-s",
)  # fmt: skip


@o.command(
    "FILE", "OUTPUT", "memory", "block_size", "keep_order", "seed", *o.TRAINING_DATA, *o.OUTPUT,
    memory="1G",
)  # fmt: skip
def convert_command(options: o.Options, file: str, output: str) -> None:
    """Convert FILE to OUTPUT, a file to train from in bounded memory.

    FILE is libsvm text ("-" is standard input), CSV, TSV or Parquet, of any size. OUTPUT is an
    Arrow file of blocks with checksums, with the rows in random order. A temporary folder beside
    OUTPUT takes as much space again.

    \b
    certsvm convert huge.txt.gz huge.arrow --memory 2G
    certsvm convert sales.parquet sales.arrow --label churned
    """  # noqa: D301
    from certsvm.files.memory import block_bytes_for, left_of

    o.check_together({"keep_order": ["seed"]}, {})
    kind, memory = kind_of(file), options.memory or 0
    if kind in ("blocks", "embeddings"):
        raise ValueError(f"{file} is not libsvm text or a table: train on it as it is")
    require_outputs([file], converted_file=output)
    with live_lines(quiet=options.silent) as show:
        summary, notes = files.convert(
            source_of(file), output, memory=left_of(memory),
            block_bytes=options.block_size or block_bytes_for(memory), seed=options.seed,
            report=lambda what, n: show("converting", f"{n:,} rows {what}"), dtype=options.dtype,
            shuffle=not options.keep_order, **options.reading(kind),
        )  # fmt: skip
    if not options.silent:
        tell(file, *notes)
    answer = asdict(summary) | {"output": output, "notes": notes}
    size = f"{summary.n_values:,} values, {os.path.getsize(output) / 1e6:,.1f} MB"
    shape = f"{summary.n_rows:,} rows, {summary.n_columns:,} columns"
    options.answer(answer, f"{output}: {shape}, {size}")


@o.command("FILE", "OUTPUT", "standardize", "save", "restore", *o.TRAINING_DATA, "quiet")
def scale_command(options: o.Options, file: str, output: str) -> None:
    """Scale the columns of FILE, which training takes fewer passes for, and write them to OUTPUT.

    Each column is divided by its largest absolute value, so that it is in [-1, 1] and zeros stay
    zeros. OUTPUT is libsvm text like FILE, or of a table a table: Parquet if its name ends in
    .parquet, else CSV. Test data are scaled by the numbers of the training data (--save,
    --restore). Certificates are then about the scaled rows.

    \b
    certsvm scale train.txt train.scaled --save train.scaling
    certsvm scale test.txt test.scaled --restore train.scaling
    certsvm scale sales.csv scaled.csv --standardize --label churned --save sales.scaling
    """  # noqa: D301
    from certsvm.files.columns import Features
    from certsvm.files.scaling import Scaling, save_table

    restoring = ("standardize", "save", "drop", "columns", "categorical")
    o.check_together({"restore": restoring}, {})
    kind, restored = kind_of(file), options.restore
    if kind in ("blocks", "embeddings"):
        raise ValueError(f"{file} is not libsvm text or a table: scale the data it was made from")
    require_outputs([file, restored], **{"scaled file": output}, scaling=options.save)
    known = None if restored is None else Scaling.load(restored)
    more: dict[str, Any] = {}
    if known is not None:
        if (known.names is not None) != (kind == "table"):
            raise ValueError(f"{restored} is of {'text' if kind == 'table' else 'a table'}")
        # Rows are read like those of training.
        if kind == "table":
            features = Features.from_names(known.names or [], known.origin.get("one_hot"))
            more = {"features": features, "usual_label": known.origin.get("label")}
        elif options.zero_based is None:
            options = replace(options, zero_based=known.origin.get("zero_based") is True)
    rows, facts = load(file, options, **more)
    names, origin = facts.get("feature_names"), facts["origin"]
    scaling = known or Scaling.of(rows.X, names, origin, standardize=options.standardize)
    rows = rows._replace(X=scaling.apply(rows.X))
    if names is None:
        files.save_libsvm(output, rows.X, rows.y, zero_based=origin["zero_based"])
    else:
        save_table(output, rows, names, label=origin.get("label"), weight=options.weight)
    if options.save is not None:
        scaling.save(options.save)
    options.answer({}, f"{output}: {len(rows.y):,} rows, {scaling.factor.size:,} columns scaled")


@click.command()
def compile_command() -> None:
    """Compile the kernels that most commands need, and keep them, so that nobody has to wait.

    These are the kernels of train, predict, verify and convert for rows that are dense or sparse,
    in double or single precision, with the default solvers and both losses. Others are compiled
    when they are first used. They are kept for processors like this one in the folder that is
    printed; the environment variable NUMBA_CACHE_DIR names another.
    """
    import numpy as np

    from certsvm.files.libsvm import save_libsvm
    from certsvm.kernels.jit import kernel_folders

    if None in kernel_folders():
        raise ValueError(UNKEPT)
    say("compiling the kernels that are not kept yet; all of them take a minute or so")
    watch_compilation(quiet=True)
    rng, quiet = np.random.default_rng(0), io.StringIO()
    with (
        tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder),
        contextlib.redirect_stdout(quiet), contextlib.redirect_stderr(quiet),
    ):  # fmt: skip
        for n_rows, n_columns, density in _SHAPES:
            X = rng.standard_normal((n_rows, n_columns))
            X *= rng.random(X.shape) < density
            y = (X.sum(axis=1) + rng.standard_normal(n_rows) > 0).astype(int)
            save_libsvm("text", X, y)
            np.savetxt("t.csv", np.column_stack([X, y]), delimiter=",")
            kinds = ("text", "text --float32", "t.csv --no-header", "t.csv --no-header --float32")
            for data, loss, line in itertools.product(kinds, ("hinge", "squared_hinge"), _USES):
                how = f"-q -s {loss} -B 1 --witness -o model"
                # It may end with the exit code that the target was not met.
                with contextlib.suppress(SystemExit):
                    app.main(line.format(data=data, how=how).split(), standalone_mode=False)
    folders = filter(None, kernel_folders())
    click.echo(f"kernels are in {os.path.commonpath(folders)}; {seconds_compiled():.1f} s")


@click.command()
def demo_command() -> None:
    """Train, verify and compare on generated data: 100,000 documents, some ten seconds."""
    from certsvm.demo import main

    main()
