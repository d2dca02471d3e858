"""The best bounds so far, and the certificate that follows from them."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from certsvm.certificates.certificate import PRIMAL_ONLY, Certificate, relative_gap
from certsvm.certificates.dual import DualBound, DualPoint, dual_bound, scaled_vector
from certsvm.certificates.primal import zero_bound
from certsvm.certificates.rounding import Bound
from certsvm.kernels.losses import box_end
from certsvm.problem.base import BaseProblem
from certsvm.problem.rows import Vector


@dataclass(eq=False)
class BestValues:
    """The least J and the largest L so far, as computed: what a solver steers by.

    They certify nothing, since they ignore rounding. L starts at zero, its value at alpha = 0.

    Examples
    --------
    >>> best = BestValues()
    >>> best.offer(primal=3.0)
    >>> best.offer(primal=4.0, dual=2.0)
    >>> best.gap, best.relative_gap
    (1.0, 0.5)
    """

    primal: float = math.inf
    dual: float = 0.0

    def offer(self, primal: float = math.inf, dual: float = 0.0) -> None:
        """Note a value of J, of L, or of both."""
        self.primal, self.dual = min(self.primal, primal), max(self.dual, dual)

    @property
    def gap(self) -> float:
        """J - L, or zero if rounding makes it negative."""
        return max(self.primal - self.dual, 0.0)

    @property
    def relative_gap(self) -> float:
        """J / L - 1; infinite while L is zero."""
        return relative_gap(self.primal, self.dual)


class BestBounds:
    """The bounds of one training run, and the certificate that follows from them.

    Any two bounds may be combined, so the best of each kind is kept. ``keep_vector`` keeps a copy
    of sum_k alpha_k y_k, too.
    """

    def __init__(self, problem: BaseProblem, target: float, *, keep_vector: bool = False) -> None:
        self.target = target
        # One pair, so that an interrupt cannot fall between w and its J.
        self._best: tuple[Vector | None, Bound] = None, Bound(math.inf, 0.0)
        self.dual: DualBound = DualBound(Bound(0.0, 0.0), 1.0, PRIMAL_ONLY)
        self._problem = problem
        self._keep_vector = keep_vector

    @property
    def w(self) -> Vector | None:
        """The certified weight vector."""
        return self._best[0]

    @property
    def primal(self) -> Bound:
        """J at the certified weight vector."""
        return self._best[1]

    def offer_primal(self, w: Vector, bound: Bound) -> None:
        """Note J at ``w``."""
        if math.isfinite(bound.high) and bound.high < self.primal.high:
            self._best = w.copy(), bound

    def offer_zero(self) -> None:
        """Note J at w = 0."""
        problem = self._problem
        at_zero = zero_bound(problem.C, problem.weight_sum, problem.loss, problem.n_rows)
        self.offer_primal(np.zeros(problem.dimension), at_zero)

    def offer_dual(self, point: DualPoint) -> None:
        """Note a feasible dual point."""
        bound, scale = dual_bound(point)
        # The first bound is L = 0, at alpha = 0.
        if math.isfinite(bound.low) and bound.low > self.dual.bound.low:
            alpha = None
            if point.alpha is not None:
                problem = self._problem
                box = box_end(problem.loss, problem.C, problem.weights)
                alpha = np.minimum(scale * point.alpha(), box)
            vector = scaled_vector(point, scale) if self._keep_vector else None
            self.dual = DualBound(bound, scale, point.source, alpha, point.response, vector)

    def certificate(self) -> Certificate:
        """The certificate of the bounds so far."""
        primal, dual, problem = self.primal, self.dual, self._problem
        found = primal.value, dual.bound.value, self.target, dual.source, dual.scale
        about = problem.C, problem.intercept_scaling, problem.loss.name, not problem.free_intercept
        return Certificate(*found, primal.rounding, dual.bound.rounding, *about)
