"""Reading files in the format of libsvm and SVMlight: fast, exact and strict.

Text is cut at line ends into pieces, which threads parse straight into the arrays of the result:
line feeds and colons, counted beforehand, bound the numbers of rows and values in a piece. A plain
file is read twice, once to count and once to parse, each time a piece at a time; anything else
(compressed files, pipes) is taken in blocks, and the whole text is never in memory. Text is always
in memory of our own: a file that somebody truncates while it is read is an error, whereas reading
it through a memory map would end the process.
"""

from __future__ import annotations

import itertools
import math
import os
import stat
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from certsvm.data.compressed import ByteSource, DamagedFileError, compression_of, open_source
from certsvm.kernels import libsvm as kernels
from certsvm.kernels.decimal import PADDING, decimal_tables
from certsvm.kernels.libsvm import LARGEST_INDEX, IndexRules, Report

Source = Any
"""A path, or a binary file object."""

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_PIECE_BYTES = 1 << 19
_LEAST_DEFERRED = 256
_LONGEST_SHOWN = 40


class LibsvmError(ValueError):
    """Text that is not in the format, and where.

    Attributes
    ----------
    file : str
        Name of the file.
    line, column : int or None
        Both count from 1; columns are bytes. None if the file as a whole is meant.
    text : str
        The offending text, shortened if it is long.
    """

    def __init__(
        self, what: str, file: str, line: int | None = None, column: int | None = None,
        text: str = "",
    ) -> None:  # fmt: skip
        where = file if line is None else f"{file}, line {line}, column {column}"
        super().__init__(f"{where}: {what}")
        self.what, self.file, self.line, self.column, self.text = what, file, line, column, text

    def __reduce__(self) -> tuple[Any, ...]:
        return LibsvmError, (self.what, self.file, self.line, self.column, self.text)


class _WideIndexError(Exception):
    """An index does not fit 32 bits."""


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


@dataclass(frozen=True)
class _Settings:
    """What the caller asked for, checked."""

    file: str
    dtype: np.dtype[Any]
    n_features: int | None
    zero_based: bool | None
    threads: int

    @classmethod
    def checked(
        cls, source: Source, dtype: Any, n_features: Any, zero_based: Any, threads: Any
    ) -> _Settings:
        if np.dtype(dtype) not in (np.dtype(np.float32), np.dtype(np.float64)):
            raise ValueError(f"dtype must be float32 or float64, got {dtype!r}")
        if not (n_features is None or (_is_count(n_features) and n_features <= LARGEST_INDEX)):
            raise ValueError(f"n_features must be None or a whole number >= 0, got {n_features!r}")
        if not (zero_based is None or isinstance(zero_based, bool | np.bool_)):
            raise ValueError(f"zero_based must be True, False or None, got {zero_based!r}")
        if not _is_count(threads):
            raise ValueError(f"threads must be a whole number >= 0 (0: all), got {threads!r}")
        return cls(
            _name_of(source),
            np.dtype(dtype),
            None if n_features is None else int(n_features),
            None if zero_based is None else bool(zero_based),
            int(threads) or _available_processors(),
        )

    def rules(self, base: int) -> IndexRules:
        """Which indices are allowed, as far as is known before all of them are."""
        high = LARGEST_INDEX if self.n_features is None else self.n_features
        if self.zero_based and self.n_features is not None:
            high -= 1
        # In a file that counts from zero, the index n_features is one too many. Whether it does
        # may be known only at its end.
        undecided = self.zero_based is None and self.n_features is not None
        return IndexRules(
            base, low=int(self.zero_based is False), high=high, notable=high if undecided else -2
        )


@dataclass
class _Piece:
    """Whole lines of text; ``fetch`` returns an array that begins with them, and their length."""

    fetch: Callable[[], tuple[NDArray[np.uint8], int]]
    lines: int
    colons: int
    unterminated: bool = False

    @property
    def most_rows(self) -> int:
        return self.lines + self.unterminated


@dataclass
class _Totals:
    """What is known of the file so far."""

    rows: int = 0
    values: int = 0
    lines: int = 0
    queries: int = 0
    smallest: int = LARGEST_INDEX
    largest: int = -1
    suspect: LibsvmError | None = None
    """What is wrong if the file counts from zero."""
    notes: list[str] = field(default_factory=list)

    def add(self, report: Report, suspect: LibsvmError | None) -> None:
        self.rows += report.rows
        self.values += report.values
        self.queries += report.queries
        self.smallest = min(self.smallest, report.smallest)
        self.largest = max(self.largest, report.largest)
        self.suspect = self.suspect or suspect

    def finish(self, settings: _Settings) -> bool:
        """Whether the file counts from zero; raises if that, or its being empty, is wrong."""
        if self.rows == 0:
            raise LibsvmError("there are no rows in this file", settings.file)
        zero_based = settings.zero_based
        if zero_based is None:
            zero_based = self.smallest == 0
            if zero_based:
                self.notes.append("indices count from zero")
                if self.suspect is not None:
                    raise self.suspect
        if self.queries:
            lines = "1 line" if self.queries == 1 else f"{self.queries} lines"
            self.notes.append(f"qid ignored on {lines}")
        return zero_based


@dataclass
class _Arrays:
    """Rows being put together; the pieces' parts may have gaps between them."""

    values: NDArray[Any]
    indices: NDArray[Any]
    indptr: NDArray[np.int64]
    labels: NDArray[np.float64]

    @classmethod
    def empty(cls, rows: int, values: int, dtype: Any, index_dtype: Any) -> _Arrays:
        indptr = np.empty(rows + 1, dtype=np.int64)
        indptr[0] = 0
        return cls(np.empty(values, dtype), np.empty(values, index_dtype), indptr, np.empty(rows))

    def close_gaps(self, firsts: list[tuple[int, int]], reports: list[Report]) -> None:
        """Move the parts together; ``firsts`` are the first row and value of each."""
        row, value = 0, 0
        for (old_row, old_value), report in zip(firsts, reports, strict=True):
            if (row, value) != (old_row, old_value):
                ends = self.indptr[1:]
                _move(self.labels, old_row, row, report.rows)
                _move(ends, old_row, row, report.rows)
                ends[row : row + report.rows] -= old_value - value
                _move(self.values, old_value, value, report.values)
                _move(self.indices, old_value, value, report.values)
            row += report.rows
            value += report.values
        self.values, self.indices = _shorten(self.values, value), _shorten(self.indices, value)
        self.labels, self.indptr = _shorten(self.labels, row), _shorten(self.indptr, row + 1)


class _Parser:
    """Parses pieces of one file, in threads."""

    def __init__(self, settings: _Settings, base: int, executor: ThreadPoolExecutor | None) -> None:
        self._settings = settings
        self._rules = settings.rules(base)
        self._executor = executor
        self.totals = _Totals()

    def map(self, task: Callable[..., Any], *arguments: Any) -> list[Any]:
        """Results of a task in order; of several errors the first in this order is raised."""
        if self._executor is None or len(arguments[0]) <= 1:
            return list(map(task, *arguments))
        return list(self._executor.map(task, *arguments))

    def parse(self, pieces: list[_Piece]) -> _Arrays:
        """The rows of the next pieces of the file."""
        if pieces:
            # The last line may end without a line feed.
            pieces[-1].unterminated = True
        rows = _sums(piece.most_rows for piece in pieces)
        values = _sums(piece.colons for piece in pieces)
        lines = _sums((piece.lines for piece in pieces), self.totals.lines)
        firsts = list(zip(rows[:-1], values[:-1], strict=True))
        for index_dtype in (np.int32, np.int64):
            arrays = _Arrays.empty(rows[-1], values[-1], self._settings.dtype, index_dtype)

            def parse_piece(
                piece: _Piece, first: tuple[int, int], lines: int, arrays: _Arrays = arrays
            ) -> tuple[Report, LibsvmError | None]:
                return self._parse_piece(piece, first, lines, arrays)

            try:
                results = self.map(parse_piece, pieces, firsts, lines[:-1])
                break
            except _WideIndexError:
                continue
        for report, suspect in results:
            self.totals.add(report, suspect)
        self.totals.lines = lines[-1]
        arrays.close_gaps(firsts, [report for report, _ in results])
        return arrays

    def _parse_piece(
        self, piece: _Piece, first: tuple[int, int], lines: int, arrays: _Arrays
    ) -> tuple[Report, LibsvmError | None]:
        text, end = piece.fetch()
        row, value = first
        values = arrays.values[value : value + piece.colons]
        indices = arrays.indices[value : value + piece.colons]
        labels = arrays.labels[row : row + piece.most_rows]
        row_ends = arrays.indptr[row + 1 : row + piece.most_rows + 1]
        report, deferred = self._run_kernel(text, end, values, indices, labels, row_ends, value)
        wrong = _Complaint(text, end, lines, self._settings, self._rules)
        for slot, position in deferred.tolist():
            number = _token(text, position, end)
            if slot < 0:
                labels[-1 - slot] = settled = float(number)
                code = kernels.LABEL_TOO_LARGE
            else:
                values[slot] = settled = _nearest(number, self._settings.dtype)
                code = kernels.VALUE_TOO_LARGE
            if np.isinf(settled):
                raise wrong.error(code, position)
        if report.code == kernels.WIDE_INDEX:
            raise _WideIndexError
        if report.code in (kernels.NO_ROOM, kernels.BAD_BUFFER):
            raise _changed(self._settings.file)
        if report.code != kernels.PARSED:
            raise wrong.error(report.code, report.position)
        suspect = wrong.error(kernels.BAD_INDEX, report.notable) if report.notable >= 0 else None
        return report, suspect

    def _run_kernel(
        self, text: NDArray[np.uint8], end: int, values: NDArray[Any], indices: NDArray[Any],
        labels: NDArray[np.float64], row_ends: NDArray[np.int64], first_value: int,
    ) -> tuple[Report, NDArray[np.int64]]:  # fmt: skip
        room = _LEAST_DEFERRED
        while True:
            deferred = np.empty((room, 2), dtype=np.int64)
            numbers = np.empty(len(Report._fields), dtype=np.int64)
            kernels.parse_lines(
                text, end, self._rules, decimal_tables(), values, indices, labels, row_ends,
                first_value, deferred, numbers,
            )  # fmt: skip
            report = Report(*numbers.tolist())
            if report.deferred <= room:
                return report, deferred[: report.deferred]
            room = report.deferred


@dataclass(frozen=True)
class _Complaint:
    """Puts in words what is wrong with a piece of text."""

    text: NDArray[np.uint8]
    end: int
    lines: int
    settings: _Settings
    rules: IndexRules

    def error(self, code: int, position: int) -> LibsvmError:
        """What ``code`` at ``position`` means, with the place in the file."""
        before = self.text[:position]
        line = self.lines + 1 + kernels.survey(before)[0]
        line_start = kernels.last_line_end(before)
        # Enough to tell what is wrong with it, however long it is.
        token = _token(self.text, position, min(self.end, position + 200))
        shown = _shown(token)
        if code == kernels.BAD_COMMENT:
            token = bytes(self.text[position : position + 1])
            shown = _shown(token)
        what = self._what(code, token, bytes(self.text[line_start:position]))
        return LibsvmError(what, self.settings.file, int(line), position - int(line_start) + 1,
                           shown)  # fmt: skip

    def _what(self, code: int, token: bytes, before: bytes) -> str:
        found = f'"{_shown(token)}"'
        if b"\0" in token:
            return f"found a NUL byte in {found}; is this a text file?"
        if b"\r" in token:
            return f"found a carriage return that does not end a line in {found}"
        if code in (kernels.LABEL_TOO_LARGE, kernels.VALUE_TOO_LARGE):
            label = code == kernels.LABEL_TOO_LARGE
            dtype = "float64" if label else self.settings.dtype.name
            return f"the {'label' if label else 'value'} {found} is too large for {dtype}"
        if code == kernels.BAD_LABEL:
            return _label_problem(token, found)
        if code == kernels.BAD_ITEM:
            return _item_problem(token, found)
        if code == kernels.BAD_VALUE:
            found = found if token else "nothing"
            return f"expected a number after the colon, found {found}"
        index = token.partition(b":")[0].lstrip(b"0") or b"0"
        if code == kernels.NOT_ASCENDING:
            previous = before.split()[-1].partition(b":")[0].lstrip(b"0") or b"0"
            if previous == index:
                return f"index {index.decode()} is there twice in this line"
            return (
                f"indices must ascend within a line, but {_shown(index)} follows {_shown(previous)}"
            )
        return self._index_problem(index)

    def _index_problem(self, index: bytes) -> str:
        if len(index) > 19 or int(index) > LARGEST_INDEX:
            return f"the index {_shown(index)} is beyond the largest allowed, 2**63 - 2"
        if index == b"0" and self.rules.low == 1:
            return "index 0, although indices count from one (zero_based=False)"
        n, from_zero = self.settings.n_features, self.settings.zero_based
        # Where nothing was said, n itself is wrong only if the file counts from zero.
        start = "zero" if from_zero or (from_zero is None and int(index) == n) else "one"
        return f"index {index.decode()} is out of range: n_features={n}, counted from {start}"


def _label_problem(token: bytes, found: str) -> str:
    if b":" in token:
        return f"expected a label before the first index, found {found}"
    if b"," in token:
        return f"several labels, {found}: multi-label data is not supported"
    return f"expected a decimal number as label, found {found}"


def _item_problem(token: bytes, found: str) -> str:
    if token.startswith(b"qid"):
        return f"qid and a whole number may stand right after the label, once; found {found}"
    if token.startswith((b"+", b"-")):
        return f"an index has no sign, found {found}"
    if token.startswith(b":"):
        return f"expected an index before the colon, found {found}"
    return f"expected index:value, found {found}"


def _shown(text: bytes) -> str:
    """Text for a message: printable, and not too long."""
    more = "..." if len(text) > _LONGEST_SHOWN else ""
    decoded = text[:_LONGEST_SHOWN].decode("utf-8", "backslashreplace")
    escaped = (c if c.isprintable() else c.encode("unicode_escape").decode() for c in decoded)
    return "".join(escaped) + more


def _token(text: NDArray[np.uint8], position: int, end: int) -> bytes:
    """The bytes from ``position`` to the next blank, comment or line end."""
    for length in (64, end - position):
        some = bytes(text[position : min(position + length, end)])
        token = some
        for stop in (b"\n", b" ", b"\t", b"#"):
            token = token.partition(stop)[0]
        if len(token) < len(some):
            break
    # A carriage return belongs to the line end only together with the line feed.
    ends_line = some[len(token) : len(token) + 1] == b"\n"
    return token[:-1] if ends_line and token.endswith(b"\r") else token


def _nearest(number: bytes, dtype: np.dtype[Any]) -> float:
    """The float of this type nearest to a decimal number."""
    double = float(number)
    if dtype == np.float64:
        return double
    with np.errstate(over="ignore", under="ignore"):
        narrow = np.float32(double)
        # As doubles: NumPy would compare in float32.
        upwards = np.float32(np.inf if float(narrow) < double else -np.inf)
        other = np.nextafter(narrow, upwards)
    near, far = _finite(narrow), _finite(other)
    if 0.5 * (near + far) != double:
        return float(narrow)
    # The double is halfway: what rounding to it has hidden decides.
    exact, halfway = Decimal(number.decode()), Decimal(double)
    towards_other = exact > halfway if far > near else exact < halfway
    return float(other if towards_other else narrow)


def _finite(single: np.float32) -> float:
    """A float32 as double; infinity is where the float32 after the largest would be."""
    return math.copysign(2.0**128, single) if np.isinf(single) else float(single)


class _PlainFile:
    """A regular file on disk, read a part at a time, by several threads at once."""

    def __init__(self, file: Any, settings: _Settings) -> None:
        self._file = file
        self._settings = settings
        self._lock = threading.Lock()
        self._buffers = threading.local()
        self._status = os.fstat(file.fileno())
        self.size = self._status.st_size

    def pieces(self, parser: _Parser, first: int) -> list[_Piece]:
        """Cut the text from position ``first`` on at line ends, and count what is in the pieces."""
        share = self.size // (2 * self._settings.threads) + 1
        step = max(1, _PIECE_BYTES // 8, min(_PIECE_BYTES, share))
        begins = range(first, self.size, step)
        found = parser.map(lambda begin: self._survey(begin, begin + step), begins)
        cuts, counts = [first], [[0, 0]]
        for begin, (line_end, head, tail) in zip(begins, found, strict=True):
            counts[-1][0] += head[0]
            counts[-1][1] += head[1]
            if line_end:
                cuts.append(begin + line_end)
                counts.append(list(tail))
        cuts.append(self.size)
        return [
            _Piece(lambda a=a, b=b: self._read(a, b), count[0], count[1])  # type: ignore[misc]
            for (a, b), count in zip(itertools.pairwise(cuts), counts, strict=True)
            if a < b
        ]

    def refuse_changed(self) -> None:
        """Raise if somebody wrote to the file meanwhile."""
        now = os.fstat(self._file.fileno())
        before = self._status
        if (now.st_size, now.st_mtime_ns) != (before.st_size, before.st_mtime_ns):
            raise _changed(self._settings.file)

    def _survey(self, begin: int, end: int) -> tuple[int, tuple[int, int], tuple[int, int]]:
        text, length = self._read(begin, min(end, self.size))
        line_end = kernels.first_line_end(text[:length])
        head = text[: line_end or length]
        return line_end, kernels.survey(head), kernels.survey(text[head.size : length])

    def _read(self, begin: int, end: int) -> tuple[NDArray[np.uint8], int]:
        """Bytes of the file, in a buffer of this thread."""
        length = end - begin
        buffer: NDArray[np.uint8] | None = getattr(self._buffers, "buffer", None)
        if buffer is None or buffer.size < length + PADDING:
            buffer = np.empty(length + length // 4 + PADDING, dtype=np.uint8)
            self._buffers.buffer = buffer
        view, done = buffer.data, 0
        while done < length:
            count = self._read_at(view[done:length], begin + done)
            if count == 0:
                raise _changed(self._settings.file)
            done += count
        buffer[length : length + PADDING] = ord("\n")
        return buffer, length

    def _read_at(self, view: memoryview, position: int) -> int:
        if hasattr(os, "preadv"):
            return os.preadv(self._file.fileno(), [view], position)
        with self._lock:
            self._file.seek(position)
            return int(self._file.readinto(view))


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
    n_features, zero_based, dtype, threads
        As for :func:`load_libsvm`. They decide what is an error, but indices are given as they
        are in the file.

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
        threads: int = 0,
    ) -> None:
        if not (_is_count(block_bytes) and block_bytes > 0):
            raise ValueError(f"block_bytes must be a whole number > 0, got {block_bytes!r}")
        self._source = source
        self._block_bytes = int(block_bytes)
        self._settings = _Settings.checked(source, dtype, n_features, zero_based, threads)
        self._totals = _Totals()
        self.zero_based = bool(zero_based)

    n_rows = property(lambda self: self._totals.rows)
    n_values = property(lambda self: self._totals.values)
    notes = property(lambda self: self._totals.notes)

    @property
    def smallest_index(self) -> int | None:
        """The smallest index so far."""
        return self._totals.smallest if self._totals.values else None

    @property
    def largest_index(self) -> int | None:
        """The largest index so far."""
        return self._totals.largest if self._totals.values else None

    def __iter__(self) -> Iterator[LibsvmBlock]:
        with _opened(self._source) as file, _executor(self._settings.threads) as executor:
            parser = _Parser(self._settings, 0, executor)
            self._totals = parser.totals
            for text, end in self._texts(open_source(file, self._settings.file)):
                first_row = parser.totals.rows
                arrays = parser.parse(self._pieces(text, end))
                if arrays.labels.size:
                    yield LibsvmBlock(
                        arrays.values, arrays.indices, arrays.indptr, arrays.labels, first_row
                    )
            self.zero_based = parser.totals.finish(self._settings)

    def _pieces(self, text: NDArray[np.uint8], end: int) -> list[_Piece]:
        count = max(1, min(self._settings.threads, end // _PIECE_BYTES))
        cuts = [0]
        for i in range(1, count):
            nominal = max(cuts[-1], end * i // count)
            line_end = kernels.first_line_end(text[nominal:end])
            cuts.append(nominal + line_end if line_end else end)
        cuts.append(end)
        return [
            _Piece(
                lambda a=a, b=b: (text[a:], b - a),  # type: ignore[misc]
                *kernels.survey(text[a:b]),
            )
            for a, b in itertools.pairwise(cuts)
            if a < b
        ]

    def _texts(self, source: ByteSource) -> Iterator[tuple[NDArray[np.uint8], int]]:
        """Whole lines: a buffer and where they end in it."""
        # There must be room for what a byte order mark might have been.
        least = max(self._block_bytes, len(_BYTE_ORDER_MARK)) + PADDING
        buffer = np.empty(least, dtype=np.uint8)
        filled, at_end, damage = _skip_mark(source, buffer)
        while True:
            if not at_end:
                filled, at_end, damage = _fill(source, buffer, filled, buffer.size - PADDING)
            whole = at_end and damage is None
            cut = filled if whole else kernels.last_line_end(buffer[:filled])
            if cut:
                buffer[filled : filled + PADDING] = ord("\n")
                yield buffer, cut
            if damage is not None:
                # What came before is judged first, so that the verdict is that of any block size.
                raise damage
            if at_end:
                return
            rest = buffer[cut:filled]
            # A line longer than the buffer doubles it, until the line is over.
            size = 2 * buffer.size if cut == 0 else max(least, rest.size + PADDING + 1)
            buffer = np.empty(size, dtype=np.uint8) if size != buffer.size else buffer
            buffer[: rest.size] = rest.copy()
            filled = rest.size


def _skip_mark(
    source: ByteSource, buffer: NDArray[np.uint8]
) -> tuple[int, bool, DamagedFileError | None]:
    """Read as much as a byte order mark takes, and forget it if it is one."""
    size = len(_BYTE_ORDER_MARK)
    filled, at_end, damage = _fill(source, buffer, 0, size)
    if bytes(buffer[:filled]) == _BYTE_ORDER_MARK:
        filled = 0
    return filled, at_end, damage


def _fill(
    source: ByteSource, buffer: NDArray[np.uint8], filled: int, size: int
) -> tuple[int, bool, DamagedFileError | None]:
    """Read until ``size`` bytes are there.

    Returns how many are, whether the text ends there, and why if it should not.
    """
    while filled < size:
        try:
            data = source.read(size - filled)
        except DamagedFileError as error:
            return filled, True, error
        if not data:
            return filled, True, None
        buffer[filled : filled + len(data)] = np.frombuffer(data, dtype=np.uint8)
        filled += len(data)
    return filled, False, None


def read_libsvm(
    source: Source,
    *,
    n_features: int | None = None,
    zero_based: bool | None = None,
    dtype: Any = np.float64,
    threads: int = 0,
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
    settings = _Settings.checked(source, dtype, n_features, zero_based, threads)
    with _opened(source) as file:
        first = _first_of_plain_file(file, source)
        if first is not None:
            return _read_plain(file, settings, first)
        blocks = LibsvmBlocks(
            file, n_features=n_features, zero_based=zero_based, dtype=dtype, threads=threads
        )
        # Messages name the path, not the file that was opened for it.
        blocks._settings = settings
        parts = list(blocks)
    base = int(not blocks.zero_based)
    arrays = _joined(parts)
    parts.clear()
    arrays.indices -= arrays.indices.dtype.type(base)
    return _result(arrays, settings, blocks._totals, base)


def load_libsvm(
    path: Source,
    *,
    n_features: int | None = None,
    zero_based: bool | None = None,
    dtype: Any = np.float64,
    threads: int = 0,
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
    threads : int, default=0
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
        path, n_features=n_features, zero_based=zero_based, dtype=dtype, threads=threads
    )
    return data.X, data.y


def _read_plain(file: Any, settings: _Settings, first: int) -> LibsvmFile:
    # Counting from one is by far the most usual, so it is assumed until known otherwise.
    base = int(not settings.zero_based)
    plain = _PlainFile(file, settings)
    with _executor(settings.threads if plain.size > _PIECE_BYTES else 1) as executor:
        parser = _Parser(settings, base, executor)
        arrays = parser.parse(plain.pieces(parser, first))
    plain.refuse_changed()
    if parser.totals.finish(settings) and base == 1:
        arrays.indices += arrays.indices.dtype.type(1)
        base = 0
    return _result(arrays, settings, parser.totals, base)


def _result(arrays: _Arrays, settings: _Settings, totals: _Totals, base: int) -> LibsvmFile:
    columns = totals.largest + 1 - base if totals.values else 0
    if settings.n_features is not None:
        columns = settings.n_features
    indptr: NDArray[Any] = arrays.indptr
    if max(totals.values, columns) <= np.iinfo(np.int32).max:
        indptr = indptr.astype(np.int32)
    X = sp.csr_matrix((arrays.values, arrays.indices, indptr), shape=(totals.rows, columns))
    # The parser has seen to it; SciPy would look again.
    X.has_sorted_indices = X.has_canonical_format = True
    return LibsvmFile(X, arrays.labels, base == 0, totals.notes)


def _joined(parts: list[LibsvmBlock]) -> _Arrays:
    starts = _sums(part.values.size for part in parts)
    ends = [part.indptr[1:] + start for part, start in zip(parts, starts[:-1], strict=True)]
    return _Arrays(
        np.concatenate([part.values for part in parts]),
        np.concatenate([part.indices for part in parts]),
        np.concatenate([np.zeros(1, dtype=np.int64), *ends]),
        np.concatenate([part.labels for part in parts]),
    )


def _first_of_plain_file(file: Any, source: Source) -> int | None:
    """Where the text of a plain file begins; None if it has to be read from front to back."""
    if not isinstance(source, str | bytes | os.PathLike):
        return None
    status = os.fstat(file.fileno())
    # Files that the system makes up as they are read have no size.
    if not stat.S_ISREG(status.st_mode) or status.st_size == 0:
        return None
    first = file.read(8)
    file.seek(0)
    if not first or compression_of(first) is not None:
        return None
    return len(_BYTE_ORDER_MARK) if first.startswith(_BYTE_ORDER_MARK) else 0


@contextmanager
def _opened(source: Source) -> Iterator[Any]:
    if isinstance(source, str | bytes | os.PathLike):
        with open(source, "rb", buffering=0) as file:
            yield file
    elif hasattr(source, "read"):
        yield source
    else:
        raise TypeError(f"expected a path or a binary file, got {type(source).__name__}")


@contextmanager
def _executor(threads: int) -> Iterator[ThreadPoolExecutor | None]:
    if threads == 1:
        yield None
        return
    with ThreadPoolExecutor(threads, thread_name_prefix="certsvm-read") as executor:
        yield executor


def _name_of(source: Source) -> str:
    if isinstance(source, str | bytes | os.PathLike):
        return os.fsdecode(source)
    name = getattr(source, "name", None)
    return name if isinstance(name, str) else "<input>"


def _changed(file: str) -> LibsvmError:
    return LibsvmError("the file was changed while it was read; read it again", file)


def _available_processors() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _is_count(number: Any) -> bool:
    whole = isinstance(number, int | np.integer) and not isinstance(number, bool)
    return bool(whole and number >= 0)


def _sums(counts: Any, first: int = 0) -> list[int]:
    """Sums of the first 0, 1, 2, ... counts, all of them last."""
    return list(itertools.accumulate(counts, initial=first))


def _move(array: NDArray[Any], old: int, new: int, size: int) -> None:
    if new != old:
        array[new : new + size] = array[old : old + size]


def _shorten(array: NDArray[Any], size: int) -> NDArray[Any]:
    """The first entries; copied if holding on to the others would waste much memory."""
    return array[:size].copy() if size < array.size - array.size // 8 else array[:size]
