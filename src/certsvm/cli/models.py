"""Model files as commands see them."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from certsvm.cli.app import BadInput

if TYPE_CHECKING:
    from certsvm.cli.options import DataOptions
    from certsvm.models import Model


def load_model(path: str, *, with_witness: bool = False) -> Model:
    """A model of ours, with its witness if there is one beside it, or liblinear's text."""
    from certsvm.models import Model, load_liblinear, witness_path
    from certsvm.storage.container import is_container

    with open(path, "rb") as file:
        start = file.read(64)
    if start.startswith(b"solver_type"):
        return load_liblinear(path)
    if not is_container(start):
        raise BadInput(f"{path} is not a model. (MODEL comes first, then FILE.)")
    return Model.load(path, witness=with_witness and Path(witness_path(path)).exists())


def options_like_training(options: DataOptions, model: Model) -> DataOptions:
    """What is not said about a text file is taken to be as in training."""
    zero_based = model.parameters.get("zero_based")
    if options.zero_based is None and isinstance(zero_based, bool):
        return replace(options, zero_based=zero_based)
    return options


def certificates_as_json(model: Model) -> list[dict[str, Any]]:
    """What is proved, a dict for each problem."""
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
