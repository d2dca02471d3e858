"""Models and witnesses, and their files; this package does not train."""

from certsvm.models.liblinear import load_liblinear, save_liblinear
from certsvm.models.model import Model, witness_path
from certsvm.verification.witness import (
    WeightsWitness,
    Witness,
    WitnessFile,
    load_witness,
    save_witness,
)

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
