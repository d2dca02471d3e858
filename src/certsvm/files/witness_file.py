"""Files of witnesses."""

from __future__ import annotations

import os
from dataclasses import asdict, fields
from typing import NamedTuple

from certsvm.files.container import (
    ModelFileError,
    kind_of_container,
    read_container,
    write_container,
)
from certsvm.verification.fingerprint import Fingerprint
from certsvm.verification.witness import WeightsWitness, Witness

KIND = "witness"


class WitnessFile(NamedTuple):
    """The content of a witness file.

    Attributes
    ----------
    witness : Witness or WeightsWitness
        The witness.
    fingerprint : Fingerprint
        Fingerprint of the training data.
    model : str
        Digest of the model; empty if unknown.
    """

    witness: Witness | WeightsWitness
    fingerprint: Fingerprint
    model: str


def save_witness(
    path: str | os.PathLike[str],
    witness: Witness | WeightsWitness,
    fingerprint: Fingerprint,
    model: str = "",
) -> None:
    """Write a witness atomically.

    Parameters
    ----------
    path : str or path-like
        The file to write.
    witness : Witness or WeightsWitness
        The witness.
    fingerprint : Fingerprint
        Fingerprint of the training data.
    model : str, default=""
        Digest of the model.
    """
    arrays = {field.name: getattr(witness, field.name) for field in fields(witness)}
    content = {"form": witness.form, "fingerprint": asdict(fingerprint), "model": model}
    write_container(path, KIND, content, arrays)


def load_witness(path: str | os.PathLike[str]) -> WitnessFile:
    """Read a witness file; raises ``ModelFileError`` if it is not one, or damaged."""
    container = read_container(path, KIND)
    content, forms = container.content, {kind.form: kind for kind in (Witness, WeightsWitness)}
    try:
        kind: type[Witness | WeightsWitness] = forms[content["form"]]
        container.require_only(
            content={"form", "fingerprint", "model"}, arrays={field.name for field in fields(kind)}
        )
        fingerprint, model = Fingerprint(**content["fingerprint"]), content["model"]
        if not isinstance(model, str):
            raise ValueError(f"the digest of a model cannot be {model!r}")
        return WitnessFile(kind(**container.arrays), fingerprint, model)
    except (KeyError, TypeError, ValueError) as error:
        raise ModelFileError(f"{os.fspath(path)} holds no valid witness: {error}") from error


def is_witness(path: str | os.PathLike[str]) -> bool:
    """Whether a file begins like a witness."""
    if not os.path.isfile(path):
        return False
    with open(path, "rb") as file:
        return kind_of_container(file.read(128)) == KIND
