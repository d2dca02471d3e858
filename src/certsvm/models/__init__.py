"""Models in files: saved, loaded, verified later and elsewhere, without training anything."""

from certsvm.models.liblinear import load_liblinear, save_liblinear
from certsvm.models.model import Model, witness_path
from certsvm.models.witness import WeightsWitness, Witness, WitnessFile, load_witness, save_witness
from certsvm.storage.atomic import WriteError, atomic_write
from certsvm.storage.container import Container, ModelFileError, read_container, write_container
from certsvm.storage.fingerprint import Fingerprint, FingerprintBuilder

__all__ = [
    "Container",
    "Fingerprint",
    "FingerprintBuilder",
    "Model",
    "ModelFileError",
    "WeightsWitness",
    "Witness",
    "WitnessFile",
    "WriteError",
    "atomic_write",
    "load_liblinear",
    "load_witness",
    "read_container",
    "save_liblinear",
    "save_witness",
    "witness_path",
    "write_container",
]
