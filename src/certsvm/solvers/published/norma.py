"""NORMA: SGD with a constant or slowly decreasing rate.

Minimises    lambda/2 |w|^2 + 1/m sum_k s_k max(0, 1 - w.y_k),     lambda = 1/(C m)     (J / (C m))

with one row at a time (``scaled_sgd``):

    w <- (1 - eta_t lambda) w,   plus  eta_t s_k y_k  if w.y_k <= 1,

where eta_t is constant, or eta_0 / sqrt(t + 1).

Given:      C, s, the rows, the rate.
Result:     the last w, and the mean of the w at the ends of the passes in the last half of the run
            (with a constant rate, w does not converge, but the mean does). Primal only.
Difference: NORMA is an online algorithm; here it makes passes over the rows in random order. If
            eta_0 is not given, it is found by trial on a thousand rows. The variant whose margin
            adapts to a fraction nu of errors, which is another problem, is left out.

Reference: J. Kivinen, A. J. Smola and R. C. Williamson, Online Learning with Kernels, IEEE
Transactions on Signal Processing 52 (2004).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from certsvm.problem.problems import Problem
from certsvm.problem.rows import Vector
from certsvm.solvers.base import Epoch, Options, Solver
from certsvm.solvers.published import scaled_sgd
from certsvm.solvers.published.scaled_sgd import TRIAL_ROWS, ScaledSGD


@dataclass(frozen=True)
class NORMA(Solver):
    """SGD with a constant or slowly decreasing rate.

    Parameters
    ----------
    rate : {"sqrt", "constant"}, default="sqrt"
        Whether the rate is eta_0 / sqrt(t + 1), or constant.
    eta_0 : float, default=None
        The first rate. None finds the best constant rate for one pass over a thousand rows; a
        decreasing rate is chosen so as to reach it at the last of these rows.

    Examples
    --------
    >>> NORMA(rate="constant", eta_0=0.01).name
    'norma'
    """

    name: ClassVar[str] = "norma"
    n_vectors: ClassVar[int] = 5
    certifies: ClassVar[bool] = False
    ranges: ClassVar = {"rate": '"sqrt" or "constant"', "eta_0": "> 0"}

    rate: Literal["sqrt", "constant"] = "sqrt"
    eta_0: float | None = None

    def start(self, problem: Problem, options: Options) -> NORMARun:
        """Begin a run."""
        order = options.rng.permutation(problem.active)
        eta_0, decay = self.eta_0, float(self.rate == "sqrt")
        if eta_0 is None:
            trial = order[:TRIAL_ROWS]
            eta_0 = scaled_sgd.search_rate(problem, trial)
            if decay:
                eta_0 = min(eta_0 * math.sqrt(trial.size), 0.5 / problem.lambda_)
        scaled_sgd.require_stable(self, problem, eta_0)
        return NORMARun(problem, options, order, eta_0, decay, power=0.5)


class NORMARun(ScaledSGD):
    """NORMA on one problem: a new random order in each pass, and the mean of w."""

    _passes, _mean_since, _in_mean = 0, 1, 0
    _mean: Vector

    def epoch(self) -> Epoch:
        """Present all rows in a new random order."""
        self._passes += 1
        self._rng.shuffle(self._order)
        epoch = super().epoch()
        # The mean covers at least the last half of the passes.
        if self._passes == 1 or self._passes >= 2 * self._mean_since:
            self._mean_since, self._in_mean = self._passes, 0
            self._mean = np.zeros(self._problem.dimension)
        self._in_mean += 1
        self._mean += (self.w - self._mean) / self._in_mean
        return epoch

    def candidates(self) -> Iterator[Vector]:
        """The last w, then the mean."""
        yield self.w
        yield self._mean
