"""SGD with any learning rate, on w = scale times v, and a search for the rate.

A step with the rate eta on row k, for  lambda/2 |w|^2 + 1/m sum_k s_k max(0, 1 - w.y_k),  is

    w <- (1 - eta lambda) w,   plus  eta s_k y_k  if w.y_k <= 1.

The first factor changes only the scale, which is folded into v before it gets too small. The rates
of NORMA, SvmSgd and Pegasos are cases of

    eta_t = eta_0 / (1 + decay t)^power.

Then w is projected to the ball of a given radius.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certsvm.kernels.jit import kernel
from certsvm.kernels.rows import RowArrays, Vector, add, dot
from certsvm.kernels.vectors import inner
from certsvm.problem.problems import Problem
from certsvm.solvers.base import Epoch, Options, Run, Solver, require

# The number of rows on which a rate is tried.
TRIAL_ROWS = 1000


class PassesRun(Run):
    """Presents the rows of ``order`` in each pass."""

    def __init__(self, problem: Problem, options: Options, order: NDArray[np.int64]) -> None:
        self._problem, self._order, self._rng = problem, order, options.rng
        self._epochs = options.first_t(problem) // problem.m

    @property
    @abstractmethod
    def w(self) -> Vector:
        """The weight vector, in float64."""

    @abstractmethod
    def present(self, rows: NDArray[np.int64]) -> tuple[int, float]:
        """Present some rows; return the margin errors and the weighted hinge sum."""

    def epoch(self) -> Epoch:
        """Present all rows."""
        self._epochs += 1
        sums = [self.present(rows) for rows in self._problem.slices(self._order)]
        errors, loss = (sum(column) for column in zip(*sums, strict=True))
        w = self.w
        return Epoch(
            epochs=self._epochs,
            margin_errors=errors,
            primal_estimate=0.5 * inner(w, w) + self._problem.C * loss,
        )

    def candidates(self) -> Iterator[Vector]:
        """The last w."""
        yield self.w

    def objective(self) -> float:
        """lambda/2 |w|^2 plus the mean weighted hinge loss of the rows of ``order``."""
        problem, w = self._problem, self.w
        # At a rate of zero, w stays as it is.
        _, _, loss = scaled_steps(
            problem.rows.arrays, problem.signed_weights, problem.rows.squared_norms, self._order,
            problem.lambda_, 0.0, 0.0, 1.0, math.inf, 0, 1.0, w,
        )  # fmt: skip
        return 0.5 * problem.lambda_ * inner(w, w) + loss / self._order.size


class ScaledSGD(PassesRun):
    """Plain SGD with the rate eta_t, from w after t presentations."""

    def __init__(
        self, problem: Problem, options: Options, order: NDArray[np.int64], eta_0: float,
        decay: float = 0.0, power: float = 1.0, radius: float = math.inf, first_t: int = 0,
        dtype: type[np.floating[Any]] = np.float64,
    ) -> None:  # fmt: skip
        super().__init__(problem, options, order)
        self._parameters = eta_0, decay, power, radius
        self._t, self._scale = options.first_t(problem) + first_t, 1.0
        self._v: NDArray[Any] = options.first_w(problem).astype(dtype)

    @property
    def w(self) -> Vector:
        """The weight vector, in float64."""
        return self._scale * self._v.astype(np.float64)

    def present(self, rows: NDArray[np.int64]) -> tuple[int, float]:
        """Present some rows; return the margin errors and the weighted hinge sum."""
        problem = self._problem
        self._scale, errors, loss = scaled_steps(
            problem.rows.arrays, problem.signed_weights, problem.rows.squared_norms, rows,
            problem.lambda_, *self._parameters, self._t, self._scale, self._v,
        )  # fmt: skip
        self._t += rows.size
        return errors, loss


def search_rate(problem: Problem, rows: NDArray[np.int64]) -> float:
    """The constant rate that gives the least objective after one pass over ``rows``.

    Tries 1, then doubles or halves the rate while that improves the objective on these rows. A rate
    above 1/lambda would reverse w and is not tried.
    """
    most = 0.5 / problem.lambda_

    def cost(eta: float) -> float:
        run = ScaledSGD(problem, Options(np.random.default_rng(0)), rows, eta)
        run.epoch()
        return run.objective()

    best = min(1.0, most)
    best_cost = cost(best)
    for factor in (2.0, 0.5):
        while 1e-300 < (eta := best * factor) <= most and (now := cost(eta)) < best_cost:
            best, best_cost = eta, now
    return best


def require_stable(solver: Solver, problem: Problem, eta_0: float) -> None:
    """Raise a ValueError if the first step would reverse w."""
    require(
        eta_0 * problem.lambda_ < 1,
        solver,
        f"eta_0 = {eta_0:g} is beyond 1/lambda = C m = {1 / problem.lambda_:g}: the first step "
        "would reverse w. Choose a smaller one.",
    )


@kernel
def scaled_steps(
    rows: RowArrays, signed_weights: Vector, squared_norms: Vector, order: NDArray[np.int64],
    lambda_: float, eta_0: float, decay: float, power: float, radius: float, t: int, scale: float,
    v: NDArray[Any],
) -> tuple[float, int, float]:  # fmt: skip
    """Make steps on the rows of ``order``, the first with the rate at ``t``; write ``v``.

    Returns the new scale, the margin errors and the weighted hinge sum.
    """
    errors, loss = 0, 0.0
    squared_norm = inner(v, v)
    for i in range(order.size):
        k = order[i]
        weight = abs(signed_weights[k])
        label = 1.0 if signed_weights[k] > 0.0 else -1.0
        growth = 1.0 + decay * t
        # A power costs as much as a short row.
        eta = eta_0 / (growth if power == 1.0 else growth**power)
        product = dot(rows, k, v)
        margin = label * scale * product
        scale *= 1.0 - eta * lambda_
        if 1.0 - eta * lambda_ < 1e-15:
            # The first step of Pegasos multiplies w by 1 - 1/1.
            v[:] = 0.0
            squared_norm, scale, product = 0.0, 1.0, 0.0
        if margin <= 1.0:
            errors += 1
            loss += weight * (1.0 - margin)
            step = label * weight * eta / scale
            add(rows, k, step, v)
            squared_norm += step * (2.0 * product + step * squared_norms[k])
        if scale * scale * squared_norm > radius * radius:
            scale = radius / math.sqrt(squared_norm)
        if scale < 1e-5:
            for j in range(v.size):
                v[j] *= scale
            squared_norm = inner(v, v)
            scale = 1.0
        t += 1
    return scale, errors, loss
