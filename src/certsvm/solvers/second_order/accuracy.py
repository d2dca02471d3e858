"""What to do when rounding is large beside the gap: compute anew, or scale w a little."""

from __future__ import annotations

from certsvm.certificates.best import BestValues
from certsvm.certificates.rounding import Bound

# The share of the gap, or of the tolerance, that rounding may take.
_ROUNDING = 0.05
# The share of the tolerance that may be spent on moving rows off the margin.
_LENGTHENING = 0.1


def too_rounded(rounding: float, best: BestValues) -> bool:
    """Whether rounding takes too much of the gap, so that a fresh computation is worthwhile."""
    return rounding > _ROUNDING * best.gap


def lengthening(primal: Bound, best: BestValues, target: float) -> float | None:
    """A factor by which to scale w, if that may let more be claimed.

    Rows on the margin may have a loss of a rounding error each, times C. Scaling w by
    1 + target / 10 moves them off the margin, where they certainly have none. That is worth trying
    once the target is met but for rounding.
    """
    matters = primal.rounding > _ROUNDING * (target * best.dual)
    return 1.0 + _LENGTHENING * target if matters and best.relative_gap <= target else None
