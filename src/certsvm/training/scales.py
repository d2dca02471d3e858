"""A warning if training takes long and columns differ much in scale.

Columns of very different scales are the usual reason why training takes long. The scales are looked
at only if it does.
"""

from __future__ import annotations

import warnings
import weakref

import numpy as np

from certsvm.matrices import dense
from certsvm.problem.base import BaseProblem
from certsvm.problem.memory import Problem
from certsvm.problem.rows import Rows

# Training takes long after so many seconds. Columns differ much by this factor.
_LONG, _MUCH = 10.0, 1000.0
_SAMPLE = 100_000

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

    Columns of zeros are left out, and of many rows all but the first.

    Examples
    --------
    >>> difference_in_scale(Rows(np.array([[1.0, 0.0, -200.0], [2.0, 0.0, 50.0]])))
    100.0
    """
    sample = rows.matrix[:_SAMPLE]
    highest, lowest = (dense(ends).ravel() for ends in (sample.max(axis=0), sample.min(axis=0)))
    largest = np.maximum(highest, -lowest).astype(np.float64)
    largest = largest[largest > 0.0]
    return float(largest.max() / largest.min()) if largest.size else 1.0
