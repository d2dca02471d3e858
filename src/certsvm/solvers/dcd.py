"""DCD: dual coordinate descent.

Maximises    L(alpha) = sum_k alpha_k - 1/2 |w|^2,   w = sum_k alpha_k y_k,   0 <= alpha_k <= C s_k

one coordinate at a time. With G = w.y_k - 1, minus the derivative of L by alpha_k,

    alpha_k <- clip(alpha_k - G / |y_k|^2, 0, C s_k),     w follows.

For the squared hinge, L has the terms -alpha_k^2 / (4 C s_k), too, and the box has no end. Then
G = w.y_k - 1 + alpha_k / (2 C s_k), and

    alpha_k <- max(0, alpha_k - G / (|y_k|^2 + 1 / (2 C s_k))).

A pass visits the active rows in a new random order. The projected gradient of a row is G, or zero
if the box forbids the step. Shrinking: a row at 0 with G above the largest projected gradient of
the last pass, or at C s_k with G below the smallest, leaves the active set. When the projected
gradients of the active rows spread by no more than a threshold, all rows become active again. When
those of all rows do, the algorithm ends if ``eps`` is given, which then is the threshold, as in
liblinear. Otherwise the threshold falls to a tenth.

The run keeps alpha, so every pass has a certificate.

Given:      C, s, the rows; optionally alpha to start from, or w, from whose margins alpha is made.
Result:     w, and alpha.
Difference: liblinear ends by its tolerance on gradients. Here that is optional, and the gap is
            what is proved.

Reference: C.-J. Hsieh, K.-W. Chang, C.-J. Lin, S. S. Keerthi and S. Sundararajan, A Dual
Coordinate Descent Method for Large-scale Linear SVM, ICML 2008.
"""

import math
from dataclasses import dataclass

from certsvm.kernels.losses import BOTH_LOSSES
from certsvm.problem.problems import Problem
from certsvm.solvers.base import Epoch, Options, Solver
from certsvm.solvers.dual_coordinates import DualCoordinateRun

# The default tolerance of liblinear. Without ``eps`` it only decides when shrunk rows become active
# again, and falls whenever it is reached over all rows.
_SPREAD = 0.1


@dataclass(frozen=True)
class DCD(Solver, eps="> 0"):
    """Dual coordinate descent.

    Parameters
    ----------
    shrinking : bool, default=True
        Whether to skip rows that are unlikely to change.
    eps : float, default=None
        End when the projected gradients of all rows spread by no more than this: the tolerance of
        liblinear. With None, only the gap and the limits end training.

    Examples
    --------
    >>> DCD(eps=0.1).name
    'dcd'
    """

    name = "dcd"
    warm_starts_from_alpha = True
    losses = BOTH_LOSSES
    frees_intercept = True

    shrinking: bool = True
    eps: float | None = None


class DCDRun(DualCoordinateRun, of=DCD):
    """Dual coordinate descent on one problem."""

    def __init__(self, solver: DCD, problem: Problem, options: Options) -> None:
        super().__init__(solver, problem, options)
        self._spread = _SPREAD if solver.eps is None else solver.eps
        self._activate_all()

    def _activate_all(self) -> None:
        self._order = self._problem.active.copy()
        # The gradients beyond which a row at an end of its box leaves the active set.
        self._thresholds = -math.inf, math.inf

    def epoch(self) -> Epoch:
        """Visit every active row once."""
        self._rng.shuffle(self._order)
        swept = self._visit(self._order, 1.0, *self._thresholds)
        self._order, updates, gap, largest, smallest = swept
        finished = False
        if largest - smallest <= self._spread:
            if self._order.size == self._problem.m:
                finished = self._solver.eps is not None
                self._spread *= 1.0 if finished else 0.1
            self._activate_all()
        elif self._solver.shrinking:
            low = smallest if smallest < 0 else -math.inf
            self._thresholds = low, largest if largest > 0 else math.inf
        return self._end_pass(updates, gap, finished=finished)
