"""Readers and a writer for files in the format of libsvm and SVMlight.

Text is cut at line ends into pieces, which threads parse straight into arrays. The whole text is
never in memory.
"""

from certsvm.files.libsvm.errors import LibsvmError
from certsvm.files.libsvm.reader import LibsvmBlocks, LibsvmFile, load_libsvm, read_libsvm
from certsvm.files.libsvm.writer import save_libsvm

__all__ = [
    "LibsvmBlocks",
    "LibsvmError",
    "LibsvmFile",
    "load_libsvm",
    "read_libsvm",
    "save_libsvm",
]
