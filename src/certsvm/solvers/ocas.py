"""OCAS: optimised cutting planes.

Minimises    J(w) = 1/2 |w|^2 + C r(w),    r(w) = sum_k s_k max(0, 1 - w.y_k)

by cutting planes (``cutting_planes``) placed where they help the best answer so far. In each round

    1. solve the master problem over the cuts so far: w_new, and a lower bound L;
    2. search exactly along the line from w_best to w_new: J is piecewise quadratic there, with a
       kink where a row crosses its margin; sort the kinks, walk to where the slope changes sign;
       that point becomes w_best;
    3. cut at (1 - mu) w_best + mu w_new.

The first cut is that of w = 0, all rows, or that of the w to start from. J(w_best) never rises.

Given:      C, s, the rows; mu.
Result:     w_best, and alpha through the weights of the cuts.
Difference: the published program ends when Q_P - Q_D <= tol |Q_P|, by its own sums; here the
            certificate decides. The master problem is solved to a fraction of the gap only, and
            a cut without weight for ``idle_rounds`` rounds is dropped.

Reference: V. Franc and S. Sonnenburg, Optimized Cutting Plane Algorithm for Support Vector
Machines, ICML 2008.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from certsvm.certificates.dual import DualPoint
from certsvm.problem.memory import Problem
from certsvm.problem.rows import Vector
from certsvm.solvers.base import Epoch, Options, Run, Solver, require
from certsvm.solvers.shared.cutting_planes import Master
from certsvm.storage.fields import array, count, nested, number
from certsvm.storage.state import State


@dataclass(frozen=True)
class OCAS(Solver):
    """Cutting planes with a line search.

    Parameters
    ----------
    mu : float, default=0.1
        Where between the best and the new w the next cut is made.
    idle_rounds : int, default=50
        A cut without weight for so many rounds is dropped.

    Examples
    --------
    >>> OCAS().name
    'ocas'
    """

    name: ClassVar[str] = "ocas"

    mu: float = 0.1
    idle_rounds: int = 50

    def __post_init__(self) -> None:
        require(0 < self.mu <= 1, self, f"mu must be in (0, 1], got {self.mu}")
        require(self.idle_rounds > 0, self, f"idle_rounds must be > 0, got {self.idle_rounds}")

    def start(self, problem: Problem, options: Options) -> OCASRun:
        """Begin a run; keeping alpha costs a bit for each row and cut."""
        return OCASRun(self, problem, options)


class OCASRun(Run):
    """OCAS on one problem."""

    STATE = State(
        rounds=count(),
        master=nested(),
        w=array("dimension"),
        margins=array("n_rows"),
        primal=number(low=0.0),
        dual=number(low=0.0),
    )

    def __init__(self, solver: OCAS, problem: Problem, options: Options) -> None:
        self._solver = solver
        self._problem = problem
        self._rounds = 0
        self._master = Master(
            problem, idle_rounds=solver.idle_rounds, keep_alpha=options.keep_alpha
        )
        start = options.start
        self._w = np.zeros(problem.rows.dimension) if start is None else start.w.copy()
        self._margins = self._master.margins(self._w)
        self._primal = self._objective(self._w, self._margins)
        self._dual = 0.0
        self._point: DualPoint | None = None
        self._master.add_cut(self._margins)

    def _objective(self, w: Vector, products: Vector) -> float:
        losses = np.maximum(0.0, 1.0 - products)
        return 0.5 * float(w @ w) + self._problem.C * float(self._problem.weights @ losses)

    def epoch(self) -> Epoch:
        """One round: master problem, line search, cut."""
        self._rounds += 1
        self._point = None
        master = self._master
        w_new = master.solve(self._primal - self._dual)
        point = master.dual("cutting planes")
        self._dual = max(self._dual, point.alpha_sum - 0.5 * float(point.w @ point.w))
        products = master.margins(w_new)
        step = line_search(self._problem, self._w, self._margins, w_new, products)
        w = self._w + step * (w_new - self._w)
        # Beyond w_new, combining the margins would magnify their rounding.
        short = step <= 1.0
        w_margins = (
            self._margins + step * (products - self._margins) if short else master.margins(w)
        )
        primal = self._objective(w, w_margins)
        # Where w_new is w but for rounding, so is the step; it may lead anywhere.
        if primal < self._primal:
            self._w, self._margins, self._primal = w, w_margins, primal
        mu = self._solver.mu
        master.add_cut((1.0 - mu) * self._margins + mu * products)
        self._point = point
        return Epoch(
            epochs=self._rounds,
            margin_errors=int(np.count_nonzero(products < 1.0)),
            primal_estimate=self._primal,
        )

    def candidates(self) -> Iterator[Vector]:
        """The best w."""
        yield self._w

    def dual(self) -> DualPoint | None:
        """The master problem's."""
        return self._point


def line_search(
    problem: Problem, w: Vector, products: Vector, w_new: Vector, products_new: Vector
) -> float:
    """The t >= 0 with the least J at w + t (w_new - w)."""
    direction = w_new - w
    change = products_new - products
    weights = problem.C * problem.weights
    curvature = float(direction @ direction)
    # Just right of t = 0, the rows short of the margin, or on it and falling, have a loss.
    losing = (products < 1.0) | ((products == 1.0) & (change < 0.0))
    slope = float(w @ direction) - float(weights[losing] @ change[losing])
    if slope >= 0.0 or curvature == 0.0:
        return 0.0
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        kinks = (1.0 - products) / change
    ahead = np.flatnonzero(kinks > 0.0)
    ahead = ahead[np.argsort(kinks[ahead])]
    positions = kinks[ahead]
    # A row that crosses its margin, in either direction, raises the slope by this.
    jumps = weights[ahead] * np.abs(change[ahead])
    raised = slope + np.concatenate([[0.0], np.cumsum(jumps)])
    # On the i-th piece the slope is raised[i] + curvature t; find the first with a zero.
    ends = np.append(positions, math.inf)
    i = int(np.argmax(raised + curvature * ends >= 0.0))
    start = positions[i - 1] if i > 0 else 0.0
    return float(max(start, -raised[i] / curvature))
