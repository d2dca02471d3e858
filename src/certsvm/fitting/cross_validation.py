"""Cross-validation over C: at given values, or with a proof for every C in a range.

Each fold is fitted at ascending values of C, each fit from its neighbours. With a proof, two fits
bound the error of the exact optimum on the held-out rows for every C between them
(``certificates.held_out_error``). Where this lower bound is too far below the best error found, the
piece of the range is cut into smaller ones, which costs no fit, and else C is fitted in the middle.

Folds run in threads. What is computed does not depend on their number.
"""

from __future__ import annotations

import itertools
import math
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certsvm.certificates.held_out_error import ChordBalls, OptimumBall, mean_bounds
from certsvm.fitting.error_curve import Curve, Pieces
from certsvm.fitting.fit_classes import fit_classes
from certsvm.fitting.folds import Fold
from certsvm.fitting.path import Knot, scaled_starts, starts_between
from certsvm.fitting.settings import Settings
from certsvm.problem.rows import Vector
from certsvm.solvers import Newton, Start
from certsvm.training.history import History
from certsvm.training.result import INTERRUPTED, OUT_OF_TIME, STOPPED, Result

# Of more values than these, every so-manieth is fitted first.
_FEW, _EVERY = 8, 4
# Pieces of a new chord, parts of a piece that is cut, and how often pieces are cut.
_PIECES, _PARTS, _CUTS = 24, 4, 3
# Pieces are cut again if this share of what is missing was won.
_WORTH_CUTTING = 0.3
# A chord is divided into at most so many; the width of the band is taken to fall with the distance
# of the fits to the power 1 / _ORDER.
_MOST_PARTS, _ORDER = 4, 0.75
# The share of eps that rows may take which are open at a fit itself: with Newton's method, and
# where accuracy is more expensive. Squares of radii add, so that it costs far less between fits.
# It counts in full at the best value, which is fitted again.
_SHARE_OPEN, _SHARE_OPEN_AT_BEST = (0.35, 0.7), (0.03, 0.15)
# Relative accuracy of the fits: where they begin, and the least and the most to ask for. Rounding
# allowances alone are some 1e-12 of J.
_FIRST_TOL, _LEAST_TOL, _MOST_TOL = 1e-5, 1e-10, 1e-3
# Neighbouring fits are no closer than this factor.
_LEAST_FACTOR = 1.0 + 1e-7


@dataclass(frozen=True)
class SelectionProgress:
    """The state of the search, for callbacks.

    Attributes
    ----------
    n_fits : int
        Values of C at which all folds were fitted.
    best_error : float
        The least mean error of the folds so far; 1 minus the score if there is a scorer.
    error_bound : float
        No C in the range has an error below this; zero if nothing is proved.
    seconds : float
        Since the search began.
    """

    n_fits: int
    best_error: float
    error_bound: float
    seconds: float


Score = Callable[[Fold, float, list[Result]], float]
"""The score of the models of a fold at C, if it is not accuracy."""


@dataclass(frozen=True)
class FoldFit:
    """The fits of all classes of a fold at one C.

    Attributes
    ----------
    knot : Knot
        The results, as far as other fits start from them.
    score : float
        On the rows held out.
    balls : list of OptimumBall
        One for each class, if errors are to be bounded.
    products : ndarray of shape (n_problems, n_rows)
        Of the rows held out with the centres of the balls.
    met : bool
        Whether the fits reached the accuracy asked for.
    least : float
        The least error that was known when the accuracy was chosen, or the fold's own.
    """

    knot: Knot
    score: float
    balls: list[OptimumBall]
    products: NDArray[np.float64]
    met: bool
    least: float


@dataclass(frozen=True)
class Value:
    """All folds at one C, with bounds on the mean error of the exact optima."""

    C: float
    folds: list[FoldFit]
    low: float = 0.0
    high: float = 1.0

    @property
    def scores(self) -> list[float]:
        """The score of each fold."""
        return [fold.score for fold in self.folds]

    @property
    def error(self) -> float:
        """1 minus the mean score."""
        return 1.0 - float(np.mean(self.scores))


@dataclass(frozen=True)
class Task:
    """Something to do in any thread, and what follows from its result: more tasks."""

    do: Callable[[], Any]
    then: Callable[[Any], Sequence[Task]] = lambda result: ()


class CrossValidation:
    """The search for C.

    Parameters
    ----------
    folds : sequence of Fold
        The folds, of the same rows.
    settings : Settings
        How to train; ``C``, ``n_jobs`` and ``max_time`` are not used.
    n_jobs : int, default=1
        Threads.
    max_time : float, default=None
        Limit in seconds for the whole search.
    score : callable, default=None
        The score of a fold's models; None means accuracy.
    callback : callable, default=None
        Called after each value of C with a ``SelectionProgress``; a true return value ends the
        search.

    Attributes
    ----------
    values : dict
        The ``Value`` at each C that was fitted on all folds.
    reason : str
        Why the search ended early; empty if it did not.

    Examples
    --------
    >>> from certsvm.fitting.sources import MemorySource
    >>> source = MemorySource(np.array([[1.0], [2.0], [-1.0], [-2.0]]), np.array([1, 1, 0, 0]))
    >>> folds = [Fold(source, [0, 2], [1, 3]), Fold(source, [1, 3], [0, 2])]
    >>> search = CrossValidation(folds, Settings())
    >>> search.certify([0.01, 1.0], eps=0.01).bound, search.best.error
    (0.0, 0.0)
    """

    def __init__(
        self,
        folds: Sequence[Fold],
        settings: Settings,
        *,
        n_jobs: int = 1,
        max_time: float | None = None,
        score: Score | None = None,
        callback: Callable[[SelectionProgress], Any] | None = None,
    ) -> None:
        self.folds, self._n_jobs = list(folds), n_jobs
        self._settings = settings
        self._score, self._callback = score, callback
        self._began = time.monotonic()
        self._deadline = math.inf if max_time is None else self._began + max_time
        self._stop = threading.Event()
        # The accuracy of a choice with a proof, and the range; None for values without.
        self._eps: float | None = None
        self._range = (0.0, 0.0)
        self._chords: dict[tuple[float, float], Pieces] = {}
        self._tightened: set[float] = set()
        self.values: dict[float, Value] = {}
        self.reason = ""

    @property
    def best(self) -> Value:
        """The value of the least error; of several the smallest C.

        With a proof, only values for which it holds are considered, if there are any.
        """
        values = [self.values[C] for C in sorted(self.values)]
        if self._eps is not None:
            allowed = self._allowed
            values = [value for value in values if value.high <= allowed] or values
        return min(values, key=lambda value: value.error)

    @property
    def certified(self) -> bool:
        """Whether no C in the range has an error lower by more than ``eps`` than the best."""
        return self._eps is not None and self.best.high <= self._allowed

    @property
    def _allowed(self) -> float:
        """Up to this error, a value is proved to be good enough."""
        assert self._eps is not None
        return self.curve.bound + self._eps

    def fit_values(self, Cs: Sequence[float]) -> None:
        """Fit all folds at the values, in ascending order; each fit starts from a lower value.

        Of many, every fourth is fitted first, so that there are enough chains for many threads.
        """
        ascending = sorted(set(Cs))
        every = 1 if len(ascending) <= _FEW else _EVERY
        coarse = sorted({*ascending[::every], ascending[-1]})
        self._fit_chains([coarse])
        if not self.values:
            raise KeyboardInterrupt
        if not self.reason:
            pairs = itertools.pairwise(coarse)
            between = [[C for C in ascending if low <= C < high] for low, high in pairs]
            self._fit_chains([chain for chain in between if len(chain) > 1])

    def _fit_chains(self, chains: Sequence[Sequence[float]]) -> None:
        """Fit all folds along chains of ascending C; the first value may have been fitted."""
        fits: dict[float, dict[int, FoldFit]] = {C: {} for chain in chains for C in chain}

        def follow(i: int, chain: Sequence[float], last: FoldFit | None) -> list[Task]:
            """The fit of the first value of the chain, which the others follow."""
            if not chain:
                return []
            C, rest = chain[0], chain[1:]

            def then(fit: FoldFit | None) -> list[Task]:
                if fit is None:
                    return []
                self._collect(fits, i, fit)
                return follow(i, rest, fit)

            return [Task(partial(self._fit_next, i, C, last), then)]

        tasks = []
        for chain in chains:
            known = self.values.get(chain[0])
            for i in range(len(self.folds)):
                if known is None:
                    tasks += follow(i, chain, None)
                else:
                    tasks += follow(i, chain[1:], known.folds[i])
        self._run(tasks)

    def _collect(self, fits: dict[float, dict[int, FoldFit]], i: int, fit: FoldFit) -> None:
        """Once all folds have been fitted at a value of C, add it."""
        folds = fits[fit.knot.C]
        folds[i] = fit
        if len(folds) == len(self.folds):
            self._add(Value(fit.knot.C, [folds[k] for k in range(len(folds))]))

    def certify(self, Cs: Sequence[float], eps: float, max_fits: int | None = None) -> Pieces:
        """Fit until no C can have an error lower by more than ``eps`` than one that was fitted.

        Parameters
        ----------
        Cs : sequence of float
            Values of C to begin with, two at least; the lowest and the highest are the range.
        eps : float
            The accuracy of the choice.
        max_fits : int, default=None
            Limit on the number of values of C, two at least.

        Returns
        -------
        curve : Pieces
            What is proved for every C in the range.

        Raises
        ------
        ValueError
            The intercept is free.
        """
        if self._settings.objective.frees(self.folds[0].source.intercept_scaling):
            raise ValueError(
                "nothing can be proved about errors at other C, since the intercept is free: "
                "use penalize_intercept=True, or choose C without certify"
            )
        self._eps, self._range = eps, (min(Cs), max(Cs))
        most = math.inf if max_fits is None else max_fits
        first = sorted(set(Cs))
        if len(first) > most:
            spread = np.linspace(0, len(first) - 1, int(most)).round().astype(int)
            first = [first[k] for k in spread]
        self.fit_values(first)
        self._bound_new_chords()
        while not self.reason:
            self._tighten(self._hidden())
            failing = self._failing()
            if not failing:
                if not self.certified:
                    self.reason = "some fits are not accurate enough to prove more"
                break
            new = [(C, pair) for pair in failing for C in self._new_values(pair)]
            room = int(min(most - len(self.values), len(new)))
            if room <= 0:
                self.reason = "max_fits reached" if new else "no closer fits are possible"
                break
            self._fit_between(new[:room])
            self._bound_new_chords()
        return self.curve

    @property
    def curve(self) -> Pieces:
        """What is proved for every C in the range."""
        chords = [self._chords[pair] for pair in sorted(self._chords)]
        parts = [(chord.edges[1:], chord.low, chord.high) for chord in chords]
        if not chords or chords[-1].edges[-1] < self._range[1]:
            # An interruption of the first fits leaves the end of the range.
            parts.append((np.array(self._range[1:]), np.zeros(1), np.ones(1)))
        edges, low, high = map(np.concatenate, zip(*parts, strict=True))
        return Pieces(np.append(self._range[0], edges), low, high)

    @property
    def measured(self) -> Curve:
        """The errors that were measured, with what is proved for every C."""
        Cs = sorted(self.values)
        nothing = np.zeros(0)
        proved = Pieces(nothing, nothing, nothing) if self._eps is None else self.curve
        return Curve(
            Cs=np.array(Cs),
            errors=np.array([self.values[C].error for C in Cs]),
            edges=proved.edges,
            lower=proved.low,
            upper=proved.high,
            C=self.best.C,
        )

    def _failing(self) -> list[tuple[float, float]]:
        """Neighbouring values between which a lower error is not excluded, the worst first."""
        least = self._least
        low = [pair for pair, pieces in self._chords.items() if pieces.bound < least]
        self._run([Task(partial(self._cut, pair, least)) for pair in low])
        low = [pair for pair in low if self._chords[pair].bound < least]
        return sorted(low, key=lambda pair: self._chords[pair].bound)

    def _cut(self, pair: tuple[float, float], least: float) -> None:
        """Cut the pieces whose bound is too low into smaller ones, as long as it pays."""
        for _ in range(_CUTS):
            before = self._chords[pair].bound
            self._cut_once(pair, least)
            now = self._chords[pair].bound
            if now >= least or now - before < _WORTH_CUTTING * (least - before):
                return

    def _cut_once(self, pair: tuple[float, float], least: float) -> None:
        pieces = self._chords[pair]
        too_low = pieces.low < least
        edges = [
            _between(a, b, _PARTS if cut else 1)[1:]
            for a, b, cut in zip(pieces.edges, pieces.edges[1:], too_low, strict=False)
        ]
        cut = np.concatenate([pieces.edges[:1], *edges])
        self._chords[pair] = self._pieces(pair, cut).within(pieces)

    def _bound_new_chords(self) -> None:
        """Bounds between new neighbours; what is known of the old chord around them still holds."""
        old, new = self._chords, {}

        def bound(pair: tuple[float, float]) -> None:
            pieces = self._pieces(pair, _between(*pair, _PIECES))
            around = [c for (a, b), c in old.items() if a <= pair[0] and pair[1] <= b]
            new[pair] = pieces.within(around[0]) if around else pieces

        pairs = list(itertools.pairwise(sorted(self.values)))
        self._run([Task(partial(bound, pair)) for pair in pairs if pair not in old])
        chords = {pair: new.get(pair) or old.get(pair) for pair in pairs}
        if all(chords.values()):
            # Else an interruption kept some from being computed, and the old ones stay.
            self._chords = {pair: pieces for pair, pieces in chords.items() if pieces is not None}

    def _pieces(self, pair: tuple[float, float], edges: Vector) -> Pieces:
        """Bounds on the pieces of the chord between two values."""
        first, last = (self.values[C].folds for C in pair)
        return Pieces(edges, *self._bounds(first, last, edges))

    def _bounds(
        self, first: Sequence[FoldFit], last: Sequence[FoldFit], edges: Vector
    ) -> tuple[Vector, Vector]:
        """Bounds on the mean error of the folds on pieces of the chords between their fits."""
        bounds = []
        for fold, a, b in zip(self.folds, first, last, strict=True):
            balls = [ChordBalls(*pair) for pair in zip(a.balls, b.balls, strict=True)]
            bounds.append(fold.held_out.error_bounds(balls, a.products, b.products, edges))
        return mean_bounds(bounds)

    def _hidden(self) -> list[Value]:
        """Values that must be fitted again, since open rows hide how good or bad they are.

        They are the one of the least error, whose upper bound counts, and those whose own lower
        bound is too low: fits beside them would not help.
        """
        assert self._eps is not None
        values = [self.values[C] for C in sorted(self.values) if C not in self._tightened]
        high = min(value.high for value in self.values.values())
        hidden = [value for value in values if value.low < high - self._eps]
        best = min(self.values.values(), key=lambda value: (value.error, value.C))
        if high - best.error > _SHARE_OPEN_AT_BEST[0] * self._eps:
            hidden += [value for value in values if value is best and value not in hidden]
        return hidden

    def _tighten(self, values: Sequence[Value]) -> None:
        """Fit values again, more accurately."""
        fits: dict[float, dict[int, FoldFit]] = {value.C: {} for value in values}
        self._tightened |= set(fits)
        least = min(value.error for value in self.values.values())

        def fit(i: int, value: Value) -> FoldFit | None:
            old, fold = value.folds[i], self.folds[i]
            tol = self._wanted(i, old, least, _SHARE_OPEN_AT_BEST)
            if tol >= old.knot.gap:
                return old
            starts = scaled_starts(fold.source, old.knot.results, value.C)
            new = self._fit_once(i, value.C, starts, tol)
            return old if new is not None and new.knot.gap > old.knot.gap else new

        def then(i: int, fit: FoldFit | None) -> list[Task]:
            if fit is not None:
                self._collect(fits, i, fit)
            return []

        numbers = range(len(self.folds))
        self._run([Task(partial(fit, i, v), partial(then, i)) for v in values for i in numbers])
        for pair, pieces in list(self._chords.items()):
            if not set(pair).isdisjoint(fits):
                self._chords[pair] = self._pieces(pair, pieces.edges).within(pieces)

    def _new_values(self, pair: tuple[float, float]) -> list[float]:
        """The values of C to fit between two neighbours: as many as it will probably take."""
        if pair[1] <= _LEAST_FACTOR * pair[0]:
            return []
        pieces, least = self._chords[pair], self._least
        # The width of the band falls with the distance of the fits, its middle hardly moves.
        middle, width = 0.5 * (pieces.low + pieces.high), pieces.high - pieces.low
        allowed = np.maximum(2.0 * (middle - least), 1e-3 * width)
        ratio = float((width / allowed)[pieces.low < least].max())
        n = min(max(math.ceil(ratio**_ORDER), 2), _MOST_PARTS)
        return [float(C) for C in _between(*pair, n)[1:-1]]

    @property
    def _least(self) -> float:
        """The error below which no C may be, as far as it can be proved."""
        assert self._eps is not None
        least = min(value.high for value in self.values.values()) - self._eps
        # Beside a value that could not be fitted more accurately, no more than its own bound.
        known = [self.values[C].low - 0.1 * self._eps for C in self._tightened]
        return min([least, *known])

    def _fit_between(self, new: Sequence[tuple[float, tuple[float, float]]]) -> None:
        """Fit all folds at new values, each between two neighbours that have been fitted."""
        fits: dict[float, dict[int, FoldFit]] = {C: {} for C, _ in new}
        least = min(value.error for value in self.values.values())

        def fit(i: int, C: float, pair: tuple[float, float]) -> FoldFit | None:
            first, last = (self.values[end].folds[i] for end in pair)
            starts = starts_between(self.folds[i].source, first.knot, last.knot, C)
            tol = min(self._wanted(i, end, least) for end in (first, last))
            return self._fit(i, C, starts, tol, least)

        def then(i: int, fit: FoldFit | None) -> list[Task]:
            if fit is not None:
                self._collect(fits, i, fit)
            return []

        numbers = range(len(self.folds))
        self._run(
            [Task(partial(fit, i, C, pair), partial(then, i)) for C, pair in new for i in numbers]
        )

    def _fit_next(self, i: int, C: float, last: FoldFit | None) -> FoldFit | None:
        """Fit a fold at C after a fit at a lower one, if there is any."""
        source = self.folds[i].source
        starts = None if last is None else scaled_starts(source, last.knot.results, C)
        if self._eps is None:
            return self._fit_once(i, C, starts, self._settings.tol)
        if last is None:
            return self._fit(i, C, starts, _FIRST_TOL, math.inf)
        # What other folds have found by now depends on the timing of threads.
        return self._fit(i, C, starts, self._wanted(i, last, last.least), last.least)

    def _wanted(
        self, i: int, fit: FoldFit, least: float, shares: tuple[float, float] = _SHARE_OPEN
    ) -> float:
        """The relative accuracy at which few enough rows are open at a fit.

        Where the error is larger than the least, more of them may be.
        """
        assert self._eps is not None
        newton = all(Newton.name in result.solver for result in fit.knot.results)
        share = shares[0] if newton else shares[1]
        share *= self._eps + max(1.0 - fit.score - least, 0.0)
        largest = max(result.certificate.primal for result in fit.knot.results)
        gap = self.folds[i].held_out.distance(fit.products, share) ** 2
        return min(max(gap / largest, _LEAST_TOL), _MOST_TOL) if largest > 0.0 else _MOST_TOL

    def _fit(
        self, i: int, C: float, starts: Sequence[Start] | None, tol: float, least: float
    ) -> FoldFit | None:
        """Fit a fold at C; None if there is no time, or after Ctrl-C."""
        fit = self._fit_once(i, C, starts, tol, least)
        if fit is None or not fit.met:
            return fit
        wanted = self._wanted(i, fit, fit.least)
        if wanted >= 0.25 * fit.knot.gap:
            return fit
        # More rows are open than the accuracy was chosen for.
        starts = scaled_starts(self.folds[i].source, fit.knot.results, C)
        return self._fit_once(i, C, starts, wanted, least) or fit

    def _fit_once(
        self,
        i: int,
        C: float,
        starts: Sequence[Start] | None,
        tol: float,
        least: float = math.inf,
    ) -> FoldFit | None:
        left = self._deadline - time.monotonic()
        # The first value is fitted in any case.
        if left <= 0.0 and starts is not None:
            self.reason = self.reason or OUT_OF_TIME
            return None
        if self._stop.is_set():
            return None
        fold = self.folds[i]
        solver = fold.source.solver(self._settings.solver, self._settings.objective)
        settings = replace(
            self._settings,
            C=C,
            tol=tol,
            solver=solver,
            n_jobs=1,
            max_time=None if math.isinf(left) else max(left, 0.0),
            keep_alpha=solver.warm_starts_from_alpha,
            keep_vector=self._eps is not None and solver.certifies,
        )
        results = fit_classes(fold.source, settings, start=starts, stop=self._stop)
        if any(result.reason == INTERRUPTED for result in results):
            self._end(INTERRUPTED)
            return None
        if starts is not None and any(result.reason == OUT_OF_TIME for result in results):
            return None
        fit = self._measured(fold, C, results)
        return replace(fit, least=min(least, fit.least))

    def _measured(self, fold: Fold, C: float, results: list[Result]) -> FoldFit:
        if self._score is not None:
            score = self._score(fold, C, results)
        else:
            scores = np.array([fold.products(result.w) for result in results])
            score = 1.0 - fold.held_out.error(scores)
        balls, products = [], np.zeros((0, 0))
        if self._eps is not None:
            balls = [OptimumBall.of(r.certificate, r.w, r.vector) for r in results]
            products = np.array([fold.products(ball.centre) for ball in balls])
        met = all(result.certificate.met for result in results)
        knot = Knot(C, list(map(_light, results)))
        return FoldFit(knot, score, balls, products, met, least=1.0 - score)

    def _add(self, value: Value) -> None:
        """Add a value, whose folds have all been fitted."""
        if self._eps is not None:
            edges = np.array([value.C, value.C])
            (low,), (high,) = self._bounds(value.folds, value.folds, edges)
            value = replace(value, low=float(low), high=float(high))
        is_new = value.C not in self.values
        self.values[value.C] = value
        if is_new and self._callback is not None and self._callback(self.progress):
            self._end(STOPPED)

    @property
    def progress(self) -> SelectionProgress:
        """The state of the search."""
        return SelectionProgress(
            n_fits=len(self.values),
            best_error=min(value.error for value in self.values.values()),
            error_bound=0.0 if self._eps is None else max(self.curve.bound, 0.0),
            seconds=time.monotonic() - self._began,
        )

    def _end(self, reason: str) -> None:
        self.reason = self.reason or reason
        self._stop.set()

    def _run(self, tasks: Sequence[Task]) -> None:
        """Run tasks and those that follow them; what follows is decided in the caller's thread.

        Ctrl-C ends the search: fits that run end after their pass, and others do not begin.
        """
        if self._n_jobs == 1:
            waiting = deque(tasks)
            while waiting:
                task = waiting.popleft()
                try:
                    waiting.extend(task.then(task.do()))
                except KeyboardInterrupt:
                    self._end(INTERRUPTED)
            return
        with ThreadPoolExecutor(self._n_jobs, thread_name_prefix="certsvm") as executor:
            running = {executor.submit(task.do): task for task in tasks}
            try:
                while running:
                    try:
                        for future in wait(running, return_when=FIRST_COMPLETED).done:
                            for task in running.pop(future).then(future.result()):
                                running[executor.submit(task.do)] = task
                    except KeyboardInterrupt:
                        self._end(INTERRUPTED)
            except BaseException:
                self._stop.set()
                raise


def _between(low: float, high: float, n: int) -> Vector:
    """Edges of n pieces from ``low`` to ``high``, of equal ratio."""
    edges: Vector = low * (high / low) ** (np.arange(n + 1) / n)
    edges = np.minimum(np.maximum.accumulate(np.maximum(edges, low)), high)
    edges[0], edges[-1] = low, high
    return edges


def _light(result: Result) -> Result:
    """What other fits start from; alpha in single precision, since it need not be feasible."""
    end = result.warm_start or Start(result.w, result.epochs, result.alpha)
    alpha = end.alpha
    if alpha is not None:
        with np.errstate(over="ignore"):
            single = alpha.astype(np.float32)
        # What single precision cannot hold stays as it is.
        alpha = single if np.isfinite(single).all() else alpha
    start = replace(end, w=result.w, alpha=alpha)
    return replace(
        result, history=History(), alpha=None, response=None, vector=None, warm_start=start
    )
