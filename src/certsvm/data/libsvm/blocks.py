"""A file, some rows at a time, in bounded memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certsvm.data.compressed import open_source
from certsvm.data.libsvm.lines import whole_lines
from certsvm.data.libsvm.parser import Parser
from certsvm.data.libsvm.pieces import cut
from certsvm.data.libsvm.settings import Settings, is_count
from certsvm.data.libsvm.sources import Source, opened
from certsvm.data.libsvm.totals import Totals
from certsvm.data.libsvm.workers import workers_for


@dataclass(frozen=True)
class LibsvmBlock:
    """Some consecutive rows of a file.

    Attributes
    ----------
    values, indices, indptr : ndarray
        The rows as in a CSR matrix, but with indices as they are in the file.
    labels : ndarray
        The labels.
    first_row : int
        How many rows come before these.
    """

    values: NDArray[np.floating[Any]]
    indices: NDArray[np.signedinteger[Any]]
    indptr: NDArray[np.int64]
    labels: NDArray[np.float64]
    first_row: int


class LibsvmBlocks:
    r"""A file, some rows at a time; a loop over it reads the file.

    The text is cut at line ends, every ``block_bytes`` or a little less. Memory is bounded by
    that, except that a line longer than a block makes the buffer grow until the line fits.

    Parameters
    ----------
    source : path or binary file object
        A path can be read again by another loop, a file object cannot.
    block_bytes : int, default=16 MiB
        Length of the text of a block.
    n_features, zero_based, dtype, n_jobs
        As for :func:`load_libsvm`. They decide what is an error, but indices are given as they
        are in the file.
    name : str, default=None
        What messages call the source; None takes its path, or the name that a file object has.

    Attributes
    ----------
    n_rows, n_values : int
        How many were read so far.
    smallest_index, largest_index : int or None
        Of those read so far, as in the file; None if there were no values.
    zero_based : bool
        Whether indices count from zero; known after the loop.
    notes : list of str
        What a reader may want to know; known after the loop.

    Examples
    --------
    >>> import io
    >>> blocks = LibsvmBlocks(io.BytesIO(b"1 2:0.5\n-1 7:3\n"), block_bytes=8)
    >>> for block in blocks:
    ...     print(block.labels, block.indices, block.values)
    [1.] [2] [0.5]
    [-1.] [7] [3.]
    >>> blocks.n_rows, blocks.largest_index
    (2, 7)
    """

    def __init__(
        self,
        source: Source,
        block_bytes: int = 1 << 24,
        *,
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
        self._settings = Settings.checked(source, dtype, n_features, zero_based, n_jobs, name)
        self._totals = Totals()
        self.zero_based = bool(zero_based)

    @property
    def n_rows(self) -> int:
        """The number of rows so far."""
        return self._totals.rows

    @property
    def n_values(self) -> int:
        """The number of values so far."""
        return self._totals.values

    @property
    def notes(self) -> list[str]:
        """What was noticed; known after the loop."""
        return self._totals.notes

    @property
    def smallest_index(self) -> int | None:
        """The smallest index so far."""
        return self._totals.smallest_index

    @property
    def largest_index(self) -> int | None:
        """The largest index so far."""
        return self._totals.largest_index

    def __iter__(self) -> Iterator[LibsvmBlock]:
        n_jobs = self._settings.n_jobs
        with opened(self._source) as file, workers_for(n_jobs) as workers:
            parser = Parser(self._settings, 0, workers)
            self._totals = parser.totals
            source = open_source(file, self._settings.file)
            for text, end in whole_lines(source, self._block_bytes):
                first_row = parser.totals.rows
                arrays = parser.parse(cut(text, end, n_jobs))
                if arrays.labels.size:
                    yield LibsvmBlock(
                        arrays.values, arrays.indices, arrays.indptr, arrays.labels, first_row
                    )
            self.zero_based = parser.totals.finish(self._settings)
