"""What is minimised, besides the data."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from certsvm.kernels.losses import HINGE, LOSS_TYPES, Loss
from certsvm.scalars import as_float


def positive_C(C: float) -> float:
    """Return C as a float, or raise a ValueError."""
    number = as_float(C, "C")
    if not (math.isfinite(number) and number > 0):
        raise ValueError(f"C must be a finite number > 0, got {C!r}")
    return number


@dataclass(frozen=True)
class Objective:
    """The parameters of J; problems, settings and paths hold it.

    Attributes
    ----------
    C : float, default=1.0
        Weight of the loss relative to the regulariser.
    loss : Loss, default=HINGE
        The loss of a row.
    penalize_intercept : bool, default=True
        Whether the regulariser contains the entry of w behind the intercept, if there is one.

    Examples
    --------
    >>> Objective(C=2.0).at(3.0).C
    3.0
    """

    C: float = 1.0
    loss: Loss = HINGE
    penalize_intercept: bool = True

    def __post_init__(self) -> None:
        if not isinstance(self.loss, LOSS_TYPES):
            raise TypeError(f"loss must be one of certsvm.kernels.losses, got {self.loss!r}")
        object.__setattr__(self, "C", positive_C(self.C))
        object.__setattr__(self, "penalize_intercept", bool(self.penalize_intercept))

    def at(self, C: float) -> Objective:
        """The same with another C."""
        return replace(self, C=C)

    def frees(self, intercept_scaling: float) -> bool:
        """Whether an intercept of this scale is free; there is none if it is zero."""
        return intercept_scaling > 0.0 and not self.penalize_intercept

    @property
    def keywords(self) -> dict[str, Any]:
        """Arguments for a ``Problem``."""
        return {"C": self.C, "loss": self.loss, "penalize_intercept": self.penalize_intercept}


HINGE_OBJECTIVE = Objective()
