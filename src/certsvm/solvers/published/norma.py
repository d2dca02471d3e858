"""NORMA: SGD with a constant or slowly decreasing rate.

Minimises    lambda/2 |w|^2 + 1/m sum_k s_k max(0, rho - w.y_k),     lambda = 1/(C m),  rho = 1

with one row at a time (``scaled_sgd``):

    w <- (1 - eta_t lambda) w,   plus  eta_t s_k y_k  if w.y_k <= rho,

where eta_t is constant, or eta_0 / sqrt(t + 1). With ``nu`` the margin adapts so that a fraction
nu of the rows are margin errors: rho falls by eta_t s_k (1 - nu) at a margin error and rises by
eta_t s_k nu otherwise. This solves another problem; J is evaluated at w / rho, if rho is positive.

Given:      C, s, the rows, the rate.
Result:     the last w, and the mean of the w at the ends of the passes in the last half of the run
            (with a constant rate, w does not converge, but the mean does). Primal only.
Difference: NORMA is an online algorithm; here it makes passes over the rows in random order. If
            eta_0 is not given, it is found by trial on a thousand rows.

Reference: J. Kivinen, A. J. Smola and R. C. Williamson, Online Learning with Kernels, IEEE
Transactions on Signal Processing 52 (2004).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from certsvm.kernels.vectors import inner
from certsvm.problem.memory import Problem
from certsvm.problem.rows import Vector
from certsvm.solvers.base import Epoch, Options, Run, Solver, require, require_positive
from certsvm.solvers.published.scaled_sgd import (
    TRIAL_ROWS,
    Rate,
    ScaledSGD,
    require_stable,
    search_rate,
)
from certsvm.storage.fields import array, count, nested, row_indices
from certsvm.storage.state import State


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
    nu : float, default=None
        Fraction of margin errors that the margin adapts to; None keeps the margin at 1.

    Examples
    --------
    >>> NORMA(rate="constant", eta_0=0.01).name
    'norma'
    """

    name: ClassVar[str] = "norma"
    n_vectors: ClassVar[int] = 5
    certifies: ClassVar[bool] = False

    rate: Literal["sqrt", "constant"] = "sqrt"
    eta_0: float | None = None
    nu: float | None = None

    def __post_init__(self) -> None:
        require(
            self.rate in ("sqrt", "constant"),
            self,
            f'rate must be "sqrt" or "constant", got {self.rate!r}',
        )
        require_positive(self, "eta_0")
        require(self.nu is None or 0 < self.nu < 1, self, f"nu must be in (0, 1), got {self.nu}")

    def start(self, problem: Problem, options: Options) -> NORMARun:
        """Begin a run."""
        return NORMARun(self, problem, options)


class NORMARun(Run):
    """NORMA on one problem."""

    STATE = State(
        order=row_indices(every=True),
        state=nested(),
        passes=count(),
        mean_since=count(),
        mean=array("dimension"),
        in_mean=count(),
    )

    def __init__(self, solver: NORMA, problem: Problem, options: Options) -> None:
        self._problem = problem
        self._rng = options.rng
        self._order = problem.active.copy()
        self._rng.shuffle(self._order)
        self._state = ScaledSGD(
            problem,
            Rate(0.0) if options.resumed else self._rate(solver),
            options.first_w(problem),
            options.first_t(problem),
            nu=math.nan if solver.nu is None else solver.nu,
        )
        self._passes = 0
        self._mean_since = 1
        self._mean = np.zeros(problem.rows.dimension)
        self._in_mean = 0

    def _rate(self, solver: NORMA) -> Rate:
        eta = solver.eta_0
        if eta is None:
            trial = self._order[:TRIAL_ROWS]
            eta = search_rate(self._problem, trial)
            if solver.rate == "sqrt":
                eta = min(eta * math.sqrt(trial.size), 0.5 / self._problem.lambda_)
        require_stable(solver, self._problem, eta)
        return Rate(eta, decay=1.0, power=0.5) if solver.rate == "sqrt" else Rate(eta)

    def epoch(self) -> Epoch:
        """Present all rows in a new random order."""
        self._passes += 1
        self._rng.shuffle(self._order)
        errors, loss = self._state.present(self._order)
        epochs = self._state.t // self._problem.m
        if self._state.margin <= 0:
            return Epoch(epochs=epochs, margin_errors=errors)
        w = self._state.w
        # The mean covers at least the last half of the passes.
        if self._passes >= 2 * self._mean_since:
            self._mean_since, self._mean, self._in_mean = self._passes, np.zeros_like(w), 0
        self._in_mean += 1
        self._mean += (w - self._mean) / self._in_mean
        return Epoch(
            epochs=epochs,
            margin_errors=errors,
            primal_estimate=0.5 * inner(w, w) + self._problem.C * loss,
        )

    def candidates(self) -> Iterator[Vector]:
        """The last w, then the mean; none while the margin is not positive."""
        if self._state.margin > 0:
            yield self._state.w
            yield self._mean
