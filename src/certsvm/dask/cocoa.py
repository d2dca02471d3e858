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

The alpha of a group is a future: the result of a task that depends on that of the round before and
on w. When a worker is lost, Dask repeats the rounds of its groups. So that they are few, alpha is
copied to the client every ten rounds, or as often as costs a tenth of the time, and sent back as
the beginning of a new chain.

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
from dataclasses import dataclass
from typing import Any, ClassVar, cast

import numpy as np
from dask.delayed import Delayed
from distributed import Future

from certsvm.certificates.dual import DualPoint, RowSums, alpha_sums, dual_bound
from certsvm.certificates.primal import LossSums, losses_of, multiply
from certsvm.certificates.rounding import Bound, mixed_error, product_error
from certsvm.dask.cluster import add_up
from certsvm.dask.problem import ClusterProblem
from certsvm.kernels.losses import LOSS_TYPES, Loss
from certsvm.kernels.vectors import inner
from certsvm.parallel import ALONE
from certsvm.problem.base import BaseProblem
from certsvm.problem.part import Part
from certsvm.problem.rows import Vector
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
# The fewest rounds that depend on each other before alpha is copied, and the share of the time that
# copies may take.
_CHAIN, _COPYING = 10, 0.1


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

    ``losses`` are those at w and at the points on the line through it. ``change_penalty`` is the
    sum of ``dual_penalty`` of the changes of alpha.
    """

    losses: tuple[LossSums, ...]
    rows: RowSums
    change_penalty: float
    updates: int
    seconds: float

    def __iadd__(self, other: RoundSums) -> RoundSums:
        self.losses = _added(self.losses, other.losses)
        self.rows += other.rows
        self.change_penalty += other.change_penalty
        self.updates += other.updates
        self.seconds = max(self.seconds, other.seconds)
        return self


def _added(a: Sequence[LossSums], b: Sequence[LossSums]) -> tuple[LossSums, ...]:
    return tuple(x + y for x, y in zip(a, b, strict=True))


@dataclass(frozen=True)
class GroupState:
    """What a group keeps after a round that began at w.

    For each of its parts: alpha after the round, and the products with w. There are no sums where
    a chain of rounds begins.
    """

    alphas: tuple[Vector, ...]
    w: Vector
    products: tuple[Vector, ...]
    sums: RoundSums | None = None


@dataclass(frozen=True)
class AlphaOnWorkers:
    """Where the alpha of a dual point is: in the ``GroupState`` of each group."""

    states: list[Future]


class CocoaRun(Run):
    """CoCoA+ on one problem."""

    computes_primal = True

    def __init__(self, solver: Cocoa, problem: ClusterProblem, options: Options) -> None:
        self._problem, self._solver = problem, solver
        self._keep_alpha = options.keep_alpha
        self._seed = int(options.rng.integers(2**31))
        self._w = self._last_w = np.zeros(problem.dimension)
        self._passes = solver.passes or _FEWEST_PASSES
        # The spread, and a limit for it: a smaller one has gone too far.
        self._spread, self._least_spread = float(len(problem.groups)), 1.0
        # L without its term -|w|^2 / 2.
        self._dual_sum = 0.0
        self._rounds = 0
        # The states after the last round, the rounds since the chain began, and seconds.
        self._states = self._chain_from([None] * len(problem.groups))
        self._chain, self._since_copy, self._copying = 0, 0.0, 0.0
        # The best w of the last round, J there, and the dual point.
        self._latest: tuple[Vector, Bound, DualPoint] | None = None

    def epoch(self) -> Epoch:
        """One round."""
        self._latest = None
        began = time.perf_counter()
        sums = self._round()
        point = self._point(sums.rows)
        seconds = time.perf_counter() - began
        w, J = self._best_primal(sums.losses)
        self._latest = w, J, point
        dual_sum = point.sums.value
        self._adapt_spread(point.w - self._w, dual_sum - self._dual_sum, sums.change_penalty)
        self._last_w, self._w, self._dual_sum = self._w, point.w, dual_sum
        self._rounds += 1
        self._adapt_passes(seconds, sums.seconds)
        self._cut_chain_if_due(seconds)
        return Epoch(
            epochs=self._rounds,
            updates=sums.updates,
            primal_estimate=max(J.value, dual_bound(point)[0].value),
        )

    def _round(self) -> RoundSums:
        """Let each group make its passes; the states stay on the workers."""
        problem, cluster = self._problem, self._problem.cluster
        w = cluster.argument(self._w)
        how = problem.loss, problem.C, self._spread, self._passes
        states = [
            problem.task("cocoa-round", group, work, state, w, *how, (self._seed, self._rounds, i))
            for i, (group, state) in enumerate(zip(problem.groups, self._states, strict=True))
        ]
        sums = cluster.summed(self._of_states("sums", states), problem.places)
        futures = cluster.begin([*states, *sums])
        self._states = futures[: len(states)]
        total: RoundSums = add_up(cluster.gathered(futures[len(states) :]))
        return total

    def _of_states(self, name: str, states: Sequence[Any]) -> list[Delayed]:
        """Tasks that return an attribute of the state of each group."""
        cluster, places = self._problem.cluster, self._problem.places
        return [
            cluster.task(f"cocoa-{name}", operator.attrgetter(name), state, at=at)
            for state, at in zip(states, places, strict=True)
        ]

    def _point(self, sums: RowSums) -> DualPoint:
        """The dual point of a round, with alpha itself or where it is."""
        source = "dual coordinates"
        if self._keep_alpha:
            return sums.point(source, np.concatenate(self._problem.in_order(self._alphas())).copy)
        return sums.point(source, response=AlphaOnWorkers(self._states))

    def _alphas(self) -> list[tuple[Vector, ...]]:
        """The alpha of each group's parts, on the client."""
        return self._problem.cluster.results(self._of_states("alphas", self._states))

    def _chain_from(self, alphas: Sequence[tuple[Vector, ...] | None]) -> list[Future]:
        """States with the alpha of each group, or with zero, as the beginning of a chain."""
        problem, w = self._problem, self._problem.cluster.argument(self._last_w)
        tasks = [
            problem.task("cocoa-begin", group, beginning, alpha, w)
            for group, alpha in zip(problem.groups, alphas, strict=True)
        ]
        return problem.cluster.begin(tasks)

    def _cut_chain_if_due(self, seconds: float) -> None:
        self._chain += 1
        self._since_copy += seconds
        if self._chain < _CHAIN or self._since_copy * _COPYING < self._copying:
            return
        began = time.perf_counter()
        self._states = self._chain_from(self._alphas())
        self._chain, self._since_copy = 0, 0.0
        self._copying = time.perf_counter() - began

    def _best_primal(self, losses: Sequence[LossSums]) -> tuple[Vector, Bound]:
        """The w with the least J among those evaluated, and that J."""
        C = self._problem.C
        best = self._w, losses[0].primal(C, self._w, product_error(self._w))
        for step, sums in zip(_STEPS, losses[1:], strict=True):
            w = (1.0 + step) * self._w - step * self._last_w
            bound = sums.primal(C, w, _error_beyond(self._w, self._last_w, step))
            if bound.high < best[1].high:
                best = w, bound
        return best

    def _adapt_spread(self, change: Vector, dual_change: float, change_penalty: float) -> None:
        """Reduce the spread if a longer step would have raised L further, or enlarge it.

        Given are the change of w in the last round, that of L without -|w|^2 / 2, and the penalty
        of the changes of alpha. A spread that is too small costs a round, so the limit that it sets
        decays slowly.
        """
        best = peak_along(self._w, change, dual_change, change_penalty)
        if best is None:
            return
        groups, spread = float(len(self._states)), self._spread
        if best < 1.0 - _TOLERATED:
            self._spread = min(groups, spread * min(1.0 / max(best, 0.5), 2.0))
            self._least_spread = self._spread
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


def beginning(parts: Sequence[Part], alphas: tuple[Vector, ...] | None, w: Vector) -> GroupState:
    """The state of a group with this alpha, or with zero, after a round that began at w."""
    if alphas is None:
        alphas = tuple(np.zeros(part.rows.n_rows) for part in parts)
    return GroupState(alphas, w, tuple(_products(part, w) for part in parts))


def _products(part: Part, w: Vector) -> Vector:
    products = np.empty(part.rows.n_rows)
    multiply(part, w, products)
    return products


def work(
    parts: Sequence[Part], before: GroupState, w: Vector, loss: Loss, C: float, spread: float,
    passes: int, seed: tuple[int, ...],
) -> GroupState:  # fmt: skip
    """A group's round, on a worker."""
    began = time.perf_counter()
    rng = np.random.default_rng(seed)
    products = tuple(_products(part, w) for part in parts)
    losses = [
        _losses_around(part, loss, w, of_w, before, last)
        for part, of_w, last in zip(parts, products, before.products, strict=True)
    ]
    # A task must not change the input of another.
    alphas = tuple(alpha.copy() for alpha in before.alphas)
    actives = []
    for part, of_w, alpha in zip(parts, products, alphas, strict=True):
        active = np.empty(part.active.size, dtype=np.int64)
        size, _ = active_rows(
            loss, of_w, part.weights, C, _SHRINK_MARGIN, part.active, alpha, active
        )
        actives.append(active[:size])
    v, updates = w.copy(), 0
    for number in range(passes):
        margin = _SHRINK_MARGIN if number else math.inf
        for i, (part, alpha) in enumerate(zip(parts, alphas, strict=True)):
            order = rng.permutation(actives[i])
            kept, changed, *_ = sweep(
                loss, part.rows.arrays, part.signed_weights, part.rows.squared_norms, C, 1.0,
                spread, -margin, margin, order, alpha, v,
            )  # fmt: skip
            actives[i] = order[:kept]
            updates += changed
    rows = [RowSums.of(part, alpha, loss, C) for part, alpha in zip(parts, alphas, strict=True)]
    sums = RoundSums(
        functools.reduce(_added, losses), functools.reduce(operator.add, rows),
        _change_penalty(loss, parts, before.alphas, alphas, C), updates,
        time.perf_counter() - began,
    )  # fmt: skip
    return GroupState(alphas, w, products, sums)


def _losses_around(
    part: Part, loss: Loss, w: Vector, products: Vector, before: GroupState, last: Vector
) -> tuple[LossSums, ...]:
    """The losses at w and at points on the line through w and that of the last round."""
    losses = [losses_of(part, ALONE, loss, products, product_error(w))]
    for step in _STEPS:
        mixed = (1.0 + step) * products - step * last
        losses.append(losses_of(part, ALONE, loss, mixed, _error_beyond(w, before.w, step)))
    return tuple(losses)


def _error_beyond(w: Vector, last: Vector, step: float) -> float:
    """The error of products with w + step (w - last) that are mixed from those of both."""
    return mixed_error(1.0 + step, (product_error(w), w), -step, (product_error(last), last))


def _change_penalty(
    loss: Loss, parts: Sequence[Part], before: Sequence[Vector], after: Sequence[Vector], C: float
) -> float:
    """The sum of ``dual_penalty`` of the changes of alpha in a round."""
    if not loss.has_penalty:
        return 0.0
    return math.fsum(
        alpha_sums(loss, np.abs(new - old), part.weights, C).penalty.value
        for part, old, new in zip(parts, before, after, strict=True)
    )
