"""Text of libsvm and SVMlight: read as a matrix or in batches of rows, and written.

Text is read from front to back and cut at line ends into pieces, which several threads parse. It is
not mapped: truncating a mapped file would end the process.

Every number is written with the fewest digits that read back to the same float.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from certsvm.files.atomic import atomic_write
from certsvm.files.batch import Batch, csr
from certsvm.files.compressed import DamagedFileError, text_of
from certsvm.files.libsvm_parser import LibsvmError, Parser, Piece
from certsvm.kernels.decimal import PADDING
from certsvm.kernels.libsvm import LARGEST_INDEX
from certsvm.matrices import checked_matrix, refuse_masked
from certsvm.resources import available_processors

TextSource = Any
"""A path, or a binary file object."""

_MARK = b"\xef\xbb\xbf"
"""The byte order mark, skipped at the beginning of a text."""
_PIECE_BYTES = 1 << 19
LONGEST_LINE = 1 << 28
"""The most bytes of a line: enough for ten million values. A compressed file of some kilobytes may
hold a line without an end."""
_VALUES_AT_ONCE = 1 << 16


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


def read_libsvm(source: TextSource, **options: Any) -> LibsvmFile:
    r"""Read a whole file, with remarks about it.

    Parameters
    ----------
    source : path or binary file object
        Plain, or compressed with gzip, bzip2, xz or zstd.
    **options
        Those of :func:`load_libsvm`, which describes the format and the errors.

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
    blocks = LibsvmBlocks(source, **options)
    pieces = list(blocks._pieces())
    rows = _joined(pieces, base=int(not blocks.zero_based), n_columns=blocks.n_columns)
    return LibsvmFile(rows.X, rows.y, blocks.zero_based, blocks.notes)


def load_libsvm(
    path: TextSource, *, n_features: int | None = None, zero_based: bool | None = None,
    dtype: Any = np.float64, n_jobs: int = 0,
) -> tuple[Any, NDArray[np.float64]]:  # fmt: skip
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

    Attributes
    ----------
    zero_based : bool
        Whether indices count from zero; known after the loop.
    n_columns : int
        ``n_features``, or what the largest index requires; known after the loop.
    notes : list of str
        Remarks for the user; known after the loop.
    origin : dict
        What a model has to know of the text; known after the loop.

    Examples
    --------
    >>> import io
    >>> blocks = LibsvmBlocks(io.BytesIO(b"1 2:0.5\n-1 7:3\n"), block_bytes=8)
    >>> for X, y, _ in blocks:
    ...     print(y, X.indices, X.data)
    [1.] [2] [0.5]
    [-1.] [7] [3.]
    >>> blocks.n_columns
    7
    """

    feature_names = weight = None
    is_parsed = True

    def __init__(
        self, source: TextSource, block_bytes: int = 1 << 24, *, longest_line: int = LONGEST_LINE,
        n_features: int | None = None, zero_based: bool | None = None, dtype: Any = np.float64,
        n_jobs: int = 0,
    ) -> None:  # fmt: skip
        if np.dtype(dtype) not in (np.float32, np.float64):
            raise ValueError(f"dtype must be float32 or float64, got {dtype!r}")
        if n_features is not None and not 0 <= n_features <= LARGEST_INDEX:
            raise ValueError(f"n_features must be a whole number >= 0, got {n_features!r}")
        self._source, self._block_bytes = source, block_bytes
        self._n_jobs = n_jobs or available_processors()
        # As many pieces as that are in memory besides the block.
        self._ahead = 2 * self._n_jobs
        self._piece_bytes = max(1, min(_PIECE_BYTES, block_bytes // self._ahead))
        self._longest_line = max(longest_line, block_bytes)
        name: Any = source if _is_path(source) else getattr(source, "name", None)
        name = os.fsdecode(name) if _is_path(name) else "<input>"
        self._parser = Parser(name, n_features, zero_based, np.dtype(dtype))
        self.zero_based, self.n_columns = bool(zero_based), 0
        self.notes: list[str] = []
        self.origin = {"zero_based": self.zero_based}

    def __iter__(self) -> Iterator[Batch]:
        held: list[Piece] = []
        size = 0
        for piece in self._pieces():
            if held and size + piece.n_bytes > self._block_bytes:
                yield _joined(held)
                size = 0
            held.append(piece)
            size += piece.n_bytes
        yield _joined(held)

    def __call__(self) -> Iterator[Batch]:
        """Begin a pass over the rows, with columns that count from zero; the first counts them."""
        if self.n_columns == 0:
            for _ in self:
                pass
        base, n_columns = int(not self.zero_based), self.n_columns
        for batch in self:
            yield batch.from_zero(base, n_columns)

    def _pieces(self) -> Iterator[Piece]:
        """The rows of the text, piece by piece, with indices as they are in it."""
        name, n_features = self._parser.file, self._parser.n_features
        n_rows, lines, queries, smallest, largest = 0, 0, 0, 1, -1
        try:
            with _opened(self._source) as file:
                for piece in self._parsed(file):
                    lines += piece.lines
                    queries += piece.queries
                    n_rows += piece.labels.size
                    smallest = min(smallest, int(piece.indices.min(initial=1)))
                    largest = max(largest, int(piece.indices.max(initial=-1)))
                    if piece.labels.size:
                        yield piece
        except LibsvmError as error:
            # Its line counts from the beginning of its piece.
            line = lines + (error.line or 1)
            raise LibsvmError(error.what, name, line, error.column, error.text) from None
        if n_rows == 0:
            raise LibsvmError("there are no rows in this file", name)
        self.notes.clear()
        if self._parser.zero_based is None:
            self.zero_based = smallest == 0
            if self.zero_based:
                self.notes.append("indices count from zero")
                if largest == n_features:
                    what = f"index {largest} is out of range: n_features={n_features}, counted from"
                    raise LibsvmError(f"{what} zero", name)
        if queries:
            self.notes.append(f"qid ignored on {queries} line{'s' * (queries > 1)}")
        self.origin["zero_based"] = self.zero_based
        self.n_columns = max(largest + self.zero_based, 0) if n_features is None else n_features

    def _parsed(self, file: Any) -> Iterator[Piece]:
        """The pieces of an open file in order; threads parse those ahead of the one in use."""
        waiting: deque[Future[Piece]] = deque()
        with ThreadPoolExecutor(self._n_jobs, thread_name_prefix="certsvm") as threads:
            for text in self._texts(file):
                waiting.append(threads.submit(self._parser.parse, text))
                if len(waiting) > self._ahead:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()

    def _texts(self, file: Any) -> Iterator[bytearray | ValueError]:
        """Whole lines, with padding behind them; last what is wrong with the file, if anything is.

        Errors in the text before that come first.
        """
        size, text, wrong = self._piece_bytes, bytearray(), None
        parts = text_of(file, self._parser.file, size)
        try:
            while len(text) < len(_MARK) and (part := next(parts, b"")):
                text += part
            if text.startswith(_MARK):
                del text[: len(_MARK)]
            for part in parts:
                text += part
                if len(text) < size:
                    continue
                end = text.rfind(b"\n") + 1
                rest = text[end:]
                if end:
                    text[end:] = b"\n" * PADDING
                    yield text
                elif len(rest) > self._longest_line:
                    what = f"this line is longer than {self._longest_line / 1e6:.1f} MB"
                    what += ": give more memory, unless the file is damaged"
                    raise LibsvmError(what, self._parser.file, 1, 1)
                text = rest
                # A line longer than a piece doubles the size until it fits.
                fits = len(rest) < self._block_bytes
                most = self._block_bytes if fits else self._longest_line + 1
                size = min(max(self._piece_bytes, 2 * len(rest)), most)
        except (DamagedFileError, LibsvmError) as error:
            wrong = error
            del text[text.rfind(b"\n") + 1 :]
        if text:
            yield text + b"\n" * PADDING
        if wrong is not None:
            yield wrong


def _is_path(source: TextSource) -> bool:
    return isinstance(source, str | bytes | os.PathLike)


def _opened(source: TextSource) -> Any:
    """A context with the binary file to read."""
    if _is_path(source):
        return open(source, "rb", buffering=0)
    if not hasattr(source, "read"):
        raise TypeError(f"expected a path or a binary file, got {type(source).__name__}")
    return nullcontext(source)


def _joined(pieces: list[Piece], base: int = 0, n_columns: int | None = None) -> Batch:
    """The rows of all pieces, which are released; indices count from ``base`` in them."""
    columns = list(zip(*(piece[:4] for piece in pieces), strict=True))
    pieces.clear()
    labels, counts, indices, values = (np.concatenate(columns.pop()) for _ in range(4))
    if base:
        indices -= base
    if n_columns is None:
        n_columns = int(indices.max(initial=-1)) + 1
    narrow = max(values.size, n_columns) <= np.iinfo(np.int32).max
    dtype = np.int32 if narrow else np.int64
    indptr = np.zeros(labels.size + 1, dtype=dtype)
    np.cumsum(counts, out=indptr[1:])
    X = csr(values, indices.astype(dtype, copy=False), indptr, (labels.size, n_columns))
    # The parser has checked it; SciPy would check again.
    X.has_sorted_indices = X.has_canonical_format = True
    return Batch(X, labels)


def save_libsvm(path_or_file: Any, X: Any, y: Any, *, zero_based: bool = False) -> None:
    """Write rows and their labels.

    Parameters
    ----------
    path_or_file : path or binary file object
        A file at this path is replaced once the new one is complete; if anything fails, it
        stays as it is. Pipes and devices are written to directly.
    X : array or SciPy sparse matrix of shape (n_rows, n_features)
        Zeros stored in a sparse matrix are written as ``index:0``; zeros of an array are left out.
        Float32 values are written with the digits that float32 needs: read them back with
        ``dtype=np.float32``.
    y : array-like of shape (n_rows,)
        The labels.
    zero_based : bool, default=False
        Whether columns count from zero. If no row uses the first column, the file does not show
        it: read it back with ``zero_based=True``.

    Raises
    ------
    ValueError
        If the data contain something that the format cannot represent.
    WriteError
        An OSError: the file could not be written.

    Examples
    --------
    >>> import io
    >>> file = io.BytesIO()
    >>> save_libsvm(file, [[0.5, 0.0, 1e-7], [0.0, 3.0, 0.0]], [1, -1])
    >>> print(file.getvalue().decode(), end="")
    1 1:0.5 3:1e-07
    -1 2:3
    """
    refuse_masked(y=y)
    rows, labels = _rows(X), np.asarray(y)
    if labels.shape != rows.shape[:1]:
        raise ValueError(
            f"y must have one label for each of {rows.shape[0]} rows, got shape {labels.shape}"
        )
    if labels.size == 0:
        raise ValueError("there are no rows to write")
    chunks = _chunks(rows, _numbers(labels, "y"), int(not zero_based))
    if hasattr(path_or_file, "write"):
        for chunk in chunks:
            view = memoryview(chunk)
            # Some files accept only a part at a time.
            while view and isinstance(written := path_or_file.write(view), int):
                view = view[written:]
        return
    path = os.fsdecode(path_or_file)
    # A pipe or a device must not be replaced by a file.
    special = os.path.exists(path) and not (os.path.isfile(path) or os.path.isdir(path))
    with open(path, "wb") if special else atomic_write(path) as file:
        file.writelines(chunks)


def _rows(X: Any) -> Any:
    """X as CSR, sorted and without values stored twice, if all values can be written."""
    X = checked_matrix(X)
    if not sp.issparse(X):
        return sp.csr_matrix(_numbers(X, "X"))
    # A new matrix, since flags of the given one may lie.
    rows = sp.csr_matrix((_numbers(X.data, "X"), X.indices, X.indptr), shape=X.shape)
    if not rows.has_sorted_indices:
        rows = rows.sorted_indices()
    if not rows.has_canonical_format:
        # Values stored twice are added up in float64, as in training.
        rows = rows.astype(np.float64)
        rows.sum_duplicates()
        _numbers(rows.data, "X")
    return rows


def _numbers(values: NDArray[Any], name: str) -> NDArray[Any]:
    """The values as integers, float32 or float64; raises if they are not finite."""
    if values.dtype.kind not in "biuf":
        raise ValueError(f"{name} must hold real numbers, got dtype {values.dtype}")
    if not np.isfinite(values).all():
        raise ValueError(f"{name} contains NaN or infinity, which the format does not have")
    is_known = values.dtype.kind in "iu" or values.dtype in (np.float32, np.float64)
    return values if is_known else values.astype(np.float64)


def _texts(values: NDArray[Any]) -> list[str]:
    """The shortest decimals that read back to the same values."""
    if values.dtype == np.float32:
        texts = map(str, values.astype("U32").tolist())
    else:
        texts = map(repr, values.tolist())
    return [text.removesuffix(".0") for text in texts]


def _chunks(rows: Any, labels: NDArray[Any], base: int) -> Iterator[bytes]:
    """The text, in chunks of many values."""
    indptr = rows.indptr
    first = 0
    while first < labels.size:
        until = np.searchsorted(indptr, indptr[first] + _VALUES_AT_ONCE, side="right") - 1
        last = min(max(first + 1, int(until)), first + _VALUES_AT_ONCE, labels.size)
        part = slice(indptr[first], indptr[last])
        columns = (rows.indices[part].astype(np.int64) + base).tolist()
        pairs = [f" {j}:{v}" for j, v in zip(columns, _texts(rows.data[part]), strict=True)]
        ends = (indptr[first : last + 1] - indptr[first]).tolist()
        lines = [
            f"{label}{''.join(pairs[ends[k] : ends[k + 1]])}\n"
            for k, label in enumerate(_texts(labels[first:last]))
        ]
        yield "".join(lines).encode("ascii")
        first = last
