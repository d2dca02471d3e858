"""Newton's direction on tensors, made no more carefully than is needed.

The Gram matrix of the free support vectors is made of rows rounded to bfloat16, on tensor cores. If
the slopes along a direction show that it was inaccurate, those that follow are corrected by
conjugate gradients, preconditioned with that matrix, on the rows as they are; if they are still
inaccurate, the matrix is made in float64 from then on.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from certsvm.problem.rows import Vector
from certsvm.solvers.second_order.line_search import STEPS
from certsvm.torch.problems import TensorProblem
from certsvm.torch.rows import GATHERED

# The levels of care: a coarse Gram matrix, conjugate gradients on top of it, one in float64.
COARSE, CORRECTED, EXACT = range(3)
# A direction is accurate if the minimum along it is so near to where it should be.
_ACCURATE = 0.02
# So many steps on one smooth problem are a sign that directions are inaccurate.
_MANY_STEPS = 8
# Bytes of rows that may be kept for conjugate gradients.
_KEPT = 2**31


class Directions:
    """The directions of one run.

    Parameters
    ----------
    problem : TensorProblem
        What is minimised.
    corrections : int
        Steps of conjugate gradients that correct a direction.

    Attributes
    ----------
    care : int
        How carefully they are made; it only grows.
    """

    def __init__(self, problem: TensorProblem, corrections: int) -> None:
        self._problem = problem
        self._corrections = corrections
        self.care = COARSE
        # Directions that were no numbers, in a row.
        self._failures = 0

    def find(self, free: Tensor, sigma: float, gradient: Tensor) -> Tensor:
        """-(I + sigma sum_{k free} s_k y_k y_k')^-1 gradient, about; NaN if that failed."""
        if len(free) == 0:
            return -gradient
        if self.care == CORRECTED and not self._can_be_corrected(len(free)):
            self.care = EXACT
        weights = self._problem.row_weights
        weights = None if weights is None else weights[free]
        H, kept = self._gram(free, weights)
        H *= sigma
        H.diagonal().add_(1.0)
        if self._failures > 1:
            # Even in float64 the matrix is not positive: its diagonal serves.
            return -gradient / H.diagonal()
        factor, failed = torch.linalg.cholesky_ex(H)

        def solve(v: Tensor) -> Tensor:
            return torch.cholesky_solve(v[:, None], factor)[:, 0]

        def product(v: Tensor) -> Tensor:
            return v + sigma * self._curvature(kept, weights, v)

        direction = (
            conjugate_gradients(product, solve, -gradient, self._corrections)
            if kept
            else solve(-gradient)
        )
        # What is no number will be noticed; half a factorisation would not be.
        return torch.where(failed == 0, direction, math.nan)

    def _can_be_corrected(self, n_free: int) -> bool:
        rows = self._problem.rows
        fits = 4 * n_free * rows.n_columns <= _KEPT
        return rows.ordinary and fits and self._corrections > 0

    def _gram(self, free: Tensor, weights: Tensor | None) -> tuple[Tensor, list[Tensor]]:
        """sum_{k free} s_k y_k y_k', and the rows themselves if they serve for corrections."""
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
        """sum_k s_k y_k (y_k.v) over the rows that were kept."""
        rho = self._problem.rows.intercept_scaling
        total = torch.zeros_like(v)
        first = 0
        for rows in kept:
            s = None if weights is None else weights[first : first + len(rows)]
            total += curvature(rows, s, v, rho)
            first += len(rows)
        return total

    def judge(self, slopes: Vector, steps: int) -> None:
        """Take more care if the last direction was inaccurate.

        Parameters
        ----------
        slopes : ndarray
            Along the direction, at ``STEPS``.
        steps : int
            Steps made on the smooth problem so far.
        """
        self._failures = 0
        # Where the minimum is if the same support vectors stay free: at one, if it is the
        # direction of the Hessian.
        minimum = slopes[0] * (STEPS[1] - STEPS[0]) / (slopes[0] - slopes[1] or -math.inf)
        if not abs(minimum - 1.0) <= _ACCURATE:
            self.care = min(self.care + 1, EXACT)
        if steps >= _MANY_STEPS:
            # Along the direction all may seem well, and yet it leads past what matters.
            self.care = EXACT

    def failed(self) -> None:
        """Take all care, since the last direction was no number: the matrix was indefinite."""
        self.care = EXACT
        self._failures += 1


def curvature(rows: Tensor, weights: Tensor | None, v: Tensor, intercept_scaling: float) -> Tensor:
    """sum_k s_k y_k (y_k.v) over rows that were gathered, in single precision."""
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
    """So many steps towards the x with product(x) = target; nothing here waits for the device.

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
    along, fall = z, residual @ z
    for _ in range(steps):
        image = product(along)
        step = _quotient(fall, along @ image)
        x = x + step * along
        residual = residual - step * image
        z = precondition(residual)
        last, fall = fall, residual @ z
        along = z + _quotient(fall, last) * along
    return x


def _quotient(a: Tensor, b: Tensor) -> Tensor:
    """The quotient; zero where that makes no sense."""
    return torch.where(b > 0.0, a / b, torch.zeros_like(a))
