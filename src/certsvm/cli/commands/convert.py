"""certsvm convert."""

from __future__ import annotations

import os
from dataclasses import asdict

import click

from certsvm.cli.app import BadInput, put_json, say
from certsvm.cli.inputs import kind_of, source_of
from certsvm.cli.options import (
    DataOptions,
    as_json_option,
    categorical_option,
    data_options,
    size,
)
from certsvm.cli.outputs import require_outputs
from certsvm.cli.progress import counting


@click.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, allow_dash=True))
@click.argument("output", type=click.Path(dir_okay=False))
@click.option(
    "--memory",
    callback=size,
    default="1G",
    show_default=True,
    metavar="SIZE",
    help="Memory that this process may use, and training from OUTPUT later.",
)
@click.option(
    "--block-size",
    callback=size,
    metavar="SIZE",
    help="Size of a block; training holds two in memory. By default up to 16M, as the memory "
    "allows.",
)
@click.option(
    "--keep-order",
    is_flag=True,
    help="Do not shuffle the rows. Training needs a random order.",
)
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    help="Seed of the order; 0 by default.",
)
@data_options
@categorical_option
@as_json_option
@click.option("-q", "--quiet", is_flag=True, help="Show no progress and no summary.")
def command(
    file: str, output: str, memory: int, block_size: int | None, keep_order: bool,
    seed: int | None, options: DataOptions, as_json: bool, quiet: bool,
) -> None:  # fmt: skip
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

    if keep_order and seed is not None:
        raise click.UsageError("--seed does not go with --keep-order")
    kind = kind_of(file)
    if kind == "blocks":
        raise BadInput(f"{file} is an Arrow file already")
    require_outputs([file], blocks=output)
    reading = options.for_table() if kind == "table" else options.for_text()
    with counting("converting", quiet=quiet or as_json) as count:
        summary, notes = convert(
            source_of(file), output, memory=left_of(memory),
            block_bytes=block_size or block_bytes_for(memory),
            shuffle=not keep_order, seed=seed or 0, report=count,
            **{"dtype": options.dtype, **reading},
        )  # fmt: skip
    if as_json:
        put_json(asdict(summary) | {"output": output, "notes": notes})
    elif not quiet:
        for note in notes:
            say(f"{file}: {note}")
        click.echo(
            f"{output}: {summary.n_rows:,} rows, {summary.n_columns:,} columns, "
            f"{summary.n_values:,} values, {os.path.getsize(output) / 1e6:,.1f} MB"
        )
