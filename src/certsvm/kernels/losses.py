"""The loss of a row, and its properties that solvers and certificates need.

With weights s_k and v = sum_k alpha_k y_k, a loss l makes the two problems

    J(w)     = 1/2 |w|^2 + C sum_k s_k l(w.y_k),
    L(alpha) = sum_k D_k(alpha_k) - 1/2 |v|^2,     0 <= alpha_k <= the end of its box,

where D_k(a) = -C s_k l*(-a / (C s_k)) with the convex conjugate l*, so that

    C s_k l(m) + a m - D_k(a) >= 0     for all margins m and feasible a (Fenchel and Young).

There are two losses:

    the hinge     l(m) = max(0, 1 - m),     D_k(a) = a,                     its box ends at C s_k;
    its square    l(m) = max(0, 1 - m)^2,   D_k(a) = a - a^2 / (4 C s_k),   its box has no end.

Kernels take a ``Loss`` as an argument and call the functions below, which are its methods. Called
from Python, they run as plain Python, and those with arguments of type ``T`` also take arrays.

No loss is positive beyond the margin 1, and both fall as the margin grows.
"""

import math
from typing import NamedTuple, TypeVar

from certsvm.kernels.jit import operation
from certsvm.kernels.rows import Vector

T = TypeVar("T", float, Vector)


class Loss(NamedTuple):
    """The hinge, which has a kink, or its square, which is smooth."""

    is_smooth: bool

    @property
    def name(self) -> str:
        """The name in scikit-learn."""
        return "squared_hinge" if self.is_smooth else "hinge"

    @property
    def largest_multiple(self) -> float:
        """The largest multiple of a feasible alpha that is feasible, whatever alpha is."""
        return math.inf if self.is_smooth else 1.0

    def growth(self, total: float, weight_sum: float, moved: float) -> float:
        """The most that a weighted sum ``total`` of losses grows if margins fall by ``moved``.

        For the square, this is the inequality of Cauchy and Schwarz.
        """
        if not self.is_smooth:
            return weight_sum * moved
        root = math.sqrt(max(0.0, total))
        return moved * (2.0 * math.sqrt(weight_sum) * root + weight_sum * moved)

    @operation
    def loss_value(self, margin: float) -> float:
        """l(m), the loss of a row with this margin."""
        # Written so that the loss of a NaN margin is NaN.
        short = 0.0 if margin >= 1.0 else 1.0 - margin
        return short * short if self.is_smooth else short

    @operation
    def steepness(self, margin: float) -> float:
        """The largest -l' at this margin and beyond: error in the loss per error in the margin."""
        return 2.0 * max(0.0, 1.0 - margin) if self.is_smooth else 1.0

    @operation
    def box_end(self, C: float, weight: T) -> T:
        """The largest feasible alpha of a row."""
        return weight + math.inf if self.is_smooth else C * weight

    @operation
    def dual_penalty(self, alpha: float, C: float, weight: float) -> float:
        """The quadratic part a - D(a) of the term of a row in L."""
        # Rows without weight have no alpha. A square could underflow.
        has_penalty = self.is_smooth and alpha > 0.0
        return alpha * (alpha / (4.0 * C * weight)) if has_penalty else 0.0

    @operation
    def dual_gradient(self, margin: T, alpha: T, C: float, weight: T) -> T:
        """G = m - D'(a), minus the derivative of L by the alpha of a row whose margin at v is m."""
        short = margin - 1.0
        return short + alpha / (2.0 * C * weight) if self.is_smooth else short

    @operation
    def coordinate_step(
        self, alpha: float, gradient: float, squared_norm: float, C: float, weight: float,
        omega: float,
    ) -> float:  # fmt: skip
        """The new alpha of a row: for ``omega`` = 1, the maximum of L in this alpha in its box.

        ``gradient`` is the ``dual_gradient``; ``squared_norm`` is |y|^2, or another curvature. The
        step is ``omega`` times as long, still inside the box:

            clip(a - omega G / |y|^2, 0, C s)    or    max(0, a - omega G / (|y|^2 + 1 / (2 C s))).
        """
        curvature = squared_norm + 0.5 / (C * weight) if self.is_smooth else squared_norm
        end = math.inf if self.is_smooth else C * weight
        # An empty row has no curvature: its alpha goes to the end of the box.
        return min(max(alpha - omega * gradient / curvature, 0.0), end) if curvature > 0.0 else end

    @operation
    def smoothing_centre(self, C: float, weight: T) -> T:
        """The initial alpha_hat, the centre of smoothing: the middle of the box, or zero."""
        return 0.0 * weight if self.is_smooth else 0.5 * C * weight

    @operation
    def response(self, margin: T, alpha_hat: T, sigma: float, C: float, weight: T) -> T:
        """The alpha of the smoothed loss at this margin, before it is clipped to the box.

        Clipped, it maximises  D(a) - a m - (a - a_hat)^2 / (2 sigma s)  over the box, and it is
        minus the derivative of that maximum by m. If it is strictly inside the box, the row is
        free. Response, centre and box are all proportional to the weight s. If the loss is smooth,
        it is not smoothed further: the last term is left out.
        """
        short = 1.0 - margin
        return 2.0 * C * weight * short if self.is_smooth else alpha_hat + sigma * weight * short

    @operation
    def response_slope(self, sigma: float, C: float) -> float:
        """Minus the derivative of the response by the margin, per unit of the row's weight."""
        return 2.0 * C if self.is_smooth else sigma


HINGE, SQUARED_HINGE = Loss(is_smooth=False), Loss(is_smooth=True)
BOTH_LOSSES = (HINGE, SQUARED_HINGE)
LOSSES: dict[str, Loss] = {loss.name: loss for loss in BOTH_LOSSES}


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


# For kernels, in which a loss has no methods.
loss_value, steepness, dual_penalty = Loss.loss_value, Loss.steepness, Loss.dual_penalty
box_end, dual_gradient, coordinate_step = Loss.box_end, Loss.dual_gradient, Loss.coordinate_step
response, response_slope = Loss.response, Loss.response_slope
smoothing_centre = Loss.smoothing_centre
