"""Plain SGD with a rate for each step: Pegasos, NORMA and SvmSgd.

Minimises    lambda/2 |w|^2 + 1/m sum_k s_k max(0, 1 - w.y_k),     lambda = 1/(C m)     (J / (C m))

with one row at a time. The step t on row k is

    w <- (1 - eta_t lambda) w,   plus  eta_t s_k y_k  if w.y_k <= 1,

with w stored as scale times v: the first factor changes only the scale, which is folded into v
before it gets too small. The rates are cases of

    eta_t = eta_0 / (1 + decay t)^power.

Pegasos:    eta_t = 1 / (lambda t), t from ``first_t`` on, rows drawn at random with replacement.
            Then, optionally, w <- w min(1, radius / |w|) with radius = sqrt(C sum_k s_k), the
            projection to a ball that contains the optimum (without weights, its radius is
            1/sqrt(lambda)).
Difference: the article begins at t = 1, the published program at t = 2 (``first_t=2``). A row on
            the margin is a margin error here. The published program never folds the scale into v.
            With long rows or large C, v overflows, |w| becomes NaN, and from then on w is not
            projected.

NORMA:      eta_t is constant, or eta_0 / sqrt(t + 1). With a constant rate, w does not converge,
            but its mean does: the result is the last w, or the mean of the w at the ends of the
            passes in the last half of the run.
Difference: NORMA is an online algorithm; here it makes passes over the rows in random order. If
            eta_0 is not given, it is found by trial on a thousand rows. The variant whose margin
            adapts to a fraction nu of errors, which is another problem, is left out.

SvmSgd:     eta_t = eta_0 / (1 + lambda eta_0 t). The rows are shuffled once and visited in that
            order in every pass. eta_0 is the constant rate that gives the least objective after one
            pass over the first thousand rows: 1, doubled or halved while that helps.
Difference: when the search of the published program halves the rate, it ends with half of the best
            rate; here it ends with the best, and tries at most 1/(2 lambda). The program divides
            each row by its length, unless told not to, and does not shuffle. Its intercept has a
            separate rate and is not regularised; here it is a column like the others. Single
            precision is a parameter.

No step says what a dual variable would be, so all three are primal only.

References: S. Shalev-Shwartz, Y. Singer, N. Srebro and A. Cotter, Pegasos: Primal Estimated
sub-GrAdient SOlver for SVM, Mathematical Programming 127 (2011), one row at a time (k = 1);
J. Kivinen, A. J. Smola and R. C. Williamson, Online Learning with Kernels, IEEE Transactions on
Signal Processing 52 (2004); L. Bottou, Stochastic Gradient Descent Examples, version 2.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from certsvm.certificates.primal import primal_bound
from certsvm.kernels.jit import kernel
from certsvm.kernels.rows import RowArrays, Vector, add, visit_row
from certsvm.kernels.vectors import inner
from certsvm.problem.problems import Problem
from certsvm.solvers.base import Epoch, Options, Run, Solver, float_type, require

# The number of rows on which a rate is tried.
_TRIAL_ROWS = 1000


class ScaledSGD(Run):
    """Plain SGD with the rate eta_t, which presents the rows of ``order`` in each pass."""

    def __init__(
        self, solver: Solver, problem: Problem, options: Options, order: NDArray[np.int64],
        eta_0: float = 0.0, decay: float = 0.0, power: float = 1.0, radius: float = math.inf,
    ) -> None:  # fmt: skip
        super().__init__(solver, problem, options)
        self._order, self._parameters = order, (eta_0, decay, power, radius)
        self._t, self._scale = options.first_t(problem), 1.0
        self._passes = self._t // problem.m
        dtype = float_type(solver, getattr(solver, "precision", "double"), problem)
        self._v: NDArray[Any] = options.first_w(problem).astype(dtype)

    @property
    def w(self) -> Vector:
        """The weight vector, in float64."""
        return self._scale * self._v.astype(np.float64)

    def epoch(self) -> Epoch:
        """Present all rows."""
        self._passes += 1
        sums = [self.present(rows) for rows in self._problem.slices(self._order)]
        errors, loss = (sum(column) for column in zip(*sums, strict=True))
        w = self.w
        primal = 0.5 * inner(w, w) + self._problem.C * loss
        return Epoch(epochs=self._passes, margin_errors=errors, primal_estimate=primal)

    def present(self, rows: NDArray[np.int64]) -> tuple[int, float]:
        """Present some rows; return the margin errors and the weighted hinge sum."""
        problem = self._problem
        self._scale, errors, loss = scaled_steps(
            problem.rows.arrays, problem.signed_weights, problem.rows.squared_norms, rows,
            problem.lambda_, *self._parameters, self._t, self._scale, self._v,
        )  # fmt: skip
        self._t += rows.size
        return errors, loss

    def candidates(self) -> Iterator[Vector]:
        """The last w."""
        yield self.w


def search_rate(problem: Problem, rows: NDArray[np.int64]) -> float:
    """The constant rate that gives the least objective after one pass over ``rows``.

    Tries 1, then doubles or halves the rate while that improves the objective on these rows. A rate
    above 1/lambda would reverse w and is not tried.
    """
    most, sample = 0.5 / problem.lambda_, problem.sample(rows)

    def cost(eta: float) -> float:
        run = ScaledSGD(SvmSgd(), problem, Options(np.random.default_rng(0)), rows, eta)
        run.epoch()
        return primal_bound(sample, run.w).value

    best = min(1.0, most)
    best_cost = cost(best)
    for factor in (2.0, 0.5):
        while 1e-300 < (eta := best * factor) <= most and (now := cost(eta)) < best_cost:
            best, best_cost = eta, now
    return best


def require_stable(solver: Solver, problem: Problem, eta_0: float) -> None:
    """Raise a ValueError if the first step would reverse w."""
    most = f"1/lambda = C m = {1 / problem.lambda_:g}"
    message = f"eta_0 = {eta_0:g} is beyond {most}: the first step would reverse w."
    require(eta_0 * problem.lambda_ < 1, solver, message)


@dataclass(frozen=True)
class Pegasos(Solver, first_t="> 0"):
    """SGD with the rate 1/(lambda t) on rows drawn at random.

    Parameters
    ----------
    project : bool, default=True
        Whether to project w to a ball that contains the optimum.
    first_t : int, default=1
        t of the first step: 1 in the article, 2 in the published program.

    Examples
    --------
    >>> Pegasos(project=False).name
    'pegasos'
    """

    name = "pegasos"
    certifies = False

    project: bool = True
    first_t: int = 1


class PegasosRun(ScaledSGD, of=Pegasos):
    """Pegasos on one problem."""

    def __init__(self, solver: Pegasos, problem: Problem, options: Options) -> None:
        radius = math.sqrt(problem.C * problem.weight_sum) if solver.project else math.inf
        eta_0 = 1.0 / problem.lambda_
        super().__init__(solver, problem, options, problem.active, eta_0, 1.0, radius=radius)
        self._t += solver.first_t - 1

    def epoch(self) -> Epoch:
        """Present m rows, drawn with replacement."""
        problem = self._problem
        self._order = problem.active[self._rng.integers(problem.m, size=problem.m)]
        return super().epoch()


@dataclass(frozen=True)
class NORMA(Solver, rate='"sqrt" or "constant"', eta_0="> 0"):
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

    name = "norma"
    n_vectors = 5
    certifies = False

    rate: Literal["sqrt", "constant"] = "sqrt"
    eta_0: float | None = None


class NORMARun(ScaledSGD, of=NORMA):
    """NORMA on one problem: a new random order in each pass, and the mean of w."""

    _mean_since, _in_mean = 0, 0
    _mean: Vector

    def __init__(self, solver: NORMA, problem: Problem, options: Options) -> None:
        order = options.rng.permutation(problem.active)
        eta_0, decay = solver.eta_0, float(solver.rate == "sqrt")
        if eta_0 is None:
            trial = order[:_TRIAL_ROWS]
            eta_0 = search_rate(problem, trial)
            if decay:
                eta_0 = min(eta_0 * math.sqrt(trial.size), 0.5 / problem.lambda_)
        require_stable(solver, problem, eta_0)
        super().__init__(solver, problem, options, order, eta_0, decay, power=0.5)

    def epoch(self) -> Epoch:
        """Present all rows in a new random order."""
        self._rng.shuffle(self._order)
        epoch = super().epoch()
        # The mean covers at least the last half of the passes.
        if self._passes >= 2 * self._mean_since:
            self._mean_since, self._in_mean = self._passes, 0
            self._mean = np.zeros(self._problem.dimension)
        self._in_mean += 1
        self._mean += (self.w - self._mean) / self._in_mean
        return epoch

    def candidates(self) -> Iterator[Vector]:
        """The last w, then the mean."""
        yield self.w
        yield self._mean


@dataclass(frozen=True)
class SvmSgd(Solver, eta_0="> 0", precision='"double" or "single"'):
    """SGD with the rate eta_0 / (1 + lambda eta_0 t).

    Parameters
    ----------
    eta_0 : float, default=None
        The first rate; None finds one by trial.
    shuffle : bool, default=True
        Whether to shuffle the rows once. The published program leaves this to its user.
    precision : {"double", "single"}, default="double"
        Precision of w. Certificates are always computed in double precision.

    Examples
    --------
    >>> SvmSgd(precision="single").name
    'svmsgd'
    """

    name = "svmsgd"
    certifies = False

    eta_0: float | None = None
    shuffle: bool = True
    precision: Literal["double", "single"] = "double"

    def start(self, problem: Problem, options: Options) -> ScaledSGD:
        """Begin a run."""
        order = options.rng.permutation(problem.active) if self.shuffle else problem.active
        eta_0 = self.eta_0 or search_rate(problem, order[:_TRIAL_ROWS])
        require_stable(self, problem, eta_0)
        return ScaledSGD(self, problem, options, order, eta_0, problem.lambda_ * eta_0)


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
        k, weight, label, margin = visit_row(rows, signed_weights, order, i, v)
        product, margin = label * margin, scale * margin
        growth = 1.0 + decay * t
        # A power costs as much as a short row.
        eta = eta_0 / (growth if power == 1.0 else growth**power)
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
