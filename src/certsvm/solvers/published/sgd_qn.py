"""SGD-QN: SGD with a diagonal matrix of rates, with the correction of 2010.

Minimises    lambda/2 |w|^2 + 1/m sum_k s_k max(0, 1 - w.y_k),     lambda = 1/(C m)     (J / (C m))

with a rate B_j for each coordinate, at first 1 / (lambda t0). At each row, with its margin w.y_k,

    1. at the row after a decay, if just one of w, w1 is a margin error on it:
                          B_j <- 1 / (1/B_j + n b_j),    n = rows since B was last changed,
                          b_j = clip(lambda + s_k dd y_kj / (w1 - w)_j, 0.1 lambda, 100 lambda),
                          dd = [w.y_k < 1] - [w1.y_k < 1],
                          b_j = lambda where y_kj = 0, and 101 lambda where only w1_j = w_j;
    2. every ``skip`` rows, the decay:   w1 = w,  then  w_j <- w_j - skip lambda B_j w_j;
    3. if the margin was below 1:        w_j <- w_j + s_k B_j y_kj.

Step 1 is a secant estimate of the curvature, the difference of the gradients at w1 and w over
w1 - w, where w differs from w1 by a decay and an update. ``skip`` is 16 d m / nonzeros, so that the
dense operations cost about as much as the sparse ones. t0 is the power of ten that gives the least
objective after five passes over a tenth of the rows.

Given:      C, s, the rows; t0, skip, the precision, whether to shuffle the rows.
Result:     the last w. Primal only.
Difference: two corrections. The published program restarts the count up to ``skip`` in each pass;
            where columns are many, skip exceeds m and w never decays. Here the count continues,
            unless ``restart_decay``. A decay by more than w_j itself would change its sign; here
            it ends at zero, unless ``clip_decay=False``. Where only w1_j = w_j, the published
            program writes its 101 lambda to another coordinate. It makes as many trial passes as
            passes are asked for, by default five.

Reference: A. Bordes, L. Bottou and P. Gallinari, SGD-QN: Careful Quasi-Newton Stochastic Gradient
Descent, JMLR 10 (2009), with the erratum of 2010; svmsgdqn in L. Bottou's sgd 2.0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from certsvm.certificates.primal import primal_bound
from certsvm.kernels.jit import kernel
from certsvm.kernels.rows import RowArrays, Vector, add, add_scaled, dot, visit_row
from certsvm.problem.problems import Problem
from certsvm.solvers.base import Epoch, Options, Solver
from certsvm.solvers.published.scaled_sgd import ScaledSGD

_TRIAL_T0 = tuple(10.0**power for power in range(11))
_TRIAL_PASSES = 5


@dataclass(frozen=True)
class SGDQN(Solver, t0="> 0", skip="> 0", precision='"double" or "single"'):
    """SGD with a rate for each coordinate.

    Parameters
    ----------
    t0 : float, default=None
        The first rates are 1 / (lambda t0). None finds a power of ten by trial.
    skip : int, default=None
        Number of rows between decays. None means 16 d m / nonzeros.
    restart_decay : bool, default=False
        Whether to count up to ``skip`` anew in each pass.
    clip_decay : bool, default=True
        Whether a decay ends at zero instead of changing the sign of a coordinate.
    shuffle : bool, default=True
        Whether to shuffle the rows once. The published program leaves this to its user.
    precision : {"double", "single"}, default="double"
        Precision of w and the rates. Certificates are always computed in double precision.

    Examples
    --------
    >>> SGDQN(t0=1e4).name
    'sgd-qn'
    """

    name = "sgd-qn"
    n_vectors = 7
    certifies = False

    t0: float | None = None
    skip: int | None = None
    restart_decay: bool = False
    clip_decay: bool = True
    shuffle: bool = True
    precision: Literal["double", "single"] = "double"

    def start(self, problem: Problem, options: Options) -> SGDQNRun:
        """Begin a run."""
        order = options.rng.permutation(problem.active) if self.shuffle else problem.active
        trial, cold = order[: max(1, order.size // 10)], replace(options, start=None)

        def cost(t0: float) -> float:
            """The objective after five passes over a tenth of the rows."""
            run = SGDQNRun(self, problem, cold, trial, t0)
            for _ in range(_TRIAL_PASSES):
                run.epoch()
            objective = primal_bound(problem.sample(trial), run.w).value
            return objective if math.isfinite(objective) else math.inf

        # If all overflow, the last has the smallest rates.
        t0 = self.t0 or min(reversed(_TRIAL_T0), key=cost)
        return SGDQNRun(self, problem, options, order, t0)


class SGDQNRun(ScaledSGD):
    """SGD-QN on one problem: w, the rates, and the counters."""

    def __init__(
        self, solver: SGDQN, problem: Problem, options: Options, order: NDArray[np.int64], t0: float
    ) -> None:
        super().__init__(solver, problem, options, order)
        stored_per_row = max(1.0, problem.rows.n_stored / problem.rows.n_rows)
        self._skip = solver.skip or max(1, int(16 * problem.dimension / stored_per_row))
        self._before, self._change = np.zeros((2, self._v.size), self._v.dtype)
        self._rates = np.full_like(self._v, 1.0 / (problem.lambda_ * (t0 + self._t)))
        # Rows until the next decay; rows since the rates changed; whether to compare w and w1.
        self._counters = np.array([self._skip, 0, 0], dtype=np.int64)

    def epoch(self) -> Epoch:
        """Present all rows."""
        if self._solver.restart_decay:
            self._counters[0], self._counters[2] = self._skip, 0
        return super().epoch()

    def present(self, rows: NDArray[np.int64]) -> tuple[int, float]:
        """Present some rows; return the margin errors and the weighted hinge sum."""
        problem, most = self._problem, 1.0 if self._solver.clip_decay else math.inf
        errors, loss = quasi_newton_steps(
            problem.rows.arrays, problem.signed_weights, rows, problem.lambda_, self._skip, most,
            self._counters, self._rates, self._before, self._change, self._v,
        )  # fmt: skip
        return errors, loss


@kernel
def quasi_newton_steps(
    rows: RowArrays, signed_weights: Vector, order: NDArray[np.int64], lambda_: float, skip: int,
    largest_decay: float, counters: NDArray[np.int64], rates: NDArray[np.floating[Any]],
    before: NDArray[np.floating[Any]], change: NDArray[np.floating[Any]],
    w: NDArray[np.floating[Any]],
) -> tuple[int, float]:  # fmt: skip
    """Make steps on the rows of ``order``; write ``counters`` and all arrays after it.

    ``before`` is w1, the w before the last decay. ``change`` is zero between calls.
    """
    errors, loss = 0, 0.0
    for i in range(order.size):
        k, weight, label, margin = visit_row(rows, signed_weights, order, i, w)
        counters[1] += 1
        if counters[2] == 1:
            counters[2] = 0
            margin_before = label * dot(rows, k, before)
            differs = (1 if margin < 1.0 else 0) - (1 if margin_before < 1.0 else 0)
            if differs != 0:
                add(rows, k, label * weight * differs, change)
                n, counters[1] = counters[1], 0
                for j in range(w.size):
                    b = lambda_
                    if change[j] != 0.0:
                        moved = before[j] - w[j]
                        b = 101.0 * lambda_
                        if moved != 0.0:
                            b = lambda_ + change[j] / moved
                            b = min(max(b, 0.1 * lambda_), 100.0 * lambda_)
                        change[j] = 0.0
                    rates[j] = 1.0 / (1.0 / rates[j] + n * b)
        counters[0] -= 1
        if counters[0] <= 0:
            counters[0] = skip
            counters[2] = 1
            for j in range(w.size):
                before[j] = w[j]
                w[j] -= min(largest_decay, skip * lambda_ * rates[j]) * w[j]
        if margin < 1.0:
            errors += 1
            loss += weight * (1.0 - margin)
            add_scaled(rows, k, label * weight, rates, w)
    return errors, loss
