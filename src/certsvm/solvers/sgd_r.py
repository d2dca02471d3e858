"""SGD-r: rows drawn at random.

Minimises    J(w) = 1/2 |w|^2 + C sum_k s_k max(0, 1 - w.y_k)

by presenting rows drawn uniformly with replacement to the perceptron with a growing margin
(``growing_margin``):

    a <- a + s_k y_k  if  a.y_k <= lambda t;    t <- t + 1;    at the end  w = a / (lambda t).

It stops after ``t_max`` presentations. Rows are not drawn equally often, so the dual variables need
not lie in the box: there is no dual bound, and the certificate is primal only. The training loop
counts m presentations as a pass.

Reference: Panagiotakopoulos and Tsampouka (2013), Section 3 (SGD-r).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from certsvm.problem.memory import Problem
from certsvm.problem.rows import Vector
from certsvm.solvers.base import Epoch, Options, Run, Solver, require_positive
from certsvm.solvers.shared.growing_margin import GrowingMargin


@dataclass(frozen=True)
class SGDr(Solver):
    """SGD with rows drawn at random.

    Parameters
    ----------
    t_max : int, default=None
        Number of presentations after which to stop. With None, only the limits end training.
    published : bool, default=False
        Whether to return the last w, as the paper does, instead of the best w whose J was computed.

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
        require_positive(self, "t_max")

    def start(self, problem: Problem, options: Options) -> SGDrRun:
        """Begin a run."""
        return SGDrRun(self, problem, options)


class SGDrRun(Run):
    """SGD-r on one problem."""

    def __init__(self, solver: SGDr, problem: Problem, options: Options) -> None:
        self._problem = problem
        self._rng = options.rng
        self._t_max = solver.t_max
        self._state = GrowingMargin(problem, w=options.first_w(problem), t=options.first_t(problem))

    def epoch(self) -> Epoch:
        """Present m random rows, or fewer if ``t_max`` is reached."""
        problem = self._problem
        left = math.inf if self._t_max is None else self._t_max - self._presented
        draws = int(min(problem.m, left))
        sums = self._state.present(problem.active[self._rng.integers(problem.m, size=draws)])
        # In expectation, the loss of all rows is m / draws times the loss of the drawn ones.
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
