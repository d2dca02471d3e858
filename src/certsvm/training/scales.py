"""A warning if training takes long and columns differ much in scale.

Columns of very different scales are the usual reason why training takes long. The scales are looked
at only if it does, in one pass over the data.
"""

from __future__ import annotations

import warnings
import weakref

import numpy as np

from certsvm.kernels.jit import kernel
from certsvm.kernels.rows import CsrRows, Vector
from certsvm.problem.base import BaseProblem
from certsvm.problem.memory import Problem
from certsvm.problem.rows import Rows

# Training takes long after so many seconds. Columns differ much by this factor.
_LONG, _MUCH = 10.0, 1000.0

_LOOKED_AT: weakref.WeakSet[Rows] = weakref.WeakSet()


class ScaleWarning(UserWarning):
    """Training takes long, and columns differ much in scale."""


def warn_of_scales(problem: BaseProblem, seconds: float) -> None:
    """Warn if training has taken long and columns differ much in scale, once for the same rows."""
    if seconds < _LONG or not isinstance(problem, Problem) or problem.rows in _LOOKED_AT:
        return
    _LOOKED_AT.add(problem.rows)
    factor = difference_in_scale(problem.rows)
    if factor >= _MUCH:
        warnings.warn(
            f"Training takes long, and columns differ in scale by a factor of {factor:.2g}. Scale "
            "them, for example with StandardScaler or, if they are sparse, MaxAbsScaler of "
            "sklearn.preprocessing.",
            ScaleWarning,
            stacklevel=4,
        )


def difference_in_scale(rows: Rows) -> float:
    """The ratio of the largest to the smallest scale: of the largest absolute values of columns.

    Columns of zeros are left out.

    Examples
    --------
    >>> difference_in_scale(Rows(np.array([[1.0, 0.0, -200.0], [2.0, 0.0, 50.0]])))
    100.0
    """
    if isinstance(rows.arrays, CsrRows):
        largest = np.zeros(rows.n_columns)
        largest_of_columns(rows.arrays, largest)
    else:
        # Two passes, but no copy.
        values = rows.arrays.values
        highest, lowest = values.max(axis=0, initial=0.0), values.min(axis=0, initial=0.0)
        largest = np.maximum(highest, -lowest).astype(np.float64)
    largest = largest[largest > 0.0]
    return float(largest.max() / largest.min()) if largest.size else 1.0


@kernel
def largest_of_columns(rows: CsrRows, out: Vector) -> None:
    """The largest absolute value in each column, where it exceeds ``out``, into ``out``."""
    for j in range(rows.indptr[0], rows.indptr[rows.indptr.size - 1]):
        column = rows.indices[j]
        out[column] = max(out[column], abs(rows.values[j]))
