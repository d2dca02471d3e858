"""CoCoA+ with a cache: dual coordinate descent on the workers, and on the free rows of all.

Maximises    L(alpha) = sum_k alpha_k - 1/2 |w|^2,   w = sum_k alpha_k y_k,   0 <= alpha_k <= C s_k

in rounds (for the hinge; ``kernels.losses`` has L and the steps for its square). The rows are in K
groups, one for each thread of each worker. A round has two halves.

First, all groups work at the same time. Each gets w and makes a few sweeps over its rows, on the
assumption that all groups together change w K times as much as it does alone:

    alpha_k <- clip(alpha_k - G / (K |y_k|^2), 0, C s_k),   G = v.y_k - 1,   v += K (change) y_k,

beginning with v = w. The sum of all changes raises L by at least the sum of what the groups expect:
the square of a sum is at most K times the sum of squares, and the other terms of L are sums over
the rows. But it takes hundreds of rounds: what one group does to the free rows of another,
0 < alpha_k < C s_k, the other learns a round later, however much work each does in between.

So, second, the free rows are gathered on one worker, which maximises L over their alpha while all
other alpha stand still. Their number is small beside that of all rows. If they all fit, a handful
of rounds is enough at any C. If not, as many as fit are drawn at random. The new alpha is the mean
over the latest sweeps, whose w has a smaller J than the last w.

After a round, sum_k alpha_k y_k is computed from scratch, so that w carries no error from round to
round, and J is computed there.

The alpha of a group is a future: the result of tasks that depend on those of the round before. When
a worker is lost, Dask repeats the rounds that it needs. So that they are few, alpha is copied to
the client every ten rounds, and sent back with the tasks of the next one.

Given:      C, s, the rows on a cluster; optionally alpha to start from, or w, from whose margins
            alpha is made.
Result:     w, and alpha.

References: C. Ma, V. Smith, M. Jaggi, M. I. Jordan, P. Richtarik and M. Takac, Adding vs. Averaging
in Distributed Primal-Dual Optimization, ICML 2015; S. Matsushima, S. V. N. Vishwanathan and A. J.
Smola, Linear Support Vector Machines via Dual Cached Loops, KDD 2012.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial, reduce
from operator import add, attrgetter, itemgetter
from typing import Any, ClassVar

import numpy as np

from certsvm.certificates.best import BestValues
from certsvm.certificates.dual import Response, RowSums, dual_bound, sum_of_part
from certsvm.certificates.primal import best_multiple, losses_at_multiples
from certsvm.dask.cluster import ClusterProblem, add_up, joined
from certsvm.kernels.losses import BOTH_LOSSES, Loss, box_end
from certsvm.problem.rows import Part, Vector
from certsvm.resources import ALONE
from certsvm.solvers.auto import Auto, StreamRun
from certsvm.solvers.base import Epoch, Options, Run, Solver, Start
from certsvm.solvers.dual_coordinates import Indices, in_box, sweep
from certsvm.solvers.smoothed_newton import SmoothedNewton, alpha_of_part

# A row at an end of its box is skipped in further sweeps of a group if its margin is so far from
# one.
_FAR = 0.2
# Steps on gathered rows are so many times as long as the exact ones. They end when the gap of these
# rows has fallen to this share.
_OMEGA, _SOLVED = 1.2, 0.01
# There may be up to ten times as many sweeps as ``visits`` up to so many stored values, a moment's
# work, and fewer beyond so many for each second of the deadline, which take a small part of it.
_FEW_VALUES, _VALUES_PER_SECOND = 2e7, 2e7
# The least share of a sweep in the mean over the latest.
_LATEST = 0.1
# The workers can hold so many bytes of gathered rows, or more if their own rows are more.
_CACHE = 2.0**27
# The slope, divided by C, of the smoothed loss that makes alpha from the margins of a given w.
_SLOPE = 8.0
# Rounds that depend on each other before alpha is copied.
_CHAIN = 10
# With so many rows for each column, a few steps of Newton with a matrix each take less time.
_ROWS_PER_COLUMN = 1000


@dataclass(frozen=True)
class Cocoa(Solver, sweeps="> 0", visits="> 0", cache=">= 0"):
    """Dual coordinate descent on a cluster.

    Parameters
    ----------
    sweeps : int, default=3
        The number of sweeps that a group makes over its rows in a round.
    visits : int, default=100
        The largest number of sweeps over the gathered rows in a round; if these are few, ten times
        as many.
    cache : float, default=None
        The largest share of the rows to gather on a worker. None means as much as a worker has of
        its own on average, or 128 MB; 0 gathers none, which leaves plain CoCoA+.

    Examples
    --------
    >>> Cocoa(cache=0.1).name
    'cocoa'
    """

    name: ClassVar[str] = "cocoa"
    warm_starts_from_alpha: ClassVar[bool] = True
    problem_type: ClassVar[type[Any]] = ClusterProblem
    losses: ClassVar = BOTH_LOSSES

    sweeps: int = 3
    visits: int = 100
    cache: float | None = None


@dataclass(frozen=True)
class ClusterAuto(Auto):
    """Newton if there are many rows per column, else CoCoA; if one stalls, the other goes on."""

    warm_starts_from_alpha: ClassVar[bool] = False

    def start(self, problem: Any, options: Options) -> Run:
        """Begin a run."""
        many = problem.n_rows >= _ROWS_PER_COLUMN * problem.dimension
        first = SmoothedNewton() if many else Cocoa()
        return StreamRun(problem, first, options, options, Cocoa())


@dataclass(frozen=True)
class Swept:
    """What a group has after its sweeps: alpha of each part, and its rows that are to be gathered.

    ``free`` are the positions of these rows in each part, ``gathered`` the rows themselves with
    signed weights and alpha, and ``rest`` the sums over all others.
    """

    alphas: list[Vector]
    free: list[Indices]
    gathered: list[tuple[Any, Vector, Vector]]
    rest: RowSums

    def merged(self, solved: tuple[list[list[Vector]], RowSums], i: int) -> list[Vector]:
        """Alpha of each part of this group, the i-th, with that of gathered rows."""
        merged = [alpha.copy() for alpha in self.alphas]
        for alpha, rows, new in zip(merged, self.free, solved[0][i], strict=True):
            alpha[rows] = new
        return merged


class CocoaRun(Run, of=Cocoa):
    """CoCoA+ with a cache on one problem."""

    solver_name = Cocoa.name
    computes_primal = True

    def __init__(self, solver: Cocoa, problem: ClusterProblem, options: Options) -> None:
        super().__init__(solver, problem, options)
        self._seed = int(options.rng.integers(2**31))
        room = max(_CACHE / max(problem.nbytes, 1), 1.0 / len(problem.workers))
        self._share = min(room if solver.cache is None else solver.cache, 1.0)
        self.best = BestValues()
        # w, here and as an argument of tasks; alpha of each group's parts, or futures of it.
        self._w = self._sent = np.zeros(problem.dimension)
        start = options.start or Start(self._w)
        about = problem.C * (start.smoothing or _SLOPE), problem.loss, problem.C
        given = [problem.cluster.argument(value) for value in (start.alpha, start.w)]
        self._alphas: Sequence[Any] = [
            problem.task("start", group, alpha_at_start, *given, *about) for group in problem.groups
        ]
        if options.start is not None:
            # Without a step, a round computes w.
            self._round(0, 0.0)

    def epoch(self) -> Epoch:
        """One round."""
        self._dual_point = self._evaluated = None
        self._passes += 1
        self._round(self._solver.sweeps, self._share)
        if self._passes % _CHAIN == 0:
            self._alphas = self._problem.cluster.gathered(self._alphas)
            self._sent = self._w
        return Epoch(epochs=self._passes)

    def _round(self, sweeps: int, share: float) -> None:
        """Both halves, and the bounds; alpha stays on the workers."""
        problem, cluster, places = self._problem, self._problem.cluster, self._problem.places
        about, seed = (problem.loss, problem.C), (self._seed, self._passes)
        w, how = cluster.argument(self._sent), (*about, float(len(places)), sweeps, share)
        swept = [
            problem.task("sweep", group, sweep_group, alphas, w, *how, (*seed, i))
            for i, (group, alphas) in enumerate(zip(problem.groups, self._alphas, strict=True))
        ]
        here = list(zip(swept, places, strict=True))
        rest, gathered = (
            [cluster.task(name, attrgetter(name), one, at=at) for one, at in here]
            for name in ("rest", "gathered")
        )
        # Classes that are trained at the same time gather their rows on different workers.
        place = problem.workers[problem.number % len(problem.workers)]
        solved = cluster.task(
            "solve", solve, cluster.summed(rest, places), gathered, problem.intercept_scaling,
            *about, self._solver.visits, _VALUES_PER_SECOND * cluster.deadline, seed, at=place,
        )  # fmt: skip
        alphas = [
            cluster.task("alpha", Swept.merged, one, solved, i, at=at)
            for i, (one, at) in enumerate(here)
        ]
        rows = cluster.task("rows", itemgetter(1), solved, at=place)
        sent = cluster.task("w", attrgetter("w"), rows, at=place)
        losses = problem.sums_of(losses_at_multiples, problem.loss, sent)
        futures = cluster.begin([*alphas, sent, rows, *losses])
        self._alphas, self._sent = futures[: len(alphas)], futures[len(alphas)]
        sums, *of_parts = cluster.gathered(futures[len(alphas) + 1 :])
        self._w = sums.w
        self._evaluated = best_multiple(problem, self._w, add_up(of_parts))
        kept = partial(_on_client, problem, self._alphas) if self._options.keep_alpha else None
        point = sums.point("dual coordinates", kept, self._alphas)
        self._dual_point = lambda: point
        self.best.offer(self._evaluated[1].value, dual_bound(point)[0].value)


def _on_client(problem: ClusterProblem, alphas: Sequence[Any]) -> Vector:
    """The alpha of all rows, given futures of that of groups."""
    return np.concatenate(problem.in_order(problem.cluster.gathered(alphas)))


def alpha_at_start(
    parts: Sequence[Part], alpha: Vector | None, w: Vector, sigma: float, loss: Loss, C: float
) -> list[Vector]:
    """A feasible alpha of a group's rows: the given one, or from the margins of w; 0 if w = 0."""
    if not w.any():
        return [np.zeros(part.rows.n_rows) for part in parts]
    if alpha is None:
        return [alpha_of_part(part, ALONE, Response(w, sigma), loss, C) for part in parts]
    return [in_box(part, alpha[part.span], loss, C) for part in parts]


def sweep_group(
    parts: Sequence[Part], before: Sequence[Vector], w: Vector, loss: Loss, C: float, spread: float,
    sweeps: int, share: float, seed: tuple[int, ...],
) -> Swept:  # fmt: skip
    """The first half of a group's round, on a worker; ``spread`` is the number of groups."""
    rng, v = np.random.default_rng(seed), w.copy()
    # A task must not change the input of another.
    alphas, actives = [alpha.copy() for alpha in before], [part.active for part in parts]
    for number in range(sweeps):
        far = _FAR if number else math.inf
        for i, (part, alpha) in enumerate(zip(parts, alphas, strict=True)):
            order = rng.permutation(actives[i])
            kept, *_ = sweep(
                loss, part.rows.arrays, part.signed_weights, part.rows.squared_norms, C, 1.0,
                spread, -far, far, order, alpha, v,
            )  # fmt: skip
            actives[i] = order[:kept]
    free, gathered, rest = [], [], []
    for part, alpha in zip(parts, alphas, strict=True):
        rows = np.flatnonzero((alpha > 0.0) & (alpha < box_end(loss, C, part.weights)))
        rows = np.sort(rng.permutation(rows)[: int(share * part.rows.n_rows)])
        free.append(rows)
        gathered.append((part.rows.matrix[rows], part.signed_weights[rows], alpha[rows]))
        others = alpha.copy()
        others[rows] = 0.0
        rest.append(RowSums.of(part, others, loss, C))
    return Swept(alphas, free, gathered, reduce(add, rest))


def solve(
    rest: Sequence[RowSums], gathered: Sequence[Sequence[tuple[Any, Vector, Vector]]], rho: float,
    loss: Loss, C: float, visits: int, most_values: float, seed: tuple[int, ...],
) -> tuple[list[list[Vector]], RowSums]:  # fmt: skip
    """The second half of a round: L is maximised over the gathered rows, on one worker.

    Returns their alpha, by groups and parts, and the sums over all rows.
    """
    rng, of_rest = np.random.default_rng(seed), reduce(add, rest)
    matrices, signed, alphas = zip(*(piece for group in gathered for piece in group), strict=True)
    alpha = np.concatenate(alphas)
    if not alpha.size:
        return [[alpha for _ in group] for group in gathered], of_rest
    # One part, since orders in which each block comes as a whole take several times as many sweeps.
    part = joined(matrices, signed, rho)
    w, mean, first = of_rest.w + sum_of_part(part, alpha)[0], np.zeros(alpha.size), math.inf
    per_sweep = max(part.rows.n_stored, 1)
    most = min(max(visits, int(_FEW_VALUES / per_sweep)), 10 * visits)
    most = min(most, 1 + int(most_values / per_sweep))
    for number in range(1, 1 + most):
        _, _, gap, *_ = sweep(
            loss, part.rows.arrays, part.signed_weights, part.rows.squared_norms, C, _OMEGA, 1.0,
            -math.inf, math.inf, rng.permutation(alpha.size), alpha, w,
        )  # fmt: skip
        mean += max(1.0 / number, _LATEST) * (alpha - mean)
        first = gap if number == 1 else first
        if number > 1 and gap <= _SOLVED * first:
            break
    # A mean may be beyond an end of the box by its rounding.
    mean = in_box(part, mean, loss, C)
    new = iter(np.split(mean, np.cumsum([alpha.size for alpha in alphas])))
    solved = [[next(new) for _ in group] for group in gathered]
    return solved, of_rest + RowSums.of(part, mean, loss, C)
