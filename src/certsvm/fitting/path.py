"""Tracing the path of solutions over C, with a proof for every C in between.

Fits at single values of C are knots. Between two neighbouring knots the models are interpolated,
and a chord (``certificates.path_bounds``) bounds their gaps. A range is traced by a fit in each
decade, each starting from the last one, and then by fits inside every chord that is not good enough, which
start from the interpolated model.
"""

from __future__ import annotations

import itertools
import math
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from certsvm.certificates.certificate import Certificate
from certsvm.certificates.path_bounds import CHORD, Chord, ChordEnd
from certsvm.certificates.rounding import Bound
from certsvm.fitting.fit_classes import fit_classes
from certsvm.fitting.settings import Settings
from certsvm.fitting.sources import Source
from certsvm.kernels.losses import box_end
from certsvm.parallel import ALONE, Team
from certsvm.problem.objective import HINGE_OBJECTIVE, Objective
from certsvm.problem.rows import Vector
from certsvm.solvers import Solver, Start
from certsvm.training.history import History
from certsvm.training.result import INTERRUPTED, Result

SHARE_OF_FITS = 0.25
"""The accuracy of the fits relative to the accuracy of the path."""
# The first knots are no further apart than this factor.
_FACTOR = 10.0
# Neighbouring knots are no closer than this factor.
_LEAST_FACTOR = 1.0 + 1e-6
# A chord's gap, beyond the gaps of its ends, grows with this power of log(C_2 / C_1).
_POWER = 2.5

Fit = Callable[[float, Sequence[Start] | None], list[Result]]
"""Trains all classes at C, from starts; results have their dual vectors."""


@dataclass(frozen=True)
class Knot:
    """The fits of all classes at one C."""

    C: float
    results: list[Result]

    @property
    def gap(self) -> float:
        """The largest relative gap of all classes, proved; infinite after a contradiction."""
        gaps = [result.certificate.proved_gap for result in self.results]
        return max(gaps) if min(gaps) >= 0.0 else math.inf

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C ended a fit."""
        return any(result.reason == INTERRUPTED for result in self.results)

    def light(self) -> Knot:
        """The knot without what only a start of other fits needs."""
        results = [replace(result, alpha=None, warm_start=None) for result in self.results]
        return replace(self, results=results)


@dataclass(frozen=True)
class TraceProgress:
    """The state of tracing after a fit, for callbacks.

    Attributes
    ----------
    n_fits : int
        Values of C fitted so far.
    C : float
        The last one.
    proved_up_to : float
        From the lowest C of the range to this one, every C has a model of the accuracy asked for.
        Zero if the lowest has none.
    worst_gap : float
        The largest gap between neighbouring fits so far.
    """

    n_fits: int
    C: float
    proved_up_to: float
    worst_gap: float


class Trace:
    """Knots in ascending order of C, and the chords between neighbours.

    Parameters
    ----------
    source : Source
        The data.
    C_range : tuple of float
        The lowest and the highest C asked for.
    tol : float
        The accuracy asked for, for every C in the range.
    objective : Objective, default=HINGE_OBJECTIVE
        What is minimised, at any C.

    Attributes
    ----------
    knots : list of Knot
        The fits, by C.
    interrupted : bool
        Whether Ctrl-C ended the tracing.
    """

    def __init__(
        self,
        source: Source,
        C_range: tuple[float, float],
        tol: float,
        objective: Objective = HINGE_OBJECTIVE,
    ) -> None:
        self.C_range, self.tol, self._objective = C_range, tol, objective
        self.knots: list[Knot] = []
        self.interrupted = False
        self._chords: list[list[Chord] | None] = []
        problem = source.problem(0, objective.at(C_range[0]))
        self._sizes = {"weight_sum": problem.weight_sum, "R": problem.R}

    @property
    def Cs(self) -> list[float]:
        """The fitted values, ascending."""
        return [knot.C for knot in self.knots]

    def add(self, knot: Knot) -> int:
        """Insert a knot; return its position."""
        i = sum(C < knot.C for C in self.Cs)
        knots, chords = [*self.knots[:i], knot, *self.knots[i:]], self._chords.copy()
        # The chord that the knot divides is replaced by two.
        chords[max(i - 1, 0) : i] = [
            self._chord(*pair) for pair in itertools.pairwise(knots[max(i - 1, 0) : i + 2])
        ]
        # At once, since an interrupt may come at any moment.
        self.knots, self._chords = knots, chords
        return i

    def _chord(self, first: Knot, last: Knot) -> list[Chord] | None:
        """The chord of each class; None if one of the fits has no dual point."""
        pairs = list(zip(first.results, last.results, strict=True))
        if any(result.vector is None for pair in pairs for result in pair):
            return None
        return [Chord(_end(a), _end(b), **self._sizes) for a, b in pairs]

    def gap_after(self, i: int) -> float:
        """The largest gap between knot i and the next one, proved."""
        chords = self._chords[i]
        return math.inf if chords is None else max(chord.worst_gap for chord in chords)

    @property
    def proved_up_to(self) -> float:
        """From the lowest C to this one, the accuracy asked for is proved; zero if nowhere."""
        if self.knots[0].gap > self.tol:
            return 0.0
        for i in range(len(self._chords)):
            if self.gap_after(i) > self.tol:
                return self.knots[i].C
        return self.knots[-1].C

    @property
    def worst_gap(self) -> float:
        """The largest gap in the whole range, proved; infinite if it is not covered."""
        if not (self.knots and self.Cs[0] <= self.C_range[0] and self.C_range[1] <= self.Cs[-1]):
            return math.inf
        gaps = [knot.gap for knot in self.knots]
        return max(gaps + [self.gap_after(i) for i in range(len(self._chords))])

    def find(self, C: float) -> tuple[Knot, Knot, list[Chord] | None]:
        """The neighbouring knots around C, and their chords; twice the same for a knot."""
        Cs = self.Cs
        if not (Cs and Cs[0] <= C <= Cs[-1]):
            known = f"from {Cs[0]:g} to {Cs[-1]:g}" if Cs else "empty"
            raise ValueError(f"C = {C!r} is outside the path, which is {known}")
        i = sum(fitted < C for fitted in Cs)
        if Cs[i] == C:
            return self.knots[i], self.knots[i], None
        return self.knots[i - 1], self.knots[i], self._chords[i - 1]

    def certificates(self, C: float) -> list[Certificate]:
        """What is proved of the model at C, for each class, without reading the data."""
        first, last, chords = self.find(C)
        if first is last:
            return [result.certificate for result in first.results]
        if chords is None:
            raise ValueError(f"nothing is proved at C = {C:g}: the fits there were not completed")
        return [chord.certificate(C, self.tol) for chord in chords]

    def at(self, C: float, source: Source, team: Team = ALONE) -> list[Result]:
        """The results at C, interpolated between knots; J is computed in one pass for each class.

        Parameters
        ----------
        C : float
            Between the lowest and the highest knot.
        source : Source
            The data.
        team : Team, default=ALONE
            Threads.

        Returns
        -------
        results : list of Result
            One for each class.
        """
        first, last, chords = self.find(C)
        if first is last:
            return first.results
        if chords is None:
            raise ValueError(f"nothing is proved at C = {C:g}: the fits there were not completed")
        results = []
        for i, (a, b, chord) in enumerate(zip(first.results, last.results, chords, strict=True)):
            problem = source.problem(i, self._objective.at(C))
            s, t = chord.shares(C)
            w = s * a.w + t * b.w
            alpha, dual = None, chord.dual(C)
            if a.alpha is not None and b.alpha is not None:
                box = box_end(problem.loss, C, problem.weights)
                alpha = np.minimum(s * a.alpha + t * b.alpha, box)
                # Whoever recomputes L from alpha must find it as claimed.
                dual = chord.dual_of(C, a.alpha, b.alpha, problem.weights)
            primal = source.primal_bound(problem, w, team)
            results.append(_interpolated(a, w, alpha, C, self.tol, primal, dual))
        return results


def fits_of(source: Source, settings: Settings) -> Fit:
    """Fits for ``trace_range`` with the accuracy ``settings.tol``, at any C."""
    solver = source.solver(settings.solver, settings.objective)

    def fit(C: float, start: Sequence[Start] | None) -> list[Result]:
        at_C = settings_at(C, SHARE_OF_FITS * settings.tol, settings, solver)
        results = fit_classes(source, at_C, start=start if solver.starts_warm else None)
        return [with_target(result, settings.tol) for result in results]

    return fit


def settings_at(C: float, tol: float, settings: Settings, solver: Solver) -> Settings:
    """The settings of one fit among several, with what the others need of it."""
    return replace(
        settings,
        C=C,
        tol=tol,
        keep_alpha=settings.keep_alpha or solver.warm_starts_from_alpha,
        keep_vector=solver.certifies,
    )


def with_target(result: Result, tol: float) -> Result:
    """The result, measured against another accuracy."""
    return replace(result, certificate=replace(result.certificate, target=tol))


def require_proofs(solver: Solver, tol: float) -> None:
    """Raise a ValueError unless a range can be traced by this solver to this accuracy."""
    if not solver.certifies:
        raise ValueError(
            f"a range of C needs a solver with a dual bound, and {solver.name!r} has none: use "
            "'auto', or train at single values"
        )
    if not tol > 0.0:
        raise ValueError(f"a range of C needs tol > 0, got {tol!r}")


def trace_range(
    fit: Fit,
    source: Source,
    C_range: tuple[float, float],
    tol: float,
    *,
    objective: Objective = HINGE_OBJECTIVE,
    max_fits: int = 200,
    keep_alpha: bool = False,
    callback: Callable[[TraceProgress], Any] | None = None,
) -> Trace:
    """Fit as few C as needed so that every C in a range has a model of accuracy ``tol``.

    Parameters
    ----------
    fit : callable
        Trains all classes at C to ``SHARE_OF_FITS * tol``, from starts.
    source : Source
        The data.
    C_range : tuple of float
        The lowest and the highest C.
    tol : float
        Relative accuracy, for every C in the range.
    objective : Objective, default=HINGE_OBJECTIVE
        What ``fit`` minimises.
    max_fits : int, default=200
        Limit on the number of fits.
    keep_alpha : bool, default=False
        Whether the knots keep their dual points.
    callback : callable, default=None
        Called after each fit with a ``TraceProgress``; a true return value ends tracing.

    Returns
    -------
    trace : Trace
        Complete, or what was proved when Ctrl-C or a limit ended it.
    """
    trace = Trace(source, C_range, tol, objective)
    try:
        _refine(trace, fit, source, max_fits, keep_alpha, callback)
    except KeyboardInterrupt:
        if not trace.knots:
            raise
        trace.interrupted = True
    if not keep_alpha:
        trace.knots = [knot.light() for knot in trace.knots]
    return trace


def _refine(
    trace: Trace,
    fit: Fit,
    source: Source,
    max_fits: int,
    keep_alpha: bool,
    callback: Callable[[TraceProgress], Any] | None,
) -> None:
    """Add knots until every C has a model of the accuracy, or there is a reason to stop."""

    def goes_on(C: float, start: Sequence[Start] | None) -> bool:
        """Fit at C and add the knot; whether to go on."""
        knot = Knot(C, fit(C, start))
        trace.interrupted |= knot.interrupted
        if knot.interrupted and trace.knots and knot.gap > trace.tol:
            return False
        trace.add(knot)
        stopped = callback is not None and callback(
            TraceProgress(len(trace.knots), C, trace.proved_up_to, _worst_chord(trace))
        )
        return not (knot.interrupted or stopped or len(trace.knots) >= max_fits)

    for C in _first_values(*trace.C_range):
        starts = scaled_starts(source, trace.knots[-1].results, C) if trace.knots else None
        if not goes_on(C, starts):
            return
    i = 0
    while i < len(trace.knots) - 1:
        middle = _next_value(trace, i)
        if middle is None:
            if not keep_alpha:
                trace.knots[i] = trace.knots[i].light()
            i += 1
            continue
        starts = starts_between(source, trace.knots[i], trace.knots[i + 1], middle)
        if not goes_on(middle, starts):
            return


def trace_values(
    fit: Fit,
    source: Source,
    Cs: Sequence[float],
    tol: float,
    stop: threading.Event,
    *,
    objective: Objective = HINGE_OBJECTIVE,
    keep_alpha: bool = False,
) -> Trace:
    """Fit at given values of C, in ascending order, each starting from the last one.

    After Ctrl-C, which sets ``stop``, the others are not trained: ``fit`` then returns zero.
    """
    trace = Trace(source, (min(Cs), max(Cs)), tol, objective)
    for C in sorted(set(Cs)):
        starts = scaled_starts(source, trace.knots[-1].results, C) if trace.knots else None
        try:
            results = fit(C, starts)
        except KeyboardInterrupt:
            if not trace.knots:
                raise
            stop.set()
            results = fit(C, starts)
        trace.add(Knot(C, results))
        if len(trace.knots) > 1 and not keep_alpha:
            trace.knots[-2] = trace.knots[-2].light()
    if not keep_alpha:
        trace.knots[-1] = trace.knots[-1].light()
    return trace


def _first_values(low: float, high: float) -> list[float]:
    n = max(1, math.ceil(math.log(high / low, _FACTOR) - 1e-9))
    inner = [low * (high / low) ** (k / n) for k in range(1, n)]
    # As 0.1 and not 0.09999999999999998, where they are far enough apart.
    short = [float(f"{C:.12g}") for C in inner]
    ascending = all(a < b for a, b in itertools.pairwise([low, *short, high]))
    return [low, *(short if ascending else inner), high]


def _next_value(trace: Trace, i: int) -> float | None:
    """The C to fit next between knot i and the next one; None if there is none."""
    first, last = trace.knots[i], trace.knots[i + 1]
    if trace.gap_after(i) <= trace.tol or last.C <= _LEAST_FACTOR**2 * first.C:
        return None
    # Where a fit missed the accuracy, no chord that ends there has it.
    ends = max(first.gap, last.gap)
    if ends > trace.tol:
        return None
    excess = (trace.gap_after(i) - ends) / max(trace.tol - ends, 1e-3 * trace.tol)
    pieces = max(2, math.ceil(min(excess, 1e6) ** (1.0 / _POWER)))
    return float(first.C * (last.C / first.C) ** (1.0 / pieces))


def _worst_chord(trace: Trace) -> float:
    return max((trace.gap_after(i) for i in range(len(trace.knots) - 1)), default=math.inf)


def scaled_starts(source: Source, results: Sequence[Result], C: float) -> list[Start]:
    """Where to start at C from fits at another C: w, and alpha scaled to the new box."""
    return [
        source.scaled_start(
            replace(_last_state(result), w=result.w, epochs=result.epochs),
            C / result.certificate.C,
        )
        for result in results
    ]


def starts_between(source: Source, first: Knot, last: Knot, C: float) -> list[Start]:
    """Where to start between two knots: at the interpolated model."""
    t = (C - first.C) / (last.C - first.C)
    starts = []
    for a, b in zip(first.results, last.results, strict=True):
        ends = [_last_state(result) for result in (a, b)]
        alpha = None
        if ends[0].alpha is not None and ends[1].alpha is not None:
            alpha = (1.0 - t) * ends[0].alpha + t * ends[1].alpha
        smoothing = ends[0].smoothing or ends[1].smoothing
        starts.append(source.start((1.0 - t) * a.w + t * b.w, max(1, a.epochs), alpha, smoothing))
    return starts


def _last_state(result: Result) -> Start:
    return result.warm_start or Start(result.w, result.epochs, result.alpha)


def _end(result: Result) -> ChordEnd:
    assert result.vector is not None
    return ChordEnd(result.certificate, result.w, result.vector)


def _interpolated(
    neighbour: Result,
    w: Vector,
    alpha: Vector | None,
    C: float,
    tol: float,
    primal: Bound,
    dual: Bound,
) -> Result:
    return Result(
        w=w,
        certificate=Certificate(
            primal=primal.value,
            dual=dual.value,
            target=tol,
            bound=CHORD,
            primal_rounding=primal.rounding,
            dual_rounding=dual.rounding,
            C=C,
            intercept_scaling=neighbour.certificate.intercept_scaling,
            loss=neighbour.certificate.loss,
            penalize_intercept=neighbour.certificate.penalize_intercept,
        ),
        history=History(),
        reason=CHORD,
        passes=0,
        epochs=neighbour.epochs,
        alpha=alpha,
        solver=CHORD,
    )
