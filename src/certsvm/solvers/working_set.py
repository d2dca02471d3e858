"""Working sets: dual coordinate descent where there is something left to do.

Maximises    L(alpha) = sum_k alpha_k - 1/2 |w|^2,   w = sum_k alpha_k y_k,   0 <= alpha_k <= C s_k

by the coordinate steps of DCD (``dcd``), made a little longer than to the maximum,

    alpha_k <- clip(alpha_k - omega G / |y_k|^2, 0, C s_k),     G = w.y_k - 1,     w follows,

in sweeps over a working set, which shrinks: a row leaves it when a visit finds it at an end of its
box, and G beyond zero in the direction that holds it there by more than ``shrink_margin``. It will
hardly move soon. The sum of

    C s_k max(0, -G) + alpha_k G,

each row's part of the gap at the moment of its visit, guesses the gap for free. When the guess is
small enough to end, or has fallen a good deal, the products of w with all rows are computed: they
give J exactly, bring back the rows that left too early, and go into a search in the plane of the
best w so far and the present one (``plane_search``).

Rows are visited in blocks of neighbours, where that is faster and does no harm (``order``).

Given:      C, s, the rows; optionally alpha to start from, or w.
Result:     the best combination found of the w of the evaluations, and alpha.
Difference: from DCD, all of the above. A pass is as many sweeps as one reading of the data would
            take, or those up to an evaluation.

References: C.-J. Hsieh et al. (2008), as for ``dcd``; T. Joachims, Making Large-Scale SVM Learning
Practical (1999), for working sets and shrinking.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from certsvm.certificates.dual import DualPoint, dual_point, dual_sum, point_of
from certsvm.certificates.primal import Products
from certsvm.certificates.rounding import Bound, updates_rounding
from certsvm.kernels.jit import kernel
from certsvm.kernels.losses import (
    Loss,
    box_end,
    coordinate_step,
    dual_gradient,
    dual_value,
    loss_value,
)
from certsvm.kernels.prefetch import AHEAD, prefetch_row
from certsvm.kernels.rows import RowArrays, Vector, add, dot
from certsvm.problem.memory import Problem
from certsvm.solvers.base import Epoch, Options, Run, Solver, require
from certsvm.solvers.shared.dual_start import starting_alpha
from certsvm.solvers.shared.order import Order
from certsvm.solvers.shared.plane_search import best_combination
from certsvm.storage.fields import (
    array,
    count,
    maybe,
    nested,
    number,
    positive,
    record,
    row_indices,
    table,
)
from certsvm.storage.state import State

# An evaluation is due when the guess has fallen to this share of what it was at the last one.
_FALL = 0.2
# Where the guess says that the target is met: it must at least have fallen this much.
_LEAST_FALL = 0.9
# After so many rows' visits, relative to all, it is due in any case.
_MOST_WORK = 8
# So many numbers are added up in the time of a visit to a row.
_VISIT = 32
# Rounding in w, and in the best products, may take this share of the gap before they are redone.
_ROUNDING = 0.05


@dataclass(frozen=True)
class WorkingSet(Solver):
    """Dual coordinate descent on working sets.

    Parameters
    ----------
    omega : float, default=1.2
        Length of a step, relative to the one that goes to the maximum; between 0 and 2.
    shrink_margin : float, default=0.1
        How far from the margin a row at an end of its box must be to leave the working set.
    shuffled : bool, default=None
        Whether neighbouring rows are as unlike as any two, so that they may be visited
        together. None looks at a sample.

    Examples
    --------
    >>> WorkingSet(shuffled=True).name
    'working-set'
    """

    name: ClassVar[str] = "working-set"
    goes_on_from_alpha: ClassVar[bool] = True

    omega: float = 1.2
    shrink_margin: float = 0.1
    shuffled: bool | None = None

    def __post_init__(self) -> None:
        require(0 < self.omega < 2, self, f"omega must be between 0 and 2, got {self.omega}")
        require(
            self.shrink_margin > 0, self, f"shrink_margin must be > 0, got {self.shrink_margin}"
        )

    def start(self, problem: Problem, options: Options) -> WorkingSetRun:
        """Begin a run."""
        return WorkingSetRun(self, problem, options)


class Visits(NamedTuple):
    """The visits to rows so far, and the guess at the gap after them."""

    visited: int
    guess: float


class WorkingSetRun(Run):
    """Dual coordinate descent on working sets, on one problem."""

    STATE = State(
        passes=count(),
        sweeps=count(),
        alpha=array("n_rows", low=0.0, high="box"),
        w=array("dimension"),
        rounding=number(low=0.0),
        active=row_indices(ascending=True),
        order=nested(),
        dual_value=number(low=0.0),
        best=maybe(nested(fresh="_no_products")),
        best_bound=record(Bound, value=number(low=0.0, infinite=True), rounding=number(low=0.0)),
        last_guess=number(low=0.0, infinite=True),
        excess=positive(),
        work=count(),
        visits=table(
            Visits,
            visited=array("visits", dtype=np.int64, low=0, high=2**62),
            guess=array("visits", low=0.0),
        ),
    )

    computes_primal = True

    def __init__(
        self, solver: WorkingSet, problem: Problem, options: Options, order: Order | None = None
    ) -> None:
        self._solver = solver
        self._problem = problem
        self._rng = options.rng
        self._team = options.team
        self._target = options.target
        self._keep_alpha = options.keep_alpha
        self._alpha = starting_alpha(problem, options.start)
        self._passes = 0
        self._sweeps = 0 if options.start is None else 1
        self._active = problem.active.copy()
        self._order = order or Order(problem, self._rng, shuffled=solver.shuffled)
        self._least_work = (problem.rows.n_rows + problem.rows.dimension) // _VISIT
        self._take_w_from_alpha()
        self._dual_value = 0.0
        self._products: Products | None = None
        self._best: Products | None = None
        self._best_bound = Bound(math.inf, 0.0)
        # What a guess at the gap is to be held against, and how much too large guesses are.
        self._last_guess = math.inf
        self._excess = 2.0
        self._work = 0
        self._visits: list[Visits] = []
        self._computed = False
        self._complete = True

    def _take_w_from_alpha(self) -> None:
        point = dual_point(self._problem, self._alpha, "start", self._team)
        self._w, self._rounding = point.w, point.w_rounding

    def _no_products(self, values: Mapping[str, Any]) -> Products:
        return Products(self._problem, np.zeros(self._problem.dimension))

    def epoch(self) -> Epoch:
        """Sweep until one reading's worth of work is done, or an evaluation was due."""
        self._passes += 1
        self._complete = self._computed = False
        updates, work = 0, 0
        guess = math.inf
        while work < self._problem.m:
            # A sweep over few rows still costs its sums over all rows and columns.
            visited = max(self._active.size, self._least_work)
            guess, sweep_updates = self._sweep()
            updates += sweep_updates
            work += visited
            self._work += visited
            if self._due(guess):
                self._evaluate(guess)
                break
        self._visits.append(Visits(self.visited + work, guess))
        self._complete = True
        return Epoch(epochs=self._passes, updates=updates, primal_estimate=self._dual_value + guess)

    @property
    def visited(self) -> int:
        """How many rows were visited so far, or what took as long."""
        return self._visits[-1][0] if self._visits else 0

    @property
    def in_order(self) -> bool:
        """Whether rows need not be waited for."""
        return self._order.in_order

    @property
    def alpha(self) -> Vector:
        """The dual point, copied."""
        return self._alpha.copy()

    @property
    def gap(self) -> float:
        """Relative, as far as it is known."""
        if not self._dual_value > 0.0:
            return math.inf
        return max(self._best_bound.value / self._dual_value - 1.0, 0.0)

    def outlook(self) -> float:
        """How many more visits the target will take, if guesses go on to fall as they did lately.

        They fall more slowly later on, so it will rather be more.
        """
        now, guess = self._visits[-1]
        enough = self._excess * self._target * self._dual_value
        if guess <= enough:
            return 0.0
        # Since half of the work was done; but the first pass's guess means nothing.
        earlier = [v for v in self._visits[1:-1] if v[0] <= max(0.5 * now, self._visits[1][0])]
        if not (earlier and earlier[-1][1] > guess and enough > 0.0):
            return math.inf
        then, before = earlier[-1]
        return math.log(guess / enough) * (now - then) / math.log(before / guess)

    def _sweep(self) -> tuple[float, int]:
        """Visit the working set; return the guess at the gap, and the number of updates."""
        problem = self._problem
        order = self._order.permuted(self._active)
        length = math.sqrt(float(self._w @ self._w))
        # Nothing is known before the first sweep.
        shrink_margin = self._solver.shrink_margin if self._sweeps else math.inf
        kept, updates = 0, 0
        guess, path = 0.0, 0.0
        for part in problem.slices(order):
            part_kept, part_updates, part_guess, part_path = sweep(
                problem.loss,
                problem.rows.arrays,
                problem.signed_weights,
                problem.rows.squared_norms,
                problem.C,
                self._solver.omega,
                1.0,
                shrink_margin,
                part,
                self._alpha,
                self._w,
            )
            order[kept : kept + part_kept] = part[:part_kept]
            kept += part_kept
            updates += part_updates
            guess += part_guess
            path += part_path
        self._active = np.sort(order[:kept])
        self._sweeps += 1
        # Neither w nor a step was ever longer.
        reach = length + path
        self._rounding += updates_rounding(updates, reach, reach)
        dual = dual_sum(problem, self._alpha).value - 0.5 * float(self._w @ self._w)
        self._dual_value = max(self._dual_value, dual)
        return max(guess, 0.0), updates

    def _due(self, guess: float) -> bool:
        if self._active.size == 0:
            return True
        if self._sweeps < 2:
            return False
        if self._sweeps == 2 and math.isinf(self._last_guess):
            # The first guess worth the name: w was near zero during the first sweep.
            self._last_guess = guess / _LEAST_FALL
        enough = self._excess * self._target * self._dual_value
        return (
            guess <= _FALL * self._last_guess
            or (guess <= enough and guess <= _LEAST_FALL * self._last_guess)
            or self._work >= _MOST_WORK * self._problem.m
        )

    def _evaluate(self, guess: float) -> None:
        """J at w and at the best combination; bring back the rows that have something to do."""
        problem = self._problem
        if self._products is None:
            self._products = Products(problem, self._w, self._team)
        else:
            self._products.w = self._w
            self._products.compute(self._team)
        if self._best is None:
            self._best = self._products.copy()
        a, b = best_combination(problem, self._best, self._products)
        if (a, b) != (1.0, 0.0):
            self._best.mix(a, b, self._products)
        self._best_bound = self._best.primal_bound(self._team)
        gap = max(self._best_bound.value - self._dual_value, 0.0)
        self._last_guess = guess
        self._work = 0
        if gap > 0.0:
            self._excess = min(max(0.8 * guess / gap, 0.5), 4.0)
        if self._best_bound.rounding > _ROUNDING * gap:
            self._best.compute(self._team)
            self._best_bound = self._best.primal_bound(self._team)
        if self._rounding * math.sqrt(float(self._w @ self._w)) > _ROUNDING * gap:
            self._take_w_from_alpha()
        active = np.empty(problem.m, dtype=np.int64)
        size = active_rows(
            problem.loss,
            self._products.values,
            problem.weights,
            problem.C,
            0.5 * self._solver.shrink_margin,
            problem.active,
            self._alpha,
            active,
        )
        self._active = active[:size]
        self._computed = True

    def candidates(self) -> Iterator[Vector]:
        """W."""
        yield self._w

    def primal(self) -> tuple[Vector, Bound] | None:
        """The best combination, after an evaluation."""
        if not (self._computed and self._complete) or self._best is None:
            return None
        return self._best.w, self._best_bound

    def dual(self) -> DualPoint | None:
        """Alpha, as it is after a complete pass."""
        if not self._complete:
            return None
        return point_of(
            self._problem,
            self._alpha,
            self._w,
            self._rounding,
            "dual coordinates",
            keep_alpha=self._keep_alpha,
        )


@kernel
def sweep(
    loss: Loss,
    rows: RowArrays,
    signed_weights: Vector,
    squared_norms: Vector,
    C: float,
    omega: float,
    spread: float,
    shrink_margin: float,
    order: NDArray[np.int64],
    alpha: Vector,
    w: Vector,
) -> tuple[int, int, float, float]:
    """One step on each row of ``order``; rows that stay active are moved to its front.

    w moves ``spread`` times as far as alpha says: more than once, where others are expected to move
    it as well.

    Writes ``order``, ``alpha`` and ``w``. Returns how many rows stay, the number of updates, the
    guess at the gap, and sum |step| |y_k|.
    """
    kept = 0
    updates = 0
    guess, path = 0.0, 0.0
    for i in range(order.size):
        if i + AHEAD < order.size:
            prefetch_row(rows, order[i + AHEAD])
        k = order[i]
        signed_weight = signed_weights[k]
        weight = abs(signed_weight)
        label = 1.0 if signed_weight > 0.0 else -1.0
        margin = label * dot(rows, k, w)
        old = alpha[k]
        G = dual_gradient(loss, margin, old, C, weight)
        if (old <= 0.0 and shrink_margin < G) or (
            old >= box_end(loss, C, weight) and shrink_margin < -G
        ):
            continue
        order[kept] = k
        kept += 1
        guess += C * weight * loss_value(loss, margin) + (
            old * margin - dual_value(loss, old, C, weight)
        )
        new = coordinate_step(loss, old, G, spread * squared_norms[k], C, weight, omega)
        step = new - old
        if step != 0.0:
            alpha[k] = new
            add(rows, k, label * spread * step, w)
            updates += 1
            path += abs(step) * math.sqrt(squared_norms[k])
    return kept, updates, guess, path


@kernel
def active_rows(
    loss: Loss,
    products: Vector,
    weights: Vector,
    C: float,
    shrink_margin: float,
    rows: NDArray[np.int64],
    alpha: Vector,
    out: NDArray[np.int64],
) -> int:
    """Which of ``rows`` a sweep would not let go, into the front of ``out``; how many."""
    n = 0
    for i in range(rows.size):
        k = rows[i]
        G = dual_gradient(loss, products[k], alpha[k], C, weights[k])
        if not (
            (alpha[k] <= 0.0 and shrink_margin < G)
            or (alpha[k] >= box_end(loss, C, weights[k]) and shrink_margin < -G)
        ):
            out[n] = k
            n += 1
    return n
