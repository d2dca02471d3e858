"""The optimum of a small problem, by the second-order method on a dense copy of the rows.

On a hundred rows the arithmetic of a step takes a few microseconds, and the bookkeeping of an
ordinary run several times as long. So the steps are made here, with few calls: at first on the
smoothed hinge, then by the method of multipliers (``schedule``), to machine precision. The result
is a pair of w and alpha, of which the run computes J and L as of any other.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import numpy as np

from certsvm.certificates.dual import DualPoint, dual_point
from certsvm.certificates.primal import primal_bound
from certsvm.certificates.rounding import Bound
from certsvm.kernels import losses
from certsvm.problem.problems import Problem
from certsvm.problem.rows import Vector
from certsvm.resources import ALONE, single_threaded_blas
from certsvm.solvers import directions, schedule, smoothing
from certsvm.solvers.base import Epoch, Options, Run, Start

# The most multiplications for the matrix of a step: the copy of the rows is dense.
_MOST_WORK = 5_000_000
# The most evaluations, and the most that do not halve the gap.
_MOST_TRIALS, _PATIENCE = 300, 10
# The relative gap of a solution to machine precision, and the one at which to lose patience.
_SOLVED, _NEARLY_SOLVED = 4e-16, 1e-9


@single_threaded_blas()
@np.errstate(over="ignore", invalid="ignore")
def solved(problem: Problem) -> Start | None:
    """The optimum up to rounding; None if the steps made here do not lead near it.

    Examples
    --------
    >>> from certsvm.problem.rows import Rows
    >>> problem = Problem(Rows(np.array([[1.0, 1.0], [1.0, -1.0]])), labels=[1, -1], C=10.0)
    >>> solved(problem).w
    array([0., 1.])
    """
    loss, C, active, d = problem.loss, problem.C, problem.active, problem.dimension
    wide = active.size < d
    if active.size * d * min(active.size, d) > _MOST_WORK:
        return None
    matrix, weights = problem.rows.matrix[active], problem.weights[active]
    # The vectors y_k.
    Y = np.full((active.size, d), problem.intercept_scaling)
    Y[:, : matrix.shape[1]] = matrix if isinstance(matrix, np.ndarray) else matrix.toarray()
    Y *= problem.labels[active, None]
    if wide:
        # w is in the span of the rows, but for a free intercept: its coordinates in an orthonormal
        # basis of that. Rounding must not give columns without a value a weight.
        n_regularised, occupied = d - problem.free_intercept, Y.any(axis=0)
        basis, triangle = np.linalg.qr(Y[:, :n_regularised].T)
        Y = np.column_stack([triangle.T, Y[:, n_regularised:]])
    box, alpha_hat = losses.box_end(loss, C, weights), losses.smoothing_centre(loss, C, weights)
    w, sigma = np.zeros(Y.shape[1]), schedule.FIRST_SIGMA
    least, idle, steps = math.inf, 0, 0
    for _ in range(_MOST_TRIALS):
        short = 1.0 - Y @ w
        unclipped = losses.response(loss, 1.0 - short, alpha_hat, sigma * C, C, weights)
        alpha = np.minimum(np.maximum(unclipped, 0.0), box)
        gradient = directions.gradient_at(problem, w, alpha @ Y)
        gap = half_square = 0.5 * directions.squared_gradient(problem, w, gradient)
        lost = C * weights * np.maximum(short, 0.0)
        if loss.is_smooth:
            lost *= short
        else:
            # What smoothing costs.
            gap += float((lost - alpha * short).sum())
        primal = 0.5 * float(w @ w) + float(lost.sum())
        idle += 1
        if gap < 0.5 * least:
            least, idle = gap, 0
        if gap <= _SOLVED * primal or (idle > _PATIENCE and gap <= _NEARLY_SOLVED * primal):
            break
        is_solved = half_square <= schedule.MEMORY.accuracy * gap and not loss.is_smooth
        if is_solved or steps >= schedule.MOST_STEPS:
            alpha_hat, steps = alpha, 0
            sigma = min(schedule.MULTIPLIER_GROWTH * sigma, schedule.LARGEST_SIGMA)
            continue
        free = (unclipped > 0.0) & (unclipped < box)
        rows, slope = Y[free], losses.response_slope(loss, sigma * C, C)
        G = (rows.T * (slope * weights[free])) @ rows
        direction = directions.newton_direction(problem, G, w, gradient, ALONE)
        arguments = loss, unclipped, weights, sigma * C, C, Y @ direction
        falls = partial(smoothing.clipped_sum, *arguments)
        step = smoothing.minimum_along(problem, w, direction, falls)
        w = w + step * direction
        steps += 1
    if not gap <= _NEARLY_SOLVED * primal:
        return None
    whole = np.zeros(problem.n_rows)
    whole[active] = alpha
    if wide:
        size = basis.shape[1]
        w = np.where(occupied, np.append(basis @ w[:size], w[size:]), 0.0)
    return Start(w, 1, whole, sigma)


class SolvedRun(Run):
    """The optimum ``solved`` of a problem, as a run of one pass."""

    def __init__(self, problem: Problem, options: Options, optimum: Start) -> None:
        self._problem, self._options, self._optimum = problem, options, optimum

    def epoch(self) -> Epoch:
        """Nothing: all is done."""
        return Epoch(epochs=1)

    def candidates(self) -> Iterator[Vector]:
        """The optimum."""
        yield self._optimum.w

    def primal(self) -> tuple[Vector, Bound]:
        """The optimum, and J there."""
        w = self._optimum.w
        return w, primal_bound(self._problem, w, self._options.team)

    def dual(self) -> DualPoint:
        """The point alpha."""
        point = dual_point(self._problem, self._optimum.alpha, "multipliers", self._options.team)
        return point if self._options.keep_alpha else replace(point, alpha=None)

    def warm_start(self) -> Start:
        """The optimum, and alpha if it is kept."""
        kept = self._optimum.alpha if self._options.keep_alpha else None
        return replace(self._optimum, alpha=kept)
