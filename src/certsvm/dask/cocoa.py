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
round. After its passes it computes the sum of its alpha_k y_k from scratch. The new w is the sum
over the groups, and carries no error from round to round.

With many columns, sending w dominates the cost of a round. So groups make more passes, five to
thirty, the longer a round takes besides their work.

The alpha of a group is a future: the result of a task that depends on that of the round before and
on w. When a worker is lost, Dask repeats the rounds of its groups. So that they are few, alpha is
copied to the client every ten rounds, and sent back with the tasks of the next one. A copy has a
number for each row, and is small beside fifty passes or more over their values.

Given:      C, s, the rows on a cluster.
Result:     w, and alpha.

Reference: C. Ma, V. Smith, M. Jaggi, M. I. Jordan, P. Richtarik and M. Takac, Adding vs. Averaging
in Distributed Primal-Dual Optimization, ICML 2015.
"""

from __future__ import annotations

import math
import operator
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, cast

import numpy as np
from dask.delayed import Delayed

from certsvm.certificates.dual import DualPoint, RowSums, alpha_sums, dual_bound
from certsvm.certificates.primal import LossSums, losses_of, multiply
from certsvm.certificates.rounding import Bound, product_error
from certsvm.dask.cluster import add_up
from certsvm.dask.problem import ClusterProblem
from certsvm.kernels.losses import LOSS_TYPES, Loss
from certsvm.kernels.vectors import inner
from certsvm.problem.base import BaseProblem
from certsvm.problem.rows import Part, Vector
from certsvm.resources import ALONE
from certsvm.solvers.base import Epoch, Options, Run, Solver, require
from certsvm.solvers.dual_coordinates import sweep
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
# Rounds that depend on each other before alpha is copied.
_CHAIN = 10


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
    """Sums over a group's rows: of the losses before a round, and of alpha after it.

    ``change_penalty`` is the sum of ``dual_penalty`` of the changes of alpha.
    """

    losses: LossSums
    rows: RowSums
    change_penalty: float
    updates: int
    seconds: float

    def __iadd__(self, other: RoundSums) -> RoundSums:
        self.losses = self.losses + other.losses
        self.rows += other.rows
        self.change_penalty += other.change_penalty
        self.updates += other.updates
        self.seconds = max(self.seconds, other.seconds)
        return self


@dataclass(frozen=True)
class GroupState:
    """The alpha of each part of a group after a round; no sums where a chain of rounds begins."""

    alphas: Sequence[Vector]
    sums: RoundSums | None = None


@dataclass(frozen=True)
class AlphaOnWorkers:
    """Where the alpha of a dual point is: in the ``GroupState`` of each group."""

    states: Sequence[Any]


class CocoaRun(Run):
    """CoCoA+ on one problem."""

    computes_primal = True

    def __init__(self, solver: Cocoa, problem: ClusterProblem, options: Options) -> None:
        self._problem, self._solver = problem, solver
        self._keep_alpha = options.keep_alpha
        self._seed = int(options.rng.integers(2**31))
        self._w = np.zeros(problem.dimension)
        self._passes = solver.passes or _FEWEST_PASSES
        # The spread, and a limit for it: a smaller one has gone too far.
        self._spread, self._least_spread = float(len(problem.groups)), 1.0
        # L without its term -|w|^2 / 2.
        self._dual_sum = 0.0
        self._rounds = 0
        # The states after the last round.
        self._states: Sequence[Any] = [
            GroupState([np.zeros(problem.firsts[i + 1] - problem.firsts[i]) for i in group.members])
            for group in problem.groups
        ]
        # The w with which the last round began, J there, and the dual point after it.
        self._latest: tuple[Vector, Bound, DualPoint] | None = None

    def epoch(self) -> Epoch:
        """One round."""
        self._latest = None
        began = time.perf_counter()
        sums = self._round()
        point = self._point(sums.rows)
        seconds = time.perf_counter() - began
        J = sums.losses.primal(self._problem.C, self._w, product_error(self._w))
        self._latest = self._w, J, point
        dual_sum = point.sums.value
        self._adapt_spread(point.w - self._w, dual_sum - self._dual_sum, sums.change_penalty)
        self._w, self._dual_sum = point.w, dual_sum
        self._rounds += 1
        self._adapt_passes(seconds, sums.seconds)
        if self._rounds % _CHAIN == 0:
            self._states = [GroupState(alphas) for alphas in self._alphas()]
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

    def _alphas(self) -> list[Sequence[Vector]]:
        """The alpha of each group's parts, on the client."""
        return self._problem.cluster.results(self._of_states("alphas", self._states))

    def _adapt_spread(self, change: Vector, dual_change: float, change_penalty: float) -> None:
        """Reduce the spread if a longer step would have raised L further, or enlarge it.

        Given are the change of w in the last round, that of L without -|w|^2 / 2, and the penalty
        of the changes of alpha. A spread that is too small costs a round, so the limit that it sets
        decays slowly.
        """
        # L is a parabola whose quadratic term is minus half of this.
        curvature = inner(change, change) + 2.0 * change_penalty
        if not curvature > 0.0:
            return
        best = (dual_change + change_penalty - inner(self._w, change)) / curvature
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
        """The w with which the last round began."""
        yield self._w if self._latest is None else self._latest[0]

    def primal(self) -> tuple[Vector, Bound] | None:
        """The w with which the last round began, and J there."""
        return None if self._latest is None else self._latest[:2]

    def dual(self) -> DualPoint | None:
        """Alpha after the last round."""
        return None if self._latest is None else self._latest[2]


def work(
    parts: Sequence[Part], before: GroupState, w: Vector, loss: Loss, C: float, spread: float,
    passes: int, seed: tuple[int, ...],
) -> GroupState:  # fmt: skip
    """A group's round, on a worker."""
    began = time.perf_counter()
    rng = np.random.default_rng(seed)
    # A task must not change the input of another.
    alphas = [alpha.copy() for alpha in before.alphas]
    losses, actives = [], []
    for part, alpha in zip(parts, alphas, strict=True):
        products, active = np.empty(part.rows.n_rows), np.empty(part.active.size, dtype=np.int64)
        multiply(part, w, products)
        losses.append(losses_of(part, ALONE, loss, products, product_error(w)))
        size, _ = active_rows(
            loss, products, part.weights, C, _SHRINK_MARGIN, part.active, alpha, active
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
    penalty = 0.0
    if loss.has_penalty:
        changes = (abs(new - old) for new, old in zip(alphas, before.alphas, strict=True))
        penalty = math.fsum(
            alpha_sums(loss, change, part.weights, C).penalty.value
            for part, change in zip(parts, changes, strict=True)
        )
    sums = RoundSums(
        add_up(losses), add_up(rows), penalty, updates, time.perf_counter() - began
    )  # fmt: skip
    return GroupState(alphas, sums)
