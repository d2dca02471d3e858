"""certsvm scale."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import click

from certsvm.cli import options as o
from certsvm.cli.app import BadInput
from certsvm.cli.inputs import kind_of, load
from certsvm.cli.outputs import require_outputs


@click.command()
@o.file_argument("file")
@click.argument("output", type=o.OUTPUT_FILE)
@o.shared(
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
def command(
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
            more = {"features": known.features, "usual_label": known.origin.get("label")}
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
