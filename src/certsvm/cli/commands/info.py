"""certsvm info."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, replace
from typing import Any

import click

from certsvm.certificates.certificate import tidy
from certsvm.cli.app import put_json
from certsvm.cli.inputs import blocks, kind_of
from certsvm.cli.models import certificates_as_json, is_model, load_model
from certsvm.cli.options import JSON, TRAINING_DATA, Options, file_argument, shared


@click.command()
@file_argument("file", stdin=False)
@shared(*TRAINING_DATA, JSON)
def command(options: Options, file: str) -> None:
    """Describe FILE: a model, or a data file, of which every row is read and checked."""
    if is_model(file):
        options.refuse_for_data("data files")
        model = load_model(file)
        if options.as_json:
            put_json({
                "classes": model.classes.tolist(),
                "features": model.n_features,
                "certificates": certificates_as_json(model),
                "parameters": model.parameters,
                "fingerprint": None if model.fingerprint is None else asdict(model.fingerprint),
                "certsvm": model.certsvm_version,
            })  # fmt: skip
            return
        click.echo(str(model))
        if model.certificates:
            click.echo("so says the file; `certsvm verify` recomputes it from the data")
        return
    data = _facts_of_data(file, options)
    if options.as_json:
        put_json(data)
        return
    density = data["values"] / max(1, data["rows"] * data["columns"])
    click.echo(
        f"{data['kind']}: {data['rows']:,} rows, {data['columns']:,} columns, "
        f"{data['values']:,} values ({100 * density:.3g} % of all)"
    )
    for name, count in data["classes"].items():
        click.echo(f"class {name}: {count:,} rows")


def _facts_of_data(file: str, options: Options) -> dict[str, Any]:
    import numpy as np

    rows = columns = values = 0
    classes: Counter[str] = Counter()
    kind = {"text": "libsvm text", "table": "table", "blocks": "converted data"}[kind_of(file)]
    if kind == "libsvm text" and options.zero_based is None:
        from certsvm.files.libsvm import LibsvmBlocks

        # Only the whole text shows whether it is zero-based.
        text = LibsvmBlocks(file, **options.for_text())
        for _ in text:
            pass
        options = replace(options, zero_based=bool(text.zero_based))
    for batch in blocks(file, options):
        rows += len(batch.y)
        columns = max(columns, batch.X.shape[1])
        values += batch.n_values
        labels, counts = np.unique(batch.y, return_counts=True)
        classes.update(dict(zip(map(tidy, labels.tolist()), counts.tolist(), strict=True)))
    return {
        "kind": kind + (", zero-based" if options.zero_based else ""),
        "rows": rows, "columns": columns, "values": values, "classes": dict(classes),
    }  # fmt: skip
