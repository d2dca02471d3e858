"""SGD-r: rows drawn at random.

Minimises    J(w) = 1/2 |w|^2 + C sum_k s_k max(0, 1 - w.y_k)

by presenting rows drawn uniformly with replacement to the perceptron with a growing margin
(``growing_margin``):

    a <- a + s_k y_k  if  a.y_k <= lambda t;    t <- t + 1;    at the end  w = a / (lambda t).

Rows are not drawn equally often, so the dual variables need
not lie in the box: there is no dual bound, and the certificate is primal only. The training loop
counts m presentations as a pass.

Reference: Panagiotakopoulos and Tsampouka (2013), Section 3 (SGD-r).
"""

from collections.abc import Iterator
from dataclasses import dataclass

from certsvm.problem.problems import Problem
from certsvm.problem.rows import Vector
from certsvm.solvers.base import Epoch, Options, Run, Solver
from certsvm.solvers.growing_margin import GrowingMargin


@dataclass(frozen=True)
class SGDr(Solver):
    """SGD with rows drawn at random.

    Examples
    --------
    >>> SGDr().name
    'sgd-r'
    """

    name = "sgd-r"
    certifies = False


class SGDrRun(Run, of=SGDr):
    """SGD-r on one problem."""

    def __init__(self, solver: SGDr, problem: Problem, options: Options) -> None:
        super().__init__(solver, problem, options)
        self._state = GrowingMargin(problem, options.first_w(problem), options.first_t(problem))

    def epoch(self) -> Epoch:
        """Present m random rows."""
        problem = self._problem
        rows = problem.active[self._rng.integers(problem.m, size=problem.m)]
        margin_errors, loss = self._state.present(rows)
        return Epoch(
            epochs=self._state.T,
            margin_errors=margin_errors,
            primal_estimate=0.5 * self._state.squared_norm + problem.C * loss,
        )

    def candidates(self) -> Iterator[Vector]:
        """The last iterate."""
        yield self._state.w
