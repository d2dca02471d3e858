"""Model files."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from certsvm.cli.app import BadInput

if TYPE_CHECKING:
    from certsvm.files import Model


_LIBLINEAR = b"solver_type"


def load_model(path: str, data: str | None = None, *, with_witness: bool = False) -> Model:
    """A model of certsvm or liblinear, optionally with the witness beside it, if there is one.

    ``data`` is the other file of the command, in case that the two were swapped.
    """
    from certsvm.files import Model, load_liblinear, witness_path
    from certsvm.files.container import is_container

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
