"""SGD with any learning rate, on w = scale times v, and a search for the rate.

A step with the rate eta on row k, for  lambda/2 |w|^2 + 1/m sum_k s_k max(0, margin - w.y_k),  is

    w <- (1 - eta lambda) w,   plus  eta s_k y_k  if w.y_k <= margin.

The first factor changes only the scale, which is folded into v before it gets too small. The rates
of NORMA and SvmSgd are cases of

    eta_t = eta_0 / (1 + decay t)^power.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certsvm.kernels.jit import kernel
from certsvm.kernels.rows import RowArrays, Vector, add, dot
from certsvm.kernels.vectors import inner
from certsvm.problem.memory import Problem
from certsvm.solvers.base import Solver, require
from certsvm.storage.fields import array, count, number, positive, record
from certsvm.storage.state import Scope, State, Stateful

TRIAL_ROWS = 1000
"""The number of rows on which a rate is tried."""


@dataclass(frozen=True)
class Rate:
    """eta_t = eta_0 / (1 + decay t)^power."""

    eta_0: float
    decay: float = 0.0
    power: float = 1.0


class ScaledSGD(Stateful):
    """The state (v, scale, t) of plain SGD, and its rate."""

    STATE = State(
        rate=record(Rate, eta_0=positive(), decay=number(low=0.0), power=number(low=0.0, high=1.0)),
        t=count(),
        margin=number(),
        scale=positive(),
        v=array("dimension", dtype=None),
    )

    def __init__(
        self, problem: Problem, rate: Rate, w: Vector, t: int = 0, *,
        nu: float = math.nan, dtype: type[np.floating[Any]] = np.float64,
    ) -> None:  # fmt: skip
        self.problem = problem
        self.rate = rate
        self.t = t
        self.nu = nu
        self.margin = 1.0
        self.scale = 1.0
        self.v: NDArray[Any] = w.astype(dtype)

    def require_consistent(self, state: Mapping[str, Any], scope: Scope) -> None:
        """Require a rate that does not reverse w."""
        if not state["rate"]["eta_0"] * self.problem.lambda_ < 1.0:
            scope.fail("has a rate beyond 1/lambda")

    def present(self, order: NDArray[np.int64]) -> tuple[int, float]:
        """Present the rows of ``order``; return the margin errors and the weighted hinge sum."""
        problem, rate = self.problem, self.rate
        errors, loss = 0, 0.0
        for part in problem.slices(order):
            self.scale, self.margin, part_errors, part_loss = scaled_steps(
                problem.rows.arrays, problem.signed_weights, part, problem.lambda_,
                rate.eta_0, rate.decay, rate.power, self.nu, self.t, self.scale, self.margin,
                self.v,
            )  # fmt: skip
            self.t += part.size
            errors += part_errors
            loss += part_loss
        return errors, loss

    @property
    def w(self) -> Vector:
        """The weight vector, scaled to the margin 1; the margin must be positive."""
        return (self.scale / self.margin) * self.v.astype(np.float64)


def search_rate(problem: Problem, rows: NDArray[np.int64]) -> float:
    """The constant rate that gives the least objective after one pass over ``rows``.

    Tries 1, then doubles or halves the rate while that improves the objective on these rows. A rate
    above 1/lambda would reverse w and is not tried.
    """
    most = 0.5 / problem.lambda_

    def cost(eta: float) -> float:
        state = ScaledSGD(problem, Rate(eta), np.zeros(problem.dimension))
        state.present(rows)
        return mean_objective(problem, rows, state.w)

    best = min(1.0, most)
    best_cost = cost(best)
    for factor in (2.0, 0.5):
        eta = best * factor
        while eta <= most and eta > 1e-300:
            now = cost(eta)
            if not now < best_cost:
                break
            best, best_cost = eta, now
            eta *= factor
    return best


def require_stable(solver: Solver, problem: Problem, eta_0: float) -> None:
    """Raise a ValueError if the first step would reverse w."""
    require(
        eta_0 * problem.lambda_ < 1,
        solver,
        f"eta_0 = {eta_0:g} is beyond 1/lambda = C m = {1 / problem.lambda_:g}: the first step "
        "would reverse w. Choose a smaller one.",
    )


def mean_objective(problem: Problem, rows: NDArray[np.int64], w: Vector) -> float:
    """The objective lambda/2 |w|^2 plus the mean weighted hinge loss of ``rows``."""
    loss = float(partial_hinge(problem.rows.arrays, problem.signed_weights, rows, w))
    return 0.5 * problem.lambda_ * inner(w, w) + loss / rows.size


@kernel
def partial_hinge(
    rows: RowArrays, signed_weights: Vector, order: NDArray[np.int64], w: Vector
) -> float:
    """Weighted hinge sum over the rows of ``order``."""
    total = 0.0
    for i in range(order.size):
        k = order[i]
        label = 1.0 if signed_weights[k] > 0.0 else -1.0
        total += abs(signed_weights[k]) * max(0.0, 1.0 - label * dot(rows, k, w))
    return total


@kernel
def scaled_steps(
    rows: RowArrays,
    signed_weights: Vector,
    order: NDArray[np.int64],
    lambda_: float,
    eta_0: float,
    decay: float,
    power: float,
    nu: float,
    t: int,
    scale: float,
    target: float,
    v: NDArray[np.floating[Any]],
) -> tuple[float, float, int, float]:
    """Make steps on the rows of ``order``, the first with the rate at ``t``; write ``v``.

    ``target`` is the margin. If ``nu`` is not NaN, a margin error lowers it by eta s_k (1 - nu),
    any other row raises it by eta s_k nu. Returns scale, target, margin errors and the weighted
    hinge sum of w / target. While the target is not positive, a margin error counts as a loss of 1.
    """
    errors = 0
    loss = 0.0
    adapts = not math.isnan(nu)
    for i in range(order.size):
        k = order[i]
        weight = abs(signed_weights[k])
        label = 1.0 if signed_weights[k] > 0.0 else -1.0
        eta = eta_0
        if decay > 0.0:
            eta = eta_0 / (1.0 + decay * t) ** power
        margin = label * scale * dot(rows, k, v)
        scale *= 1.0 - eta * lambda_
        if margin <= target:
            errors += 1
            loss += weight * (1.0 - margin / target if target > 0.0 else 1.0)
            add(rows, k, label * weight * eta / scale, v)
            if adapts:
                target -= eta * weight * (1.0 - nu)
        elif adapts:
            target += eta * weight * nu
        if scale < 1e-5:
            for j in range(v.size):
                v[j] *= scale
            scale = 1.0
        t += 1
    return scale, target, errors, loss
