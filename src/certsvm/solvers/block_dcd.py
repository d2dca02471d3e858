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

The intercept b costs coordinates dearly: each step moves b, hence the margins of all rows, and the
next steps undo most of it. So b has inertia, as if there were a further term (b - b_hat)^2 / (2
h^2), and after each sweep b_hat is set to b: the proximal point method. With t = sum_k label_k
alpha_k, the best b is

    b = H^2 (b_hat / h^2 + t),   1 / H^2 = 1 / rho^2 + 1 / h^2  (1 / h^2 if it is free)

which are the steps for a constant column of height H whose weight b / H begins at H b_hat / h^2.
The fewer rows are free, the larger h: what matters is h^2 times their number. If the intercept is
free, alpha is balanced for its bound. The sums for that come with the next pass, for the alpha with
which it begins.

Given:      C, s, the rows in blocks; optionally alpha to start from, or w, from whose margins alpha
            is made. Needs a number for each row, and memory for the cache.
Result:     the best w with which a pass began, and alpha.
Difference: from block minimisation, there is a cache; from dual cached loops, a fixed number of
            visits to it for each block, so that a run can be repeated; and the intercept has
            inertia.

References: H.-F. Yu, C.-J. Hsieh, K.-W. Chang and C.-J. Lin, Large Linear Classification When Data
Cannot Fit In Memory, KDD 2010; S. Matsushima, S. V. N. Vishwanathan and A. J. Smola, Linear Support
Vector Machines via Dual Cached Loops, KDD 2012.
"""

import functools
import math
import operator
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from certsvm.certificates import dual
from certsvm.certificates.best import BestValues
from certsvm.certificates.dual import ClassSums, DualPoint, Response, RowSums, dual_bound, point_of
from certsvm.certificates.primal import best_multiple, losses_at_multiples
from certsvm.certificates.rounding import length
from certsvm.kernels.losses import BOTH_LOSSES, box_end
from certsvm.problem.base import BaseProblem, PartedProblem
from certsvm.problem.problems import StreamedProblem
from certsvm.problem.rows import Part, Rows, Vector
from certsvm.resources import available_memory
from certsvm.solvers.base import Epoch, Options, Run, Solver, Start
from certsvm.solvers.dual_coordinates import Indices, in_box, sweep, visit, w_of_alpha
from certsvm.solvers.smoothed_newton import alpha_of_part

_SOURCE = "dual coordinates"
# Steps are so many times as long as the exact ones.
_OMEGA = 1.2
# A row at an end of its box is skipped in further sweeps over its block if its margin is so far
# from one.
_FAR = 0.2
# w is computed anew from alpha if its rounding exceeds this share of the gap.
_ROUNDING = 0.05
# The square of h, times the number of free rows, relative to the mean square of a row's length.
_INERTIA = 10.0
# The cache is visited in at least so many pieces. Sweeps over the rows of one block after the other
# are much slower where all rows have much in common. But more calls after a block than the second
# number would cost more than the steps.
_PIECES, _CALLS = 64, 200
# Bytes that are kept of a cached row besides its values.
_PER_CACHED = 48
# So many numbers are added at a time.
_CHUNK = 1 << 20
# The slope, divided by C, of the smoothed loss that makes alpha from the margins of a given w.
_SLOPE = 8.0


@dataclass(frozen=True)
class BlockDCD(Solver, sweeps="> 0", visits=">= 0", cache=">= 0"):
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

    name = "block-dcd"
    warm_starts_from_alpha = True
    n_vectors = 6
    losses = BOTH_LOSSES
    frees_intercept = True
    problem_type = PartedProblem

    sweeps: int = 3
    visits: float = 12.0
    cache: float = 1.0

    def saves_alpha(self, problem: BaseProblem) -> bool:
        """Always."""
        return True


class Intercept:
    """The intercept b, whose column of w has another height in steps than in the problem.

    ``value`` is b, ``height`` H; the others are h and the entry of w if t were zero.
    """

    def __init__(self, problem: PartedProblem, value: float) -> None:
        self._rho, self._free = problem.intercept_scaling, problem.free_intercept
        self.value, self.height, self._h, self._at_zero = value, 0.0, 0.0, 0.0

    def set_height(self, w: Vector, t: float, rows: Rows, n_free: int) -> None:
        """Choose H, given some rows, and the column of ``w`` for it.

        Before it is known how many rows are free, all of these count.
        """
        square = float(rows.squares_with(0.0).mean()) or 1.0
        self._h = h = math.sqrt(_INERTIA * square / max(_INERTIA, n_free or rows.n_rows))
        self.height = h if self._free else h * (self._rho / math.hypot(h, self._rho))
        self._place(w, self.height * t)

    def move(self, w: Vector) -> float:
        """Move b_hat to b, which w has; return a bound on how far the entry of w moves."""
        before = float(w[-1])
        self.value = self.height * before
        self._place(w, before - self._at_zero)
        return abs(before) + abs(float(w[-1]))

    def _place(self, w: Vector, of_t: float) -> None:
        self._at_zero = self.value / self._h * (self.height / self._h)
        w[-1] = self._at_zero + of_t


class BlockDCDRun(Run, of=BlockDCD):
    """Dual coordinate descent on the blocks of one problem.

    Alpha takes a number for each row; keeping it takes two more.
    """

    solver_name = BlockDCD.name
    computes_primal = True

    def __init__(self, solver: BlockDCD, problem: PartedProblem, options: Options) -> None:
        super().__init__(solver, problem, options)
        room = cache_room(problem)
        free, rho = problem.free_intercept, problem.intercept_scaling
        # Two numbers per row or three, and three more while alpha is kept and scaled.
        numbers, copies = (16 + 8 * free) * problem.n_rows, 24 * problem.n_rows * options.keep_alpha
        # On disk they count, too: as long as the system does not evict the pages, they are memory.
        on_disk, left = numbers > room // 2, room - copies - numbers
        whole = problem.nbytes + _PER_CACHED * problem.n_rows
        self._share = min(solver.cache, max(0, left) / max(1, whole))
        self._alpha = _zeros(problem.n_rows, on_disk=on_disk)
        self._weights = _zeros(problem.n_rows, on_disk=on_disk)
        # With a free intercept, the alpha with which the pass began.
        self._before = _zeros(problem.n_rows if free else 0, on_disk=on_disk)
        self._positive = np.zeros(problem.n_rows if rho else 0, dtype=np.bool_)
        # sum_k alpha_k y_k, but for the last entry if there is an intercept.
        self._w, self._rounding = np.zeros(problem.dimension), 0.0
        # The w whose J comes with the next pass.
        self._next = options.first_w(problem)
        self._intercept = Intercept(problem, rho * float(self._next[-1])) if rho else None
        if options.start is not None:
            self._begin_at(options.start)
        self.best = BestValues()
        # By the first row of each block: its cached rows, their positions among all rows, |x_k|^2.
        self._cache: dict[int, tuple[Part, Indices, Vector]] = {}

    def _begin_at(self, start: Start) -> None:
        """Take alpha and w from a warm start, in a pass."""
        problem, team = self._problem, self._options.team
        response = Response(start.w, problem.C * (start.smoothing or _SLOPE))

        def begin(part: Part) -> RowSums:
            if start.alpha is None:
                alpha = alpha_of_part(part, team, response, problem.loss, problem.C)
            else:
                alpha = start.alpha[part.span]
            self._alpha[part.span] = in_box(part, alpha, problem.loss, problem.C)
            self._note(part)
            return RowSums.of(part, self._alpha[part.span], problem.loss, problem.C, team)

        point = functools.reduce(operator.add, map(begin, problem.parts())).point("start")
        self._w, self._rounding = point.w, point.w_rounding

    def _note(self, part: Part) -> None:
        """Keep what is needed of all rows."""
        self._weights[part.span] = part.weights
        if self._intercept is not None:
            self._positive[part.span] = part.signed_weights > 0.0

    def _t(self) -> float:
        """sum_k label_k alpha_k, off by less than the rounding of ``dual.total(alpha)``."""
        parts = [slice(i, i + _CHUNK) for i in range(0, self._alpha.size, _CHUNK)]
        pairs = ((self._alpha[part], self._positive[part]) for part in parts)
        return math.fsum(float(np.where(plus, a, -a).sum()) for a, plus in pairs)

    def epoch(self) -> Epoch:
        """Read all blocks, and make sweeps over the rows of each and over the cache."""
        self._dual_point = self._evaluated = None
        problem, w, team, updates = self._problem, self._next, self._options.team, 0
        free = problem.free_intercept
        if self._rounding * length(self._w) > _ROUNDING * self.best.gap:
            self._w, self._rounding = w_of_alpha(problem, self._alpha, team)
        self._before[:] = self._alpha[: self._before.size]
        sums = None
        for part in problem.parts():
            self._note(part)
            if part.first == 0:
                if self._intercept is not None:
                    n_free = sum(rows.size for _, rows, _ in self._cache.values())
                    self._intercept.set_height(self._w, self._t(), part.rows, n_free)
                mean = self._w.copy()
            of_part = losses_at_multiples(part, team, problem.loss, w)
            if free:
                before = self._before[part.span]
                sides = ClassSums.of(part, before, problem.loss, problem.C, team)
                of_part = np.array([*of_part, sides], dtype=object)
            sums = of_part if sums is None else sums + of_part
            self._longest = length(self._w)
            updates += self._sweep_block(part) + self._visit_cache(part.active.size)
            mean += 0.5 * (self._w - mean)
        assert sums is not None
        if self._intercept is not None:
            mean[-1] *= self._intercept.height / problem.intercept_scaling
        self._next = mean
        if isinstance(problem, StreamedProblem):
            # It would take a pass to gather them.
            problem.weights = self._weights
        self._passes += 1
        point = self._balanced(sums[-1]) if free else self._point_of_alpha()
        self._dual_point, primal = lambda: point, math.inf
        if w.any():
            self._evaluated = best_multiple(problem, w, sums[: sums.size - free])
            primal = self._evaluated[1].value
        self.best.offer(primal, dual_bound(point)[0].value)
        return Epoch(epochs=self._passes, updates=updates)

    def _point_of_alpha(self) -> DualPoint:
        """The dual point of alpha."""
        w, rounding, rho = self._w, self._rounding, self._problem.intercept_scaling
        if rho:
            w = np.append(w[:-1], rho * self._t())
            rounding += 1.01 * rho * dual.total(self._alpha).rounding
        return point_of(
            self._problem, self._alpha, w, rounding, _SOURCE, keep_alpha=self._options.keep_alpha
        )

    def _balanced(self, sides: ClassSums) -> DualPoint:
        """The dual point of the balanced alpha, given the sums at the begin of the pass."""

        def balanced(positive: float, negative: float) -> Vector:
            return self._before * np.where(self._positive, positive, negative)

        return sides.point(_SOURCE, balanced if self._options.keep_alpha else None)

    def _sweep_block(self, part: Part) -> int:
        """Make sweeps over a block, and cache its free rows; return the number of updates."""
        problem, alpha, active, updates = self._problem, self._alpha[part.span], part.active, 0
        squares = part.rows.squares_with(0.0)
        for _ in range(self._solver.sweeps):
            active, changed = self._sweep(part, squares, self._rng.permutation(active), alpha)
            updates += changed
        ends = box_end(problem.loss, problem.C, part.weights)
        free = np.flatnonzero((alpha > 0.0) & (alpha < ends))
        most = int(self._share * part.rows.n_rows)
        if free.size > most:
            free = np.sort(self._rng.permutation(free)[:most])
        kept = Part(part.rows.take(free), part.signed_weights[free])
        self._cache[part.first] = kept, part.first + free, squares[free]
        return updates

    def _visit_cache(self, n_rows: int) -> int:
        """Sweep over cached rows, after a block of so many; return the number of updates."""
        left, updates, rng = self._solver.visits * n_rows, 0, self._rng
        cached = [entry for entry in self._cache.values() if entry[1].size]
        if not cached or left <= 0:
            return 0
        most = sum(rows.size for _, rows, _ in cached) * _CALLS / max(left, 1.0)
        pieces = max(1, int(min(_PIECES, most)) // len(cached))
        while True:
            for i in rng.permutation(np.arange(pieces * len(cached)) % len(cached)):
                part, rows, squares = cached[i]
                order = rng.choice(rows.size, -(-rows.size // pieces), replace=False)
                alpha = self._alpha[rows]
                updates += self._sweep(part, squares, order, alpha)[1]
                self._alpha[rows] = alpha
                left -= order.size
                if left <= 0:
                    return updates

    def _sweep(
        self, part: Part, squares: Vector, order: Indices, alpha: Vector
    ) -> tuple[Indices, int]:
        """Make a step on each row of ``order``; return those that may move, and the updates."""
        problem, w, intercept = self._problem, self._w, self._intercept
        arrays = part.rows.arrays
        if intercept is not None:
            arrays = arrays._replace(intercept_scaling=intercept.height)
            squares = squares + intercept.height**2
        active, (updates, *_, paths), rounding = visit(
            part, order, self._longest,
            lambda piece: sweep(
                problem.loss, arrays, part.signed_weights, squares, problem.C, _OMEGA, 1.0, -_FAR,
                _FAR, piece, alpha, w,
            ),
        )  # fmt: skip
        self._rounding += rounding
        self._longest += sum(paths)
        if intercept is not None:
            self._longest += intercept.move(w)
        return active, sum(updates)

    def candidates(self) -> Iterator[Vector]:
        """The mean whose J comes with the next pass."""
        yield self._next

    def drop_cache(self) -> None:
        """Free the memory of the cache; it fills again in the next pass."""
        self._cache.clear()


def cache_room(rows: Any) -> int:
    """Memory for what is kept of the rows of a problem or a stream, in bytes."""
    room = rows.cache_bytes
    return available_memory() // 2 if room is None else room


def _zeros(n: int, *, on_disk: bool) -> Vector:
    """Zeros in memory, or in a temporary file, whose pages the system can evict."""
    if not (on_disk and n):
        return np.zeros(n)
    with tempfile.TemporaryFile() as file:
        return np.asarray(np.memmap(file, np.float64, "w+", shape=n))
