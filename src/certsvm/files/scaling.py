"""Scaling of columns: x becomes (x - shift) * factor, with a shift and a factor for each column."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from certsvm.files.atomic import atomic_write
from certsvm.files.batch import Batch, csr
from certsvm.files.container import ModelFileError, read_container, write_container

_KIND = "scaling"


@dataclass(frozen=True, eq=False)
class Scaling:
    """A shift and a factor for each column, and what is known of the columns.

    Zeros of sparse rows stay zeros: their shift is zero.

    Attributes
    ----------
    shift, factor : ndarray of shape (n_columns,)
        The numbers.
    names : list of str, or None
        Names of the columns.
    origin : dict
        What a model has to know of the file that they come from.

    Examples
    --------
    >>> X = np.array([[1.0, 20.0], [-2.0, 40.0]])
    >>> Scaling.of(X).apply(X).tolist()
    [[0.5, 0.5], [-1.0, 1.0]]
    >>> Scaling.of(X, standardize=True).apply(X).tolist()
    [[1.0, -1.0], [-1.0, 1.0]]
    """

    shift: NDArray[np.float64]
    factor: NDArray[np.float64]
    names: list[str] | None
    origin: dict[str, Any]

    @classmethod
    def of(
        cls, X: Any, names: list[str] | None = None, origin: dict[str, Any] | None = None, *,
        standardize: bool = False,
    ) -> Scaling:  # fmt: skip
        """Numbers that bring the columns of ``X`` into [-1, 1], or to mean 0 and deviation 1."""
        shift = np.zeros(X.shape[1])
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            if not standardize:
                sizes = abs(X).max(axis=0)
                sizes = sizes.toarray().ravel() if sp.issparse(X) else sizes
            elif sp.issparse(X):
                mean = np.asarray(X.mean(axis=0, dtype=np.float64)).ravel()
                stored = np.bincount(X.indices, minlength=X.shape[1])
                squares = (X.data - mean[X.indices]) ** 2
                squares = np.bincount(X.indices, weights=squares, minlength=X.shape[1])
                sizes = np.sqrt((squares + (X.shape[0] - stored) * mean**2) / X.shape[0])
            else:
                shift, sizes = X.mean(axis=0, dtype=np.float64), X.std(axis=0, dtype=np.float64)
            factor = 1.0 / np.where(sizes > 0, sizes, 1.0).astype(np.float64)
        return cls(shift, factor, names, origin or {})

    def __post_init__(self) -> None:
        n, names, arrays = self.factor.size, self.names, (self.shift, self.factor)
        if not all(array.shape == (n,) and array.dtype == np.float64 for array in arrays):
            raise ValueError("shift and factor must be float64, one for each column")
        if names is not None and [type(name) for name in names] != [str] * n:
            raise ValueError("names must be strings, one for each column")
        good = np.isfinite(self.shift) & np.isfinite(self.factor) & (self.factor > 0)
        if not good.all():
            j = int(np.argmin(good))
            raise ValueError(
                f"column {j if names is None else names[j]!r} has values too large or too small to "
                "be scaled in float64"
            )

    def apply(self, X: Any) -> Any:
        """The rows, scaled; sparse rows may have further columns, which stay as they are."""
        if not sp.issparse(X):
            return ((X - self.shift) * self.factor).astype(X.dtype)
        factor = np.ones(max(X.shape[1], self.factor.size))
        factor[: self.factor.size] = self.factor
        return csr((X.data * factor[X.indices]).astype(X.dtype), X.indices, X.indptr, X.shape)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the numbers to a file, atomically."""
        content = {"names": self.names, "origin": self.origin}
        write_container(path, _KIND, content, {"shift": self.shift, "factor": self.factor})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Scaling:
        """Read what ``save`` has written; anything else is a ModelFileError."""
        content, arrays = read_container(path, _KIND)
        try:
            return cls(**arrays, names=content["names"], origin={**content["origin"]})
        except (KeyError, TypeError, ValueError) as error:
            raise ModelFileError(f"{os.fspath(path)} holds no scaling: {error}") from None


def save_table(
    path: str, rows: Batch, names: list[str], *, label: str | None, weight: str | None
) -> None:
    """Write rows as a table, atomically: Parquet if the name ends so, else CSV."""
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet

    X = rows.X.toarray() if sp.issparse(rows.X) else rows.X
    columns = dict(zip(names, np.ascontiguousarray(X.T), strict=True))
    if weight is not None:
        columns[weight] = rows.weights
    if label is not None:
        columns[label] = rows.y.tolist()
    with atomic_write(path) as file:
        if path.lower().endswith(".parquet"):
            pa.parquet.write_table(pa.table(columns), file)
        else:
            pa.csv.write_csv(pa.table(columns), file)
