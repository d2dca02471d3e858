"""The size of the sample on which a run begins."""

from __future__ import annotations

# A sample has this share of the rows, but at least so many per column, and in all.
_SHARE, _PER_COLUMN, _FEWEST = 1 / 12, 20, 1000
# It is worthwhile if there are so many times more rows.
_WORTHWHILE = 3
# A sample lacks the rows that matter if its share of the weight is less than this part of its share
# of the rows.
_LEAST_WEIGHT = 0.1
# The run on a sample ends at this relative gap, or after so many steps.
SAMPLE_GAP, SAMPLE_STEPS = 0.03, 30

# If rows come in parts, the first rows are the sample: this share of the rows, within limits per
# column. With fewer rows per column than the last number, it is not worthwhile.
_FIRST_SHARE, _FIRST_LIMITS, _FIRST_PER_COLUMN = 1 / 64, (100, 1000), 10
FIRST_ROWS_GAP, FIRST_ROWS_STEPS = 0.01, 60


def sample_size(m: int, columns: int, most: int | None = None) -> int | None:
    """The size of a random sample of ``m`` rows, at most ``most``; None if it is not worthwhile.

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
    """Whether a sample of ``size`` of ``m`` rows, with this share of the weight, is useful.

    If a few rows have most of the weight, a sample may contain none of them.
    """
    return weight_share >= _LEAST_WEIGHT * size / m


def first_rows(n_rows: int, columns: int) -> int:
    """The number of first rows to use as a sample.

    Examples
    --------
    >>> first_rows(10_000, 10), first_rows(128_000, 10), first_rows(10_000_000, 10)
    (1000, 2000, 10000)
    """
    least, most = (limit * columns for limit in _FIRST_LIMITS)
    return int(min(max(_FIRST_SHARE * n_rows, least), most))


def first_rows_suffice(rows: int, columns: int) -> bool:
    """Whether so many rows are a useful sample."""
    return rows >= _FIRST_PER_COLUMN * columns
