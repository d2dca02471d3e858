"""certsvm info."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from typing import Any

import click

from certsvm.certificates.certificate import tidy
from certsvm.cli.app import put_json
from certsvm.cli.inputs import batches_of, kind_of, opened
from certsvm.cli.models import certificates_as_json, is_model, load_model
from certsvm.cli.options import TRAINING_DATA, Options, file_argument, shared


@click.command()
@file_argument("file", stdin=False)
@shared(*TRAINING_DATA, "as_json")
def command(options: Options, file: str) -> None:
    """Describe FILE: a model, or a data file, of which every row is read and checked."""
    if is_model(file):
        options.reading("model")
        model = load_model(file)
        content = {
            "classes": model.classes.tolist(),
            "features": model.n_features,
            "certificates": certificates_as_json(model),
            "parameters": model.parameters,
            "fingerprint": None if model.fingerprint is None else asdict(model.fingerprint),
            "certsvm": model.certsvm_version,
        }
        text = str(model)
        if model.certificates:
            text += "\nso says the file; `certsvm verify` recomputes it from the data"
    else:
        content, text = _about_data(file, options)
    if options.as_json:
        put_json(content)
    else:
        click.echo(text)


def _about_data(file: str, options: Options) -> tuple[dict[str, Any], str]:
    import numpy as np

    rows = columns = values = 0
    classes: Counter[str] = Counter()
    kinds = {"text": "libsvm text", "blocks": "converted data"}
    kind = kinds.get(kind_of(file), kind_of(file))
    reader = opened(file, options)
    for batch in batches_of(reader, options):
        rows += len(batch.y)
        columns = max(columns, batch.X.shape[1])
        values += batch.n_values
        labels, counts = np.unique(batch.y, return_counts=True)
        classes.update(dict(zip(map(tidy, labels.tolist()), counts.tolist(), strict=True)))
    if getattr(reader, "zero_based", False):
        kind += ", zero-based"
    columns = getattr(reader, "n_columns", columns)
    content = {
        "kind": kind, "rows": rows, "columns": columns, "values": values, "classes": classes
    }  # fmt: skip
    density = values / max(1, rows * columns)
    lines = [
        f"{kind}: {rows:,} rows, {columns:,} columns, {values:,} values "
        f"({100 * density:.3g} % of all)",
        *(f"class {name}: {count:,} rows" for name, count in classes.items()),
    ]
    return content, "\n".join(lines)
