"""How a claim is decided: results, set by set, and a rule.

A system is faster than another on a set if its slowest seed is faster than the other's fastest; if
the ranges overlap, neither is. A run that did not reach the goal within the limit took longer than
any that did. Sets on which neither reached it are not compared. In a ratio of times it counts with
the limit, which makes the ratio a bound.

A claim is confirmed if it holds on at least two thirds of the sets that can be compared, and not
confirmed if it holds on at most a third. It is unclear in between, or if fewer than three sets can
be compared, or if bounds leave it open. A claim of several parts is not confirmed if one of them is
not, and confirmed only if all are. That a system cannot reach the goal does not follow from a limit
on its time.
"""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

CONFIRMED, NOT_CONFIRMED, UNCLEAR = "confirmed", "not confirmed", "unclear"
_FEWEST = 3
# "At most half", with room for rounding.
_HALF = 0.5 * (1.0 + 1e-9)


@dataclass(frozen=True)
class Verdict:
    """The decision on a claim, and the figures behind it."""

    word: str
    figures: str


class Span(NamedTuple):
    """Between what a time or a number of epochs lies; a run that failed took at least ``low``."""

    low: float
    high: float


class Ratio(NamedTuple):
    """A ratio in which failures count with ``Span.low``, and between what the true one lies."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        low, high = f"{self.low:.2g}", f"{self.high:.2g}"
        if low == high:
            return low
        if math.isfinite(self.high):
            return f"{low} to {high}" if self.low > 0.0 else f"at most {high}"
        return f"at least {low}" if self.low > 0.0 else f"{self.value:.2g} (no bound)"


def ratio(a: Span | None, b: Span | None) -> Ratio | None:
    """``a`` over ``b``; None if one was not measured, or both failed."""
    if a is None or b is None or (math.isinf(a.high) and math.isinf(b.high)):
        return None
    return _ratio(a, b)


def _ratio(a: Span, b: Span) -> Ratio:
    return Ratio(a.low / b.low, a.low / b.high, a.high / b.low)


def mean(ratios: Iterable[Ratio]) -> Ratio:
    """The geometric mean."""
    return Ratio(*map(_geometric_mean, zip(*ratios, strict=True)))


def median(ratios: Iterable[Ratio]) -> Ratio:
    """The median."""
    return Ratio(*map(statistics.median, zip(*ratios, strict=True)))


def _geometric_mean(values: Iterable[float]) -> float:
    values = list(values)
    return statistics.geometric_mean(values) if all(values) else 0.0


def exactly(value: float) -> Ratio:
    """A number to compare ratios with."""
    return Ratio(value, value, value)


def less(a: Ratio, b: Ratio) -> str:
    """The verdict on ``a < b``; unclear if the bounds leave it open."""
    if a.high < b.low:
        return CONFIRMED
    return NOT_CONFIRMED if a.low >= b.high else UNCLEAR


def tally(words: Iterable[str]) -> tuple[int, int]:
    """How many verdicts are confirmed, and how many are not unclear."""
    seen = Counter(words)
    return seen[CONFIRMED], seen[CONFIRMED] + seen[NOT_CONFIRMED]


class Results:
    """The cells of all tables; sets that are not generated, if there are any."""

    def __init__(self, tables: dict[int, dict[str, Any]]) -> None:
        about = {row["set"]: row for table in tables.values() for row in table["sets"]}
        self.sets = [name for name, row in about.items() if row["of"] != "generated"] or [*about]
        self.about = about
        timed = [table for number, table in tables.items() if number not in (1, 10)]
        # A system that failed took at least this long.
        self.limit = timed[-1]["settings"]["seconds"] if timed else math.inf
        self.accurate = {
            (cell["set"], cell["system"]): cell for cell in tables.get(1, {"cells": []})["cells"]
        }
        self.lengths = [
            c for c in tables.get(10, {"cells": []})["cells"] if c["set"] in set(self.sets)
        ]
        self._cells = {
            (cell["set"], cell["C"], cell["system"]): cell
            for table in timed
            for cell in table["cells"]
        }

    def cell(self, name: str, C: float, system: str) -> dict[str, Any] | None:
        """One cell, if it was measured."""
        return self._cells.get((name, C, system))

    def seconds(self, name: str, C: float, system: str) -> Span | None:
        """The median time, if it was measured."""
        cell = self.cell(name, C, system)
        if cell is None:
            return None
        return Span(self.limit, math.inf) if "failure" in cell else Span(*[cell["seconds"]] * 2)

    def epochs(self, name: str, C: float, system: str) -> Span | None:
        """T in the run with the median time, if it was measured."""
        cell = self.cell(name, C, system)
        return None if cell is None else epochs_of(cell)

    def range(self, name: str, C: float, system: str) -> Span | None:
        """The times of the fastest and the slowest seed; a failure takes forever."""
        cell = self.cell(name, C, system)
        if cell is None:
            return None
        low, high = cell.get("seconds range", (math.inf, math.inf))
        return Span(low, math.inf if cell.get("failures") else high)

    def all(self, C: float, *systems: str) -> list[tuple[str, list[dict[str, Any]]]]:
        """The sets on which none of these systems failed, with their cells."""
        complete = []
        for name in self.sets:
            cells = [self.cell(name, C, system) for system in systems]
            if all(cell is not None and "failure" not in cell for cell in cells):
                complete.append((name, [cell for cell in cells if cell is not None]))
        return complete


def epochs_of(cell: dict[str, Any]) -> Span:
    """T in a run."""
    if "failure" not in cell:
        return Span(cell["epochs"], cell["epochs"])
    # Not all failures have T; each pass presents each row at least once.
    return Span(max(cell["epochs"], cell.get("passes", 0)), math.inf)


@dataclass(frozen=True)
class Duel:
    """Two systems, set by set; ``ratio`` is the geometric mean of the ratios of median times."""

    wins: int
    losses: int
    ties: int
    ratio: Ratio | None

    @property
    def total(self) -> int:
        """The number of sets that can be compared."""
        return self.wins + self.losses + self.ties

    @property
    def word(self) -> str:
        """The verdict on "faster"."""
        return most(self.wins, self.total)

    @property
    def much(self) -> str:
        """The verdict on "much faster": also at most half of the time in the geometric mean."""
        half = UNCLEAR if self.ratio is None else less(self.ratio, exactly(_HALF))
        return worst([self.word, half])

    @property
    def everywhere(self) -> str:
        """The verdict on "faster on all sets"."""
        if self.total < _FEWEST:
            return UNCLEAR
        if self.losses:
            return NOT_CONFIRMED
        return CONFIRMED if self.ties == 0 else UNCLEAR

    def __str__(self) -> str:
        overlap = f" ({self.ties} overlap)" if self.ties else ""
        share = f", {self.ratio} of the time" if self.ratio is not None else ""
        return f"{self.wins} of {self.total} sets{overlap}{share}"


def most(count: int, total: int) -> str:
    """The verdict on a claim that holds in ``count`` of ``total`` cases."""
    if total < _FEWEST:
        return UNCLEAR
    if 3 * count >= 2 * total:
        return CONFIRMED
    return NOT_CONFIRMED if 3 * count <= total else UNCLEAR


def worst(words: Iterable[str]) -> str:
    """The verdict on a claim of several parts."""
    seen = set(words)
    for word in (NOT_CONFIRMED, UNCLEAR):
        if word in seen:
            return word
    return CONFIRMED


def duel(results: Results, C: float, one: str, other: str) -> Duel:
    """``one`` against ``other``."""
    wins = losses = ties = 0
    ratios = []
    for name in results.sets:
        a, b = results.range(name, C, one), results.range(name, C, other)
        if a is None or b is None or (math.isinf(a.low) and math.isinf(b.low)):
            continue
        wins += a.high < b.low
        losses += b.high < a.low
        ties += not (a.high < b.low or b.high < a.low)
        times = [results.seconds(name, C, system) for system in (one, other)]
        ratios.append(_ratio(*(span for span in times if span is not None)))
    return Duel(wins, losses, ties, mean(ratios) if ratios else None)


def faster(C: float, *pairs: tuple[str, str], how: str = "word") -> Callable[[Results], Verdict]:
    """The first of each pair is faster than the second; ``how`` names a verdict of ``Duel``."""

    def check(results: Results) -> Verdict:
        duels = {f"{one} before {other}": duel(results, C, one, other) for one, other in pairs}
        text = "; ".join(f"{name}: {d}" for name, d in duels.items())
        return Verdict(worst(getattr(d, how) for d in duels.values()), text)

    return check


def every(*checks: Callable[[Results], Verdict]) -> Callable[[Results], Verdict]:
    """All parts of a claim."""

    def check(results: Results) -> Verdict:
        verdicts = [part(results) for part in checks]
        return Verdict(worst(v.word for v in verdicts), "; ".join(v.figures for v in verdicts))

    return check
