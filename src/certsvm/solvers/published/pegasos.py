"""Pegasos: SGD with the learning rate 1/(lambda t), and projection.

Minimises    lambda/2 |w|^2 + 1/m sum_k s_k max(0, 1 - w.y_k),     lambda = 1/(C m)     (J / (C m))

with one row at a time, drawn at random with replacement (``scaled_sgd``). At step t = first_t,
first_t + 1, ...

    w <- (1 - 1/t) w,   plus  s_k y_k / (lambda t)  if w.y_k <= 1 before the shrinking;
    then, optionally, w <- w min(1, radius / |w|),   radius = sqrt(C sum_k s_k),

the projection to a ball that contains the optimum (without weights, its radius is 1/sqrt(lambda)).

Given:      C, s, the rows, whether to project, first_t.
Result:     the last w. Rows are not drawn equally often, so there is no dual point: primal only.
Difference: the article begins at t = 1, the published program at t = 2 (``first_t=2``). A row on
            the margin is a margin error here. w is stored as scale times v. The published program
            never folds the scale into v. With long rows or large C, v overflows, |w| becomes NaN,
            and from then on w is not projected. Here the scale is folded in.

Reference: S. Shalev-Shwartz, Y. Singer, N. Srebro and A. Cotter, Pegasos: Primal Estimated
sub-GrAdient SOlver for SVM, Mathematical Programming 127 (2011); one row at a time (k = 1).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from certsvm.problem.problems import Problem
from certsvm.solvers.base import Epoch, Options, Solver
from certsvm.solvers.published.scaled_sgd import ScaledSGD


@dataclass(frozen=True)
class Pegasos(Solver):
    """SGD with the learning rate 1/(lambda t).

    Parameters
    ----------
    project : bool, default=True
        Whether to project to the ball that contains the optimum.
    first_t : int, default=1
        t of the first step: 1 in the article, 2 in the published program.

    Examples
    --------
    >>> Pegasos(project=False).name
    'pegasos'
    """

    name: ClassVar[str] = "pegasos"
    certifies: ClassVar[bool] = False
    ranges: ClassVar = {"first_t": "> 0"}

    project: bool = True
    first_t: int = 1

    def start(self, problem: Problem, options: Options) -> PegasosRun:
        """Begin a run."""
        radius = math.sqrt(problem.C * problem.weight_sum) if self.project else math.inf
        return PegasosRun(
            problem, options, problem.active, 1.0 / problem.lambda_, decay=1.0, radius=radius,
            first_t=self.first_t - 1,
        )  # fmt: skip


class PegasosRun(ScaledSGD):
    """Pegasos on one problem."""

    def epoch(self) -> Epoch:
        """Present m rows, drawn with replacement."""
        problem = self._problem
        self._order = problem.active[self._rng.integers(problem.m, size=problem.m)]
        return super().epoch()
