"""Remedies if rounding is large beside the gap: recompute, or scale w."""

from __future__ import annotations

from certsvm.certificates.best import BestValues
from certsvm.certificates.rounding import Bound

# The share of the gap, or of the tolerance, that rounding may take.
_ROUNDING = 0.05
# The share of the tolerance that is spent on moving rows off the margin, and the largest share. The
# multiple of the margin slack that moves them off.
_LENGTHENING, _LONGEST, _BEYOND_SLACK = 0.1, 0.4, 1.5


def too_rounded(rounding: float, best: BestValues) -> bool:
    """Whether rounding is so large beside the gap that recomputing is worthwhile."""
    return rounding > _ROUNDING * best.gap


def lengthening(primal: Bound, best: BestValues, target: float, slack: float = 0.0) -> float | None:
    """A factor by which to scale w, if that may give a lower bound on J with its rounding.

    Each row on the margin may have a loss of a rounding error, times C. Scaling w by
    1 + target / 10 moves these rows off the margin, where their loss is certainly zero. If the
    margin ``slack`` is larger, so is the factor, up to a limit. This is worth trying once the
    target is met up to rounding.
    """
    if not (primal.rounding > _ROUNDING * (target * best.dual) and best.relative_gap <= target):
        return None
    needed = _BEYOND_SLACK * slack
    return 1.0 + max(_LENGTHENING * target, needed if needed <= _LONGEST * target else 0.0)
