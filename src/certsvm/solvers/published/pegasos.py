"""Pegasos: SGD with the learning rate 1/(lambda t), and projection.

Minimises    lambda/2 |w|^2 + 1/m sum_k s_k max(0, 1 - w.y_k),     lambda = 1/(C m)     (J / (C m))

with one row at a time, drawn at random with replacement. At step t = first_t, first_t + 1, ...

    w <- (1 - 1/t) w,   plus  s_k y_k / (lambda t)  if w.y_k < 1 before the shrinking;
    then, optionally, w <- w min(1, radius / |w|),   radius = sqrt(C sum_k s_k),

the projection to a ball that contains the optimum (without weights, its radius is 1/sqrt(lambda)).

Given:      C, s, the rows, whether to project, first_t.
Result:     the last w. Rows are not drawn equally often, so there is no dual point: primal only.
Difference: the article begins at t = 1, the published program at t = 2 (``first_t=2``). w is stored
            as scale times v. The published program never folds the scale into v. With long rows or
            large C, v overflows, |w| becomes NaN, and from then on w is not projected. Here the
            scale is folded in.

Reference: S. Shalev-Shwartz, Y. Singer, N. Srebro and A. Cotter, Pegasos: Primal Estimated
sub-GrAdient SOlver for SVM, Mathematical Programming 127 (2011); one row at a time (k = 1).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from certsvm.kernels.jit import kernel
from certsvm.kernels.rows import RowArrays, Vector, add, dot
from certsvm.kernels.vectors import inner
from certsvm.problem.memory import Problem
from certsvm.solvers.base import Epoch, Options, Run, Solver, require_positive


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

    project: bool = True
    first_t: int = 1

    def __post_init__(self) -> None:
        require_positive(self, "first_t")

    def start(self, problem: Problem, options: Options) -> PegasosRun:
        """Begin a run."""
        return PegasosRun(self, problem, options)


class PegasosRun(Run):
    """Pegasos on one problem."""

    def __init__(self, solver: Pegasos, problem: Problem, options: Options) -> None:
        self._problem = problem
        self._rng = options.rng
        self._radius = math.sqrt(problem.C * problem.weight_sum) if solver.project else math.inf
        self._steps_before = solver.first_t - 1
        self._t = options.first_t(problem)
        self._v = options.first_w(problem)
        self._scale = 1.0

    def epoch(self) -> Epoch:
        """Present m rows, drawn with replacement."""
        problem = self._problem
        errors, loss = 0, 0.0
        for part in problem.slices(problem.active[self._rng.integers(problem.m, size=problem.m)]):
            self._scale, part_errors, part_loss = pegasos_steps(
                problem.rows.arrays, problem.signed_weights, problem.rows.squared_norms, part,
                problem.lambda_, self._radius, self._steps_before + self._t, self._scale, self._v,
            )  # fmt: skip
            self._t += part.size
            errors += part_errors
            loss += part_loss
        squared_norm = self._scale**2 * inner(self._v, self._v)
        return Epoch(
            epochs=self._t // problem.m,
            margin_errors=errors,
            primal_estimate=0.5 * squared_norm + problem.C * loss,
        )

    def candidates(self) -> Iterator[Vector]:
        """The last w."""
        yield self._scale * self._v


@kernel
def pegasos_steps(
    rows: RowArrays,
    signed_weights: Vector,
    squared_norms: Vector,
    order: NDArray[np.int64],
    lambda_: float,
    radius: float,
    t: int,
    scale: float,
    v: Vector,
) -> tuple[float, int, float]:
    """Make steps t + 1, t + 2, ... on the rows of ``order``; w is ``scale * v``.

    Writes ``v``. Returns the new scale, the margin errors and the weighted hinge sum.
    """
    errors = 0
    loss = 0.0
    squared_norm = 0.0
    for j in range(v.size):
        squared_norm += v[j] * v[j]
    for i in range(order.size):
        t += 1
        k = order[i]
        weight = abs(signed_weights[k])
        label = 1.0 if signed_weights[k] > 0.0 else -1.0
        product = dot(rows, k, v)
        margin = label * scale * product
        if t == 1:
            # The first step multiplies w by 1 - 1/1 = 0.
            squared_norm, scale, product = 0.0, 1.0, 0.0
            for j in range(v.size):
                v[j] = 0.0
        else:
            scale *= 1.0 - 1.0 / t
        if margin < 1.0:
            errors += 1
            loss += weight * (1.0 - margin)
            step = label * weight / (lambda_ * t * scale)
            add(rows, k, step, v)
            squared_norm += step * (2.0 * product + step * squared_norms[k])
        if scale * scale * squared_norm > radius * radius:
            scale = radius / math.sqrt(squared_norm)
        if scale < 1e-9:
            squared_norm = 0.0
            for j in range(v.size):
                v[j] *= scale
                squared_norm += v[j] * v[j]
            scale = 1.0
    return scale, errors, loss
