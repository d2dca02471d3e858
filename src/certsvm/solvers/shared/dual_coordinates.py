"""The state of dual coordinate descent: alpha, and w = sum_k alpha_k y_k with its rounding.

If the intercept is free, alpha must satisfy sum_k label_k alpha_k = 0. The method of multipliers
maximises

    L(alpha) - b_hat sum_k label_k alpha_k - rho^2 / 2 (sum_k label_k alpha_k)^2

for a fixed b_hat, and then moves b_hat to b_hat + rho^2 sum_k label_k alpha_k. With the last entry
of w moved by b_hat / rho, that is the problem whose intercept is penalised: steps do not change. It
is the proximal point method for b, with the term (b - b_hat)^2 / (2 rho^2).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certsvm.certificates.dual import (
    DualPoint,
    class_sums,
    dual_point,
    dual_sum,
    point_of,
    row_sums,
)
from certsvm.certificates.rounding import updates_rounding
from certsvm.kernels.vectors import inner
from certsvm.problem.memory import Problem
from certsvm.problem.rows import Vector
from certsvm.solvers.base import Options, Run
from certsvm.solvers.second_order.intercept import cost_of_balance
from certsvm.solvers.shared.dual_start import starting_alpha


class DualCoordinateRun(Run):
    """A run that moves alpha one coordinate at a time, and w with it.

    A pass sets ``_complete`` to False and, at its end, back to True: in between, w may not belong
    to alpha.
    """

    def __init__(self, problem: Problem, options: Options) -> None:
        self._problem = problem
        self._rng = options.rng
        self._team = options.team
        self._keep_alpha = options.keep_alpha
        self._passes = 0
        self._alpha = starting_alpha(problem, options.start)
        # The intercept divided by rho, if it is free: the multiplier of sum_k label_k alpha_k = 0.
        self._multiplier = 0.0
        if problem.free_intercept and options.start is not None:
            self._multiplier = float(options.start.w[-1])
        self._compute_w()
        self._complete = True

    def _compute_w(self) -> None:
        """Compute w from alpha, which resets its rounding."""
        point = row_sums(self._problem, self._alpha, self._team).point("start")
        self._w, self._rounding = point.w, point.w_rounding
        if self._problem.free_intercept:
            self._w[-1] += self._multiplier

    def _move_multiplier(self) -> None:
        """Move a free intercept by what alpha lacks of balance: the method of multipliers."""
        if self._problem.free_intercept:
            pull = float(self._w[-1]) - self._multiplier
            self._multiplier += pull
            self._w[-1] += pull

    @property
    def _dual_of_w(self) -> float:
        """L(alpha), as computed; if the intercept is free, the Lagrange function."""
        problem, w = self._problem, self._w
        regularised = problem.regularised(w)
        value = dual_sum(problem, self._alpha).value - 0.5 * inner(regularised, regularised)
        if problem.free_intercept:
            # w[-1] is the multiplier, plus rho sum_k label_k alpha_k.
            value -= float(w[-1] * (w[-1] - self._multiplier))
        return value

    @property
    def _cost_of_balance(self) -> float:
        """About what L loses when alpha is balanced."""
        return cost_of_balance(self._problem, self._w, float(self._w[-1]) - self._multiplier)

    def _visit(
        self, order: NDArray[np.int64], steps: Callable[..., Any], *parameters: float
    ) -> tuple[NDArray[np.int64], list[Any]]:
        """Call the kernel ``steps`` on the rows of ``order``, in pieces.

        The kernel moves the rows that stay active to the front of its piece, and returns their
        number, the number of updates, sums of its own, and sum |step| |y_k|. Returns the rows that
        stay active, and what the kernel returned for each piece.
        """
        problem = self._problem
        length = math.sqrt(inner(self._w, self._w))
        kept, sums = 0, []
        for piece in problem.slices(order):
            result = steps(
                problem.loss, problem.rows.arrays, problem.signed_weights,
                problem.rows.squared_norms, problem.C, *parameters, piece, self._alpha, self._w,
            )  # fmt: skip
            order[kept : kept + result[0]] = piece[: result[0]]
            kept += result[0]
            sums.append(result)
        # Neither w nor a step was ever longer.
        reach = length + sum(result[-1] for result in sums)
        self._rounding += updates_rounding(sum(result[1] for result in sums), reach, reach)
        return order[:kept], sums

    def candidates(self) -> Iterator[Vector]:
        """The weight vector w of alpha."""
        yield self._w

    def dual(self) -> DualPoint | None:
        """The point alpha, after a complete pass."""
        if not self._complete:
            return None
        if self._problem.free_intercept:
            if not self._keep_alpha:
                return class_sums(self._problem, self._alpha, self._team).point("dual coordinates")
            return dual_point(self._problem, self._alpha.copy(), "dual coordinates", self._team)
        return point_of(
            self._problem, self._alpha, self._w, self._rounding, "dual coordinates",
            keep_alpha=self._keep_alpha,
        )  # fmt: skip
