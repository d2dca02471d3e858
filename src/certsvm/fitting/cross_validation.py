"""Cross-validation over C: at given values, or with a proof for every C in a range.

Each fold is fitted at values of C, each fit from its neighbour. With a proof, two fits bound the
error of the exact optimum on the held-out rows for every C between them
(``certificates.held_out_error``), piece by piece. Where this lower bound is too far below the best
error found, C is fitted in between.

A task is one fold at one C. Where the work takes seconds, tasks run in processes that map the data
from one file (``fitting.folds``). What is computed does not depend on their number.
"""

from __future__ import annotations

import itertools
import math
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from certsvm.certificates.certificate import percent
from certsvm.certificates.held_out_error import ChordBalls, OptimumBall, mean_bounds
from certsvm.fitting.fit_classes import fit_classes
from certsvm.fitting.folds import Fold, Submit, submitter
from certsvm.fitting.path import Knot, fit_settings, require_proofs, spread, starts_at
from certsvm.markup import element, table
from certsvm.plots import draw_curve, notebook_chart, plot
from certsvm.problem.rows import Vector
from certsvm.solvers import Newton, Start
from certsvm.training.history import History
from certsvm.training.settings import INTERRUPTED, OUT_OF_TIME, STOPPED, Result, Settings

DEFAULT_RANGE = (1e-3, 1e2)
_DEFAULT_VALUES = 20
# Folds without a proof are fitted to ten times the accuracy of models, and at least so accurately.
# In practice, that changes an error by a tenth of its standard error at most.
_COARSER, _MOST_COARSE = 10.0, 1e-3
# The stored values that all fits read together from which processes are worth it. A fit with a
# proof takes as long as so many others.
_WORTH_IT, _FITS_OF_PROOF = 5e7, 500
# Seconds between two looks at whether to stop.
_BETWEEN_LOOKS = 0.1
# Pieces of the range between two fits, each with its own bounds.
_PIECES = 128
# The share of eps that rows may take which are open at a fit itself: with Newton's method, and
# where accuracy is more expensive. Squares of radii add, so that it costs far less between fits.
_OPEN_OF_NEWTON, _OPEN = 0.25, 0.1
# Relative accuracy of the fits: where they begin, and the least and the most to ask for. Rounding
# allowances alone are some 1e-12 of J.
_FIRST_TOL, _LEAST_TOL, _MOST_TOL = 1e-5, 1e-10, 1e-3
# Neighbouring fits are no closer than this factor.
_LEAST_FACTOR = 1.0 + 1e-7


Score = Callable[[Fold, float, list[Result]], float]
"""The score of the models of a fold at C, if it is not accuracy."""


@dataclass(frozen=True)
class FoldFit(Knot):
    """The fits of all classes of a fold at one C, as far as others need them.

    Attributes
    ----------
    score : float
        On the rows held out.
    balls : list of OptimumBall
        One for each class, if errors are to be bounded.
    products : ndarray of shape (n_problems, n_rows)
        Of the rows held out with the centres of the balls.
    fit_time, score_time : float
        Seconds.
    """

    score: float
    balls: list[OptimumBall]
    products: Vector
    fit_time: float
    score_time: float

    @property
    def met(self) -> bool:
        """Whether the fits reached the accuracy asked for."""
        return all(result.certificate.met for result in self.results)

    @property
    def out_of_time(self) -> bool:
        """Whether a fit had no more time."""
        return any(result.reason == OUT_OF_TIME for result in self.results)

    @property
    def passes(self) -> int:
        """Passes over the data; the largest number for several classes."""
        return max(result.passes for result in self.results)


@dataclass(frozen=True)
class Value:
    """All folds at one C, with bounds on the mean error of the exact optima."""

    C: float
    folds: list[FoldFit]
    low: float
    high: float

    @property
    def scores(self) -> list[float]:
        """The score of each fold."""
        return [fold.score for fold in self.folds]

    @property
    def error(self) -> float:
        """1 minus the mean score."""
        return 1.0 - float(np.mean(self.scores))


Pieces: TypeAlias = tuple[Vector, Vector, Vector]
"""Where adjacent pieces of the range begin and end, ascending, and bounds on the mean error for
every C in each: the lowest and the highest."""


@dataclass(frozen=True, repr=False)
class Curve:
    """The error of cross-validation against C: what was measured, and what is proved.

    Attributes
    ----------
    Cs : ndarray of shape (n_Cs,)
        The values of C that were fitted, ascending.
    errors : ndarray of shape (n_Cs,)
        Their mean errors.
    edges : ndarray of shape (n_pieces + 1,)
        The values of C at which pieces begin and end, ascending.
    lower, upper : ndarray of shape (n_pieces,)
        For every C in the piece, the mean error of the exact optima is between these. Without a
        proof, there are no pieces.
    C : float
        The choice.
    """

    Cs: Vector
    errors: Vector
    edges: Vector
    lower: Vector
    upper: Vector
    C: float

    def __repr__(self) -> str:
        proved = f", no C has an error below {self.bound:.4g}" if self.lower.size else ""
        return f"<Curve of {self.Cs.size} values of C: the choice is {self.C:.4g}{proved}>"

    def _repr_html_(self) -> str:
        """For notebooks: the choice, and the error against C."""
        chart = notebook_chart(partial(draw_curve, curve=self), "error of cross-validation")
        rows = zip((f"{C:.4g}" for C in self.Cs), (f"{e:.4g}" for e in self.errors), strict=True)
        return element("div", element("p", repr(self)[1:-1]), chart or table(["C", "error"], rows))

    @property
    def bound(self) -> float:
        """No C in the range has a mean error below this; zero if nothing is proved."""
        return float(self.lower.min()) if self.lower.size else 0.0

    def plot(self, path: str | None = None) -> Any:
        """Plot the error against C, with all that is proved.

        Parameters
        ----------
        path : str, default=None
            File to save the plot to.

        Returns
        -------
        figure : matplotlib.figure.Figure
            The plot: the bounds at each C, the line that nothing is below, a dot for each value
            that was fitted, and a star for the choice.
        """
        return plot([partial(draw_curve, curve=self)], path)


class CrossValidation:
    """The search for C.

    Parameters
    ----------
    folds : sequence of Fold
        The folds, of the same rows.
    settings : Settings
        How to train; ``C`` is not used. ``n_jobs`` is the number of processes, ``max_time`` the
        limit for the whole search. Folds are fitted to ten times ``tol``, and to 1e-3 at least.
    certify : float, default=None
        Fit until no C can have an error lower by more than this than one that was fitted; None
        means that nothing is proved.
    max_fits : int, default=None
        Limit on the number of values of C with ``certify``, two at least.
    score : callable, default=None
        The score of a fold's models; None means accuracy.
    callback : callable, default=None
        Called with the search after each value of C; a true return value ends it.

    Attributes
    ----------
    values : dict
        The ``Value`` at each C that was fitted on all folds.
    reason : str
        Why the search ended early; empty if it did not.
    solver : Solver
        Of all fits.

    Examples
    --------
    >>> from certsvm.fitting.sources import MemorySource
    >>> source = MemorySource(np.array([[1.0], [2.0], [-1.0], [-2.0]]), np.array([1, 1, 0, 0]))
    >>> folds = [Fold(source, [0, 2], [1, 3]), Fold(source, [1, 3], [0, 2])]
    >>> search = CrossValidation(folds, Settings(), certify=0.01).run([0.01, 1.0])
    >>> search.bound, search.best.error, search.certified
    (0.0, 0.0, True)
    """

    def __init__(
        self, folds: Sequence[Fold], settings: Settings, *,
        certify: float | None = None, max_fits: int | None = None, score: Score | None = None,
        callback: Callable[[CrossValidation], Any] | None = None,
    ) -> None:  # fmt: skip
        self.folds, self._eps = list(folds), None if certify is None else float(certify)
        self.solver = folds[0].solver(settings.solver, settings.objective)
        if certify is not None:
            require_proofs(self.solver)
            if settings.objective.frees(folds[0].intercept_scaling):
                raise ValueError("certify needs penalize_intercept=True: the intercept is free")
        self._most = math.inf if max_fits is None or certify is None else max_fits
        # With given values, a fold is fitted at one after the other.
        self._n_jobs = settings.n_jobs if certify else min(settings.n_jobs, len(self.folds))
        self._score, self._callback = score, callback
        most = math.inf if settings.max_time is None else settings.max_time
        self._deadline = time.monotonic() + most
        self._stop = settings.stop or threading.Event()
        self._settings = replace(
            fit_settings(settings, self.solver, min(_COARSER * settings.tol, _MOST_COARSE)),
            n_jobs=1, keep_vector=False,
        )  # fmt: skip
        # The range of C, and what is proved between neighbouring values in it.
        self._range: tuple[float, ...] = ()
        self._proved: dict[tuple[float, float], Pieces] = {}
        self.values: dict[float, Value] = {}
        self.reason = ""

    @property
    def best(self) -> Value:
        """The value of the least error; of several the smallest C.

        With a proof, only values for which it holds are considered, if there are any.
        """
        values = [self.values[C] for C in sorted(self.values)]
        if self._eps is not None:
            allowed = self.bound + self._eps
            values = [value for value in values if value.high <= allowed] or values
        return min(values, key=lambda value: value.error)

    @property
    def bound(self) -> float:
        """No C in the range has an error below this; zero if nothing is proved."""
        return min(map(self._bound, self._pairs), default=0.0)

    @property
    def certified(self) -> bool:
        """Whether no C in the range has an error lower by more than ``certify`` than the best."""
        return self._eps is not None and self.best.high <= self.bound + self._eps

    def __str__(self) -> str:
        none = f", none in the range is below {percent(self.bound)}" if self._eps else ""
        return f"{len(self.values)} values of C, least error {percent(self.best.error)}{none}"

    @property
    def curve(self) -> Curve:
        """The errors that were measured, with what is proved for every C in the range."""
        Cs = sorted(self.values)
        errors = np.array([self.values[C].error for C in Cs])
        pieces = [self._between(pair) for pair in self._pairs] or [(np.zeros(0),) * 3]
        lower, upper = (np.concatenate([part[k] for part in pieces]) for k in (1, 2))
        # Each pair begins where the one before ends.
        edges = np.concatenate([*(part[0][:-1] for part in pieces), pieces[-1][0][-1:]])
        return Curve(np.array(Cs), errors, edges, lower, upper, C=self.best.C)

    def run(self, Cs: Iterable[float]) -> CrossValidation:
        """Fit all folds at the values; with ``certify``, go on until the proof is complete.

        Parameters
        ----------
        Cs : iterable of float
            Values of C; with ``certify``, two at least, from the lowest to the highest of the
            range.

        Returns
        -------
        search : CrossValidation
            Itself.
        """
        values = sorted(set(Cs))
        self._range = (values[0], values[-1])
        if len(values) > self._most:
            kept = np.linspace(0, len(values) - 1, int(self._most)).round().astype(int)
            values = [values[k] for k in kept]
        fits = len(values) if self._eps is None else _FITS_OF_PROOF
        fits *= len(self.folds) * len(self.folds[0].labels)
        # Tensors are trained in this process.
        first = self.folds[0]
        if not (isinstance(first, Fold) and fits * first.rows.n_stored >= _WORTH_IT):
            self._n_jobs = 1
        with submitter(self.folds, self._n_jobs) as submit:
            # Before the pool is left, which waits for a running fit: that ends after its pass.
            try:
                self._fit(submit, [(C, values[max(k - 1, 0) : k]) for k, C in enumerate(values)])
                if self.values and self._eps is not None:
                    self._prove(submit, self._eps)
            except KeyboardInterrupt:
                self._end(INTERRUPTED)
        if not self.values:
            raise KeyboardInterrupt
        return self

    def _prove(self, submit: Submit, eps: float) -> None:
        """Fit between neighbours until no error in the range may be too low."""
        while not (self.reason or self.certified):
            least = min(value.high for value in self.values.values()) - eps
            failing = sorted((p for p in self._pairs if self._bound(p) < least), key=self._bound)
            # Beside a fit whose own bound is too low, others would not help.
            new = [
                (math.sqrt(low) * math.sqrt(high), (low, high))
                for low, high in failing
                if min(self.values[low].low, self.values[high].low) >= least
                and high > _LEAST_FACTOR * low
            ]
            room = int(min(self._most - len(self.values), len(new)))
            if not new:
                self._end("some fits are not accurate enough to prove more")
            elif room <= 0:
                self._end("max_fits reached")
            self._fit(submit, new[:room])

    @property
    def _pairs(self) -> list[tuple[float, float]]:
        """Neighbouring values of C, from the lowest of the range to the highest."""
        if self._eps is None:
            return []
        return list(itertools.pairwise(sorted({*self._range, *self.values})))

    def _between(self, pair: tuple[float, float]) -> Pieces:
        """What is proved between neighbours: nothing if one of them was not fitted."""
        if not (pair[0] in self.values and pair[1] in self.values):
            return np.array(pair), np.zeros(1), np.ones(1)
        if pair not in self._proved:
            edges = spread(*pair, _PIECES)
            first, last = (self.values[C].folds for C in pair)
            self._proved[pair] = (edges, *self._bounds(first, last, edges))
        return self._proved[pair]

    def _bound(self, pair: tuple[float, float]) -> float:
        """The least bound between two neighbours."""
        return float(self._between(pair)[1].min())

    def _bounds(
        self, first: Sequence[FoldFit], last: Sequence[FoldFit], edges: Vector
    ) -> tuple[Vector, Vector]:
        """Bounds on the mean error of the folds on pieces of the chords between their fits."""
        bounds = []
        for fold, a, b in zip(self.folds, first, last, strict=True):
            balls = [ChordBalls(*pair) for pair in zip(a.balls, b.balls, strict=True)]
            bounds.append(fold.held_out.error_bounds(balls, a.products, b.products, edges))
        return mean_bounds(bounds)

    def _fit(self, submit: Submit, requests: Sequence[tuple[float, Sequence[float]]]) -> None:
        """Fit all folds at values of C, each from the fits at others, which are known or before.

        After Ctrl-C, no more fits begin. Those in this process end after their pass; others are
        given up.
        """
        least = min((value.error for value in self.values.values()), default=math.inf)
        numbers = range(len(self.folds))
        stop = self._stop if self._n_jobs == 1 else None
        fits = {(C, i): fit for C, v in self.values.items() for i, fit in enumerate(v.folds)}
        waiting = [(C, i, ends) for C, ends in requests for i in numbers]
        running: dict[Future[FoldFit], tuple[float, int, Sequence[float]]] = {}
        while not self._stop.is_set():
            ready = [t for t in waiting if all((end, t[1]) in fits for end in t[2])]
            for C, i, ends in ready[: self._n_jobs - len(running)]:
                waiting.remove((C, i, ends))
                left = self._deadline - time.monotonic()
                # The first value is fitted in any case.
                if ends and left <= 0.0:
                    self.reason = self.reason or OUT_OF_TIME
                if not (ends and self.reason):
                    limit = None if math.isinf(left) else max(left, 0.0)
                    settings = replace(self._settings.at(C), max_time=limit, stop=stop)
                    known = [fits[end, i] for end in ends]
                    call = submit(fit_fold, i, settings, known, self._eps, least)
                    running[call] = C, i, ends
            if not running:
                break
            done = wait(running, _BETWEEN_LOOKS, FIRST_COMPLETED).done
            for future in () if self._stop.is_set() else done:
                C, i, ends = running.pop(future)
                fit = future.result()
                if ends and fit.out_of_time:
                    self.reason = self.reason or OUT_OF_TIME
                    continue
                if self._score is not None:
                    began = time.perf_counter()
                    score = self._score(self.folds[i], C, fit.results)
                    fit = replace(fit, score=score, score_time=time.perf_counter() - began)
                fits[C, i] = fit
                if all((C, k) in fits for k in numbers):
                    self._add(C, [fits[C, k] for k in numbers])
        if self._stop.is_set():
            self._end(INTERRUPTED)

    def _add(self, C: float, folds: list[FoldFit]) -> None:
        """Add a value, of which all folds have been fitted."""
        low, high = [0.0], [1.0]
        if self._eps is not None:
            low, high = map(np.ndarray.tolist, self._bounds(folds, folds, np.array([C, C])))
        self.values[C] = Value(C, folds, *low, *high)
        if self._callback is not None and self._callback(self):
            self._end(STOPPED)

    def _end(self, reason: str) -> None:
        self.reason = self.reason or reason
        self._stop.set()


def fit_fold(
    fold: Fold, settings: Settings, ends: Sequence[FoldFit], eps: float | None, least: float
) -> FoldFit:
    """Fit a fold at one C from its fits at others: a task for any process.

    Parameters
    ----------
    fold : Fold
        The rows.
    settings : Settings
        How to train, with C.
    ends : sequence of FoldFit
        The fits at other values of C, at most two.
    eps : float or None
        As ``certify`` of the search.
    least : float
        The least error so far.
    """
    began = time.perf_counter()
    starts = starts_at(fold, settings.objective.C, [(end.C, end.starts) for end in ends])
    if eps is None:
        return _measured(fold, settings, starts)
    wanted = [wanted_tol(fold, end, eps, least) for end in ends]
    settings = replace(settings, tol=min(wanted, default=_FIRST_TOL), keep_vector=True)
    fit = _measured(fold, settings, starts)
    # More rows may be open than the accuracy was chosen for.
    if fit.met and (tol := wanted_tol(fold, fit, eps, least)) < 0.25 * fit.gap:
        left = settings.max_time and max(settings.max_time - (time.perf_counter() - began), 0.0)
        again = _measured(fold, replace(settings, tol=tol, max_time=left), fit.starts)
        if not again.out_of_time:
            return replace(again, fit_time=fit.fit_time + again.fit_time)
    return fit


def _measured(fold: Fold, settings: Settings, starts: list[Start] | None) -> FoldFit:
    """Fit a fold, and measure its error; with dual points, keep what bounds on it need."""
    began = time.perf_counter()
    results = fit_classes(fold, settings, start=starts)
    fitted = time.perf_counter()
    score = 1.0 - fold.error(results)
    balls = [OptimumBall.of(r.certificate, r.w, r.vector) for r in results if settings.keep_vector]
    products = np.array([fold.products(ball.centre) for ball in balls])
    measured = time.perf_counter()
    light = [
        replace(
            r, history=History(r.history[-1:]), alpha=None, response=None, vector=None,
            start=replace(r.start, alpha=_in_single(r.start.alpha)),
        )
        for r in results
    ]  # fmt: skip
    times = (fitted - began, measured - fitted)
    return FoldFit(settings.objective.C, light, score, balls, products, *times)


def wanted_tol(fold: Fold, fit: FoldFit, eps: float, least: float) -> float:
    """The relative accuracy at which few enough rows are open at a fit.

    Where the error is larger than the least, more of them may be.
    """
    newton = all(Newton.name in result.solver for result in fit.results)
    share = (_OPEN_OF_NEWTON if newton else _OPEN) * (eps + max(1.0 - fit.score - least, 0.0))
    largest = max(result.certificate.primal for result in fit.results)
    gap = fold.held_out.distance(fit.products, share) ** 2
    return min(max(gap / largest, _LEAST_TOL), _MOST_TOL) if largest > 0.0 else _MOST_TOL


def values_in(C_range: tuple[float, float], n: int | None = None, *, certify: bool) -> list[float]:
    """Values of C to fit in a range, of equal ratio.

    Parameters
    ----------
    C_range : tuple of float
        The lowest and the highest.
    n : int, default=None
        Their number; None means 20, or, to begin a proof with, one for each power of ten.
    certify : bool
        Whether a proof begins with them.

    Returns
    -------
    Cs : list of float
        Ascending.

    Examples
    --------
    >>> values_in((0.01, 10.0), certify=True)
    [0.01, 0.1, 1.0, 10.0]
    """
    n = n or (None if certify else _DEFAULT_VALUES)
    values: list[float] = spread(*C_range, n and n - 1).tolist()
    return values


def _in_single(alpha: Any) -> Any:
    """Alpha in single precision, since a start need not be feasible, unless it is too large."""
    if alpha is None or abs(alpha).max() > 1e30:
        return alpha
    return alpha.astype(np.float32) if isinstance(alpha, np.ndarray) else alpha.float()
