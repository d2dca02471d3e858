"""How a claim is decided: results, set by set, and a rule.

The claim that one system is faster than another is confirmed if it holds on at least two thirds of
the data sets, and not confirmed if it holds on at most a third. It is unclear in between, or if
fewer than three sets can be compared. A difference of less than five per cent counts for neither.
A system that did not reach the accuracy is slower than one that did.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

CONFIRMED, NOT_CONFIRMED, UNCLEAR = "confirmed", "not confirmed", "unclear"
_TIE = 1.05
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
        # A system that failed took at least this long.
        self.limit = tables[max(tables)]["settings"]["seconds"]
        self.first = {cell["set"]: cell for cell in tables.get(1, {"cells": []})["cells"]}
        self._cells = {
            (cell["set"], cell["C"], cell["system"]): cell
            for number, table in tables.items()
            for cell in table["cells"]
            if number != 1
        }

    def cell(self, name: str, C: float, system: str) -> dict[str, Any] | None:
        """One cell, if it was measured."""
        return self._cells.get((name, C, system))

    def seconds(self, name: str, C: float, system: str) -> float | None:
        """The time of a run; infinite if it failed, None if it was not measured."""
        cell = self.cell(name, C, system)
        if cell is None:
            return None
        return math.inf if "failure" in cell else float(cell["seconds"])

    def failed(self, C: float, system: str, why: str = "") -> list[str]:
        """The sets on which a system failed, for a reason that begins like this."""
        cells = ((name, self.cell(name, C, system)) for name in self.sets)
        return [name for name, cell in cells if cell and cell.get("failure", "no").startswith(why)]

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
    """Two systems, or the best of two groups, set by set."""

    wins: int
    losses: int
    ties: int
    ratio: float | None
    """Geometric mean of the ratios of times, over the sets on which neither failed."""

    @property
    def word(self) -> str:
        """The verdict on "faster"."""
        return most(self.wins, self.wins + self.losses + self.ties)

    def __str__(self) -> str:
        total = self.wins + self.losses + self.ties
        ratio = f", {self.ratio:.2g} of the time" if self.ratio is not None else ""
        return f"{self.wins} of {total} sets{ratio}"


def most(count: int, total: int) -> str:
    """The verdict on a claim that holds in ``count`` of ``total`` cases."""
    if total < _FEWEST:
        return UNCLEAR
    if count >= 2 / 3 * total:
        return CONFIRMED
    return NOT_CONFIRMED if count <= total / 3 else UNCLEAR


def worst(words: Iterable[str]) -> str:
    """The verdict on several claims at once."""
    seen = set(words)
    if seen == {CONFIRMED}:
        return CONFIRMED
    return NOT_CONFIRMED if seen == {NOT_CONFIRMED} else UNCLEAR


def duel(results: Results, C: float, one: str, other: str) -> Duel:
    """``one`` against ``other``."""
    wins = losses = ties = 0
    ratios = []
    for name in results.sets:
        a, b = results.seconds(name, C, one), results.seconds(name, C, other)
        if a is None or b is None or (math.isinf(a) and math.isinf(b)):
            continue
        if math.isfinite(a) and math.isfinite(b):
            ratios.append(a / b)
        wins += a * _TIE < b
        losses += b * _TIE < a
        ties += not (a * _TIE < b or b * _TIE < a)
    mean = statistics.geometric_mean(ratios) if ratios else None
    return Duel(wins, losses, ties, mean)


def faster(C: float, *pairs: tuple[str, str]) -> Callable[[Results], Verdict]:
    """The first of each pair is faster than the second."""

    def check(results: Results) -> Verdict:
        duels = {f"{one} before {other}": duel(results, C, one, other) for one, other in pairs}
        text = "; ".join(f"{name}: {d}" for name, d in duels.items())
        return Verdict(worst(d.word for d in duels.values()), text)

    return check
