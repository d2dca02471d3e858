"""A file read in batches of rows, in bounded memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certsvm.files.batch import Batch
from certsvm.files.compressed import ByteSource, open_source
from certsvm.files.libsvm.errors import long_line
from certsvm.files.libsvm.lines import LONGEST_LINE, LongLineError, whole_lines
from certsvm.files.libsvm.options import ParseOptions, is_count
from certsvm.files.libsvm.parser import Parser, Totals
from certsvm.files.libsvm.pieces import cut
from certsvm.files.libsvm.sources import TextSource, opened
from certsvm.parallel import Team


class LibsvmBlocks:
    r"""A file read in batches of rows; a loop over it reads the file.

    The text is cut at line ends, every ``block_bytes`` or a little less. Memory is bounded by
    that, except that a line longer than a block makes the buffer grow until the line fits, or is
    longer than ``longest_line``.

    Each batch is ``(X, y, None)``. The columns of X are the indices *as they are in the file*: it
    is known only at the end whether they count from zero or from one. X is as wide as the batch
    needs.

    Parameters
    ----------
    source : path or binary file object
        A path can be read again by another loop, a file object cannot.
    block_bytes : int, default=16 MiB
        Length of the text of a batch.
    longest_line : int, default=256 MiB
        Bytes that a line may have if it is longer than a block; a longer one is an error.
    n_features : int, default=None
        Number of columns; an index beyond it is an error.
    zero_based : bool, default=None
        Whether indices count from zero; if not, an index 0 is an error.
    dtype : {float64, float32}, default=float64
        Type of the values of X.
    n_jobs : int, default=0
        Number of threads; 0 means one for each processor.
    name : str, default=None
        Name of the source in messages; by default its path, or the name of a file object.

    Attributes
    ----------
    totals : Totals
        Counts and extreme indices of the rows read so far.
    zero_based : bool
        Whether indices count from zero; known after the loop.
    notes : list of str
        Remarks for the user; known after the loop.

    Examples
    --------
    >>> import io
    >>> blocks = LibsvmBlocks(io.BytesIO(b"1 2:0.5\n-1 7:3\n"), block_bytes=8)
    >>> for X, y, _ in blocks:
    ...     print(y, X.indices, X.data)
    [1.] [2] [0.5]
    [-1.] [7] [3.]
    >>> blocks.totals.rows, blocks.totals.largest
    (2, 7)
    """

    def __init__(
        self,
        source: TextSource,
        block_bytes: int = 1 << 24,
        *,
        longest_line: int = LONGEST_LINE,
        n_features: int | None = None,
        zero_based: bool | None = None,
        dtype: Any = np.float64,
        n_jobs: int = 0,
        name: str | None = None,
    ) -> None:
        if not (is_count(block_bytes) and block_bytes > 0):
            raise ValueError(f"block_bytes must be a whole number > 0, got {block_bytes!r}")
        self._source = source
        self._block_bytes = int(block_bytes)
        self._longest_line = longest_line
        self._options = ParseOptions.checked(source, dtype, n_features, zero_based, n_jobs, name)
        self.totals = Totals()
        self.zero_based = bool(zero_based)

    @property
    def notes(self) -> list[str]:
        """Remarks for the user; known after the loop."""
        return self.totals.notes

    def __iter__(self) -> Iterator[Batch]:
        n_jobs = self._options.n_jobs
        with opened(self._source) as file, Team(n_jobs) as team:
            parser = Parser(self._options, 0, team)
            self.totals = parser.totals
            source = open_source(file, self._options.file)
            for text, end in self._whole_lines(source):
                arrays = parser.parse(cut(text, end, n_jobs))
                if arrays.labels.size:
                    width = int(arrays.indices.max(initial=-1)) + 1
                    yield Batch(arrays.matrix(width), arrays.labels)
            self.zero_based = parser.totals.finish(self._options)

    def _whole_lines(self, source: ByteSource) -> Iterator[tuple[NDArray[np.uint8], int]]:
        try:
            yield from whole_lines(source, self._block_bytes, self._longest_line)
        except LongLineError:
            raise long_line(
                self._options.file, self.totals.lines + 1,
                max(self._block_bytes, self._longest_line),
            ) from None  # fmt: skip
