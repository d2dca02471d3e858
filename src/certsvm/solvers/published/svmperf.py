"""SVM^perf: cutting planes without a line search.

Minimises    J(w) = 1/2 |w|^2 + C r(w),    r(w) = sum_k s_k max(0, 1 - w.y_k)

by cutting planes (``cutting_planes``). The first cut is made at w = 0, or at the w to start from.
In each round the master problem over the cuts so far gives w and a lower bound L, and the next cut
is made at w. Let xi be the largest cut so far at w, divided by sum_k s_k. The published rule ends
when r(w) / sum_k s_k exceeds xi by no more than eps. If the master problem is solved exactly, this
means

    J(w) - L <= C eps sum_k s_k,

an absolute accuracy. The parameter ``eps`` offers it besides the relative target.

Given:      C, s, the rows; optionally eps.
Result:     w, and alpha through the weights of the cuts.
Difference: the published program solves the master problem until its optimality conditions hold to
            half of the least excess of r(w) / sum_k s_k over xi so far. Here the duality gap of the
            master problem must fall to 0.2 of the least J(w) - L so far. The rule for eps is the
            inequality above, which counts the error of the master problem. By default, the
            published program also skips rows that seem to stay on their side of the margin; here,
            each round looks at all rows. Both drop a cut without weight for 50 rounds.

Reference: T. Joachims, Training Linear SVMs in Linear Time, KDD 2006.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from certsvm.problem.problems import Problem
from certsvm.problem.rows import Vector
from certsvm.solvers.base import Epoch, Options, Solver
from certsvm.solvers.published.cutting_planes import CuttingPlaneRun


@dataclass(frozen=True)
class SVMperf(Solver):
    """Cutting planes without a line search.

    Parameters
    ----------
    eps : float, default=None
        End when J exceeds its lower bound by no more than C times this, per unit of weight. With
        None, only the relative gap and the limits end training.

    Examples
    --------
    >>> SVMperf(eps=0.001).name
    'svmperf'
    """

    name: ClassVar[str] = "svmperf"
    n_vectors: ClassVar[int] = 6
    ranges: ClassVar = {"eps": "> 0"}

    eps: float | None = None

    def start(self, problem: Problem, options: Options) -> SVMperfRun:
        """Begin a run; keeping alpha costs a bit per row and cut."""
        return SVMperfRun(self, problem, options)


class SVMperfRun(CuttingPlaneRun):
    """SVM^perf on one problem."""

    # 0.3 takes fewer rounds to a gap of 1e-3, but half as many again to 1e-5 on text.
    FRACTION = 0.2

    def __init__(self, solver: SVMperf, problem: Problem, options: Options) -> None:
        super().__init__(problem, options)
        self._eps = solver.eps

    def _move(self, w: Vector, products: Vector) -> Vector:
        """Take ``w`` itself; the next cut is made there."""
        self._w, self._primal = w, self._objective(w, products)
        return products

    def epoch(self) -> Epoch:
        """One round: master problem, move, cut."""
        epoch, problem = super().epoch(), self._problem
        gap = self._primal - self._dual
        finished = self._eps is not None and gap <= problem.C * self._eps * problem.weight_sum
        return replace(epoch, finished=finished)
