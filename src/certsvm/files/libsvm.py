"""Text of libsvm and SVMlight: read as a matrix or in batches of rows, and written.

A regular file is read a piece at a time by all threads, twice: once to count lines and values, once
to parse them straight into the arrays of the result. It is not mapped: truncating a mapped file
would end the process. Anything else (compressed files, pipes) is read from front to back in blocks.

Every number is written with the fewest digits that read back to the same float.
"""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from certsvm.files import libsvm_parser as parser
from certsvm.files.atomic import atomic_write
from certsvm.files.batch import Batch, joined
from certsvm.files.compressed import DamagedFileError, compression_of, open_source
from certsvm.files.libsvm_parser import LONGEST_LINE
from certsvm.kernels.decimal import PADDING
from certsvm.matrices import checked_csr, refuse_masked
from certsvm.resources import Team

TextSource = Any
"""A path, or a binary file object."""

_MARK = b"\xef\xbb\xbf"
"""The byte order mark, skipped at the beginning of a text."""
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
    with _opened(source) as file:
        first = _first_of_plain_file(file) if _is_path(source) else None
        if first is None:
            X, y, _ = joined(list(blocks._batches(file)))
            arrays, base = parser.Arrays(X.data, X.indices, X.indptr, y), 0
        else:
            # Most files count from one, so that is assumed until an index 0 is seen.
            arrays, base = blocks._all_rows(file, first), int(not options.get("zero_based"))
    if change := base - int(not blocks.zero_based):
        np.add(arrays.indices, change, out=arrays.indices)
    X = arrays.matrix(blocks.n_columns)
    return LibsvmFile(X, arrays.labels, blocks.zero_based, blocks.notes)


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

    def __init__(
        self, source: TextSource, block_bytes: int = 1 << 24, *, longest_line: int = LONGEST_LINE,
        n_features: int | None = None, zero_based: bool | None = None, dtype: Any = np.float64,
        n_jobs: int = 0,
    ) -> None:  # fmt: skip
        self._source = source
        name: Any = source if _is_path(source) else getattr(source, "name", None)
        name = os.fsdecode(name) if _is_path(name) else "<input>"
        self._options = parser.ParseOptions(
            name, n_features, zero_based, dtype, n_jobs, block_bytes
        )
        # A block must be able to hold a byte order mark.
        self._block_bytes = max(block_bytes, len(_MARK))
        self._longest_line = max(longest_line, self._block_bytes)
        self.zero_based, self.n_columns = bool(zero_based), 0
        self.notes: list[str] = []

    @property
    def origin(self) -> dict[str, Any]:
        """What a model has to know of the text."""
        return {"zero_based": self.zero_based}

    def __iter__(self) -> Iterator[Batch]:
        with _opened(self._source) as file:
            yield from self._batches(file)

    def _batches(self, file: Any) -> Iterator[Batch]:
        """The batches of an open file, read from front to back."""
        with Team(self._options.n_jobs) as team:
            parsing = parser.Parser(self._options, 0, team)
            for text, end in self._whole_lines(file, parsing):
                arrays = parsing.parse(partial(_range_of, text), 0, end)
                if arrays.labels.size:
                    width = int(arrays.indices.max(initial=-1)) + 1
                    yield Batch(arrays.matrix(width), arrays.labels)
            self.zero_based, self.n_columns, self.notes = parsing.finish()

    def _all_rows(self, file: Any, first: int) -> parser.Arrays:
        """All rows of a regular file, whose text begins at ``first``."""
        lock, before = threading.Lock(), os.fstat(file.fileno())

        def read(begin: int, end: int) -> NDArray[np.uint8]:
            buffer = np.empty(end - begin + PADDING, dtype=np.uint8)
            view, done = buffer.data, 0
            while done < end - begin:
                part, position = view[done : end - begin], begin + done
                if hasattr(os, "preadv"):
                    count = os.preadv(file.fileno(), [part], position)
                else:
                    with lock:
                        file.seek(position)
                        count = file.readinto(part)
                if count == 0:
                    raise parser.changed(self._options.file)
                done += count
            buffer[done:] = ord("\n")
            return buffer

        with Team(self._options.n_jobs) as team:
            parsing = parser.Parser(self._options, int(not self._options.zero_based), team)
            arrays = parsing.parse(read, first, before.st_size)
        now = os.fstat(file.fileno())
        if (now.st_size, now.st_mtime_ns) != (before.st_size, before.st_mtime_ns):
            raise parser.changed(self._options.file)
        self.zero_based, self.n_columns, self.notes = parsing.finish()
        return arrays

    def _whole_lines(
        self, file: Any, parsing: parser.Parser
    ) -> Iterator[tuple[NDArray[np.uint8], int]]:
        """Texts, each with the end of its last whole line and padding behind it."""
        source = open_source(file, self._options.file)
        text, size, at_start, damage = bytearray(), self._block_bytes, True, None
        ended = False
        while not ended:
            try:
                while not ended and len(text) < size:
                    data = source.read(size - len(text))
                    text += data
                    ended = not data
            except DamagedFileError as error:
                # Errors in the text before the damage come first, whatever the block size.
                damage, ended = error, True
            if at_start and text.startswith(_MARK):
                del text[: len(_MARK)]
            at_start = False
            end = len(text) if ended and damage is None else text.rfind(b"\n") + 1
            rest = text[end:]
            if end:
                text += b"\n" * PADDING
                yield np.frombuffer(text, dtype=np.uint8), end
            if len(rest) > self._longest_line and not ended:
                raise parser.long_line(self._options.file, parsing.lines + 1, self._longest_line)
            # A line longer than a block doubles the size until it fits.
            size = self._block_bytes if end else min(2 * size, self._longest_line + 1)
            text = rest
        if damage is not None:
            raise damage


def _is_path(source: TextSource) -> bool:
    return isinstance(source, str | bytes | os.PathLike)


def _opened(source: TextSource) -> Any:
    """A context with the binary file to read."""
    if _is_path(source):
        return open(source, "rb", buffering=0)
    if not hasattr(source, "read"):
        raise TypeError(f"expected a path or a binary file, got {type(source).__name__}")
    return nullcontext(source)


def _range_of(text: NDArray[np.uint8], begin: int, end: int) -> NDArray[np.uint8]:
    return text[begin : end + PADDING]


def _first_of_plain_file(file: Any) -> int | None:
    """Where the text of a plain file begins; None if it has to be read from front to back."""
    status = os.fstat(file.fileno())
    # Files in /proc and the like have no size.
    if not stat.S_ISREG(status.st_mode):
        return None
    first = file.read(8)
    file.seek(0)
    begin = len(_MARK) if first.startswith(_MARK) else 0
    return begin if begin < status.st_size and compression_of(first) is None else None


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
    refuse_masked(X=X, y=y)
    rows, labels = _rows(X), np.asarray(y)
    if labels.shape != rows.shape[:1]:
        raise ValueError(
            f"y must have one label for each of {rows.shape[0]} rows, got shape {labels.shape}"
        )
    if labels.size == 0:
        raise ValueError("there are no rows to write")
    chunks = _chunks(rows, _floats(labels, "y").astype(np.float64), int(not zero_based))
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
    X = checked_csr(X) if sp.issparse(X) else np.asarray(X)
    if X.ndim != 2:
        raise ValueError(f"X must have two dimensions, got shape {X.shape}")
    if not sp.issparse(X):
        return sp.csr_matrix(_floats(X, "X"))
    # A new matrix, since flags of the given one may lie.
    rows = sp.csr_matrix((_floats(X.data, "X"), X.indices, X.indptr), shape=X.shape)
    if not rows.has_sorted_indices:
        rows = rows.sorted_indices()
    if not rows.has_canonical_format:
        # Values stored twice are added up in float64, as in training.
        rows = rows.astype(np.float64)
        rows.sum_duplicates()
        _floats(rows.data, "X")
    return rows


def _floats(values: NDArray[Any], name: str) -> NDArray[Any]:
    """The values as float32 or float64, unchanged; raises if they are not finite."""
    if values.dtype.kind not in "biuf":
        raise ValueError(f"{name} must hold real numbers, got dtype {values.dtype}")
    floats = values if values.dtype in (np.float32, np.float64) else values.astype(np.float64)
    if not np.isfinite(floats).all():
        raise ValueError(f"{name} contains NaN or infinity, which the format does not have")
    if floats is not values and values.dtype.kind != "b":
        back = floats.astype(values.dtype) if np.abs(floats).max(initial=0) < 2.0**63 else None
        if back is None or not np.array_equal(back, values):
            raise ValueError(f"{name} has numbers of type {values.dtype} that are not float64")
    return floats


def _texts(values: NDArray[Any]) -> list[str]:
    """The shortest decimals that read back to the same values."""
    if values.dtype == np.float64:
        texts = map(repr, values.tolist())
    else:
        texts = map(str, values.astype("U32").tolist())
    return [text[:-2] if text.endswith(".0") else text for text in texts]


def _chunks(rows: Any, labels: NDArray[np.float64], base: int) -> Iterator[bytes]:
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
