"""The best bounds so far, and the certificate they amount to."""

from __future__ import annotations

import math

import numpy as np

from certsvm.certificates.certificate import PRIMAL_ONLY, Certificate
from certsvm.certificates.dual import DualBound, DualPoint, dual_bound
from certsvm.certificates.rounding import UNIT_ROUNDOFF, Bound
from certsvm.problem.base import BaseProblem
from certsvm.problem.rows import Vector


class BestBounds:
    """The bounds found during one training run, and the certificate they amount to.

    Bounds do not depend on the order in which they were found, so by default the best of
    each kind counts. With ``keep_best=False`` only the latest does, as in the paper.
    """

    def __init__(self, problem: BaseProblem, target: float, *, keep_best: bool = True) -> None:
        self.target = target
        # One object, so that an interrupt cannot fall between w and its J.
        self._best: tuple[Vector | None, Bound] = (None, Bound(math.inf, 0.0))
        self.dual: DualBound = DualBound(Bound(0.0, 0.0), 1.0, PRIMAL_ONLY)
        self._problem = problem
        self._keep_best = keep_best

    @property
    def w(self) -> Vector | None:
        """The weight vector that the certificate is about."""
        return self._best[0]

    @property
    def primal(self) -> Bound:
        """J at that weight vector."""
        return self._best[1]

    def offer_primal(self, w: Vector, bound: Bound) -> None:
        """Take note of J at ``w``."""
        if math.isfinite(bound.high) and (not self._keep_best or bound.high < self.primal.high):
            self._best = w.copy(), bound

    def offer_zero(self) -> None:
        """Take note of J at w = 0, which is C sum_k s_k without any computation."""
        value = self._problem.C * self._problem.weight_sum
        rounding = 128.0 * UNIT_ROUNDOFF * value
        self.offer_primal(np.zeros(self._problem.dimension), Bound(value, rounding))

    def offer_dual(self, point: DualPoint) -> None:
        """Take note of a feasible dual point."""
        bound, scale = dual_bound(point, scaled=self._keep_best)
        if not math.isfinite(bound.low):
            return
        # alpha = 0, which the ledger starts with, is feasible too: L = 0. The paper's L is
        # recorded as it is, below zero or not.
        if not self._keep_best or bound.low > self.dual.bound.low:
            alpha = None
            if point.alpha is not None:
                box = self._problem.C * self._problem.weights
                alpha = np.minimum(scale * point.alpha(), box)
            self.dual = DualBound(bound, scale, point.source, alpha, point.response)

    def certificate(self) -> Certificate:
        """What is proved now."""
        primal, dual = self.primal, self.dual
        return Certificate(
            primal=primal.value,
            dual=dual.bound.value,
            target=self.target,
            bound=dual.source,
            scale=dual.scale,
            primal_rounding=primal.rounding,
            dual_rounding=dual.bound.rounding,
            C=self._problem.C,
            intercept_scaling=self._problem.intercept_scaling,
        )
