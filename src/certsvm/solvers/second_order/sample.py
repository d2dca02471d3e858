"""How many rows to begin on, before all of them."""

from __future__ import annotations

# A sample has this share of the rows, and no fewer than so many for each column, nor in all.
_SHARE, _PER_COLUMN, _FEWEST = 1 / 12, 20, 1000
# It is worth taking from a number of rows that is larger by this factor.
_WORTHWHILE = 3
# A sample whose weight is so much less than its size suggests lacks the rows that matter.
_LEAST_WEIGHT = 0.1
# The run on a sample ends at this relative gap, or after so many steps.
SAMPLE_GAP, SAMPLE_STEPS = 0.03, 30

# Of parts, the first one serves: this share of the rows where that can be chosen, within limits of
# rows for each column; and so many for each column, or it is not worth taking.
_FIRST_SHARE, _FIRST_LIMITS, _FIRST_PER_COLUMN = 1 / 64, (100, 1000), 10
FIRST_ROWS_GAP, FIRST_ROWS_STEPS = 0.01, 60


def sample_size(m: int, columns: int, most: int | None = None) -> int | None:
    """Rows of a random sample of ``m``, at most ``most``; None if it is not worth taking.

    Examples
    --------
    >>> sample_size(120_000, 10), sample_size(120_000, 1000), sample_size(2000, 10)
    (10000, 20000, None)
    """
    size = max(int(_SHARE * m), _PER_COLUMN * columns, _FEWEST)
    if most is not None:
        size = min(size, most)
    return None if _WORTHWHILE * size > m else size


def has_enough_weight(weight_share: float, size: int, m: int) -> bool:
    """Whether ``size`` of ``m`` rows, with this share of all weight, can stand for all.

    Where few rows have most of the weight, a sample may have none of them.
    """
    return weight_share >= _LEAST_WEIGHT * size / m


def first_rows(n_rows: int, columns: int) -> int:
    """How many of the first rows to ask for.

    Examples
    --------
    >>> first_rows(10_000, 10), first_rows(128_000, 10), first_rows(10_000_000, 10)
    (1000, 2000, 10000)
    """
    least, most = (limit * columns for limit in _FIRST_LIMITS)
    return int(min(max(_FIRST_SHARE * n_rows, least), most))


def first_rows_suffice(rows: int, columns: int) -> bool:
    """Whether so many rows say enough of the others."""
    return rows >= _FIRST_PER_COLUMN * columns
