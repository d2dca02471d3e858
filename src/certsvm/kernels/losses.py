"""The loss of a row, and its properties that solvers and certificates need.

With weights s_k and v = sum_k alpha_k y_k, a loss l makes the two problems

    J(w)     = 1/2 |w|^2 + C sum_k s_k l(w.y_k),
    L(alpha) = sum_k D_k(alpha_k) - 1/2 |v|^2,     0 <= alpha_k <= the end of its box,

where D_k(a) = -C s_k l*(-a / (C s_k)) with the convex conjugate l*, so that

    C s_k l(m) + a m - D_k(a) >= 0     for all margins m and feasible a (Fenchel and Young).

Both losses have D_k(a) = a - a penalty that is quadratic in a, and zero for the hinge.

A loss is a class whose methods are the mathematics. Kernels take an instance as an argument and
call the functions below; compilation chooses the method. Called from Python, they run as plain
Python, and those with arguments of type ``T`` also take arrays.

No loss is positive beyond the margin 1, and all fall as the margin grows.
"""

import math
from typing import NamedTuple, TypeAlias, TypeVar

from certsvm.kernels.jit import loss_operation
from certsvm.kernels.rows import Vector

T = TypeVar("T", float, Vector)


class Hinge(NamedTuple):
    """l(m) = max(0, 1 - m), hence D_k(a) = a and the box ends at C s_k."""

    is_smooth: bool = False
    """It has a kink."""

    @property
    def name(self) -> str:
        """The name in scikit-learn."""
        return "hinge"

    @property
    def largest_multiple(self) -> float:
        """The largest multiple of a feasible alpha that is feasible, whatever alpha is."""
        return 1.0

    @property
    def has_penalty(self) -> bool:
        """Whether ``dual_penalty`` is not zero."""
        return False

    def growth(self, total: float, weight_sum: float, moved: float) -> float:
        """The most that a weighted sum ``total`` of losses grows if margins fall by ``moved``."""
        return weight_sum * moved

    def loss_value(self, margin: float) -> float:
        """max(0, 1 - m)."""
        # Written so that the loss of a NaN margin is NaN.
        return 0.0 if margin >= 1.0 else 1.0 - margin

    def steepness(self, margin: float) -> float:
        """One, everywhere."""
        return 1.0

    def box_end(self, C: float, weight: T) -> T:
        """C s."""
        return C * weight

    def dual_penalty(self, alpha: float, C: float, weight: float) -> float:
        """None."""
        return 0.0

    def dual_gradient(self, margin: float, alpha: float, C: float, weight: float) -> float:
        """G = m - 1."""
        return margin - 1.0

    def coordinate_step(
        self, alpha: float, gradient: float, squared_norm: float, C: float, weight: float,
        omega: float,
    ) -> float:  # fmt: skip
        """clip(a - omega G / |y|^2, 0, C s)."""
        # An empty row has no curvature: its alpha goes to the end of the box.
        new = C * weight
        if squared_norm > 0.0:
            new = min(max(alpha - omega * gradient / squared_norm, 0.0), new)
        return new

    def smoothing_centre(self, C: float, weight: T) -> T:
        """The middle of the box."""
        return 0.5 * C * weight

    def response(self, margin: T, alpha_hat: T, sigma: float, C: float, weight: T) -> T:
        """a_hat + sigma s (1 - m)."""
        return alpha_hat + sigma * weight * (1.0 - margin)

    def response_slope(self, sigma: float, C: float) -> float:
        """Sigma."""
        return sigma


class SquaredHinge(NamedTuple):
    """l(m) = max(0, 1 - m)^2, hence D_k(a) = a - a^2 / (4 C s_k), and the box has no end."""

    is_smooth: bool = True
    """It is its own smoothed form."""

    @property
    def name(self) -> str:
        """The name in scikit-learn."""
        return "squared_hinge"

    @property
    def largest_multiple(self) -> float:
        """Infinity, as the box has no end."""
        return math.inf

    @property
    def has_penalty(self) -> bool:
        """Whether ``dual_penalty`` is not zero."""
        return True

    def growth(self, total: float, weight_sum: float, moved: float) -> float:
        """The same for the square, by the inequality of Cauchy and Schwarz."""
        root = math.sqrt(max(0.0, total))
        return moved * (2.0 * math.sqrt(weight_sum) * root + weight_sum * moved)

    def loss_value(self, margin: float) -> float:
        """max(0, 1 - m)^2."""
        # Written so that the loss of a NaN margin is NaN.
        return 0.0 if margin >= 1.0 else (1.0 - margin) * (1.0 - margin)

    def steepness(self, margin: float) -> float:
        """2 max(0, 1 - m)."""
        return 2.0 * max(0.0, 1.0 - margin)

    def box_end(self, C: float, weight: T) -> T:
        """Infinity."""
        return weight + math.inf

    def dual_penalty(self, alpha: float, C: float, weight: float) -> float:
        """a^2 / (4 C s)."""
        # Rows without weight have no alpha. A square could underflow.
        return alpha * (alpha / (4.0 * C * weight)) if alpha > 0.0 else 0.0

    def dual_gradient(self, margin: float, alpha: float, C: float, weight: float) -> float:
        """G = m - 1 + a / (2 C s)."""
        return margin - 1.0 + alpha / (2.0 * C * weight)

    def coordinate_step(
        self, alpha: float, gradient: float, squared_norm: float, C: float, weight: float,
        omega: float,
    ) -> float:  # fmt: skip
        """max(0, a - omega G / (|y|^2 + 1 / (2 C s)))."""
        return max(alpha - omega * gradient / (squared_norm + 0.5 / (C * weight)), 0.0)

    def smoothing_centre(self, C: float, weight: T) -> T:
        """Zero: nothing is smoothed."""
        return 0.0 * weight

    def response(self, margin: T, alpha_hat: T, sigma: float, C: float, weight: T) -> T:
        """2 C s (1 - m), whatever alpha_hat and sigma are."""
        return 2.0 * C * weight * (1.0 - margin)

    def response_slope(self, sigma: float, C: float) -> float:
        """2 C."""
        return 2.0 * C


HINGE = Hinge()
SQUARED_HINGE = SquaredHinge()

Loss: TypeAlias = Hinge | SquaredHinge

LOSS_TYPES = (Hinge, SquaredHinge)
LOSSES: dict[str, Loss] = {loss.name: loss for loss in (HINGE, SQUARED_HINGE)}


def loss_named(name: str) -> Loss:
    """The loss of a name in scikit-learn.

    Examples
    --------
    >>> loss_named("squared_hinge").is_smooth
    True
    """
    if name not in LOSSES:
        raise ValueError(f"loss must be one of {list(LOSSES)}, got {name!r}")
    return LOSSES[name]


loss_value = loss_operation(Hinge.loss_value)
"""l(m), the loss of a row with this margin."""

steepness = loss_operation(Hinge.steepness)
"""The largest -l' at this margin and beyond: the error in the loss per error in the margin."""

box_end = loss_operation(Hinge.box_end)
"""The largest feasible alpha of a row."""

dual_penalty = loss_operation(Hinge.dual_penalty)
"""a - D(a), the quadratic part of the term of a row in L."""

dual_gradient = loss_operation(Hinge.dual_gradient)
"""G = m - D'(a), minus the derivative of L by the alpha of a row whose margin at v is m."""

coordinate_step = loss_operation(Hinge.coordinate_step)
"""The new alpha of a row: for ``omega`` = 1, the maximum of L in this alpha inside its box.

``gradient`` is the ``dual_gradient``; ``squared_norm`` is |y|^2, or another curvature. The step is
``omega`` times as long, still inside the box.
"""

smoothing_centre = loss_operation(Hinge.smoothing_centre)
"""The initial alpha_hat, the centre of smoothing."""

response = loss_operation(Hinge.response)
"""The alpha of the smoothed loss at this margin, before it is clipped to the box.

Clipped, it maximises  D(a) - a m - (a - a_hat)^2 / (2 sigma s)  over the box, and it is minus the
derivative of that maximum by m. If it is strictly inside the box, the row is free. Response, centre
and box are all proportional to the weight s. If the loss is smooth, it is not smoothed further: the
last term is left out.
"""

response_slope = loss_operation(Hinge.response_slope)
"""Minus the derivative of the response by the margin, per unit of the row's weight."""
