"""CoCoA+: dual coordinate descent on each worker's rows, and the sum of what they found.

Maximises    L(alpha) = sum_k alpha_k - 1/2 |w|^2,   w = sum_k alpha_k y_k,   0 <= alpha_k <= C s_k

in rounds. The rows are in K groups, one for each thread of each worker, which keep the alpha of
their rows. In a round each group gets w and makes some passes of coordinate descent over its own
rows as if the others made as much of a difference as it does itself, q times in all:

    alpha_k <- clip(alpha_k - G / (q |y_k|^2), 0, C s_k),   G = v.y_k - 1,   v += q (change) y_k,

beginning with v = w. With q = K, all changes added up raise L by at least what the groups believe
(the square of a sum is at most K times the sum of squares). That is often too careful: along the
change of a round, L is a parabola, and where its top is says by how much. So q follows that,
between K^(1/4) and K; a round that went too far costs a round, as the best L counts.

Before it begins, a group computes the losses of its rows at w, so that J(w) is known after each
round; and, without another product, those at some points on the line from the last w through it:
L may be near the optimum long before J(w) is, while w goes to and fro, or ever on in one direction.
When it is done, it computes the sum of its alpha_k y_k from scratch. The new w is the sum of these,
and carries no error from round to round.

With many columns a round's cost is that of sending w. So groups make more passes, five to thirty,
the longer a round takes besides their work.

alpha is the only state on the workers that counts. Every few rounds, so that it costs a tenth of
the time, it is copied to the client; when a worker is lost, all groups go on from the last copy.

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

import numpy as np
from distributed import Future

from certsvm.certificates.dual import DualPoint, RowSums, dual_bound
from certsvm.certificates.primal import LossSums, losses_of, multiply
from certsvm.certificates.rounding import Bound, mixed_error, product_error
from certsvm.dask.cluster import TRANSIENT, Group, WorkerGoneError, add_up
from certsvm.dask.messages import Packed, packed, unpacked
from certsvm.dask.problem import BestStates, ClusterProblem, parts_of
from certsvm.kernels.losses import Loss
from certsvm.parallel import ALONE, single_threaded_blas
from certsvm.problem.base import BaseProblem
from certsvm.problem.part import Part
from certsvm.problem.rows import Vector, as_compiled_for
from certsvm.solvers.base import Epoch, Options, Run, Solver, require
from certsvm.solvers.working_set import active_rows, sweep

_SHRINK_MARGIN = 0.1
_FEWEST_PASSES, _MOST_PASSES = 5, 30
# How far from where it ended the top of L may be along a round's change, relative to that.
_NEAR = 0.05
# By how much the spread may fall from one round to the next, and its lower end with it.
_BOLD, _FORGETTING = 1.3, 0.98
# The power of the number of groups below which the spread does not fall.
_LEAST_CAUTION = 0.25
# Seconds of work that a round should have for each second besides it.
_WORTH = 3.0
# Where J is looked at beside w, on the line from the last w: between them and beyond, in changes.
_STEPS = (-0.7, -0.5, -0.3, 0.5, 1.0, 2.0, 4.0)
# Rounds after which their states no longer depend on each other.
_LONGEST_CHAIN = 50
# The share of the time that copies of alpha may take.
_COPYING = 0.1


@dataclass(frozen=True)
class Cocoa(Solver):
    """Dual coordinate descent on a cluster.

    Parameters
    ----------
    passes : int, default=None
        Passes that a group makes over its rows in a round. None adapts them to what a round
        costs besides.

    Examples
    --------
    >>> Cocoa(passes=5).name
    'cocoa'
    """

    name: ClassVar[str] = "cocoa"
    problem_type: ClassVar[type[Any]] = ClusterProblem

    passes: int | None = None

    def __post_init__(self) -> None:
        require(
            self.passes is None or self.passes > 0, self, f"passes must be > 0, got {self.passes}"
        )

    def start(self, problem: BaseProblem, options: Options) -> CocoaRun:
        """Begin a run; alpha is on the workers, and comes to the client when it is asked for."""
        require(
            isinstance(problem, ClusterProblem), self, "it needs rows on a cluster: certsvm.dask"
        )
        require(options.start is None, self, "it begins at zero, and takes no start")
        return CocoaRun(self, cast(ClusterProblem, problem), options)


@dataclass
class RoundSums:
    """What a group tells after a round; those of groups are added."""

    losses: tuple[LossSums, ...]
    rows: RowSums
    updates: int
    seconds: float

    def __iadd__(self, other: RoundSums) -> RoundSums:
        self.losses = tuple(a + b for a, b in zip(self.losses, other.losses, strict=True))
        self.rows += other.rows
        self.updates += other.updates
        self.seconds = max(self.seconds, other.seconds)
        return self


@dataclass(frozen=True)
class GroupState:
    """What a group keeps: the alpha of each of its parts, w and its products, and what it tells."""

    alphas: tuple[Vector, ...]
    w: Vector
    products: tuple[Vector, ...]
    told: RoundSums


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
        self._spread = math.inf
        # Less than this was too little.
        self._needed = 1.0
        self._alpha_sum = 0.0
        self._rounds = 0
        # The last copy of each part's alpha, and w with it; None is zero.
        self._copy: list[Vector] | None = None
        self._copied_w, self._copied_sum = self._w, 0.0
        # Of the last round, what each group keeps, and which groups; after how many rounds.
        self._states: list[Future] | None = None
        self._groups: list[Group] = []
        self._chain = 0
        self._copying, self._since_copy = 0.0, 0.0
        self._told: tuple[Vector, Bound, DualPoint] | None = None

    def epoch(self) -> Epoch:
        """One round."""
        self._told = None
        began = time.perf_counter()
        told, alphas = self._problem.cluster.insistent(self._round, self._fall_back)
        took = time.perf_counter() - began
        w, J = self._best_primal(told.losses)
        alpha = None if alphas is None else np.concatenate(alphas).copy
        point = told.rows.point("dual coordinates", alpha)
        self._told = w, J, point
        self._keep_states(dual_bound(point)[0].low)
        self._adapt_spread(point)
        self._last_w, self._w, self._alpha_sum = self._w, point.w, point.alpha_sum
        self._rounds += 1
        self._adapt(took, told.seconds)
        self._copy_if_due(took)
        gap = J.value - dual_bound(point)[0].value
        return Epoch(
            epochs=self._rounds,
            updates=told.updates,
            primal_estimate=dual_bound(point)[0].value + max(gap, 0.0),
        )

    def _best_primal(self, losses: Sequence[LossSums]) -> tuple[Vector, Bound]:
        """The best of w and of the points around it that were looked at, and J there."""
        C = self._problem.C
        found = self._w, losses[0].primal(C, self._w, product_error(self._w))
        for step, some in zip(_STEPS, losses[1:], strict=False):
            w = (1.0 + step) * self._w - step * self._last_w
            bound = some.primal(C, w, _error_beyond(self._w, self._last_w, step))
            if bound.high < found[1].high:
                found = w, bound
        return found

    def _keep_states(self, dual: float) -> None:
        """Leave word where the best alpha is."""
        best = self._problem.best_states
        if self._states is not None and (best is None or dual >= best.dual):
            self._problem.best_states = BestStates(dual, self._groups, self._states, self._copy)

    def _round(self) -> tuple[RoundSums, list[Vector] | None]:
        """Let each group do its passes; their states stay where they are."""
        problem, cluster = self._problem, self._problem.cluster
        groups = self._same_groups()
        w = cluster.send(packed(self._w), groups)
        states: list[Future] = []
        for i, group in enumerate(groups):
            before: Any = self._states[i] if self._states is not None else None
            if before is None and self._copy is not None:
                before = [self._copy[member] for member in group.members]
            states.append(
                cluster.task(
                    "cocoa-round", work, problem.inputs(group.members), before, w,
                    problem.loss, problem.C, min(self._spread, float(len(groups))), self._passes,
                    (self._seed, self._rounds, i), at=group.worker,
                )
            )  # fmt: skip
        told = [
            cluster.task("cocoa-sums", _told, state, at=group.worker)
            for state, group in zip(states, groups, strict=True)
        ]
        cluster.count(rounds=1)
        begun = cluster.begin([*states, *cluster.summed(told, groups)])
        sums = cluster.results(begun[len(groups) :], groups)
        total = add_up(sums).unpacked()
        self._states, self._groups = begun[: len(groups)], groups
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
        if self._problem.best_states is not None:
            # Or Dask would make them again, from the beginning, beside everything else.
            self._problem.best_states.states = []
        self._w, self._alpha_sum = self._copied_w, self._copied_sum

    def _adapt_spread(self, point: DualPoint) -> None:
        """Less caution, if going further the same way would have been better; or more.

        Caution that was needed once is not given up again soon: a spread that is too small costs a
        round each time.
        """
        change = point.w - self._w
        square = float(change @ change)
        if not square > 0.0:
            return
        groups = float(len(self._problem.groups()))
        spread, least = min(self._spread, groups), groups**_LEAST_CAUTION
        best = (point.alpha_sum - self._alpha_sum - float(self._w @ change)) / square
        if best < 1.0 - _NEAR:
            self._needed = spread * min(1.0 / max(best, 0.5), 2.0)
            self._spread = self._needed
        elif best > 1.0 + _NEAR:
            self._needed *= _FORGETTING
            self._spread = max(least, self._needed, spread / min(best, _BOLD))

    def _adapt(self, took: float, working: float) -> None:
        if self._solver.passes is not None:
            return
        besides = max(took - working, 0.0)
        # A round that takes long must not look like a cluster that does not get on.
        most = int(self._passes * self._problem.cluster.deadline / (4.0 * max(working, 1e-6)))
        if working < _WORTH * besides:
            more = self._passes + 1 + self._passes // 2
            self._passes = max(1, min(more, _MOST_PASSES, most))
        elif working > 2.0 * _WORTH * besides:
            self._passes = max(self._passes - 1, min(_FEWEST_PASSES, max(1, most)))

    def _copy_if_due(self, took: float) -> None:
        self._since_copy += took
        if self._since_copy * _COPYING < self._copying:
            return
        began = time.perf_counter()
        try:
            self._copy = self._gathered()
            self._copied_w, self._copied_sum = self._w, self._alpha_sum
            if self._problem.best_states is not None:
                self._problem.best_states.copy = self._copy
            if self._chain >= _LONGEST_CHAIN:
                self._cut_chain(self._copy)
        except TRANSIENT:
            # The next round will notice, and fall back to the copy that there is.
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
        groups = self._same_groups()
        cluster = self._problem.cluster
        tasks = [
            cluster.task("copy-alpha", _alphas, state, at=group.worker)
            for state, group in zip(self._states, groups, strict=True)
        ]
        found = cluster.results(cluster.begin(tasks), groups)
        alphas: list[Any] = [None] * self._problem.n_parts
        for group, some in zip(groups, found, strict=True):
            for member, alpha in zip(group.members, some, strict=True):
                alphas[member] = alpha
        return alphas

    def candidates(self) -> Iterator[Vector]:
        """The w of the last round."""
        yield self._w if self._told is None else self._told[0]

    def primal(self) -> tuple[Vector, Bound] | None:
        """W at the beginning of the last round, and its J."""
        return None if self._told is None else self._told[:2]

    def dual(self) -> DualPoint | None:
        """Alpha after the last round."""
        return None if self._told is None else self._told[2]


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
    """A group's round, on a worker."""
    began = time.perf_counter()
    start = unpacked(w)
    parts = parts_of(inputs)
    alphas = _beginning(parts, before)
    rng = np.random.default_rng(seed)
    v = start.copy()
    losses: list[tuple[LossSums, ...]] = []
    all_products: list[Vector] = []
    updates = 0
    last = before if isinstance(before, GroupState) else None
    with single_threaded_blas():
        actives = []
        for i, (part, alpha) in enumerate(zip(parts, alphas, strict=True)):
            products = np.empty(part.rows.n_rows)
            multiply(part, start, products)
            all_products.append(products)
            losses.append(_losses_around(part, loss, start, products, last, i))
            active = np.empty(part.active.size, dtype=np.int64)
            size = active_rows(
                loss, products, part.weights, C, _SHRINK_MARGIN, part.active, alpha, active
            )
            actives.append(active[:size])
        for number in range(passes):
            for i, (part, alpha) in enumerate(zip(parts, alphas, strict=True)):
                order = rng.permutation(actives[i])
                kept, changed, _, _ = sweep(
                    loss, part.rows.arrays, part.signed_weights, part.rows.squared_norms, C, 1.0,
                    spread, _SHRINK_MARGIN if number else math.inf, order, alpha, v,
                )  # fmt: skip
                actives[i] = order[:kept]
                updates += changed
        rows = None
        for part, alpha in zip(parts, alphas, strict=True):
            sums = RowSums.of(part, alpha, loss, C)
            rows = sums if rows is None else rows + sums
    assert rows is not None
    total = tuple(functools.reduce(operator.add, some) for some in zip(*losses, strict=True))
    told = RoundSums(total, rows, updates, time.perf_counter() - began)
    return GroupState(tuple(alphas), start, tuple(all_products), told)


def _losses_around(
    part: Part, loss: Loss, w: Vector, products: Vector, last: GroupState | None, i: int
) -> tuple[LossSums, ...]:
    """The losses at w, and on the line from the last w through it, if that is known."""
    losses = [losses_of(part, ALONE, loss, products, product_error(w))]
    if last is not None:
        for step in _STEPS:
            mixed = (1.0 + step) * products - step * last.products[i]
            losses.append(losses_of(part, ALONE, loss, mixed, _error_beyond(w, last.w, step)))
    return tuple(losses)


def _error_beyond(w: Vector, last: Vector, step: float) -> float:
    """How far products with w + step (w - last) are off that were made from those of both."""
    return mixed_error(1.0 + step, (product_error(w), w), -step, (product_error(last), last))


def _beginning(parts: Sequence[Part], before: Any) -> list[Vector]:
    """Copies of the alpha to begin with: a task must not change what another may read."""
    if before is None:
        return [np.zeros(part.rows.n_rows) for part in parts]
    alphas = before.alphas if isinstance(before, GroupState) else before
    if [alpha.size for alpha in alphas] != [part.rows.n_rows for part in parts]:
        raise ValueError("alpha is not that of these rows")
    return [as_compiled_for(alpha.copy()) for alpha in alphas]


@dataclass
class Message:
    """What a group tells, with the long vector packed; those of groups are added."""

    told: RoundSums
    w: Packed

    @classmethod
    def of(cls, told: RoundSums) -> Message:
        """Pack it."""
        return cls(replace(told, rows=replace(told.rows, w=np.zeros(0))), packed(told.rows.w))

    def unpacked(self) -> RoundSums:
        """What was packed."""
        return replace(self.told, rows=replace(self.told.rows, w=unpacked(self.w)))

    def __iadd__(self, other: Message) -> Message:
        total = self.unpacked()
        total += other.unpacked()
        together = Message.of(total)
        self.told, self.w = together.told, together.w
        return self


def _told(state: GroupState) -> Message:
    return Message.of(state.told)


def _alphas(state: GroupState) -> tuple[Vector, ...]:
    return state.alphas
