"""SGD-r: rows drawn at random.

Minimises    J(w) = 1/2 |w|^2 + C sum_k s_k max(0, 1 - w.y_k)

by presenting rows drawn uniformly with replacement to the perceptron with a growing margin
(``growing_margin``):

    a <- a + s_k y_k  if  a.y_k <= lambda t;    t <- t + 1;    at the end  w = a / (lambda t).

It stops after ``t_max`` presentations. Since some rows are drawn more often than others, its
dual variables need not lie in the box: there is no dual bound, and the certificate is primal
only. For training we count m presentations as a pass.

Reference: Panagiotakopoulos and Tsampouka (2013), Section 3 (SGD-r).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from certsvm.problem.memory import Problem
from certsvm.problem.rows import Vector
from certsvm.solvers.base import Epoch, Options, Run, Solver, require
from certsvm.solvers.shared.growing_margin import GrowingMargin
from certsvm.storage.fields import nested
from certsvm.storage.state import State


@dataclass(frozen=True)
class SGDr(Solver):
    """SGD with rows drawn at random.

    Parameters
    ----------
    t_max : int, default=None
        Number of presentations after which to stop; None leaves it to the limit on passes.
    published : bool, default=False
        Whether to answer with the last w, as the paper does, instead of the best of those
        whose J was computed.

    Examples
    --------
    >>> SGDr(t_max=100_000)
    SGDr(t_max=100000, published=False)
    """

    name: ClassVar[str] = "sgd-r"
    certifies: ClassVar[bool] = False

    t_max: int | None = None
    published: bool = False

    def __post_init__(self) -> None:
        require(self.t_max is None or self.t_max > 0, self, f"t_max must be > 0, got {self.t_max}")

    def start(self, problem: Problem, options: Options) -> SGDrRun:
        """Begin a run; it has no alpha to keep."""
        return SGDrRun(self, problem, options)


class SGDrRun(Run):
    """SGD-r on one problem."""

    STATE = State(state=nested())

    def __init__(self, solver: SGDr, problem: Problem, options: Options) -> None:
        self._problem = problem
        self._rng = options.rng
        self._t_max = solver.t_max
        self._state = GrowingMargin(problem)
        if (start := options.start) is not None:
            self._state = GrowingMargin(problem, w=start.w, t=start.epochs * problem.m)

    def epoch(self) -> Epoch:
        """Present m rows, or what ``t_max`` leaves of them."""
        problem = self._problem
        left = math.inf if self._t_max is None else self._t_max - self._presented
        draws = int(min(problem.m, left))
        sums = self._state.present(problem.active[self._rng.integers(problem.m, size=draws)])
        # A sample of rows: the loss of all is m/draws times as large, in expectation.
        loss = problem.C * sums.loss * (problem.m / draws)
        return Epoch(
            epochs=self._state.t // problem.m,
            margin_errors=sums.margin_errors,
            primal_estimate=0.5 * self._state.squared_norm + loss,
            finished=self._presented == self._t_max,
        )

    @property
    def _presented(self) -> int:
        return self._state.t - self._state.t_start

    def candidates(self) -> Iterator[Vector]:
        """The last iterate."""
        yield self._state.w
