"""The path of solutions over C, with a proof for every C in between.

Fits at single values of C are knots. Between two neighbouring knots the models are interpolated,
and a chord (``certificates.path_bounds``) bounds their gaps. A range is traced by a fit in each
decade, each starting from the last one, and then by fits inside every chord that is not good
enough, which start from the interpolated model.
"""

from __future__ import annotations

import itertools
import math
import threading
from bisect import bisect_left, insort
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from certsvm.certificates.certificate import Certificate
from certsvm.certificates.path_bounds import CHORD, Chord, ChordEnd
from certsvm.fitting.fit_classes import fit_classes
from certsvm.fitting.sources import Source
from certsvm.kernels.losses import box_end
from certsvm.problem.rows import Vector
from certsvm.solvers import Solver, Start
from certsvm.training.history import History
from certsvm.training.settings import INTERRUPTED, Result, Settings

# The accuracy of the fits relative to the accuracy of the path.
_SHARE_OF_FITS = 0.25
# No two knots are closer than this factor.
_LEAST_FACTOR = 1.0 + 1e-6
# A chord's gap, beyond the gaps of its ends, grows with this power of log(C_2 / C_1).
_POWER = 2.5


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
    def starts(self) -> list[Start]:
        """Where fits at other C can begin, of which alpha is the largest part."""
        return [result.start for result in self.results]


def starts_at(
    source: Source, C: float, ends: Sequence[tuple[float, Sequence[Start]]]
) -> list[Start] | None:
    """Where to start at C: from the end at one other C, with alpha scaled, or between two."""
    if not ends:
        return None
    (low, first), (high, last) = ends[0], ends[-1]
    if len(ends) == 1:
        return [source.scaled_start(start, C / low) for start in first]
    t = (C - low) / (high - low)
    starts = []
    for a, b in zip(first, last, strict=True):
        both = a.alpha is not None and b.alpha is not None
        alpha = (1.0 - t) * a.alpha + t * b.alpha if both else None
        w, smoothing = (1.0 - t) * a.w + t * b.w, a.smoothing or b.smoothing
        starts.append(source.start(w, max(1, a.epochs), alpha, smoothing))
    return starts


class PathProgress(NamedTuple):
    """The state of a path after a fit, for callbacks.

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
    settings : Settings
        The accuracy ``tol`` asked for, at every C, and the objective, at any C.
    C_range : tuple of float
        The lowest and the highest C asked for.

    Attributes
    ----------
    knots : list of Knot
        The fits, by C.
    interrupted : bool
        Whether Ctrl-C ended the tracing.
    """

    def __init__(self, source: Source, settings: Settings, C_range: tuple[float, float]) -> None:
        self.C_range, self.tol, self._objective = C_range, settings.tol, settings.objective
        self.knots: list[Knot] = []
        self.interrupted = False
        self._chords: dict[tuple[float, float], list[Chord]] = {}
        objective, numbers = settings.objective.at(C_range[0]), range(len(source.labels))
        # Rows may weigh differently in the problem of each class.
        problems = (source.problem(i, objective) for i in numbers)
        self._sizes = [{"weight_sum": p.weight_sum, "R": p.R} for p in problems]

    @property
    def Cs(self) -> list[float]:
        """The fitted values, ascending."""
        return [knot.C for knot in self.knots]

    def _between(self, first: Knot, last: Knot) -> list[Chord]:
        """The chord of each class; none at all if one of the fits has no dual point."""
        pair = (first.C, last.C)
        if pair not in self._chords:
            fits = zip(first.results, last.results, self._sizes, strict=True)
            chords = [
                Chord(
                    ChordEnd(a.certificate, a.w, a.vector), ChordEnd(b.certificate, b.w, b.vector),
                    **sizes,
                )
                for a, b, sizes in fits if a.vector and b.vector
            ]  # fmt: skip
            self._chords[pair] = chords if len(chords) == len(self._sizes) else []
        return self._chords[pair]

    @property
    def gaps(self) -> list[float]:
        """The largest gap between each knot and the next one, proved."""
        chords = (self._between(*pair) for pair in itertools.pairwise(self.knots))
        return [max((chord.worst_gap for chord in each), default=math.inf) for each in chords]

    @property
    def proved_up_to(self) -> float:
        """Every C from the lowest to this one has a model of accuracy ``tol``, proved.

        Zero if the lowest has none.
        """
        if self.knots[0].gap > self.tol:
            return 0.0
        proved = itertools.takewhile(lambda gap: gap <= self.tol, self.gaps)
        return self.knots[len(list(proved))].C

    @property
    def worst_gap(self) -> float:
        """The largest relative gap of all models in the range, proved; infinite if unknown."""
        (low, high), knots = self.C_range, self.knots
        if not (knots and low >= knots[0].C and high <= knots[-1].C):
            return math.inf
        return max([knot.gap for knot in knots] + self.gaps)

    @property
    def met(self) -> bool:
        """Whether every C in the range has a model of accuracy ``tol``, proved."""
        return self.worst_gap <= self.tol

    def find(self, C: float) -> tuple[Knot, Knot, list[Chord]]:
        """The neighbouring knots around C, and their chords; for a knot, twice the same and none.

        Raises
        ------
        ValueError
            Nothing is proved at C.
        """
        Cs = [knot.C for knot in self.knots]
        if not (Cs and Cs[0] <= C <= Cs[-1]):
            known = f"from {Cs[0]:g} to {Cs[-1]:g}" if Cs else "empty"
            raise ValueError(f"C = {C!r} is outside the path, which is {known}")
        i = bisect_left(Cs, C)
        last = self.knots[i]
        if last.C == C:
            return last, last, []
        first = self.knots[i - 1]
        chords = self._between(first, last)
        if not chords:
            raise ValueError(f"nothing is proved at C = {C:g}: the fits there were not completed")
        return first, last, chords

    def certificates(self, C: float) -> list[Certificate]:
        """What is proved about the model at C, for each problem, without reading the data.

        Parameters
        ----------
        C : float
            Between the lowest and the highest fitted value.

        Returns
        -------
        certificates : list of Certificate
            Between fitted values, ``primal`` is an upper bound on J.
        """
        knot, _, chords = self.find(float(C))
        known = [result.certificate for result in knot.results]
        return [chord.certificate(float(C), self.tol) for chord in chords] or known

    def certificate(self, C: float) -> Certificate:
        """The certificate of the class with the largest gap; see ``certificates``."""
        return max(self.certificates(C), key=lambda certificate: certificate.proved_gap)

    def at(self, C: float, source: Source) -> list[Result]:
        """The results at C, interpolated between knots; J is computed in one pass for each class.

        Parameters
        ----------
        C : float
            Between the lowest and the highest knot.
        source : Source
            The data.

        Returns
        -------
        results : list of Result
            One for each class.
        """
        first, last, chords = self.find(C)
        if first is last:
            return first.results
        results = []
        for i, (a, b, chord) in enumerate(zip(first.results, last.results, chords, strict=True)):
            problem, (s, t) = source.problem(i, self._objective.at(C)), chord.shares(C)
            w, alpha, dual = s * a.w + t * b.w, None, chord.dual(C)
            if a.alpha is not None and b.alpha is not None:
                box = box_end(problem.loss, C, problem.weights)
                alpha = np.minimum(s * a.alpha + t * b.alpha, box)
                # Whoever recomputes L from alpha must find it as claimed.
                dual = chord.dual_of(C, a.alpha, b.alpha, problem.weights)
            primal = source.primal_bound(problem, w)
            certificate = replace(
                chord.certificate(C, self.tol), primal=primal.value, dual=dual.value,
                primal_rounding=primal.rounding, dual_rounding=dual.rounding,
            )  # fmt: skip
            start = Start(w, a.epochs, alpha)
            results.append(Result(w, certificate, History(), CHORD, start, CHORD, alpha))
        return results


def trace_path(
    source: Source, settings: Settings, C_range: tuple[float, float],
    Cs: Sequence[float] | None = None, *, max_fits: int = 200,
    callback: Callable[[PathProgress], Any] | None = None,
) -> Trace:  # fmt: skip
    """Fit as few C as needed so that every C in a range has a model of accuracy ``settings.tol``.

    Parameters
    ----------
    source : Source
        The data.
    settings : Settings
        How to train, at any C. The knots keep their dual points with ``keep_alpha``.
    C_range : tuple of float
        The lowest and the highest C.
    Cs : sequence of float, default=None
        Fit these instead. After Ctrl-C, those that had not begun have zero weights.
    max_fits : int, default=200
        Limit on the number of fits in a range.
    callback : callable, default=None
        Called after each fit with a ``PathProgress``; a true return value ends tracing.

    Returns
    -------
    trace : Trace
        Complete, or what was proved when Ctrl-C or a limit ended it.
    """
    tol, in_range = settings.tol, Cs is None
    solver = source.solver(settings.solver, settings.objective)
    if in_range:
        require_proofs(solver, tol)
    stop = settings.stop or threading.Event()
    one_fit = fit_settings(settings, solver, _SHARE_OF_FITS * tol if in_range else tol)
    one_fit = replace(one_fit, stop=stop)
    values = spread(*C_range).tolist() if Cs is None else sorted(set(Cs))
    trace = Trace(source, settings, C_range)
    # Where fits began and can begin, as long as something will be fitted beside them.
    starts: dict[float, list[Start]] = {}

    def goes_on(C: float, ends: Sequence[float] = ()) -> bool:
        """Fit at C, beginning at the ends of other fits, and add the knot; whether to go on."""
        known = [(end, starts[end]) for end in ends] if solver.starts_warm else []
        results = fit_classes(source, one_fit.at(C), start=starts_at(source, C, known))
        # What was asked for is the accuracy of the path.
        results = [replace(r, certificate=replace(r.certificate, target=tol)) for r in results]
        interrupted = any(result.reason == INTERRUPTED for result in results)
        if not in_range:
            starts.clear()
        starts[C] = [result.start for result in results]
        light: Any = {} if settings.keep_alpha else {"alpha": None}
        knot = Knot(C, [replace(r, start=replace(r.start, alpha=None), **light) for r in results])
        trace.interrupted |= interrupted
        if interrupted and in_range and trace.knots and knot.gap > tol:
            return False
        insort(trace.knots, knot, key=lambda knot: knot.C)
        if callback is not None:
            worst = max(trace.gaps, default=math.inf)
            progress = PathProgress(len(trace.knots), C, trace.proved_up_to, worst)
            interrupted |= bool(callback(progress))
        return not (interrupted or (in_range and len(trace.knots) >= max_fits))

    try:
        refine, i = all(goes_on(C, trace.Cs[-1:]) for C in values) and in_range, 0
        while refine and i < len(trace.knots) - 1:
            middle = _next_value(trace, i)
            if middle is None:
                del starts[trace.knots[i].C]
                i += 1
            else:
                refine = goes_on(middle, trace.Cs[i : i + 2])
    except KeyboardInterrupt:
        if not trace.knots:
            raise
        trace.interrupted = True
    if trace.interrupted and not in_range:
        stop.set()
        for C in values[len(trace.knots) :]:
            goes_on(C)
    return trace


def fit_settings(settings: Settings, solver: Solver, tol: float) -> Settings:
    """The settings of one fit among several, with what the others need of it."""
    keep_alpha, vector = settings.keep_alpha or solver.warm_starts_from_alpha, solver.certifies
    return replace(settings, solver=solver, tol=tol, keep_alpha=keep_alpha, keep_vector=vector)


def require_proofs(solver: Solver, tol: float = math.inf) -> None:
    """Raise a ValueError unless this solver can prove something about a range of C."""
    if not (solver.certifies and tol > 0.0):
        needs = "a range of C needs tol > 0 and a solver with a dual bound"
        raise ValueError(f"{needs}, got {solver.name!r} and tol={tol!r}")


def spread(low: float, high: float, n: int | None = None) -> Vector:
    """Edges of n pieces from ``low`` to ``high``, of equal ratio, ascending.

    None means as few as it takes for none to be longer than a decade.

    Examples
    --------
    >>> spread(0.01, 10.0).tolist()
    [0.01, 0.1, 1.0, 10.0]
    """
    n = n or max(1, math.ceil(math.log10(high) - math.log10(low) - 1e-9))
    # As 0.1 and not 0.09999999999999998.
    edges = [float(f"{C:.12g}") for C in np.geomspace(low, high, n + 1)]
    ascending: Vector = np.maximum.accumulate(np.clip(edges, low, high))
    ascending[[0, -1]] = low, high
    return ascending


def _next_value(trace: Trace, i: int) -> float | None:
    """The C to fit next between knot i and the next one; None if there is none."""
    first, last = trace.knots[i : i + 2]
    gap, ends = trace.gaps[i], max(first.gap, last.gap)
    # Where a fit missed the accuracy, no chord that ends there has it.
    if gap <= trace.tol or ends > trace.tol or last.C <= _LEAST_FACTOR**2 * first.C:
        return None
    excess = (gap - ends) / max(trace.tol - ends, 1e-3 * trace.tol)
    pieces = max(2, math.ceil(min(excess, 1e6) ** (1.0 / _POWER)))
    return float(first.C * (last.C / first.C) ** (1.0 / pieces))
