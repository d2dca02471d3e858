"""Labels that are no classes, or that would be merged."""

from __future__ import annotations

import math
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

FEW_ROWS = 20
"""So few rows may well be all different."""

WOULD_BE_MERGED = (
    "has more digits than float64 keeps, and would be merged with others: give the classes shorter "
    "numbers"
)
# More labels than this are no classes if there are decimal numbers among them.
_MOST_DECIMALS = 20


def refuse_label_of_each_row(n_rows: int, n_classes: int) -> None:
    """Raise ValueError if each of many rows has a label of its own.

    Then the labels are row numbers, names or measurements, and no classes.

    Examples
    --------
    >>> refuse_label_of_each_row(1000, 10)
    >>> refuse_label_of_each_row(1000, 1000)
    Traceback (most recent call last):
    ...
    ValueError: each of the 1000 rows has a label of its own, ...
    """
    if n_rows > FEW_ROWS and n_classes >= n_rows:
        raise ValueError(
            f"each of the {n_rows} rows has a label of its own, so these are row numbers, names or "
            "measurements, not classes. Of a table, name the column of classes (--label, or "
            "label=...); in libsvm text, put a class at the beginning of each line."
        )


@lru_cache(maxsize=1024)
def label_number(text: str) -> float:
    """The number that a label is; raises a ValueError if float64 does not tell it from others.

    The float64, written with as many digits or as few as tell it from others, must be the label.

    Examples
    --------
    >>> label_number("0.1"), label_number("9007199254740992")
    (0.1, 9007199254740992.0)
    >>> label_number("9007199254740993")
    Traceback (most recent call last):
    ...
    ValueError: the label 9007199254740993 has more digits than float64 keeps, ...
    """
    number = float(text)
    try:
        n_digits = len(Decimal(text).as_tuple().digits)
        written = [f"{number:.{n_digits - 1}e}", *([repr(number)] if n_digits <= 17 else [])]
        kept = any(Decimal(text) == Decimal(other) for other in written)
    except InvalidOperation:
        # An exponent of twenty digits.
        kept = False
    if math.isfinite(number) and not kept:
        raise ValueError(f"the label {text[:40]} {WOULD_BE_MERGED}")
    return number


def refuse_measurements(classes: NDArray[Any]) -> None:
    """Raise ValueError if many labels are decimal numbers, and so hardly classes.

    Examples
    --------
    >>> import numpy as np
    >>> refuse_measurements(np.array([0.5, 1.5]))
    >>> refuse_measurements(np.linspace(0.0, 1.0, 50))
    Traceback (most recent call last):
    ...
    ValueError: there are 50 different labels, and decimal numbers among them (...
    """
    if classes.dtype.kind != "f" or classes.size <= _MOST_DECIMALS:
        return
    decimals = classes[classes != np.floor(classes)]
    if decimals.size:
        raise ValueError(
            f"there are {classes.size} different labels, and decimal numbers among them "
            f"({decimals[0]:g}), so these are measurements, not classes. Of a table, name the "
            "column of classes (--label, or label=...)."
        )
