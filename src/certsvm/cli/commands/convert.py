"""certsvm convert and scale: data files to train from."""

from __future__ import annotations

import os
from dataclasses import asdict, replace
from typing import Any

import click

from certsvm.cli import options as o
from certsvm.cli.app import BadInput
from certsvm.cli.inputs import kind_of, load, source_of, tell
from certsvm.cli.outputs import require_outputs
from certsvm.cli.progress import live_lines, watch_compilation


@o.command(
    "FILE", "OUTPUT",
    click.option("--memory", type=o.size, default="1G", show_default=True, metavar="SIZE",
                 help="Memory that this process may use, and training from OUTPUT later."),
    click.option("--block-size", type=o.size, metavar="SIZE",
                 help="Size of a block; training holds two in memory. By default up to 16M."),
    click.option("--keep-order", is_flag=True,
                 help="Do not shuffle the rows. Training needs a random order."),
    "seed", *o.TRAINING_DATA, *o.OUTPUT,
)  # fmt: skip
def convert_command(
    options: o.Options, file: str, output: str, block_size: int | None, keep_order: bool
) -> None:
    """Convert FILE to OUTPUT, a file to train from in bounded memory.

    FILE is libsvm text ("-" is standard input), CSV, TSV or Parquet, of any size. OUTPUT is an
    Arrow file of blocks with checksums, with the rows in random order. A temporary folder beside
    OUTPUT takes as much space again.

    \b
    certsvm convert huge.txt.gz huge.arrow --memory 2G
    certsvm convert sales.parquet sales.arrow --label churned
    """  # noqa: D301
    from certsvm.files.conversion import convert
    from certsvm.files.memory import block_bytes_for, left_of

    o.check_together({"keep_order": ["seed"]}, {})
    kind, memory = kind_of(file), options.memory or 0
    if kind in ("blocks", "embeddings"):
        what = "is an Arrow file already" if kind == "blocks" else "holds embeddings: train on it"
        raise BadInput(f"{file} {what}")
    require_outputs([file], converted_file=output)
    watch_compilation(quiet=options.silent)
    with live_lines(quiet=options.silent) as begun:
        show = begun("converting")
        summary, notes = convert(
            source_of(file), output, memory=left_of(memory),
            block_bytes=block_size or block_bytes_for(memory), shuffle=not keep_order,
            seed=options.seed, report=lambda what, n_rows: show(f"{n_rows:,} rows {what}"),
            dtype=options.dtype, **options.reading(kind),
        )  # fmt: skip
    if not options.silent:
        tell(file, *notes)
    told = asdict(summary) | {"output": output, "notes": notes}
    size = f"{summary.n_values:,} values, {os.path.getsize(output) / 1e6:,.1f} MB"
    text = f"{output}: {summary.n_rows:,} rows, {summary.n_columns:,} columns, {size}"
    options.answer(told, text)


@o.command(
    "FILE", "OUTPUT",
    click.option("--standardize", is_flag=True,
                 help="Divide each column by its standard deviation; of a table without one-hot "
                      "columns, subtract its mean before."),
    click.option("-s", "--save", "saved", metavar="SCALING", type=o.OUTPUT_FILE,
                 help="Keep the numbers in this file."),
    click.option("-r", "--restore", "restored", metavar="SCALING",
                 type=click.Path(exists=True, dir_okay=False),
                 help="Scale as this file says, which --save wrote."),
    *o.TRAINING_DATA, "quiet",
)  # fmt: skip
def scale_command(
    options: o.Options, file: str, output: str, standardize: bool, saved: str | None,
    restored: str | None,
) -> None:  # fmt: skip
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
    from certsvm.files import save_libsvm
    from certsvm.files.scaling import Scaling, save_table

    restoring = ("standardize", "saved", "drop", "columns", "categorical")
    o.check_together({"restored": restoring}, {})
    kind = kind_of(file)
    if kind in ("blocks", "embeddings"):
        raise BadInput(f"{file} is not libsvm text or a table: scale the data it was made from")
    require_outputs([file, restored], **{"scaled file": output}, scaling=saved)
    known = None if restored is None else Scaling.load(restored)
    more: dict[str, Any] = {}
    if known is not None:
        if (known.names is not None) != (kind == "table"):
            raise BadInput(f"{restored} is of {'text' if kind == 'table' else 'a table'}")
        # Rows are read like those of training.
        if kind == "table":
            from certsvm.files.columns import Features

            features = Features.from_names(known.names or [], known.origin.get("one_hot"))
            more = {"features": features, "usual_label": known.origin.get("label")}
        elif options.zero_based is None:
            options = replace(options, zero_based=known.origin.get("zero_based") is True)
    rows, facts = load(file, options, **more)
    names, origin = facts.get("feature_names"), facts["origin"]
    scaling = known or Scaling.of(rows.X, names, origin, standardize=standardize)
    rows = rows._replace(X=scaling.apply(rows.X))
    if names is None:
        save_libsvm(output, rows.X, rows.y, zero_based=origin["zero_based"])
    else:
        save_table(output, rows, names, label=origin.get("label"), weight=options.weight)
    if saved is not None:
        scaling.save(saved)
    if not options.quiet:
        click.echo(f"{output}: {len(rows.y):,} rows, {scaling.factor.size:,} columns scaled")
