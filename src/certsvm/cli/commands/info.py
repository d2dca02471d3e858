"""certsvm info, export and import: what is in a file, and models of liblinear."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from typing import Any

import click

from certsvm.certificates.certificate import tidy
from certsvm.cli import inputs
from certsvm.cli import options as o
from certsvm.cli.app import facts
from certsvm.cli.outputs import require_outputs


@o.command("FILE", *o.TRAINING_DATA, "as_json")
def info_command(options: o.Options, file: str) -> None:
    """Describe FILE: a model, or a data file, of which every row is read and checked."""
    if inputs.is_model(file):
        options.reading("model")
        model = inputs.load_model(file)
        told = facts(model, "parameters") | {
            "classes": model.classes.tolist(), "features": model.n_features,
            "certificates": inputs.certificates_as_json(model),
            "fingerprint": None if model.fingerprint is None else asdict(model.fingerprint),
            "certsvm": model.certsvm_version,
        }  # fmt: skip
        text = str(model)
        if model.certificates:
            text += "\nso says the file; `certsvm verify` recomputes it from the data"
        options.answer(told, text)
    options.answer(*_about_data(file, options))


def _about_data(file: str, options: o.Options) -> tuple[dict[str, Any], str]:
    import numpy as np

    rows = columns = values = 0
    classes: Counter[str] = Counter()
    kind = inputs.kind_of(file)
    kind = {"text": "libsvm text", "blocks": "converted data"}.get(kind, kind)
    reader = inputs.opened(file, options, **{"labelled": False} if kind == "embeddings" else {})
    for batch in inputs.batches_of(reader, options):
        rows += len(batch.y)
        columns = max(columns, batch.X.shape[1])
        values += batch.n_values
        labels, counts = np.unique(batch.y, return_counts=True)
        classes.update(dict(zip(map(tidy, labels.tolist()), counts.tolist(), strict=True)))
    if set(classes) == {""}:
        classes.clear()  # Embeddings without labels.
    if getattr(reader, "zero_based", False):
        kind += ", zero-based"
    columns = getattr(reader, "n_columns", columns)
    told = {"kind": kind, "rows": rows, "columns": columns, "values": values, "classes": classes}
    share = f"{100 * values / max(1, rows * columns):.3g} % of all"
    lines = [f"{kind}: {rows:,} rows, {columns:,} columns, {values:,} values ({share})"]
    lines += [f"class {name}: {count:,} rows" for name, count in classes.items()]
    return told, "\n".join(lines)


@o.command("MODEL", "OUTPUT")
def export_command(options: o.Options, model: str, output: str) -> None:
    """Write MODEL as liblinear's text to OUTPUT, for liblinear's `predict`.

    Labels must be integers. The certificates are lost.
    """
    from certsvm.files import save_liblinear

    require_outputs([model], text_model=output)
    save_liblinear(inputs.load_model(model), output)
    click.echo(f"{output}: a text model for liblinear")


@o.command("MODEL", "OUTPUT")
def import_command(options: o.Options, model: str, output: str) -> None:
    """Write MODEL, which is liblinear's text, as a certsvm model to OUTPUT.

    It predicts the same labels. It has no certificate.
    """
    from certsvm.files import load_liblinear

    require_outputs([model], model=output)
    imported = load_liblinear(model)
    imported.save(output)
    click.echo(str(imported))
