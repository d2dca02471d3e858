"""A whole file as a matrix.

A plain file is parsed straight into the arrays of the result; anything else (compressed files,
pipes) is taken in blocks, which are joined.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certsvm.files.batch import joined
from certsvm.files.libsvm.arrays import Arrays
from certsvm.files.libsvm.blocks import LibsvmBlocks
from certsvm.files.libsvm.options import ParseOptions
from certsvm.files.libsvm.parser import Parser, Totals
from certsvm.files.libsvm.pieces import needs_threads
from certsvm.files.libsvm.plain_file import PlainFile, first_of_plain_file
from certsvm.files.libsvm.sources import TextSource, opened
from certsvm.parallel import Team


@dataclass(frozen=True)
class LibsvmFile:
    """The content of a file.

    Attributes
    ----------
    X : csr_matrix of shape (n_rows, n_features)
        The values; columns count from zero.
    y : ndarray of shape (n_rows,)
        The labels.
    zero_based : bool
        Whether the indices in the file count from zero.
    notes : list of str
        Remarks for the user, such as "qid ignored on 12 lines".
    """

    X: Any
    y: NDArray[np.float64]
    zero_based: bool
    notes: list[str]


def read_libsvm(
    source: TextSource,
    *,
    n_features: int | None = None,
    zero_based: bool | None = None,
    dtype: Any = np.float64,
    n_jobs: int = 0,
) -> LibsvmFile:
    r"""Read a whole file, with remarks about it.

    :func:`load_libsvm` describes the format and the errors.

    Parameters
    ----------
    source : path or binary file object
        Plain, or compressed with gzip, bzip2, xz or zstd.
    n_features : int, default=None
        Number of columns of X. By default, the largest index in the file decides.
    zero_based : bool, default=None
        Whether indices count from zero. By default they do if the file has an index 0.
    dtype : {float64, float32}, default=float64
        Type of the values of X.
    n_jobs : int, default=0
        Number of threads; 0 means one for each processor.

    Returns
    -------
    data : LibsvmFile
        X, y, whether indices count from zero, and remarks.

    Examples
    --------
    >>> import io
    >>> data = read_libsvm(io.BytesIO(b"+1 qid:3 0:1.5 2:1  # a comment\n"))
    >>> data.X.toarray(), data.y, data.notes
    (array([[1.5, 0. , 1. ]]), array([1.]), ['indices count from zero', 'qid ignored on 1 line'])
    """
    options = ParseOptions.checked(source, dtype, n_features, zero_based, n_jobs)
    with opened(source) as file:
        first = first_of_plain_file(file, source)
        if first is not None:
            return _read_plain(file, options, first)
        # Messages name the path, not the open file.
        blocks = LibsvmBlocks(
            file, n_features=n_features, zero_based=zero_based, dtype=dtype, n_jobs=n_jobs,
            name=options.file,
        )  # fmt: skip
        X, y, _ = joined(list(blocks))
    arrays = Arrays(X.data, X.indices, X.indptr, y)
    base = int(not blocks.zero_based)
    arrays.indices -= arrays.indices.dtype.type(base)
    return _result(arrays, options, base, blocks.totals)


def load_libsvm(
    path: TextSource,
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
        Number of columns of X. By default, the largest index in the file decides.
    zero_based : bool, default=None
        Whether indices count from zero. By default they do if the file has an index 0. Set it
        for files that belong together, such as training and test data.
    dtype : {float64, float32}, default=float64
        Type of the values of X.
    n_jobs : int, default=0
        Number of threads; 0 means one for each processor.

    Returns
    -------
    X : csr_matrix of shape (n_rows, n_features)
        The values; zeros that are in the file are stored.
    y : ndarray of shape (n_rows,)
        The labels, as float64.

    Raises
    ------
    LibsvmError
        If something is not in the format, or a label has more digits than float64 keeps; the
        message gives line and column.
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


def _read_plain(file: Any, options: ParseOptions, first: int) -> LibsvmFile:
    # Most files count from one, so that is assumed until an index 0 is seen.
    base = int(not options.zero_based)
    plain = PlainFile(file, options)
    with Team(options.n_jobs if needs_threads(plain.size) else 1) as team:
        parser = Parser(options, base, team)
        arrays = parser.parse(plain.pieces(team, first))
    plain.refuse_changed()
    if parser.totals.finish(options) and base == 1:
        arrays.indices += arrays.indices.dtype.type(1)
        base = 0
    return _result(arrays, options, base, parser.totals)


def _result(arrays: Arrays, options: ParseOptions, base: int, totals: Totals) -> LibsvmFile:
    n_features = options.n_features
    if n_features is None:
        n_features = totals.largest + 1 - base if totals.values else 0
    return LibsvmFile(arrays.matrix(n_features), arrays.labels, base == 0, totals.notes)
