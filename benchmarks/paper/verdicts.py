"""How a claim is decided: results, set by set, and a rule.

A system is faster than another on a set if its slowest seed is faster than the other's fastest; if
the ranges overlap, neither is. A run that did not reach the goal within the limit took longer than
any that did. Sets on which neither reached it are not compared.

A claim is confirmed if it holds on at least two thirds of the sets that can be compared, and not
confirmed if it holds on at most a third. It is unclear in between, or if fewer than three sets can
be compared. A claim of several parts is not confirmed if one of them is not, and confirmed only if
all are. That a system cannot reach the goal does not follow from a limit on its time.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

CONFIRMED, NOT_CONFIRMED, UNCLEAR = "confirmed", "not confirmed", "unclear"
_FEWEST = 3


@dataclass(frozen=True)
class Verdict:
    """The decision on a claim, and the figures behind it."""

    word: str
    figures: str


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

    def seconds(self, name: str, C: float, system: str) -> float | None:
        """The median time; infinite if it failed, None if it was not measured."""
        cell = self.cell(name, C, system)
        if cell is None:
            return None
        return math.inf if "failure" in cell else float(cell["seconds"])

    def range(self, name: str, C: float, system: str) -> tuple[float, float] | None:
        """The times of the fastest and the slowest seed; a failure takes forever."""
        cell = self.cell(name, C, system)
        if cell is None:
            return None
        low, high = cell.get("seconds range", (math.inf, math.inf))
        return low, math.inf if cell.get("failures") else high

    def all(self, C: float, *systems: str) -> list[tuple[str, list[dict[str, Any]]]]:
        """The sets on which none of these systems failed, with their cells."""
        complete = []
        for name in self.sets:
            cells = [self.cell(name, C, system) for system in systems]
            if all(cell is not None and "failure" not in cell for cell in cells):
                complete.append((name, [cell for cell in cells if cell is not None]))
        return complete


@dataclass(frozen=True)
class Duel:
    """Two systems, set by set."""

    wins: int
    losses: int
    ties: int
    ratio: float | None
    """Geometric mean of the ratios of median times; a system that failed took the limit."""
    censored: bool
    """Whether it includes such a failure of the second, so that it is an upper bound."""

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
        half = self.ratio is not None and self.ratio <= 0.5
        return worst([self.word, CONFIRMED if half else NOT_CONFIRMED])

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
        at_most = "at most " if self.censored else ""
        ratio = f", {at_most}{self.ratio:.2g} of the time" if self.ratio is not None else ""
        return f"{self.wins} of {self.total} sets{overlap}{ratio}"


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
    censored = False
    ratios = []
    for name in results.sets:
        a, b = results.range(name, C, one), results.range(name, C, other)
        if a is None or b is None or (math.isinf(a[0]) and math.isinf(b[0])):
            continue
        wins += a[1] < b[0]
        losses += b[1] < a[0]
        ties += not (a[1] < b[0] or b[1] < a[0])
        medians = results.seconds(name, C, one), results.seconds(name, C, other)
        # A failure of the first makes the ratio a lower bound, which says nothing for it.
        if medians[0] is not None and medians[1] is not None and math.isfinite(medians[0]):
            censored |= math.isinf(medians[1])
            ratios.append(medians[0] / min(medians[1], max(results.limit, medians[0])))
    mean = statistics.geometric_mean(ratios) if ratios else None
    return Duel(wins, losses, ties, mean, censored)


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
