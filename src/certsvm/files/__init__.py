"""Files: data, models and witnesses, read and written."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from certsvm.files.block_file import BlockFile
    from certsvm.files.compressed import DamagedFileError
    from certsvm.files.conversion import convert
    from certsvm.files.liblinear import load_liblinear, save_liblinear
    from certsvm.files.libsvm import LibsvmBlocks, LibsvmFile, load_libsvm, read_libsvm, save_libsvm
    from certsvm.files.libsvm_parser import LibsvmError
    from certsvm.files.model import Model, load_witness, save_witness, witness_path
    from certsvm.files.tables import Table
    from certsvm.verification.evidence import Witness

__all__ = [
    "BlockFile", "DamagedFileError", "LibsvmBlocks", "LibsvmError", "LibsvmFile", "Model", "Table",
    "Witness", "convert", "load_liblinear", "load_libsvm", "load_witness",
    "read_libsvm", "save_liblinear", "save_libsvm", "save_witness", "witness_path",
]  # fmt: skip

# Loaded when first used: a fit needs no file, and pyarrow takes a while to import.
_MODULES = (
    "model", "compressed", "liblinear", "libsvm_parser", "libsvm", "block_file", "tables",
    "conversion",
)  # fmt: skip


def __getattr__(name: str) -> Any:
    for module in _MODULES if name in __all__ else ():
        home = import_module(f"{__name__}.{module}")
        if hasattr(home, name):
            return getattr(home, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
