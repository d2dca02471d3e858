"""A whole file as a matrix.

A plain file is parsed straight into the arrays of the result; anything else (compressed files,
pipes) is taken in blocks, which are joined.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from certsvm.data.libsvm.arrays import Arrays, sums
from certsvm.data.libsvm.blocks import LibsvmBlock, LibsvmBlocks
from certsvm.data.libsvm.parser import Parser
from certsvm.data.libsvm.pieces import needs_threads
from certsvm.data.libsvm.plain_file import PlainFile, first_of_plain_file
from certsvm.data.libsvm.settings import Settings
from certsvm.data.libsvm.sources import Source, opened
from certsvm.data.libsvm.workers import workers_for


@dataclass(frozen=True)
class LibsvmFile:
    """What is in a file.

    Attributes
    ----------
    X : csr_matrix of shape (n_rows, n_features)
        Its columns count from zero.
    y : ndarray of shape (n_rows,)
        Labels.
    zero_based : bool
        Whether the indices in the file count from zero.
    notes : list of str
        What a reader may want to know: "qid ignored on 12 lines", for example.
    """

    X: Any
    y: NDArray[np.float64]
    zero_based: bool
    notes: list[str]


def read_libsvm(
    source: Source,
    *,
    n_features: int | None = None,
    zero_based: bool | None = None,
    dtype: Any = np.float64,
    n_jobs: int = 0,
) -> LibsvmFile:
    r"""Read a whole file, and say what was noticed about it.

    Parameters and errors are those of :func:`load_libsvm`.

    Examples
    --------
    >>> import io
    >>> data = read_libsvm(io.BytesIO(b"+1 qid:3 0:1.5 2:1  # a comment\n"))
    >>> data.X.toarray(), data.y, data.notes
    (array([[1.5, 0. , 1. ]]), array([1.]), ['indices count from zero', 'qid ignored on 1 line'])
    """
    settings = Settings.checked(source, dtype, n_features, zero_based, n_jobs)
    with opened(source) as file:
        first = first_of_plain_file(file, source)
        if first is not None:
            return _read_plain(file, settings, first)
        # Messages name the path, not the file that was opened for it.
        blocks = LibsvmBlocks(
            file, n_features=n_features, zero_based=zero_based, dtype=dtype, n_jobs=n_jobs,
            name=settings.file,
        )  # fmt: skip
        parts = list(blocks)
    base = int(not blocks.zero_based)
    arrays = _joined(parts)
    parts.clear()
    arrays.indices -= arrays.indices.dtype.type(base)
    return _result(arrays, settings, base, blocks.largest_index, blocks.notes)


def load_libsvm(
    path: Source,
    *,
    n_features: int | None = None,
    zero_based: bool | None = None,
    dtype: Any = np.float64,
    n_jobs: int = 0,
) -> tuple[Any, NDArray[np.float64]]:
    r"""Read a file in the format of libsvm and SVMlight.

    Lines are ``label [qid:n] index:value ... [# comment]``. Numbers are read to the nearest
    float of their type. Anything that is not in this format is an error: nothing is guessed,
    skipped or repaired.

    Parameters
    ----------
    path : path or binary file object
        Plain, or compressed with gzip, bzip2, xz or zstd.
    n_features : int, default=None
        Number of columns of X. None takes the largest index in the file.
    zero_based : bool, default=None
        Whether indices count from zero. None takes it that they do if there is an index 0.
        Say it for files that belong together, such as those for training and testing.
    dtype : {float64, float32}, default=float64
        Type of the values of X.
    n_jobs : int, default=0
        How many threads to use; 0 means as many as there are processors.

    Returns
    -------
    X : csr_matrix of shape (n_rows, n_features)
        The values; zeros that are in the file are stored.
    y : ndarray of shape (n_rows,)
        The labels, as float64.

    Raises
    ------
    LibsvmError
        If something is not in the format; it tells the line and the column.
    DamagedFileError
        If a compressed file is truncated or otherwise damaged.

    Examples
    --------
    >>> import io
    >>> X, y = load_libsvm(io.BytesIO(b"1 1:0.5 3:2\n-1 2:25e-2\n"))
    >>> X.toarray(), y
    (array([[0.5 , 0.  , 2.  ],
           [0.  , 0.25, 0.  ]]), array([ 1., -1.]))
    """
    data = read_libsvm(
        path, n_features=n_features, zero_based=zero_based, dtype=dtype, n_jobs=n_jobs
    )
    return data.X, data.y


def _read_plain(file: Any, settings: Settings, first: int) -> LibsvmFile:
    # Counting from one is by far the most usual, so it is assumed until known otherwise.
    base = int(not settings.zero_based)
    plain = PlainFile(file, settings)
    with workers_for(settings.n_jobs if needs_threads(plain.size) else 1) as workers:
        parser = Parser(settings, base, workers)
        arrays = parser.parse(plain.pieces(workers, first))
    plain.refuse_changed()
    totals = parser.totals
    if totals.finish(settings) and base == 1:
        arrays.indices += arrays.indices.dtype.type(1)
        base = 0
    return _result(arrays, settings, base, totals.largest_index, totals.notes)


def _result(
    arrays: Arrays, settings: Settings, base: int, largest_index: int | None, notes: list[str]
) -> LibsvmFile:
    columns = 0 if largest_index is None else largest_index + 1 - base
    if settings.n_features is not None:
        columns = settings.n_features
    indptr: NDArray[Any] = arrays.indptr
    if max(arrays.values.size, columns) <= np.iinfo(np.int32).max:
        indptr = indptr.astype(np.int32)
    X = sp.csr_matrix((arrays.values, arrays.indices, indptr), shape=(arrays.labels.size, columns))
    # The parser has seen to it; SciPy would look again.
    X.has_sorted_indices = X.has_canonical_format = True
    return LibsvmFile(X, arrays.labels, base == 0, notes)


def _joined(parts: list[LibsvmBlock]) -> Arrays:
    starts = sums(part.values.size for part in parts)
    ends = [part.indptr[1:] + start for part, start in zip(parts, starts[:-1], strict=True)]
    return Arrays(
        np.concatenate([part.values for part in parts]),
        np.concatenate([part.indices for part in parts]),
        np.concatenate([np.zeros(1, dtype=np.int64), *ends]),
        np.concatenate([part.labels for part in parts]),
    )
