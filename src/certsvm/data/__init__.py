"""Reading and writing data files."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from certsvm.data.compressed import DamagedFileError
from certsvm.data.libsvm import (
    LibsvmBlocks,
    LibsvmError,
    LibsvmFile,
    load_libsvm,
    read_libsvm,
    save_libsvm,
)

if TYPE_CHECKING:
    from certsvm.data.block_file import BlockFile
    from certsvm.data.conversion import convert
    from certsvm.data.tables import Table


def __getattr__(name: str) -> Any:
    # These need pyarrow, which takes a while to import, and may not be there.
    homes = {
        "BlockFile": "certsvm.data.block_file",
        "Table": "certsvm.data.tables",
        "convert": "certsvm.data.conversion",
    }
    if name not in homes:
        raise AttributeError(f"module 'certsvm.data' has no attribute {name!r}")
    return getattr(import_module(homes[name]), name)


__all__ = [
    "BlockFile",
    "DamagedFileError",
    "LibsvmBlocks",
    "LibsvmError",
    "LibsvmFile",
    "Table",
    "convert",
    "load_libsvm",
    "read_libsvm",
    "save_libsvm",
]
