"""CoCoA+: dual coordinate descent on each worker's rows, with the changes added up every round.

Maximises    L(alpha) = sum_k alpha_k - 1/2 |w|^2,   w = sum_k alpha_k y_k,   0 <= alpha_k <= C s_k

in rounds (for the hinge; ``kernels.losses`` has L and the steps for its square). The rows are in K
groups, one for each thread of each worker. A group keeps the alpha of its rows. In a round it gets
w and makes some passes of coordinate descent over its rows, on the assumption that all groups
together change w q times as much as it does alone:

    alpha_k <- clip(alpha_k - G / (q |y_k|^2), 0, C s_k),   G = v.y_k - 1,   v += q (change) y_k,

beginning with v = w. With q = K, the sum of all changes raises L by at least the sum of what the
groups expect: the square of a sum is at most K times the sum of squares, and the other terms of L
are sums over the rows. That is often too careful: along the change of a round, L is a parabola, and
the position of its maximum shows by how much. So q (the spread) is adapted between K^(1/4) and K. A
round that went too far is lost, but does no harm, as the best L counts.

Before its passes a group computes the losses of its rows at w, so that J(w) is known after each
round. Without another product it also computes them at some points on the line from the last w
through w: L may be near the optimum long before J(w) is, while w oscillates or keeps moving in
one direction. After its passes it computes the sum of its alpha_k y_k from scratch. The new w is
the sum over the groups, and carries no error from round to round.

With many columns, sending w dominates the cost of a round. So groups make more passes, five to
thirty, the longer a round takes besides their work.

alpha is the only state on the workers that counts. Every few rounds, so that it costs a tenth of
the time, it is copied to the client. When a worker is lost, all groups go on from the last copy.

Given:      C, s, the rows on a cluster.
Result:     the best w of the rounds, and alpha.

Reference: C. Ma, V. Smith, M. Jaggi, M. I. Jordan, P. Richtarik and M. Takac, Adding vs. Averaging
in Distributed Primal-Dual Optimization, ICML 2015.
"""

from __future__ import annotations

import functools
import math
import operator
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, cast
from weakref import WeakSet

import numpy as np
from distributed import Future

from certsvm.certificates.dual import DualPoint, RowSums, alpha_sums, dual_bound
from certsvm.certificates.primal import LossSums, losses_of, multiply
from certsvm.certificates.rounding import Bound, mixed_error, product_error
from certsvm.dask.cluster import TRANSIENT, Group, WorkerGoneError, add_up
from certsvm.dask.messages import Packed, packed, unpacked
from certsvm.dask.problem import ClusterProblem, parts_of
from certsvm.kernels.losses import LOSS_TYPES, Loss
from certsvm.kernels.vectors import inner
from certsvm.parallel import ALONE
from certsvm.problem.base import BaseProblem
from certsvm.problem.part import Part
from certsvm.problem.rows import Vector, as_compiled_for
from certsvm.solvers.base import Epoch, Options, Run, Solver, require
from certsvm.solvers.shared.dual_coordinates import sweep
from certsvm.solvers.working_set import active_rows

_SHRINK_MARGIN = 0.1
_FEWEST_PASSES, _MOST_PASSES = 5, 30
# The spread is kept if the maximum of L along a round's change is within this of its end.
_TOLERATED = 0.05
# The factor by which the spread may fall from one round to the next, and its lower limit.
_LARGEST_FALL, _LIMIT_DECAY = 1.3, 0.98
# The spread is at least this power of the number of groups.
_SMALLEST_POWER = 0.25
# Seconds of work that a round should have for each second of overhead.
_WORK_PER_OVERHEAD = 3.0
# Points on the line from the last w through w at which J is computed, in units of the change.
_STEPS = (-0.7, -0.5, -0.3, 0.5, 1.0, 2.0, 4.0)
# Rounds after which the chain of states that depend on each other is cut.
_LONGEST_CHAIN = 50
# The share of the time that copies of alpha may take.
_COPYING = 0.1


@dataclass(frozen=True)
class Cocoa(Solver):
    """Dual coordinate descent on a cluster.

    Parameters
    ----------
    passes : int, default=None
        Passes that a group makes over its rows in a round. None adapts them to the overhead of
        a round.

    Examples
    --------
    >>> Cocoa(passes=5).name
    'cocoa'
    """

    name: ClassVar[str] = "cocoa"
    starts_warm: ClassVar[bool] = False
    problem_type: ClassVar[type[Any]] = ClusterProblem
    losses: ClassVar[tuple[type[Any], ...]] = LOSS_TYPES
    ranges: ClassVar = {"passes": "> 0"}

    passes: int | None = None

    def start(self, problem: BaseProblem, options: Options) -> CocoaRun:
        """Begin a run."""
        require(
            isinstance(problem, ClusterProblem), self, "it needs rows on a cluster: certsvm.dask"
        )
        require(options.start is None, self, "it begins at zero, and takes no start")
        return CocoaRun(self, cast(ClusterProblem, problem), options)


@dataclass
class RoundSums:
    """Sums over a group's rows after a round.

    ``losses`` are those at w and at the points on the line through it. The vector of ``rows`` is
    in ``w``, packed for sending. ``change_penalty`` is the sum of ``dual_penalty`` of the changes
    of alpha.
    """

    losses: tuple[LossSums, ...]
    rows: RowSums
    w: Packed
    change_penalty: float
    updates: int
    seconds: float

    def __iadd__(self, other: RoundSums) -> RoundSums:
        self.losses = _added(self.losses, other.losses)
        self.rows += other.rows
        self.w = packed(unpacked(self.w) + unpacked(other.w))
        self.change_penalty += other.change_penalty
        self.updates += other.updates
        self.seconds = max(self.seconds, other.seconds)
        return self

    @property
    def row_sums(self) -> RowSums:
        """The sums that L needs, with the vector unpacked."""
        return replace(self.rows, w=unpacked(self.w))


def _added(a: Sequence[LossSums], b: Sequence[LossSums]) -> tuple[LossSums, ...]:
    return tuple(x + y for x, y in zip(a, b, strict=True))


@dataclass(frozen=True)
class GroupState:
    """What a group keeps after a round: alpha and the products with w of each part."""

    alphas: tuple[Vector, ...]
    w: Vector
    products: tuple[Vector, ...]
    sums: RoundSums


@dataclass(eq=False)
class AlphaOnWorkers:
    """Where the alpha of a dual point is: a ``GroupState`` for each group, and a copy.

    ``states`` is empty if they were lost with a worker. The copy, one array for each part, is on
    the client and may be some rounds older; None stands for zero.
    """

    groups: list[Group]
    states: list[Future]
    copy: list[Vector] | None


class CocoaRun(Run):
    """CoCoA+ on one problem."""

    computes_primal = True

    def __init__(self, solver: Cocoa, problem: ClusterProblem, options: Options) -> None:
        self._problem = problem
        self._solver = solver
        self._keep_alpha = options.keep_alpha
        self._seed = int(options.rng.integers(2**31))
        self._w = self._last_w = np.zeros(problem.dimension)
        self._passes = solver.passes or _FEWEST_PASSES
        # The spread, and a limit for it: a smaller one has gone too far.
        self._spread, self._least_spread = math.inf, 1.0
        # L without its term -|w|^2 / 2.
        self._dual_sum = 0.0
        self._rounds = 0
        # The last copy of each part's alpha, and w with it; None is zero.
        self._copy: list[Vector] | None = None
        self._copied_w, self._copied_sum = self._w, 0.0
        # The states of the last round, their groups, and the rounds since the chain was cut.
        self._states: list[Future] | None = None
        self._groups: list[Group] = []
        self._chain = 0
        # What dual points that are still in use say about where their alpha is.
        self._alphas: WeakSet[AlphaOnWorkers] = WeakSet()
        self._copying, self._since_copy = 0.0, 0.0
        # The best w of the last round, J there, and the dual point.
        self._latest: tuple[Vector, Bound, DualPoint] | None = None

    def epoch(self) -> Epoch:
        """One round."""
        self._latest = None
        began = time.perf_counter()
        sums, alpha = self._problem.cluster.insistent(self._round, self._fall_back)
        seconds = time.perf_counter() - began
        w, J = self._best_primal(sums.losses)
        point = self._point(sums.row_sums, alpha)
        self._latest = w, J, point
        dual_sum = point.sums.value
        self._adapt_spread(point.w - self._w, dual_sum - self._dual_sum, sums.change_penalty)
        self._last_w, self._w, self._dual_sum = self._w, point.w, dual_sum
        self._rounds += 1
        self._adapt_passes(seconds, sums.seconds)
        self._copy_if_due(seconds)
        return Epoch(
            epochs=self._rounds,
            updates=sums.updates,
            primal_estimate=max(J.value, dual_bound(point)[0].value),
        )

    def _best_primal(self, losses: Sequence[LossSums]) -> tuple[Vector, Bound]:
        """The w with the least J among those evaluated, and that J."""
        C = self._problem.C
        best = self._w, losses[0].primal(C, self._w, product_error(self._w))
        for step, sums in zip(_STEPS, losses[1:], strict=False):
            w = (1.0 + step) * self._w - step * self._last_w
            bound = sums.primal(C, w, _error_beyond(self._w, self._last_w, step))
            if bound.high < best[1].high:
                best = w, bound
        return best

    def _point(self, sums: RowSums, alpha: list[Vector] | None) -> DualPoint:
        """The dual point of a round, with alpha itself or where it is."""
        if alpha is not None:
            return sums.point("dual coordinates", np.concatenate(alpha).copy)
        assert self._states is not None
        place = AlphaOnWorkers(self._groups, self._states, self._copy)
        self._alphas.add(place)
        return sums.point("dual coordinates", response=place)

    def _round(self) -> tuple[RoundSums, list[Vector] | None]:
        """Let each group make its passes; the states stay on the workers."""
        problem, cluster = self._problem, self._problem.cluster
        groups = self._same_groups()
        w = cluster.send(packed(self._w), groups)
        states, sums = [], []
        for i, group in enumerate(groups):
            before: Any = self._states[i] if self._states is not None else None
            if before is None and self._copy is not None:
                before = [self._copy[member] for member in group.members]
            state = cluster.task(
                "cocoa-round", work, problem.inputs(group.members), before, w,
                problem.loss, problem.C, min(self._spread, float(len(groups))), self._passes,
                (self._seed, self._rounds, i), at=group.worker,
            )  # fmt: skip
            states.append(state)
            sums.append(cluster.task("cocoa-sums", _sums_of, state, at=group.worker))
        cluster.count(rounds=1)
        futures = cluster.begin([*states, *cluster.summed(sums, groups)])
        total = add_up(cluster.results(futures[len(groups) :], groups))
        self._states, self._groups = futures[: len(groups)], groups
        self._chain += 1
        return total, self._gathered() if self._keep_alpha else None

    def _same_groups(self) -> list[Group]:
        """The groups, if they are still those that the states belong to."""
        groups = self._problem.groups()
        if self._states is not None and groups is not self._groups:
            raise WorkerGoneError("the blocks were put into other groups")
        return groups

    def _fall_back(self) -> None:
        """Go on from the last copy of alpha, with the blocks where they are now."""
        self._problem.regroup()
        self._states, self._chain = None, 0
        for alpha in self._alphas:
            # Or Dask would make the lost states again, from the first round on.
            alpha.states = []
        self._w, self._dual_sum = self._copied_w, self._copied_sum

    def _adapt_spread(self, change: Vector, dual_change: float, change_penalty: float) -> None:
        """Reduce the spread if a longer step would have raised L further, or enlarge it.

        Given are the change of w in the last round, that of L without -|w|^2 / 2, and the penalty
        of the changes of alpha. A spread that is too small costs a round, so the limit that it sets
        decays slowly.
        """
        best = peak_along(self._w, change, dual_change, change_penalty)
        if best is None:
            return
        groups = float(len(self._problem.groups()))
        spread = min(self._spread, groups)
        if best < 1.0 - _TOLERATED:
            self._spread = self._least_spread = spread * min(1.0 / max(best, 0.5), 2.0)
        elif best > 1.0 + _TOLERATED:
            self._least_spread *= _LIMIT_DECAY
            self._spread = max(
                groups**_SMALLEST_POWER, self._least_spread, spread / min(best, _LARGEST_FALL)
            )

    def _adapt_passes(self, seconds: float, working: float) -> None:
        """More passes if the overhead of a round is large beside its work, fewer if it is small."""
        if self._solver.passes is not None:
            return
        overhead = max(seconds - working, 0.0)
        # A long round must not be mistaken for a cluster that makes no progress.
        most = int(self._passes * self._problem.cluster.deadline / (4.0 * max(working, 1e-6)))
        if working < _WORK_PER_OVERHEAD * overhead:
            more = self._passes + 1 + self._passes // 2
            self._passes = max(1, min(more, _MOST_PASSES, most))
        elif working > 2.0 * _WORK_PER_OVERHEAD * overhead:
            self._passes = max(self._passes - 1, min(_FEWEST_PASSES, max(1, most)))

    def _copy_if_due(self, seconds: float) -> None:
        self._since_copy += seconds
        if self._since_copy * _COPYING < self._copying:
            return
        began = time.perf_counter()
        try:
            self._copy = self._gathered()
            self._copied_w, self._copied_sum = self._w, self._dual_sum
            for alpha in self._alphas:
                alpha.copy = self._copy
            if self._chain >= _LONGEST_CHAIN:
                self._cut_chain(self._copy)
        except TRANSIENT:
            # The next round will notice, and fall back to the last copy.
            return
        self._copying, self._since_copy = time.perf_counter() - began, 0.0

    def _cut_chain(self, copy: list[Vector]) -> None:
        """Put the copy on the workers, as the states to go on from.

        Each state is a task that depends on the one before, and the scheduler remembers them all.
        """
        groups, cluster = self._same_groups(), self._problem.cluster
        self._states = [
            cluster.place(tuple(copy[member] for member in group.members), group)
            for group in groups
        ]
        self._chain = 0

    def _gathered(self) -> list[Vector]:
        """The alpha of each part, on the client."""
        assert self._states is not None
        groups, cluster = self._same_groups(), self._problem.cluster
        tasks = [
            cluster.task("copy-alpha", _alphas_of, state, at=group.worker)
            for state, group in zip(self._states, groups, strict=True)
        ]
        gathered = cluster.results(cluster.begin(tasks), groups)
        alphas: list[Any] = [None] * self._problem.n_parts
        for group, of_group in zip(groups, gathered, strict=True):
            for member, alpha in zip(group.members, of_group, strict=True):
                alphas[member] = alpha
        return alphas

    def candidates(self) -> Iterator[Vector]:
        """The best w of the last round."""
        yield self._w if self._latest is None else self._latest[0]

    def primal(self) -> tuple[Vector, Bound] | None:
        """The best w of the last round, and J there."""
        return None if self._latest is None else self._latest[:2]

    def dual(self) -> DualPoint | None:
        """Alpha after the last round."""
        return None if self._latest is None else self._latest[2]


def peak_along(
    w: Vector, change: Vector, dual_change: float, change_penalty: float
) -> float | None:
    """Where L is largest along a change of alpha, which ends at one; None if it changes nothing.

    The change moves w by ``change``, and the sum of D_k(alpha_k) by ``dual_change``. The latter is
    a parabola whose quadratic term is minus ``change_penalty``, the ``dual_penalty`` of the change.
    """
    curvature = inner(change, change) + 2.0 * change_penalty
    if not curvature > 0.0:
        return None
    return (dual_change + change_penalty - inner(w, change)) / curvature


def work(
    inputs: Sequence[Any],
    before: GroupState | Sequence[Vector] | None,
    w: Packed,
    loss: Loss,
    C: float,
    spread: float,
    passes: int,
    seed: tuple[int, ...],
) -> GroupState:
    """A group's round, on a worker; ``before`` is its state or alpha, or None for zero."""
    began = time.perf_counter()
    start = unpacked(w)
    parts = parts_of(inputs)
    alphas = _beginning(parts, before)
    last = before if isinstance(before, GroupState) else None
    rng = np.random.default_rng(seed)
    v, updates = start.copy(), 0
    losses: list[tuple[LossSums, ...]] = []
    all_products: list[Vector] = []
    actives = []
    for i, (part, alpha) in enumerate(zip(parts, alphas, strict=True)):
        products = np.empty(part.rows.n_rows)
        multiply(part, start, products)
        all_products.append(products)
        losses.append(_losses_around(part, loss, start, products, last, i))
        active = np.empty(part.active.size, dtype=np.int64)
        size, _ = active_rows(
            loss, products, part.weights, C, _SHRINK_MARGIN, part.active, alpha, active
        )
        actives.append(active[:size])
    for number in range(passes):
        for i, (part, alpha) in enumerate(zip(parts, alphas, strict=True)):
            order = rng.permutation(actives[i])
            margin = _SHRINK_MARGIN if number else math.inf
            kept, changed, *_ = sweep(
                loss, part.rows.arrays, part.signed_weights, part.rows.squared_norms, C, 1.0,
                spread, -margin, margin, order, alpha, v,
            )  # fmt: skip
            actives[i] = order[:kept]
            updates += changed
    rows: RowSums = functools.reduce(
        operator.add,
        (RowSums.of(part, alpha, loss, C) for part, alpha in zip(parts, alphas, strict=True)),
    )
    sums = RoundSums(
        functools.reduce(_added, losses), replace(rows, w=np.zeros(0)), packed(rows.w),
        _change_penalty(loss, parts, before, alphas, C), updates, time.perf_counter() - began,
    )  # fmt: skip
    return GroupState(tuple(alphas), start, tuple(all_products), sums)


def _losses_around(
    part: Part, loss: Loss, w: Vector, products: Vector, last: GroupState | None, i: int
) -> tuple[LossSums, ...]:
    """The losses at w and, if the last w is known, at points on the line through both."""
    losses = [losses_of(part, ALONE, loss, products, product_error(w))]
    if last is not None:
        for step in _STEPS:
            mixed = (1.0 + step) * products - step * last.products[i]
            losses.append(losses_of(part, ALONE, loss, mixed, _error_beyond(w, last.w, step)))
    return tuple(losses)


def _error_beyond(w: Vector, last: Vector, step: float) -> float:
    """The error of products with w + step (w - last) that are mixed from those of both."""
    return mixed_error(1.0 + step, (product_error(w), w), -step, (product_error(last), last))


def _beginning(parts: Sequence[Part], before: GroupState | Sequence[Vector] | None) -> list[Vector]:
    """Copies of the alpha to begin with: a task must not change the input of another."""
    if before is None:
        return [np.zeros(part.rows.n_rows) for part in parts]
    alphas = before.alphas if isinstance(before, GroupState) else before
    if [alpha.size for alpha in alphas] != [part.rows.n_rows for part in parts]:
        raise ValueError("alpha belongs to other rows")
    return [as_compiled_for(alpha.copy()) for alpha in alphas]


def _change_penalty(
    loss: Loss,
    parts: Sequence[Part],
    before: GroupState | Sequence[Vector] | None,
    alphas: Sequence[Vector],
    C: float,
) -> float:
    """The sum of ``dual_penalty`` of the changes of alpha in a round."""
    if not loss.is_smooth:
        return 0.0
    triples = zip(parts, _beginning(parts, before), alphas, strict=True)
    return math.fsum(
        alpha_sums(loss, np.abs(new - old), part.weights, C).penalty.value
        for part, old, new in triples
    )


def _sums_of(state: GroupState) -> RoundSums:
    return state.sums


def _alphas_of(state: GroupState) -> tuple[Vector, ...]:
    return state.alphas
