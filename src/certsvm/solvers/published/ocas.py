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
from certsvm.problem.memory import Problem
from certsvm.problem.rows import Vector
from certsvm.solvers.base import Epoch, Options, Solver, require
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

    mu: float = 0.1

    def __post_init__(self) -> None:
        require(0 < self.mu <= 1, self, f"mu must be in (0, 1], got {self.mu}")

    def start(self, problem: Problem, options: Options) -> OCASRun:
        """Begin a run; keeping alpha costs a bit per row and cut."""
        return OCASRun(self, problem, options)


class OCASRun(CuttingPlaneRun):
    """OCAS on one problem."""

    FRACTION = 0.1

    def __init__(self, solver: OCAS, problem: Problem, options: Options) -> None:
        super().__init__(problem, options)
        self._mu = solver.mu
        self._margins = self._master.margins(self._w)
        self._master.add_cut(self._margins)
        self._primal = self._objective(self._w, self._margins)
        self._dual = 0.0

    def _objective(self, w: Vector, products: Vector) -> float:
        losses = np.maximum(0.0, 1.0 - products)
        return 0.5 * inner(w, w) + self._problem.C * inner(self._problem.weights, losses)

    def epoch(self) -> Epoch:
        """One round: master problem, line search, cut."""
        self._rounds += 1
        self._point = None
        master = self._master
        w_new = master.solve(self.FRACTION * (self._primal - self._dual))
        point = master.dual()
        self._dual = max(self._dual, point.alpha_sum - 0.5 * inner(point.w, point.w))
        products = master.margins(w_new)
        step = line_search(self._problem, self._w, self._margins, w_new, products)
        w = self._w + step * (w_new - self._w)
        if step <= 1.0:
            w_margins = self._margins + step * (products - self._margins)
        else:
            # Beyond w_new, combining the margins would magnify their rounding.
            w_margins = master.margins(w)
        primal = self._objective(w, w_margins)
        # If w_new differs from w by rounding only, the step is meaningless.
        if primal < self._primal:
            self._w, self._margins, self._primal = w, w_margins, primal
        master.add_cut((1.0 - self._mu) * self._margins + self._mu * products)
        self._point = point
        return Epoch(
            epochs=self._rounds,
            margin_errors=int(np.count_nonzero(products < 1.0)),
            primal_estimate=self._primal,
        )


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
