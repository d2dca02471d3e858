"""certsvm info."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

import click

from certsvm.certificates.certificate import tidy
from certsvm.cli.app import put_json
from certsvm.cli.inputs import blocks, kind_of
from certsvm.cli.models import certificates_as_json, load_model
from certsvm.cli.options import (
    DataOptions,
    as_json_option,
    categorical_option,
    data_options,
)

if TYPE_CHECKING:
    from certsvm.files import Model


@click.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False))
@data_options
@categorical_option
@as_json_option
def command(file: str, options: DataOptions, as_json: bool) -> None:
    """Describe FILE: a model, or a data file, of which every row is read and checked."""
    from certsvm.files.container import is_container

    with open(file, "rb") as opened:
        start = opened.read(64)
    if is_container(start) or start.startswith(b"solver_type"):
        options.for_model()
        model = load_model(file)
        if as_json:
            put_json(_model_as_json(model))
        else:
            click.echo(str(model))
            if model.certificates:
                click.echo("so says the file; `certsvm verify` recomputes it from the data")
        return
    facts = _data_facts(file, options)
    if as_json:
        put_json(facts)
        return
    density = facts["values"] / max(1, facts["rows"] * facts["columns"])
    click.echo(
        f"{facts['kind']}: {facts['rows']:,} rows, {facts['columns']:,} columns, "
        f"{facts['values']:,} values ({100 * density:.3g} % of all)"
    )
    for name, count in facts["classes"].items():
        click.echo(f"class {name}: {count:,} rows")


def _model_as_json(model: Model) -> dict[str, Any]:
    return {
        "classes": model.classes.tolist(),
        "features": model.n_features,
        "certificates": certificates_as_json(model),
        "parameters": model.parameters,
        "fingerprint": None if model.fingerprint is None else asdict(model.fingerprint),
        "certsvm": model.certsvm_version,
    }


def _is_zero_based(file: str, options: DataOptions) -> bool:
    from certsvm.files.libsvm import LibsvmBlocks

    text = LibsvmBlocks(file, **options.for_text())
    for _ in text:
        pass
    return bool(text.zero_based)


def _data_facts(file: str, options: DataOptions) -> dict[str, Any]:
    import numpy as np

    rows = columns = values = 0
    classes: dict[str, int] = {}
    kind = kind_of(file)
    if kind == "text" and options.zero_based is None:
        # Only the whole text shows whether it is zero-based.
        options = replace(options, zero_based=_is_zero_based(file, options))
    for batch in blocks(file, options):
        rows += len(batch.y)
        columns = max(columns, batch.X.shape[1])
        values += batch.n_values
        labels, counts = np.unique(batch.y, return_counts=True)
        for name, count in zip(labels.tolist(), counts.tolist(), strict=True):
            classes[tidy(name)] = classes.get(tidy(name), 0) + count
    names = {"text": "libsvm text", "table": "table", "blocks": "converted data"}
    return {
        "kind": names[kind] + (", zero-based" if options.zero_based else ""),
        "rows": rows,
        "columns": columns,
        "values": values,
        "classes": classes,
    }
