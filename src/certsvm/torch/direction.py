"""The Newton direction on tensors, no more accurate than needed.

The Gram matrix of the free support vectors is computed from rows rounded to bfloat16, on tensor
cores. If the slopes along a direction show that it was inaccurate, the matrix is computed in
float64 from then on.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from certsvm.problem.rows import Vector
from certsvm.solvers.second_order.smoothing import STEPS
from certsvm.torch.problems import TensorProblem
from certsvm.torch.rows import GATHERED

# Tolerated distance of the minimum along a direction from a step of one.
_ACCURATE = 0.02
# Steps on one smooth problem that indicate inaccurate directions.
_MANY_STEPS = 8


class Directions:
    """The Newton directions of one run; once they are ``exact``, they stay so."""

    def __init__(self, problem: TensorProblem) -> None:
        self._problem = problem
        self.exact = False
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
        H = slope * self._gram(free)
        H.diagonal().add_(identity)
        if self._failures > 1:
            # Even in float64 the matrix is not positive definite: use its diagonal.
            return -gradient / H.diagonal()
        factor, failed = torch.linalg.cholesky_ex(H)
        direction = torch.cholesky_solve(-gradient[:, None], factor)[:, 0]
        # NaN will be noticed; an incomplete factorisation would not be.
        return torch.where(failed == 0, direction, math.nan)

    def _gram(self, free: Tensor) -> Tensor:
        """sum_{k free} s_k y_k y_k'."""
        rows, weights = self._problem.rows, self._problem.row_weights
        scales = None if weights is None else weights[free].sqrt()
        total = torch.zeros(
            (rows.dimension, rows.dimension), dtype=torch.float64, device=rows.device
        )
        for first in range(0, len(free), GATHERED):
            now = slice(first, first + GATHERED)
            of_these = None if scales is None else scales[now]
            total += rows.gram(rows.gathered(free[now]), of_these, exact=self.exact)
        return total

    def judge(self, slopes: Vector, steps: int) -> None:
        """Be exact if the slopes at ``STEPS`` show that the last direction was inaccurate.

        So do many ``steps`` on the same smooth problem.
        """
        self._failures = 0
        # The minimum if the same support vectors stay free: at one for the exact direction.
        minimum = slopes[0] * (STEPS[1] - STEPS[0]) / (slopes[0] - slopes[1] or -math.inf)
        # The slopes do not show all that the direction misses.
        self.exact |= not abs(minimum - 1.0) <= _ACCURATE or steps >= _MANY_STEPS

    def failed(self) -> None:
        """Be exact after a direction that was not finite: the matrix was indefinite."""
        self.exact = True
        self._failures += 1
