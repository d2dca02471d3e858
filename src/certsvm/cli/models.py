"""Model files."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from certsvm.cli.app import BadInput, facts

if TYPE_CHECKING:
    from certsvm.files import Model


def load_model(path: str, data: str | None = None, *, with_witness: bool = False) -> Model:
    """A model of certsvm or liblinear, optionally with the witness beside it, if there is one.

    ``data`` is the other file of the command, in case that the two were swapped.
    """
    from certsvm.files import Model, load_liblinear, witness_path

    if not is_model(path):
        swapped = data is not None and data != "-" and is_model(data)
        what = f", and {data} is one:" if swapped else ". `certsvm train` makes one."
        raise BadInput(f"{path} is not a model{what} MODEL comes first, then FILE.")
    if _is_text(path):
        return load_liblinear(path)
    return Model.load(path, witness=with_witness and Path(witness_path(path)).exists())


def is_model(path: str) -> bool:
    """Whether a file is a model of certsvm or liblinear, by its first bytes."""
    from certsvm.files.container import is_container

    return _is_text(path) or is_container(_start(path))


def _is_text(path: str) -> bool:
    return _start(path).startswith(b"solver_type")


def _start(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read(64)


def certificates_as_json(model: Model) -> list[dict[str, Any]]:
    """The certificate of each problem, as a dict."""
    return [
        {"class": label, **asdict(certificate)} | facts(certificate, "relative_gap proved_gap met")
        for label, certificate in zip(positive_classes(model), model.certificates, strict=False)
    ]


def positive_classes(model: Model) -> list[Any]:
    """The class on the positive side of each problem."""
    classes: list[Any] = model.classes.tolist()
    return classes[1:] if model.n_problems == 1 else classes
