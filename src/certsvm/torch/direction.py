"""The Newton direction on tensors, no more accurate than needed.

The Gram matrix of the free support vectors is computed from rows rounded to bfloat16, on tensor
cores. If the slopes along a direction show that it was inaccurate, later directions are corrected
by conjugate gradients on the unrounded rows, preconditioned with that matrix. If that is not enough
either, the matrix is computed in float64 from then on.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from certsvm.problem.rows import Vector
from certsvm.solvers.second_order.smoothing import STEPS
from certsvm.torch.problems import TensorProblem
from certsvm.torch.rows import GATHERED

# Levels of care: a coarse Gram matrix, the same corrected by conjugate gradients, float64.
COARSE, CORRECTED, EXACT = range(3)
# Tolerated distance of the minimum along a direction from a step of one.
_ACCURATE = 0.02
# Steps on one smooth problem that indicate inaccurate directions.
_MANY_STEPS = 8
# Bytes of rows that conjugate gradients may keep.
_KEPT = 2**31


class Directions:
    """The Newton directions of one run.

    ``corrections`` is the number of conjugate gradient steps that correct a direction. ``care``,
    the level of accuracy, never decreases.
    """

    def __init__(self, problem: TensorProblem, corrections: int) -> None:
        self._problem = problem
        self._corrections = corrections
        self.care = COARSE
        # Consecutive directions that were not finite.
        self._failures = 0

    def find(self, free: Tensor, slope: float, gradient: Tensor, ridge: float = 1.0) -> Tensor:
        """About -(I + slope sum_{k free} s_k y_k y_k')^-1 gradient; NaN if that failed.

        The last entry of I is ``ridge``: less than one if the intercept is free.
        """
        identity = torch.ones_like(gradient)
        identity[-1] = ridge
        if len(free) == 0:
            return -gradient / identity
        if self.care == CORRECTED and not self._can_be_corrected(len(free)):
            self.care = EXACT
        weights = self._problem.row_weights
        weights = None if weights is None else weights[free]
        H, kept = self._gram(free, weights)
        H *= slope
        H.diagonal().add_(identity)
        if self._failures > 1:
            # Even in float64 the matrix is not positive definite: use its diagonal.
            return -gradient / H.diagonal()
        factor, failed = torch.linalg.cholesky_ex(H)

        def solve(v: Tensor) -> Tensor:
            return torch.cholesky_solve(v[:, None], factor)[:, 0]

        def product(v: Tensor) -> Tensor:
            return identity * v + slope * self._curvature(kept, weights, v)

        if kept:
            direction = conjugate_gradients(product, solve, -gradient, self._corrections)
        else:
            direction = solve(-gradient)
        # NaN will be noticed; an incomplete factorisation would not be.
        return torch.where(failed == 0, direction, math.nan)

    def _can_be_corrected(self, n_free: int) -> bool:
        rows = self._problem.rows
        fits = 4 * n_free * rows.n_columns <= _KEPT
        return rows.ordinary and fits and self._corrections > 0

    def _gram(self, free: Tensor, weights: Tensor | None) -> tuple[Tensor, list[Tensor]]:
        """sum_{k free} s_k y_k y_k', and the rows themselves if corrections need them."""
        rows = self._problem.rows
        scales = None if weights is None else weights.sqrt()
        total: Tensor | None = None
        kept: list[Tensor] = []
        for first in range(0, len(free), GATHERED):
            now = slice(first, first + GATHERED)
            gathered = rows.gathered(free[now])
            G = rows.gram(
                gathered, None if scales is None else scales[now], exact=self.care == EXACT
            )
            total = G if total is None else total.add_(G)
            if self.care == CORRECTED:
                kept.append(gathered)
        assert total is not None
        return total, kept

    def _curvature(self, kept: list[Tensor], weights: Tensor | None, v: Tensor) -> Tensor:
        """sum_k s_k y_k (y_k.v) over the kept rows."""
        rho = self._problem.rows.intercept_scaling
        total = torch.zeros_like(v)
        first = 0
        for rows in kept:
            s = None if weights is None else weights[first : first + len(rows)]
            total += curvature(rows, s, v, rho)
            first += len(rows)
        return total

    def judge(self, slopes: Vector, steps: int) -> None:
        """Take more care if the slopes at ``STEPS`` show that the last direction was inaccurate.

        So do many ``steps`` on the same smooth problem.
        """
        self._failures = 0
        # The minimum if the same support vectors stay free: at one for the exact direction.
        minimum = slopes[0] * (STEPS[1] - STEPS[0]) / (slopes[0] - slopes[1] or -math.inf)
        if not abs(minimum - 1.0) <= _ACCURATE:
            self.care = min(self.care + 1, EXACT)
        if steps >= _MANY_STEPS:
            # The slopes do not show what the direction misses.
            self.care = EXACT

    def failed(self) -> None:
        """Take all care after a direction that was not finite: the matrix was indefinite."""
        self.care = EXACT
        self._failures += 1


def curvature(rows: Tensor, weights: Tensor | None, v: Tensor, intercept_scaling: float) -> Tensor:
    """sum_k s_k y_k (y_k.v) over gathered rows, in single precision."""
    wide = rows.float()
    d = wide.shape[1]
    short = v.float()
    products = wide @ short[:d]
    if intercept_scaling > 0:
        products += intercept_scaling * short[d]
    if weights is not None:
        products *= weights.float()
    total = wide.T @ products
    if intercept_scaling > 0:
        total = torch.cat([total, intercept_scaling * products.sum()[None]])
    return total.double()


def conjugate_gradients(
    product: Callable[[Tensor], Tensor],
    precondition: Callable[[Tensor], Tensor],
    target: Tensor,
    steps: int,
) -> Tensor:
    """Solve product(x) = target approximately, without waiting for the device.

    Examples
    --------
    >>> H = torch.tensor([[2.0, 1.0], [1.0, 3.0]])
    >>> x = conjugate_gradients(lambda v: H @ v, lambda v: v / H.diagonal(), torch.ones(2), 2)
    >>> torch.allclose(H @ x, torch.ones(2))
    True
    """
    x = torch.zeros_like(target)
    residual = target.clone()
    z = precondition(residual)
    direction, square = z, residual @ z
    for _ in range(steps):
        image = product(direction)
        step = _quotient(square, direction @ image)
        x = x + step * direction
        residual = residual - step * image
        z = precondition(residual)
        last, square = square, residual @ z
        direction = z + _quotient(square, last) * direction
    return x


def _quotient(a: Tensor, b: Tensor) -> Tensor:
    """The quotient; zero unless the divisor is positive."""
    return torch.where(b > 0.0, a / b, torch.zeros_like(a))
