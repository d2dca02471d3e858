"""OCAS: optimised cutting planes.

Minimises    J(w) = 1/2 |w|^2 + C r(w),    r(w) = sum_k s_k max(0, 1 - w.y_k)

by cutting planes (``cutting_planes``) near the best w so far. In each round

    1. solve the master problem over the cuts so far: w_new, and a lower bound L;
    2. search exactly along the line from w_best to w_new: J is piecewise quadratic there, with a
       kink where a row crosses its margin; sort the kinks and find where the slope changes sign;
       that point becomes w_best;
    3. cut at (1 - mu) w_best + mu w_new.

The first cut is made at w = 0, or at the w to start from. J(w_best) never rises.

Given:      C, s, the rows; mu.
Result:     w_best, and alpha through the weights of the cuts.
Difference: the published program ends when Q_P - Q_D <= tol |Q_P|, computed without bounds on
            rounding; here the certificate decides. From the first round on, it solves the master
            problem to tol |Q_D| / 2; here the duality gap of the master problem must fall to 0.1 of
            the gap. It keeps all cuts; here a cut without weight for 50 rounds is dropped.

Reference: V. Franc and S. Sonnenburg, Optimized Cutting Plane Algorithm for Support Vector
Machines, ICML 2008.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from certsvm.kernels.vectors import inner
from certsvm.problem.problems import Problem
from certsvm.problem.rows import Vector
from certsvm.solvers.base import Options, Solver
from certsvm.solvers.published.cutting_planes import CuttingPlaneRun


@dataclass(frozen=True)
class OCAS(Solver):
    """Cutting planes with a line search.

    Parameters
    ----------
    mu : float, default=0.1
        Position of the next cut between the best w (0) and the new w (1).

    Examples
    --------
    >>> OCAS().name
    'ocas'
    """

    name: ClassVar[str] = "ocas"
    n_vectors: ClassVar[int] = 6
    ranges: ClassVar = {"mu": "in (0, 1]"}

    mu: float = 0.1

    def start(self, problem: Problem, options: Options) -> OCASRun:
        """Begin a run; keeping alpha costs a bit per row and cut."""
        return OCASRun(self, problem, options)


class OCASRun(CuttingPlaneRun):
    """OCAS on one problem."""

    FRACTION = 0.1

    def __init__(self, solver: OCAS, problem: Problem, options: Options) -> None:
        super().__init__(problem, options)
        self._mu = solver.mu

    def _move(self, w: Vector, products: Vector) -> Vector:
        """Search along the line to ``w``; the next cut is made between both."""
        step = line_search(self._problem, self._w, self._margins, w, products)
        best = self._w + step * (w - self._w)
        if step <= 1.0:
            margins = self._margins + step * (products - self._margins)
        else:
            # Beyond w, combining the margins would magnify their rounding.
            margins = self._products(best)
        primal = self._objective(best, margins)
        # If w differs from the best one by rounding only, the step is meaningless.
        if primal < self._primal:
            self._w, self._margins, self._primal = best, margins, primal
        return (1.0 - self._mu) * self._margins + self._mu * products


def line_search(
    problem: Problem, w: Vector, products: Vector, w_new: Vector, products_new: Vector
) -> float:
    """The t >= 0 with the least J at w + t (w_new - w)."""
    direction = w_new - w
    change = products_new - products
    weights = problem.C * problem.weights
    curvature = inner(direction, direction)
    # For small t > 0, the rows below the margin, or on it with a falling product, have a loss.
    losing = (products < 1.0) | ((products == 1.0) & (change < 0.0))
    slope = inner(w, direction) - inner(weights[losing], change[losing])
    if slope >= 0.0 or curvature == 0.0:
        return 0.0
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        kinks = (1.0 - products) / change
    ahead = np.flatnonzero(kinks > 0.0)
    ahead = ahead[np.argsort(kinks[ahead])]
    positions = kinks[ahead]
    # A row that crosses the margin, in either direction, raises the slope by this.
    jumps = weights[ahead] * np.abs(change[ahead])
    raised = slope + np.concatenate([[0.0], np.cumsum(jumps)])
    # On the i-th piece the slope is raised[i] + curvature t; find the first piece with a zero.
    ends = np.append(positions, math.inf)
    i = int(np.argmax(raised + curvature * ends >= 0.0))
    start = positions[i - 1] if i > 0 else 0.0
    return float(max(start, -raised[i] / curvature))
