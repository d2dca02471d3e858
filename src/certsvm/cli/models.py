"""Model files, and data read to apply a model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from certsvm.cli.app import BadInput, say
from certsvm.cli.inputs import blocks, kind_of, table_blocks
from certsvm.cli.matching import FittedColumns, features_of

if TYPE_CHECKING:
    from certsvm.cli.options import DataOptions
    from certsvm.data.batch import Batch
    from certsvm.models import Model


_LIBLINEAR = b"solver_type"


def load_model(path: str, data: str | None = None, *, with_witness: bool = False) -> Model:
    """A model of certsvm or liblinear, optionally with the witness beside it, if there is one.

    ``data`` is the other file of the command, in case that the two were swapped.
    """
    from certsvm.models import Model, load_liblinear, witness_path
    from certsvm.storage.container import is_container

    start = _start(path)
    if start.startswith(_LIBLINEAR):
        return load_liblinear(path)
    if not is_container(start):
        if data not in (None, "-"):
            other = _start(data)
            if is_container(other) or other.startswith(_LIBLINEAR):
                raise BadInput(
                    f"{path} is not a model, and {data} is one: MODEL comes first, then FILE"
                )
        raise BadInput(
            f"{path} is not a model. `certsvm train` makes one. MODEL comes first, then FILE."
        )
    return Model.load(path, witness=with_witness and Path(witness_path(path)).exists())


def _start(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read(64)


def blocks_for(
    model: Model, path: str, options: DataOptions, *, exact: bool = False
) -> Iterator[Batch]:
    """A data file in batches with the model's columns.

    Tables are matched with the model by name, or by the number of columns if the model has no
    names. Text is zero- or one-based as in training, unless the options say otherwise. Features of
    text that the model has not are left out, as are values of one-hot columns, and their number is
    said at the end; if the file must be ``exact``, they are an error.
    """
    kind = kind_of(path)
    if kind == "table":
        yield from _table_blocks(model, path, options, exact=exact)
        return
    zero_based = model.parameters.get("zero_based")
    if kind == "text" and options.zero_based is None and isinstance(zero_based, bool):
        options = replace(options, zero_based=zero_based)
    fitted = FittedColumns(model, path, kind, first=int(not options.zero_based))
    for batch in blocks(path, options):
        rows = fitted(batch)
        if exact:
            fitted.refuse_unseen()
        yield rows
    fitted.say_unseen()


def _table_blocks(model: Model, path: str, options: DataOptions, *, exact: bool) -> Iterator[Batch]:
    from certsvm.data.tables import Table

    features = features_of(model)
    # Without names, the number of columns has to be right.
    width = model.n_features if features is None else None
    table = Table(path, features=features, n_features=width, **options.for_table())
    for batch in table_blocks(table, options):
        if exact and table.unseen:
            raise BadInput(
                f"{path} {_listed(table.unseen)}: it is not what the model was trained on"
            )
        yield batch
    if table.unseen:
        say(f"{path} {_listed(table.unseen)}; they count as none of its values")


def _listed(unseen: Mapping[str, int]) -> str:
    counts = [f"{count} in column {name!r}" for name, count in unseen.items()]
    return f"has values that the model has not seen ({', '.join(counts)})"


def certificates_as_json(model: Model) -> list[dict[str, Any]]:
    """The certificate of each problem, as a dict."""
    positive = model.classes[1:] if model.n_problems == 1 else model.classes
    return [
        {
            "class": label,
            **asdict(certificate),
            "relative_gap": certificate.relative_gap,
            "proved_gap": certificate.proved_gap,
            "met": certificate.met,
        }
        for label, certificate in zip(positive.tolist(), model.certificates, strict=False)
    ]
