"""Block DCD: dual coordinate descent on rows that are read block by block.

Maximises    L(alpha) = sum_k alpha_k - 1/2 |w|^2,   w = sum_k alpha_k y_k,   0 <= alpha_k <= C s_k

or L for the squared hinge, by the coordinate steps of DCD (``dcd``). A pass reads block after
block, and makes a few sweeps over the rows of each: the first over all of them, the others over
those that may move. Rows at an end of their box can be forgotten then, since their part of w is a
constant. The free rows, 0 < alpha_k < C s_k, are those that matter: as many of them as memory
allows stay in a cache, and are visited again and again while other blocks are read. If the cache
holds them all, a pass is worth many, and a handful of passes is enough at any C.

J of the w with which a pass begins comes with the pass: its products with the rows of a block are
computed before the sweeps. This w is the mean over the sweeps of the cache in the last pass, whose
J is smaller than that of the last w. As long as alpha grows, w is too short; so J is computed
at a few multiples of w, which takes no other products, and the least counts.

Given:      C, s, the rows in blocks; optionally alpha to start from, or w, from whose margins alpha
            is made. Needs a number for each row, and memory for the cache.
Result:     the best w with which a pass began, and alpha.
Difference: from block minimisation, there is a cache; from dual cached loops, a fixed number of
            visits to it for each block, so that a run can be repeated.

References: H.-F. Yu, C.-J. Hsieh, K.-W. Chang and C.-J. Lin, Large Linear Classification When Data
Cannot Fit In Memory, KDD 2010; S. Matsushima, S. V. N. Vishwanathan and A. J. Smola, Linear Support
Vector Machines via Dual Cached Loops, KDD 2012.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from certsvm.certificates.best import BestValues
from certsvm.certificates.dual import DualPoint, Response, RowSums, dual_bound, dual_sums, point_of
from certsvm.certificates.primal import LossSums, losses_of, multiply
from certsvm.certificates.rounding import Bound, length, product_error, scaled_error
from certsvm.kernels.losses import LOSS_TYPES, box_end
from certsvm.problem.base import BaseProblem, PartedProblem
from certsvm.problem.problems import StreamedProblem
from certsvm.problem.rows import Part, Vector
from certsvm.resources import available_memory
from certsvm.solvers.base import Epoch, Options, Run, Solver, Start
from certsvm.solvers.dual_coordinates import Indices, in_box, sweep, visit
from certsvm.solvers.smoothed_newton import alpha_of_part

# Steps are so many times as long as the exact ones.
_OMEGA = 1.2
# A row at an end of its box is skipped in further sweeps over its block if its margin is so far
# from one.
_FAR = 0.2
# J is computed at these multiples of w.
_MULTIPLES = (1.0, *(1.0 + 4.0**-i for i in range(1, 7)))
# w is computed anew from alpha if its rounding exceeds this share of the gap.
_ROUNDING = 0.05
# The slope, divided by C, of the smoothed loss that makes alpha from the margins of a given w.
_SLOPE = 8.0


@dataclass(frozen=True)
class BlockDCD(Solver):
    """Dual coordinate descent on blocks, with a cache of free rows.

    Parameters
    ----------
    sweeps : int, default=3
        The number of sweeps over the rows of a block.
    visits : float, default=12.0
        After each block, cached rows are visited this number of times the rows of the block.
    cache : float, default=1.0
        The largest share of the rows to cache, if memory allows.

    Examples
    --------
    >>> BlockDCD(cache=0.1).name
    'block-dcd'
    """

    name: ClassVar[str] = "block-dcd"
    warm_starts_from_alpha: ClassVar[bool] = True
    n_vectors: ClassVar[int] = 6
    losses: ClassVar[tuple[type[Any], ...]] = LOSS_TYPES
    problem_type: ClassVar[type[Any]] = PartedProblem
    ranges: ClassVar = {"sweeps": "> 0", "visits": ">= 0", "cache": ">= 0"}

    sweeps: int = 3
    visits: float = 12.0
    cache: float = 1.0

    def saves_alpha(self, problem: BaseProblem) -> bool:
        """Always."""
        return True

    def start(self, problem: PartedProblem, options: Options) -> BlockDCDRun:
        """Begin a run; keeping alpha costs two more numbers for each row."""
        return BlockDCDRun(self, problem, options)


class Cached(NamedTuple):
    """Rows of one block that stay in memory, and their positions among all rows."""

    part: Part
    rows: Indices


class BlockDCDRun(Run):
    """Dual coordinate descent on the blocks of one problem."""

    solver_name = BlockDCD.name
    computes_primal = True

    def __init__(self, solver: BlockDCD, problem: PartedProblem, options: Options) -> None:
        self._solver, self._problem, self._options = solver, problem, options
        self._rng, self._passes = options.rng, 0
        room = cache_room(problem)
        # Two numbers per row, and three more while alpha is kept and scaled.
        numbers, copies = 16 * problem.n_rows, 24 * problem.n_rows * options.keep_alpha
        on_disk = numbers > room // 2
        left = room - copies - (0 if on_disk else numbers)
        self._share = min(solver.cache, max(0, left) / max(1, problem.nbytes))
        self._alpha = _zeros(problem.n_rows, on_disk=on_disk)
        self._weights = _zeros(problem.n_rows, on_disk=on_disk)
        self._w, self._rounding = np.zeros(problem.dimension), 0.0
        # The w whose J comes with the next pass.
        self._next = options.first_w(problem)
        if options.start is not None:
            self._begin_at(options.start)
        self.best = BestValues()
        # The cached rows of each block, by the block's first row.
        self._cache: dict[int, Cached] = {}
        self._primal: tuple[Vector, Bound] | None = None
        self._point: DualPoint | None = None

    def _begin_at(self, start: Start) -> None:
        """Take alpha and w from a warm start, in a pass."""
        problem, team, sums = self._problem, self._options.team, None
        response = Response(start.w, problem.C * (start.smoothing or _SLOPE))
        for part in problem.parts():
            alpha = None if start.alpha is None else start.alpha[part.span]
            if alpha is None:
                alpha = alpha_of_part(part, team, response, problem.loss, problem.C)
            alpha = in_box(part, alpha, problem.loss, problem.C)
            self._alpha[part.span], self._weights[part.span] = alpha, part.weights
            of_part = RowSums.of(part, alpha, problem.loss, problem.C, team)
            sums = of_part if sums is None else sums + of_part
        assert sums is not None
        point = sums.point("start")
        self._w, self._rounding = point.w, point.w_rounding

    def _compute_w(self) -> None:
        """Compute w from alpha in a pass, which resets its rounding."""
        sums = dual_sums(self._problem, self._alpha, self._options.team, balanced=False)
        point = sums.point("start")
        self._w, self._rounding = point.w, point.w_rounding

    def epoch(self) -> Epoch:
        """Read all blocks, and make sweeps over the rows of each and over the cache."""
        self._point = self._primal = None
        if self._rounding * length(self._w) > _ROUNDING * self.best.gap:
            self._compute_w()
        problem, w, updates = self._problem, self._next, 0
        errors = [scaled_error(product_error(w), length(w), factor) for factor in _MULTIPLES]
        losses: list[LossSums] = []
        mean = self._w.copy()
        for part in problem.parts():
            of_part = self._losses(part, w, errors)
            losses = [a + b for a, b in zip(losses, of_part, strict=True)] if losses else of_part
            self._weights[part.span] = part.weights
            self._longest = length(self._w)
            updates += self._sweep_block(part) + self._visit_cache(part.active.size)
            mean += 0.5 * (self._w - mean)
        self._next = mean
        self._primal = self._least(w, losses, errors) if w.any() else None
        if isinstance(problem, StreamedProblem):
            # It would take a pass to gather them.
            problem.weights = self._weights
        self._passes += 1
        self._point = point_of(
            problem, self._alpha, self._w, self._rounding, "dual coordinates",
            keep_alpha=self._options.keep_alpha,
        )  # fmt: skip
        primal = math.inf if self._primal is None else self._primal[1].value
        self.best.offer(primal, dual_bound(self._point)[0].value)
        return Epoch(epochs=self._passes, updates=updates)

    def _losses(self, part: Part, w: Vector, errors: list[float]) -> list[LossSums]:
        """The losses of a block's rows at the multiples of w."""
        team, loss = self._options.team, self._problem.loss
        products = np.empty(part.rows.n_rows)
        multiply(part, w, products, team)
        return [
            losses_of(part, team, loss, factor * products, error)
            for factor, error in zip(_MULTIPLES, errors, strict=True)
        ]

    def _least(
        self, w: Vector, losses: list[LossSums], errors: list[float]
    ) -> tuple[Vector, Bound]:
        """The multiple of w with the least J, and J there."""
        C, points = self._problem.C, []
        for factor, sums, error in zip(_MULTIPLES, losses, errors, strict=True):
            longer = factor * w
            points.append((longer, sums.primal(C, longer, error)))
        return min(points, key=lambda point: point[1].high)

    def _sweep_block(self, part: Part) -> int:
        """Make sweeps over a block, and cache its free rows; return the number of updates."""
        problem, alpha, active, updates = self._problem, self._alpha[part.span], part.active, 0
        for _ in range(self._solver.sweeps):
            active, changed = self._sweep(part, active.copy(), alpha)
            updates += changed
        ends = box_end(problem.loss, problem.C, part.weights)
        free = np.flatnonzero((alpha > 0.0) & (alpha < ends))
        most = int(self._share * part.rows.n_rows)
        if free.size > most:
            free = self._rng.permutation(free)[:most]
            free.sort()
        kept = Part(part.rows.take(free), part.signed_weights[free])
        self._cache[part.first] = Cached(kept, part.first + free)
        return updates

    def _visit_cache(self, n_rows: int) -> int:
        """Sweep over cached rows, after a block of so many; return the number of updates."""
        left, updates = self._solver.visits * n_rows, 0
        cached = [c for c in self._cache.values() if c.rows.size]
        while left > 0 and cached:
            for i in self._rng.permutation(len(cached)):
                part, rows = cached[i]
                alpha = self._alpha[rows]
                updates += self._sweep(part, np.arange(rows.size), alpha)[1]
                self._alpha[rows] = alpha
                left -= rows.size
                if left <= 0:
                    break
        return updates

    def _sweep(self, part: Part, order: Indices, alpha: Vector) -> tuple[Indices, int]:
        """Make a step on each row of ``order``; return those that may move, and the updates."""
        problem, w = self._problem, self._w
        self._rng.shuffle(order)
        active, sums, rounding = visit(
            part, order, self._longest,
            lambda piece: sweep(
                problem.loss, part.rows.arrays, part.signed_weights, part.rows.squared_norms,
                problem.C, _OMEGA, 1.0, -_FAR, _FAR, piece, alpha, w,
            ),
        )  # fmt: skip
        self._rounding += rounding
        self._longest += sum(result[-1] for result in sums)
        return active, sum(result[1] for result in sums)

    def candidates(self) -> Iterator[Vector]:
        """The mean whose J comes with the next pass."""
        yield self._next

    def primal(self) -> tuple[Vector, Bound] | None:
        """A multiple of the w with which the last pass began, and J there."""
        return self._primal

    def dual(self) -> DualPoint | None:
        """The point alpha, after a complete pass."""
        return self._point

    def drop_cache(self) -> None:
        """Free the memory of the cache; it fills again in the next pass."""
        self._cache.clear()


def cache_room(problem: PartedProblem) -> int:
    """Memory for what is kept of the rows, in bytes."""
    room = problem.cache_bytes
    return available_memory() // 2 if room is None else room


def _zeros(n: int, *, on_disk: bool) -> Vector:
    """Zeros in memory, or in a temporary file, whose pages the system can evict."""
    if not on_disk:
        return np.zeros(n)
    with tempfile.TemporaryFile() as file:
        return np.asarray(np.memmap(file, np.float64, "w+", shape=n))
