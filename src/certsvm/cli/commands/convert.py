"""certsvm convert."""

from __future__ import annotations

import os
from dataclasses import asdict

import click

from certsvm.cli import options as o
from certsvm.cli.app import BadInput, put_json
from certsvm.cli.compilation import watch_compilation
from certsvm.cli.inputs import kind_of, say_notes, source_of
from certsvm.cli.outputs import require_outputs
from certsvm.cli.progress import live_line


@click.command()
@o.file_argument("file")
@click.argument("output", type=o.OUTPUT_FILE)
@o.shared(
    click.option("--memory", callback=o.size, default="1G", show_default=True, metavar="SIZE",
                 help="Memory that this process may use, and training from OUTPUT later."),
    click.option("--block-size", callback=o.size, metavar="SIZE",
                 help="Size of a block; training holds two in memory. By default up to 16M, as "
                      "the memory allows."),
    click.option("--keep-order", is_flag=True,
                 help="Do not shuffle the rows. Training needs a random order."),
    click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True,
                 help="Seed of the order."),
    *o.TRAINING_DATA, *o.OUTPUT,
)  # fmt: skip
def command(
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
    if kind == "text":
        watch_compilation(quiet=options.silent)
    with live_line("converting", quiet=options.silent) as show:
        summary, notes = convert(
            source_of(file), output, memory=left_of(memory),
            block_bytes=block_size or block_bytes_for(memory), shuffle=not keep_order,
            seed=options.seed, report=lambda what, n_rows: show(f"{n_rows:,} rows {what}"),
            dtype=options.dtype, **options.reading(kind),
        )  # fmt: skip
    if options.as_json:
        put_json(asdict(summary) | {"output": output, "notes": notes})
    elif not options.quiet:
        say_notes(file, notes)
        click.echo(
            f"{output}: {summary.n_rows:,} rows, {summary.n_columns:,} columns, "
            f"{summary.n_values:,} values, {os.path.getsize(output) / 1e6:,.1f} MB"
        )
