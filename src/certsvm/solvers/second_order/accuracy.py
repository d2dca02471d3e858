"""Remedies if rounding is large beside the gap: recompute, or scale w."""

from __future__ import annotations

from certsvm.certificates.best import BestValues
from certsvm.certificates.rounding import Bound

# The share of the gap, or of the tolerance, that rounding may take.
_ROUNDING = 0.05
# The share of the tolerance that may be spent on moving rows off the margin.
_LENGTHENING = 0.1


def too_rounded(rounding: float, best: BestValues) -> bool:
    """Whether rounding is so large beside the gap that recomputing is worthwhile."""
    return rounding > _ROUNDING * best.gap


def lengthening(primal: Bound, best: BestValues, target: float) -> float | None:
    """A factor by which to scale w, if that may give a lower bound on J with its rounding.

    Each row on the margin may have a loss of a rounding error, times C. Scaling w by
    1 + target / 10 moves these rows off the margin, where their loss is certainly zero. This is
    worth trying once the target is met up to rounding.
    """
    matters = primal.rounding > _ROUNDING * (target * best.dual)
    return 1.0 + _LENGTHENING * target if matters and best.relative_gap <= target else None
