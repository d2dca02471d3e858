"""Files in the format of libsvm and SVMlight: read fast, exactly and strictly, and written.

Text is cut at line ends into pieces, which threads parse straight into arrays. A plain file is read
a piece at a time (``plain_file``), anything else from front to back (``texts``); the whole text is
never in memory.
"""

from certsvm.data.libsvm.blocks import LibsvmBlock, LibsvmBlocks
from certsvm.data.libsvm.errors import LibsvmError
from certsvm.data.libsvm.reader import LibsvmFile, load_libsvm, read_libsvm
from certsvm.data.libsvm.writer import save_libsvm

__all__ = [
    "LibsvmBlock",
    "LibsvmBlocks",
    "LibsvmError",
    "LibsvmFile",
    "load_libsvm",
    "read_libsvm",
    "save_libsvm",
]
