"""Reading and writing data files."""

from certsvm.data.compressed import DamagedFileError
from certsvm.data.libsvm import (
    LibsvmBlock,
    LibsvmBlocks,
    LibsvmError,
    LibsvmFile,
    load_libsvm,
    read_libsvm,
    save_libsvm,
)

__all__ = [
    "DamagedFileError",
    "LibsvmBlock",
    "LibsvmBlocks",
    "LibsvmError",
    "LibsvmFile",
    "load_libsvm",
    "read_libsvm",
    "save_libsvm",
]
