"""Model files, and data read to apply a model."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from certsvm.cli.app import BadInput
from certsvm.cli.inputs import blocks, kind_of

if TYPE_CHECKING:
    from certsvm.cli.options import DataOptions
    from certsvm.data.batch import Batch
    from certsvm.models import Model


def load_model(path: str, *, with_witness: bool = False) -> Model:
    """A model of certsvm or liblinear, optionally with the witness beside it, if there is one."""
    from certsvm.models import Model, load_liblinear, witness_path
    from certsvm.storage.container import is_container

    with open(path, "rb") as file:
        start = file.read(64)
    if start.startswith(b"solver_type"):
        return load_liblinear(path)
    if not is_container(start):
        raise BadInput(f"{path} is not a model. (MODEL comes first, then FILE.)")
    return Model.load(path, witness=with_witness and Path(witness_path(path)).exists())


def blocks_for(model: Model, path: str, options: DataOptions) -> Iterator[Batch]:
    """A data file in batches with the model's columns.

    Text is zero- or one-based as in training, unless the options say otherwise.
    """
    zero_based = model.parameters.get("zero_based")
    if options.zero_based is None and isinstance(zero_based, bool) and kind_of(path) == "text":
        options = replace(options, zero_based=zero_based)
    return blocks(path, options, model.n_features, model.feature_names)


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
