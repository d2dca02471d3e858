"""Newton on tensors: the second-order method of ``solvers.newton``, where the data are.

Minimises    J(w) = 1/2 |w|^2 + C sum_k s_k max(0, 1 - w.y_k)

as that does: with alpha_k(w) = clip(alpha_hat_k + sigma s_k (1 - w.y_k), 0, C s_k), first alpha_hat
stays in the middle of the box and sigma grows, then alpha_hat follows alpha. What differs is where
the time goes, and so what is computed how:

* A step reads the rows for the products with the direction, and, as long as many of the alpha
  change, for sum_k alpha_k y_k. Both are in float64, which costs nothing (``kernels``); J and L
  come from them, with their rounding.
* The Gram matrix of the band is made of rows rounded to bfloat16, on tensor cores. If the slopes
  along a direction say that it was inaccurate, those that follow are corrected by conjugate
  gradients, preconditioned with that matrix, on the rows as they are; if they are still inaccurate,
  the matrix is made in float64 from then on.
* Several problems with the same rows (classes, several C) go in step, so that a reading serves all.

Each step waits for the device four times: for the band, for the slopes along the direction, for
which alpha have changed, and for the numbers of a step, which come to the host together with w.

Given:      C, s, the rows in tensors; at most ``max_columns`` columns.
Result:     w, and alpha(w).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, cast

import numpy as np
import torch
from torch import Tensor

from certsvm.certificates.dual import DualPoint, RowSums, dual_bound
from certsvm.certificates.primal import LossSums
from certsvm.certificates.rounding import (
    UNIT_ROUNDOFF,
    Bound,
    moved_rounding,
    product_error,
    rounding_slack,
)
from certsvm.problem.base import BaseProblem
from certsvm.problem.rows import Vector
from certsvm.solvers.base import Epoch, Options, Run, Solver, require
from certsvm.solvers.newton import (
    FIRST_SIGMA,
    GROWTH_MULTIPLIERS,
    GROWTH_SMOOTHING,
    LARGEST_SIGMA,
    MOST_INNER,
    MOST_SMOOTHING,
    NEAR,
    NEARLY_SEPARABLE,
    SAMPLE,
    SAMPLE_GAP,
    SAMPLE_PER_COLUMN,
    SAMPLE_STEPS,
    SMALLEST_SAMPLE,
    SMOOTHING_STAGES,
)
from certsvm.solvers.smoothed_newton import STEPS, best_step, require_few_columns
from certsvm.torch import kernels
from certsvm.torch.problems import ProblemGroup, TensorProblem
from certsvm.torch.rows import GATHERED

# The smooth problem is solved well enough when |grad|^2 / 2 is this fraction of the gap.
_INNER = 0.2
# Rounding may take this share of the gap before products and sums are computed anew.
_ROUNDING = 0.05
# If fewer of the rows have another alpha than before, their sum is corrected instead of made anew.
_FEW_CHANGES = 0.1
# A direction is accurate if the minimum along it is so near to where it should be.
_ACCURATE = 0.02
# What is done for the sake of accurate directions: a coarse Gram matrix, conjugate gradients on top
# of it, a Gram matrix in float64.
_COARSE, _CORRECTED, _EXACT = range(3)
_CORRECTIONS = 4
# So many steps on one smooth problem are a sign that directions are inaccurate, and so few that it
# was easy.
_MANY_STEPS, _FEW_STEPS = 8, 1
# This share of the tolerance may be spent on moving rows off their margins.
_LONGER = 0.1
# The unit below which no shorter steps are looked for.
_LEAST_UNIT = 1e-20
# Rows for each column that the band should keep, and by how much sigma grows at least.
_ROWS_PER_COLUMN, _LEAST_GROWTH = 1.5, 1.5
# Of the slope that the last run ended with, a warm start begins with this share.
_SMOOTHER = 0.1
# Bytes that may be kept for the sake of corrections.
_KEPT = 2**31

PRODUCTS, SUMS = "products", "sums"
# What a strand asks for, and what it is given.
Reading = Generator[tuple[str, Tensor], Tensor, None]


@dataclass(frozen=True)
class TensorNewton(Solver):
    """Second-order method for few columns, on tensors.

    Parameters
    ----------
    max_columns : int, default=5000
        With more columns than this, refuse: the memory grows with their square, the time of a
        step with their cube.
    samples : bool, default=True
        Whether to begin on samples of the rows.
    corrections : int, default=4
        Steps of conjugate gradients that correct a direction, where that is needed.
    """

    name: ClassVar[str] = "newton"
    goes_on_from_alpha: ClassVar[bool] = True
    problem_type: ClassVar[type[Any]] = TensorProblem

    max_columns: int = 5000
    samples: bool = True
    corrections: int = _CORRECTIONS

    def __post_init__(self) -> None:
        require(self.max_columns > 0, self, f"max_columns must be > 0, got {self.max_columns}")
        require(self.corrections >= 0, self, f"corrections must be >= 0, got {self.corrections}")

    def start(self, problem: BaseProblem, options: Options) -> Run:
        """Begin a run; problems of a group share what is done for the first of them."""
        require(isinstance(problem, TensorProblem), self, "it needs rows in tensors")
        require(options.start is None, self, "a start belongs to the TensorProblem")
        require_few_columns(problem, self.max_columns, self)
        problem = cast(TensorProblem, problem)
        group = problem.group or ProblemGroup([problem])
        if group.team is None:
            group.team = Team.begun(self, group, options)
        return TensorNewtonRun(cast(Team, group.team), problem.number)


@dataclass(frozen=True)
class Found:
    """What is known after a step: the best of J and of L so far."""

    w: Vector
    primal: Bound
    point: DualPoint
    alpha: Tensor
    band: int


class TensorNewtonRun(Run):
    """One of the problems of a team."""

    computes_primal = True

    def __init__(self, team: Team, number: int) -> None:
        self._team, self._number = team, number
        self._seen = 0

    def epoch(self) -> Epoch:
        """One step; or those that were made for this problem while others asked for theirs."""
        strand = self._team.strands[self._number]
        if strand.steps == self._seen:
            self._team.advance(self._number)
        self._seen = strand.steps
        found = strand.found
        assert found is not None
        return Epoch(epochs=self._seen, free=found.band, primal_estimate=found.primal.value)

    def candidates(self) -> Iterator[Vector]:
        """The best w."""
        found = self._team.strands[self._number].found
        if found is not None:
            yield found.w

    def primal(self) -> tuple[Vector, Bound] | None:
        """The best w, and J there."""
        found = self._team.strands[self._number].found
        return None if found is None else (found.w, found.primal)

    def dual(self) -> DualPoint | None:
        """The best alpha."""
        found = self._team.strands[self._number].found
        return None if found is None else found.point


class Team:
    """Strands with the same rows, which go in step."""

    def __init__(self, strands: Sequence[Strand]) -> None:
        self.strands = list(strands)
        self._rows = strands[0].problem.rows
        self._torn = False
        self._do([strand.begin() for strand in strands])

    @classmethod
    def begun(cls, solver: TensorNewton, group: ProblemGroup, options: Options) -> Team:
        """A team for a group of problems, each with where to begin."""
        seed = int(options.rng.integers(2**62))
        problems = group.problems
        begin = [Beginning.of(problem) for problem in problems]
        if solver.samples:
            begin = _from_a_sample(solver, problems, begin, seed)
        return cls(
            [
                Strand(problem, some, options.target, solver.corrections, options.keep_alpha)
                for problem, some in zip(problems, begin, strict=True)
            ]
        )

    def advance(self, number: int) -> None:
        """Let all take a step that have not reached their target, and the one that asks.

        After an interruption strands may be in the middle of a step, where w and its products do
        not belong together. They then stay where they are, and what was found before stands.
        """
        if self._torn:
            return
        some = [s for i, s in enumerate(self.strands) if i == number or not s.done]
        self._do([strand.step() for strand in some])

    def _do(self, tasks: Sequence[Reading]) -> None:
        """Run tasks to their ends, answering what they ask for in as few readings as possible."""
        try:
            self._answer(tasks)
        except BaseException:
            self._torn = True
            raise

    def _answer(self, tasks: Sequence[Reading]) -> None:
        waiting = [(task, *request) for task in tasks if (request := next(task, None)) is not None]
        while waiting:
            # All of the kind that most wait for; the others wait a little longer.
            kind = max((PRODUCTS, SUMS), key=[kind for _, kind, _ in waiting].count)
            now = [(task, vector) for task, asked, vector in waiting if asked == kind]
            later = [some for some in waiting if some[1] != kind]
            read = self._rows.products if kind == PRODUCTS else self._rows.sums
            answers = read(torch.stack([vector for _, vector in now]))
            for (task, _), answer in zip(now, answers, strict=True):
                try:
                    later.append((task, *task.send(answer)))
                except StopIteration:
                    continue
            waiting = later


@dataclass(frozen=True)
class Beginning:
    """Where a strand begins."""

    w: Tensor | None = None
    alpha: Tensor | None = None
    smoothing: float = FIRST_SIGMA
    smooth: bool = True

    @classmethod
    def of(cls, problem: TensorProblem) -> Beginning:
        """Of a problem: its start, or zero."""
        if problem.start is None:
            return cls()
        start = problem.start
        smoothing = FIRST_SIGMA
        if start.smoothing is not None:
            # Somewhat smoother than where the last run ended, since the problem is another one.
            smoothing = max(FIRST_SIGMA, _SMOOTHER * start.smoothing)
        return cls(start.w, start.alpha, smoothing, start.alpha is None)


class Strand:
    """The second-order method on one problem.

    Parameters
    ----------
    problem : TensorProblem
        What to minimise.
    begin : Beginning
        Where to begin.
    target : float
        The relative accuracy asked for.
    corrections : int
        Steps of conjugate gradients that correct a direction.
    keep_alpha : bool
        Whether dual points must be able to return their alpha.
    """

    def __init__(
        self,
        problem: TensorProblem,
        begin: Beginning,
        target: float,
        corrections: int,
        keep_alpha: bool,
    ) -> None:
        self.problem = problem
        self._target, self._corrections, self._keep_alpha = target, corrections, keep_alpha
        rows = problem.rows
        self._like: dict[str, Any] = {"dtype": torch.float64, "device": rows.device}
        self._box = problem.C if problem.row_weights is None else problem.C * problem.row_weights
        self._signs, self._sizes = problem.signs.to(**self._like), rows.product_roundings
        self.w = torch.zeros(rows.dimension, **self._like) if begin.w is None else begin.w.clone()
        self._margins = torch.zeros(problem.n_rows, **self._like)
        self._error = 0.0
        self._sigma = begin.smoothing * problem.C
        self._smoothing = begin.smooth
        if begin.alpha is not None:
            self._alpha_hat = self._clipped(begin.alpha.to(**self._like))
        else:
            middle = 0.5 if begin.smooth else 0.0
            self._alpha_hat = torch.zeros(problem.n_rows, **self._like) + middle * self._box
        self.steps, self._stages, self._inner = 0, 0, 0
        self._steps_to_try = torch.as_tensor(STEPS, **self._like)
        # How careful to be with directions; more, each time that one turns out to be inaccurate.
        self._care = _COARSE
        self.best_primal, self.best_dual = math.inf, 0.0
        self.done = False
        self.found: Found | None = None
        self.alpha_sum, self._length = 0.0, 0.0
        # The alpha whose sum over the rows is known, and the point it gave.
        self._summed_alpha = self._alpha_hat
        self._point: DualPoint | None = None
        # Directions that were no numbers, in a row.
        self._failures = 0

    def _clipped(self, values: Tensor) -> Tensor:
        if isinstance(self._box, float):
            return values.clamp(0.0, self._box)
        return torch.minimum(values.clamp(min=0.0), self._box)

    @property
    def relative_gap(self) -> float:
        """Between the best values so far."""
        return self.best_primal / self.best_dual - 1.0 if self.best_dual > 0.0 else math.inf

    @property
    def smoothing(self) -> float:
        """The slope of alpha, relative to C."""
        return self._sigma / self.problem.C

    @property
    def nearly_separable(self) -> bool:
        """Whether hardly any row is short of its margin."""
        return self.alpha_sum < NEARLY_SEPARABLE * self.problem.C * self.problem.weight_sum

    def begin(self) -> Reading:
        """The products with w, and what follows from them."""
        yield from self._compute_margins()
        yield from self._evaluate()

    def _compute_margins(self) -> Reading:
        self._margins = self._signs * (yield PRODUCTS, self.w)
        self._error = product_error(self.w.cpu().numpy())

    def step(self) -> Reading:
        """One step of Newton's method, after a new stage if the last one is done."""
        self.steps += 1
        if self._solved_well_enough():
            yield from self._next_stage()
        elif self._smoothing and self._inner >= MOST_SMOOTHING and self.smoothing > FIRST_SIGMA:
            # Too steep for where it began (a sample's answer, say): on from here, but smoother.
            self._inner = 0
            self._sigma = FIRST_SIGMA * self.problem.C
            yield from self._evaluate()
        direction = self._direction()
        along = self._signs * (yield PRODUCTS, direction)
        step, length = self._search(direction, along)
        self._inner += 1
        if step == 0.0:
            return
        # As ``Products.mix`` has it.
        self._error = 1.01 * (
            self._error + step * 1.01 * length + 2.0 * (self._length + step * length)
        )
        self.w.add_(direction, alpha=step)
        self._margins.add_(along, alpha=step)
        yield from self._evaluate()

    def _evaluate(self) -> Reading:
        """alpha(w), its dual point, and the objective, from w and its products."""
        yield from self._look()
        gap = max(self.best_primal - self.best_dual, 0.0)
        if self._primal.rounding > _ROUNDING * gap and self._error > 1.02 * self._length:
            # What many steps have added up; from scratch it is less.
            yield from self._compute_margins()
            yield from self._look()
        target = self._target * self.best_dual
        if self._primal.rounding > _ROUNDING * target and self.relative_gap <= self._target:
            self._clear_of_the_margin()

    def _clear_of_the_margin(self) -> None:
        """See whether more can be claimed of a w a little longer.

        Rows on the margin may have a loss of a rounding error each, times C. Further out they have
        none, for sure, and w need only be longer by a small part of the tolerance for that.
        """
        assert self.found is not None
        problem, factor = self.problem, 1.0 + _LONGER * self._target
        error = 1.01 * (factor * self._error + 2.0 * factor * self._length)
        margin_slack = rounding_slack(error, (problem.dimension + 2.0) * problem.R)
        numbers = kernels.respond(
            factor * self._margins, self._alpha_hat, problem.row_weights, self._sizes, self._sigma,
            problem.C, margin_slack,
        )[2]  # fmt: skip
        loss, mass = numbers[:2].tolist()
        w = factor * self.w.cpu().numpy()
        bound = LossSums((loss,), (mass,), problem.n_rows).primal(problem.C, w, error)
        if bound.high < self.found.primal.high:
            self.found = replace(self.found, w=w, primal=bound)
            self._judge_gap()

    def _look(self) -> Reading:
        problem = self.problem
        margin_slack = rounding_slack(self._error, (problem.dimension + 2.0) * problem.R)
        self._unclipped, self._alpha, numbers = kernels.respond(
            self._margins, self._alpha_hat, problem.row_weights, self._sizes, self._sigma,
            problem.C, margin_slack,
        )  # fmt: skip
        moved: int | None
        change = self._alpha - self._summed_alpha
        which = change.nonzero()[:, 0]
        if self._point is None or len(which) > _FEW_CHANGES * problem.m or self._is_rounded():
            self._total = yield SUMS, self._signs * self._alpha
            moved, path = None, numbers[3]
        else:
            moved, own = len(which), change[which]
            path = own.abs() @ self._sizes[which]
            self._total = self._total + problem.rows.sums_of(which, self._signs[which] * own)
        self._summed_alpha = self._alpha
        self._gradient = self.w - self._total
        told = torch.cat([numbers[:3], path[None], self.w, self._total]).cpu().numpy()
        self._take(moved, *np.split(told, [4, 4 + problem.dimension]))

    def _is_rounded(self) -> bool:
        """Whether what was added up to sum_k alpha_k y_k has become too inaccurate."""
        assert self._point is not None
        gap = max(self.best_primal - self.best_dual, 0.0)
        return self._point.w_rounding * self._length > _ROUNDING * gap

    def _take(self, moved: int | None, numbers: Vector, w: Vector, v: Vector) -> None:
        """Bounds from the numbers: sums of n terms in an order that is not known.

        v is the sum of alpha_k y_k: from scratch, or moved from the last one by a change of so many
        of the alpha.
        """
        problem, n = self.problem, self.problem.n_rows
        loss, mass, alpha_sum, path = numbers.tolist()
        path /= problem.dimension + 2.0
        self.alpha_sum, alpha = alpha_sum, self._alpha
        self._slope, self._length = float((w - v) @ (w - v)), math.sqrt(float(w @ w))
        self._primal = LossSums((loss,), (mass,), n).primal(problem.C, w, self._error)
        if moved is None:
            sums = Bound(alpha_sum, 1.01 * UNIT_ROUNDOFF * n * alpha_sum)
            point = RowSums(v, (sums,), path, problem.rows.additions).point("multipliers")
        else:
            assert self._point is not None
            point = DualPoint(
                alpha_sum=alpha_sum,
                w=v,
                source="multipliers",
                alpha_sum_rounding=1.01 * UNIT_ROUNDOFF * n * alpha_sum,
                w_rounding=self._point.w_rounding + moved_rounding(2 * moved, path, v),
            )
        if self._keep_alpha:
            point = replace(point, alpha=lambda: alpha.cpu().numpy())
        self._point = point
        bound = dual_bound(point)[0]
        self.best_primal = min(self.best_primal, self._primal.value)
        self.best_dual = max(self.best_dual, bound.value)
        if self.found is None:
            self.found = Found(w, self._primal, point, alpha, 0)
        if self._primal.high < self.found.primal.high:
            self.found = replace(self.found, w=w, primal=self._primal)
        if bound.low > dual_bound(self.found.point)[0].low:
            self.found = replace(self.found, point=point, alpha=alpha)
        self._judge_gap()

    def _judge_gap(self) -> None:
        assert self.found is not None
        low = dual_bound(self.found.point)[0].low
        self.done = low > 0.0 and self.found.primal.high <= (1.0 + self._target) * low

    def _solved_well_enough(self) -> bool:
        gap = max(self.best_primal - self.best_dual, 0.0)
        return 0.5 * self._slope <= _INNER * gap or self._inner >= MOST_INNER

    def _next_stage(self) -> Reading:
        growth = self._growth()
        self._stages += 1
        self._inner = 0
        if self._smoothing and self.nearly_separable:
            self._alpha = torch.zeros_like(self._alpha)
            self._smoothing = False
        elif self.relative_gap <= NEAR or self._stages > SMOOTHING_STAGES:
            self._smoothing = False
        if self._smoothing:
            self._sigma *= GROWTH_SMOOTHING
        else:
            self._alpha_hat = self._alpha
            self._sigma = min(self._sigma * growth, LARGEST_SIGMA * self.problem.C)
        yield from self._evaluate()

    def _growth(self) -> float:
        """By how much sigma grows.

        The band gets narrower by as much. With fewer rows in it than there are columns, they say
        too little of where to go, and steps become short; unless there were few of them anyway.
        """
        assert self.found is not None
        if self._inner <= _FEW_STEPS:
            return GROWTH_MULTIPLIERS
        most = self.found.band / (_ROWS_PER_COLUMN * self.problem.dimension)
        return min(max(most, _LEAST_GROWTH), GROWTH_MULTIPLIERS)

    def _direction(self) -> Tensor:
        """-(I + sigma sum_{k in band} s_k y_k y_k')^-1 gradient, about."""
        problem, rows = self.problem, self.problem.rows
        inside = (self._unclipped > 0.0) & (self._unclipped < self._box)
        band = inside.nonzero()[:, 0]
        assert self.found is not None
        self.found = replace(self.found, band=len(band))
        weights = None if problem.row_weights is None else problem.row_weights[band]
        scales = None if weights is None else weights.sqrt()
        H: Tensor | None = None
        kept: list[Tensor] = []
        corrections = 0
        if self._care == _CORRECTED:
            if rows.ordinary and 4 * len(band) * rows.n_columns <= _KEPT and self._corrections:
                corrections = self._corrections
            else:
                self._care = _EXACT
        for first in range(0, len(band), GATHERED):
            some = slice(first, first + GATHERED)
            gathered = rows.gathered(band[some])
            own = None if scales is None else scales[some]
            G = rows.gram(gathered, own, exact=self._care == _EXACT)
            H = G if H is None else H.add_(G)
            if corrections:
                kept.append(gathered)
        if H is None:
            return -self._gradient
        H *= self._sigma
        H.diagonal().add_(1.0)
        if self._failures > 1:
            # Even in float64 the matrix is not positive: its diagonal serves.
            return -self._gradient / H.diagonal()
        factor, failed = torch.linalg.cholesky_ex(H)

        def solve(v: Tensor) -> Tensor:
            return torch.cholesky_solve(v[:, None], factor)[:, 0]

        def product(v: Tensor) -> Tensor:
            out = v.clone()
            first = 0
            for gathered in kept:
                own = None if weights is None else weights[first : first + len(gathered)]
                out += self._sigma * _curvature(gathered, own, v, rows.intercept_scaling)
                first += len(gathered)
            return out

        direction = (
            conjugate_gradients(product, solve, -self._gradient, corrections)
            if corrections
            else solve(-self._gradient)
        )
        # What is no number will be noticed; half a factorisation would not be.
        return torch.where(failed == 0, direction, math.nan)

    def _search(self, direction: Tensor, along: Tensor) -> tuple[float, float]:
        """How far to go, and the length of the direction."""
        unit = 1.0
        while True:
            slopes, square = self._slopes(direction, along, unit)
            if not np.isfinite(slopes).all():
                # Rounding made the matrix indefinite.
                self._care = _EXACT
                self._failures += 1
                return 0.0, 0.0
            self._failures = 0
            if unit == 1.0:
                self._judge(slopes)
            step = best_step(slopes)
            if step is None or not 0.0 < step < STEPS[1] or unit < _LEAST_UNIT:
                return unit * (1.0 if step is None else step), math.sqrt(square)
            # So short a step is not told from others; among shorter ones, it is.
            unit *= STEPS[1]

    def _slopes(self, direction: Tensor, along: Tensor, unit: float) -> tuple[Vector, float]:
        """How the smooth function falls and rises along the direction, at ``unit * STEPS``."""
        falls = kernels.clipped_sums(
            self._unclipped, along, self.problem.row_weights, self._sigma, self.problem.C,
            self._steps_to_try if unit == 1.0 else unit * self._steps_to_try,
        )  # fmt: skip
        own = torch.stack([self.w @ direction, direction @ direction])
        told = torch.cat([falls, own]).cpu().numpy()
        linear, square = told[-2:]
        return linear + unit * STEPS * square - told[:-2], float(square)

    def _judge(self, slopes: Vector) -> None:
        """Be more careful if the direction was inaccurate."""
        # How far the minimum is if the band stays: one, if the direction is that of the Hessian.
        first = slopes[0] * (STEPS[1] - STEPS[0]) / (slopes[0] - slopes[1] or -math.inf)
        if not abs(first - 1.0) <= _ACCURATE:
            self._care = min(self._care + 1, _EXACT)
        if self._inner >= _MANY_STEPS:
            # Along the direction all may seem well, and yet it leads past what matters.
            self._care = _EXACT


def _curvature(rows: Tensor, weights: Tensor | None, v: Tensor, intercept_scaling: float) -> Tensor:
    """sum_k s_k y_k (y_k.v) over rows that were gathered, in single precision."""
    wide = rows.float()
    d = wide.shape[1]
    short = v.float()
    products = wide @ short[:d]
    if intercept_scaling > 0:
        products += intercept_scaling * short[d]
    if weights is not None:
        products *= weights.float()
    total = wide.T @ products
    if intercept_scaling > 0:
        total = torch.cat([total, intercept_scaling * products.sum()[None]])
    return total.double()


def conjugate_gradients(
    product: Callable[[Tensor], Tensor],
    precondition: Callable[[Tensor], Tensor],
    target: Tensor,
    steps: int,
) -> Tensor:
    """So many steps towards the x with product(x) = target; nothing here waits for the device.

    Examples
    --------
    >>> H = torch.tensor([[2.0, 1.0], [1.0, 3.0]])
    >>> x = conjugate_gradients(lambda v: H @ v, lambda v: v / H.diagonal(), torch.ones(2), 2)
    >>> torch.allclose(H @ x, torch.ones(2))
    True
    """
    x = torch.zeros_like(target)
    residual = target.clone()
    z = precondition(residual)
    along, fall = z, residual @ z
    for _ in range(steps):
        image = product(along)
        step = _quotient(fall, along @ image)
        x = x + step * along
        residual = residual - step * image
        z = precondition(residual)
        last, fall = fall, residual @ z
        along = z + _quotient(fall, last) * along
    return x


def _quotient(a: Tensor, b: Tensor) -> Tensor:
    """The quotient; zero where that makes no sense."""
    return torch.where(b > 0.0, a / b, torch.zeros_like(a))


def _from_a_sample(
    solver: TensorNewton,
    problems: Sequence[TensorProblem],
    begin: Sequence[Beginning],
    seed: int,
) -> list[Beginning]:
    """Where to begin, from a sample of the rows, for those without a start."""
    rows = problems[0].rows
    fewest = min(problem.m for problem in problems)
    size = max(int(SAMPLE * fewest), SAMPLE_PER_COLUMN * rows.dimension, SMALLEST_SAMPLE)
    size = min(size, rows.largest_sample)
    fresh = [i for i, some in enumerate(begin) if some.w is None]
    if 3 * size > fewest or not fresh:
        return list(begin)
    generator = torch.Generator(device=rows.device).manual_seed(seed)
    # Some may be drawn twice; that is as good.
    which = torch.randint(rows.n_rows, (size,), generator=generator, device=rows.device)
    which = which.sort().values
    some_rows = rows.take(which)
    sampled: list[tuple[int, TensorProblem]] = []
    for i in fresh:
        weights = problems[i].row_weights
        share = 1.0 if weights is None else float(weights[which].sum()) / problems[i].weight_sum
        # Where few rows have most of the weight, the sample may have none of them.
        if weights is None or share >= 0.1 * size / problems[i].m:
            sampled.append((i, problems[i].sample(some_rows, which)))
    if not sampled:
        return list(begin)
    inner = _from_a_sample(solver, [p for _, p in sampled], [Beginning()] * len(sampled), seed + 1)
    strands = [
        Strand(problem, some, SAMPLE_GAP, solver.corrections, keep_alpha=False)
        for (_, problem), some in zip(sampled, inner, strict=True)
    ]
    team = Team(strands)
    for _ in range(SAMPLE_STEPS):
        left = [i for i, strand in enumerate(strands) if strand.relative_gap > SAMPLE_GAP]
        if not left:
            break
        team.advance(left[0])
    found = list(begin)
    for (i, _), strand in zip(sampled, strands, strict=True):
        found[i] = Beginning(strand.w, None, strand.smoothing, not strand.nearly_separable)
    return found
