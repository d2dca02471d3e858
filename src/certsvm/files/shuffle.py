"""Rows in random order, in bounded memory.

Each row goes into a bucket, a temporary file, drawn at random; then each bucket is shuffled in
memory. All orders of the rows are equally likely. A bucket that does not fit in memory is split
again in the same way.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from certsvm.files.atomic import WriteError
from certsvm.files.batch import Batch, joined

_MOST_BUCKETS = 256


class Bucket:
    """A temporary file of batches."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.nbytes = 0
        self.n_rows = 0

    def put(self, rows: Batch) -> None:
        """Append a batch."""
        self.nbytes += rows.nbytes
        self.n_rows += len(rows.y)
        X = rows.X
        arrays = [X.data, X.indices, X.indptr] if sp.issparse(X) else [X]
        weights = [] if rows.weights is None else [rows.weights]
        try:
            with self.path.open("ab") as file:
                for array in (np.array(X.shape), rows.y, *weights, *arrays):
                    _write(file, np.ascontiguousarray(array))
        except OSError as error:
            raise WriteError(
                error.errno,
                f"cannot write rows to a temporary file: {error.strerror}",
                str(self.path),
            ) from None

    def batches(self, *, sparse: bool, weighted: bool) -> Iterator[Batch]:
        """The batches, in the order in which they were put in."""

        def array(file: Any) -> NDArray[Any]:
            loaded: NDArray[Any] = np.lib.format.read_array(file, allow_pickle=False)
            return loaded

        with self.path.open("rb") as file:
            while file.peek(1):
                shape, y = tuple(array(file).tolist()), array(file)
                weights = array(file) if weighted else None
                if sparse:
                    X = sp.csr_matrix((array(file), array(file), array(file)), shape=shape)
                else:
                    X = array(file)
                yield Batch(X, y, weights)


def _write(file: IO[bytes], array: NDArray[Any]) -> None:
    # NumPy's own writer hides the reason of an error.
    header = np.lib.format.header_data_from_array_1_0(array)
    np.lib.format.write_array_header_2_0(file, header)
    if array.size:
        file.write(array.data.cast("B") if array.dtype.kind != "U" else array.tobytes())


def shuffled(
    batches: Iterable[Batch], folder: Path, most: int, expected: int, rng: np.random.Generator
) -> Iterator[Batch]:
    """All rows in random order, in runs of at most about ``most`` bytes.

    Parameters
    ----------
    batches : iterable of Batch
        Read once, before anything is returned.
    folder : path
        Folder for the buckets.
    most : int
        Bytes of rows that may be in memory at once, besides a copy of them.
    expected : int
        Estimate of the size of all rows; a wrong estimate costs time, not memory.
    rng : Generator
        The source of randomness.
    """
    n_buckets = int(np.clip(-(-2 * expected // most), 1, _MOST_BUCKETS))
    name = f"{rng.integers(2**62):016x}"
    buckets = [Bucket(folder / f"{name}-{i}.rows") for i in range(n_buckets)]
    sparse = weighted = False
    for rows in batches:
        sparse, weighted = sp.issparse(rows.X), rows.weights is not None
        which = rng.integers(n_buckets, size=len(rows.y))
        sorted_rows = rows.take(np.argsort(which, kind="stable"))
        edges = np.append(0, np.cumsum(np.bincount(which, minlength=n_buckets)))
        for bucket, part in zip(buckets, sorted_rows.cut(edges), strict=True):
            if len(part.y):
                bucket.put(part)
    for bucket in buckets:
        if bucket.nbytes == 0:
            continue
        inside = bucket.batches(sparse=sparse, weighted=weighted)
        # A single row cannot be split, however large it is.
        if bucket.nbytes > most and bucket.n_rows > 1:
            yield from shuffled(inside, folder, most, bucket.nbytes, rng)
        else:
            rows = joined(list(inside))
            yield rows.take(rng.permutation(len(rows.y)))
        bucket.path.unlink()
