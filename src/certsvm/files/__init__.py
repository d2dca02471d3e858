"""Files: data, models and witnesses, read and written."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from certsvm.files.block_file import BlockFile
    from certsvm.files.compressed import DamagedFileError
    from certsvm.files.conversion import convert
    from certsvm.files.liblinear import load_liblinear, save_liblinear
    from certsvm.files.libsvm import (
        LibsvmBlocks,
        LibsvmError,
        LibsvmFile,
        load_libsvm,
        read_libsvm,
        save_libsvm,
    )
    from certsvm.files.model import Model, load_witness, save_witness, witness_path
    from certsvm.files.tables import Table
    from certsvm.verification.witness import WeightsWitness, Witness

# Loaded when first used: a fit needs no file, and pyarrow takes a while to import.
_HOMES = {
    "BlockFile": "block_file",
    "DamagedFileError": "compressed",
    "LibsvmBlocks": "libsvm",
    "LibsvmError": "libsvm",
    "LibsvmFile": "libsvm",
    "Model": "model",
    "Table": "tables",
    "WeightsWitness": "model",
    "Witness": "model",
    "convert": "conversion",
    "load_liblinear": "liblinear",
    "load_libsvm": "libsvm",
    "load_witness": "model",
    "read_libsvm": "libsvm",
    "save_liblinear": "liblinear",
    "save_libsvm": "libsvm",
    "save_witness": "model",
    "witness_path": "model",
}

__all__ = [
    "BlockFile", "DamagedFileError", "LibsvmBlocks", "LibsvmError", "LibsvmFile", "Model", "Table",
    "WeightsWitness", "Witness", "convert", "load_liblinear", "load_libsvm", "load_witness",
    "read_libsvm", "save_liblinear", "save_libsvm", "save_witness", "witness_path",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
