"""Models and witnesses, and their files; this package does not train."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from certsvm.models.liblinear import load_liblinear, save_liblinear
    from certsvm.models.model import Model, witness_path
    from certsvm.verification.witness import (
        WeightsWitness,
        Witness,
        WitnessFile,
        load_witness,
        save_witness,
    )

# Loaded when first used: a fit needs no model file.
_HOMES = {
    "Model": "certsvm.models.model",
    "WeightsWitness": "certsvm.verification.witness",
    "Witness": "certsvm.verification.witness",
    "WitnessFile": "certsvm.verification.witness",
    "load_liblinear": "certsvm.models.liblinear",
    "load_witness": "certsvm.verification.witness",
    "save_liblinear": "certsvm.models.liblinear",
    "save_witness": "certsvm.verification.witness",
    "witness_path": "certsvm.models.model",
}

__all__ = [
    "Model",
    "WeightsWitness",
    "Witness",
    "WitnessFile",
    "load_liblinear",
    "load_witness",
    "save_liblinear",
    "save_witness",
    "witness_path",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
