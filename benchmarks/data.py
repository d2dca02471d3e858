"""Data sets from a folder of libsvm files, by name; missing ones are reported and left out."""

from __future__ import annotations

import lzma
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.datasets import load_svmlight_file

# The optimum without intercept, for C = 0.05, 1 and 10: a number where it is known to nine
# digits (interior point), an interval where it is known less well (dual coordinate descent).
OPTIMA: dict[str, dict[float, tuple[float, float]]] = {
    "a9a": {0.05: (577.59252,) * 2, 1: (11433.8077,) * 2, 10: (114237.950,) * 2},
    "w8a": {0.05: (400.60234,) * 2, 1: (6604.88662,) * 2, 10: (62588.4479,) * 2},
    "ijcnn1": {0.05: (461.176878,) * 2, 1: (8596.00424,) * 2, 10: (85446.7251,) * 2},
    "covtype": {0.05: (18754.9753,) * 2, 1: (340487.909,) * 2, 10: (3327591.25,) * 2},
    "kdd99": {0.05: (385.06799,) * 2, 1: (4298.6286,) * 2, 10: (32736.96,) * 2},
    "moneyfx": {0.05: (89.2034, 89.2041), 1: (379.724, 379.755), 10: (884.370, 884.458)},
    "news20": {0.05: (567.879, 567.882), 1: (2525.23, 2525.45), 10: (3108.86, 3109.14)},
    "debian": {0.05: (1557.490, 1557.502), 1: (14907.92, 14909.29), 10: (75434.5, 75441.6)},
}

# Sets whose optimum is not known from other methods.
OTHERS = ("mushrooms",)


class MissingDataError(FileNotFoundError):
    """A data set is not in the folder."""


class DataSet(NamedTuple):
    """Rows and labels +1 or -1."""

    name: str
    X: sp.csr_matrix
    y: NDArray[np.float64]


def available(folder: Path | None, names: list[str] | None = None) -> Iterator[DataSet]:
    """The named sets that the folder has, one at a time; by default those with known optima."""
    if folder is None:
        print("no data folder given (--data): only generated data is used", file=sys.stderr)
        return
    for name in names or OPTIMA:
        try:
            yield load(folder, name)
        except MissingDataError as error:
            print(f"{name} is left out: {error}", file=sys.stderr)


def load(folder: Path, name: str) -> DataSet:
    """Read a set, plain or .xz; Covertype as class 1 against the rest, times 0.001."""
    if name == "covtype":
        with _open(find(folder, "covtype.csv")) as file:
            table = np.loadtxt(file, delimiter=",", skiprows=1)
        X = sp.csr_matrix(0.001 * table[:, :-1])
        return DataSet(name, X, np.where(table[:, -1] == 1, 1.0, -1.0))
    return read(find(folder, name), name)


def read(path: Path, name: str) -> DataSet:
    """A libsvm file with two labels; the larger one is +1."""
    with _open(path) as file:
        X, y = load_svmlight_file(file)
    # Newer versions read 64-bit indices, which scikit-learn's own LinearSVC refuses.
    X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    return DataSet(name, X, np.where(y > np.mean((y.min(), y.max())), 1.0, -1.0))


def find(folder: Path, name: str) -> Path:
    """The file of that name, plain or .xz."""
    for path in (folder / name, folder / f"{name}.xz"):
        if path.exists():
            return path
    raise MissingDataError(f"neither {name} nor {name}.xz is in {folder}")


def _open(path: Path) -> Any:
    return lzma.open(path, "rb") if path.suffix == ".xz" else path.open("rb")
