"""Write docs/paper.md from the tables: every figure in it is read from them.

python -m benchmarks.paper.page
"""

from __future__ import annotations

import argparse
import math
import os
import statistics
from collections import Counter
from pathlib import Path
from string import Template
from typing import Any

from benchmarks.markdown import grid, measured_on
from benchmarks.paper import report
from benchmarks.paper.claims import CLAIMS
from benchmarks.paper.sets import RECIPES
from benchmarks.paper.tables import TABLES
from benchmarks.paper.verdicts import (
    CONFIRMED,
    NOT_CONFIRMED,
    UNCLEAR,
    Results,
    duel,
    epochs_of,
    median,
    ratio,
)

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "benchmarks" / "results" / "paper"
PAGE = ROOT / "docs" / "paper.md"
TEMPLATE = Path(__file__).with_name("page-template.md")
_PAPER_SYSTEMS = tuple(s for number in (2, 3) for s in TABLES[number].systems)
_OURS = TABLES[9].systems
# The optimum counts as known to 1e-8 up to here: the last digit is rounding.
_NARROW = 1.1e-8


def write(folder: Path, path: Path) -> None:
    """Write the page about the tables in the folder."""
    path.write_text(page(report.read(folder), folder, path))


def page(tables: dict[int, dict[str, Any]], folder: Path, path: Path) -> str:
    """The text of the page, with links from its place to the tables."""
    any_table = next(iter(tables.values()))
    # Table 1 may have been made by itself, and so with other limits.
    accurate = tables.get(1, any_table)["settings"]
    timed = [table for number, table in tables.items() if TABLES[number].kind == "accuracy"]
    settings = (timed or [any_table])[-1]["settings"]
    results = Results(tables)
    links = _links(tables, folder, Path(os.path.relpath(folder, path.parent)).as_posix())
    text = Template(TEMPLATE.read_text()).substitute(
        measured_on=measured_on(any_table["machine"]),
        version=any_table["version"],
        seconds=f"{settings['seconds']:g}",
        accurate_seconds=f"{accurate['accurate_seconds']:g}",
        repeats=settings["repeats"],
        seeds=f"{settings['seeds']} seeds" if settings["seeds"] > 1 else "one seed",
        at_once=f"{settings['jobs']} runs at a time" if settings["jobs"] > 1 else "one at a time",
        start=_start(results),
        optima=_optima(tables),
        sets="\n".join(_sets(results.about)),
        absent=_absent(results.about),
        count=_count(results),
        claims="\n".join(_claims(results)),
        beyond="\n".join(_beyond(results)),
        windows=_windows(results),
        accurate_windows=_accurate_windows(results),
        default=_default(results),
        **links,
    )
    return text.rstrip() + "\n"


def _start(results: Results) -> str:
    """The share of the search for a rate in the times of Table 8."""
    shares = [
        cell.get("start_seconds", 0.0) / cell["seconds"]
        for system in TABLES[8].systems[:2]
        for _, (cell,) in results.all(1.0, system)
    ]
    return f"{100 * statistics.median(shares):.0f} per cent" if shares else "an unknown part"


def _optima(tables: dict[int, dict[str, Any]]) -> str:
    """How well the optima are known."""
    gaps = {
        (c["set"], c["C"]): c["optimum gap"]
        for table in tables.values()
        for c in table["cells"]
        if "optimum gap" in c
    }
    narrow = sum(gap <= _NARROW for gap in gaps.values())
    widest = f"; the widest interval is {max(gaps.values()):.1e}" if narrow < len(gaps) else ""
    return f"{narrow} of {len(gaps)} problems{widest}"


def _sets(about: dict[str, dict[str, Any]]) -> list[str]:
    rows = [
        [
            report.named(row),
            f"{row['rows']:,}",
            f"{row['columns']:,}",
            f"{row['nonzeros']:,}",
            row["note"] or "as in the paper",
        ]
        for row in about.values()
    ]
    return grid(["set", "rows", "columns", "values", ""], rows)


def _absent(about: dict[str, Any]) -> str:
    absent = [r.name for r in RECIPES.values() if r.of == "paper" and r.name not in about]
    return f"Not at hand: {', '.join(absent)}." if absent else "All of the paper's are at hand."


def _count(results: Results) -> str:
    words = Counter(claim.check(results).word for claim in CLAIMS)
    parts = [f"{words[word]} are {word}" for word in (CONFIRMED, NOT_CONFIRMED, UNCLEAR)]
    return f"Of {len(CLAIMS)} claims, {', '.join(parts)}"


def _claims(results: Results) -> list[str]:
    rows = []
    for claim in CLAIMS:
        verdict = claim.check(results)
        rows.append([claim.where, claim.text, f"**{verdict.word}**", verdict.figures])
    return grid(["where", "the paper", "here", "figures"], rows)


def _beyond(results: Results) -> list[str]:
    """Ours, without knowledge of the optimum, against the paper's systems, with it."""
    rows = []
    for name in results.sets:
        for C in TABLES[9].C:
            known = {s: results.seconds(name, C, s) for s in _PAPER_SYSTEMS}
            finished = {s: t.high for s, t in known.items() if t and math.isfinite(t.high)}
            best = min(finished, key=lambda s: finished[s], default=None)
            row = [name, f"{C:g}", f"{best}, {finished[best]:.3g}" if best else "none"]
            rows.append(row + [_seconds(results.cell(name, C, s)) for s in _OURS])
    return grid(
        ["set", "C", "fastest of the paper's, s", *(f"{system}, s" for system in _OURS)], rows
    )


def _windows(results: Results) -> str:
    """The price of a proof with windows, against a tuned eps."""
    ratios = [
        ratio(results.epochs(name, C, "SGD-s, windows"), results.epochs(name, C, "SGD-s"))
        for C in TABLES[9].C
        for name in results.sets
    ]
    known = [r for r in ratios if r is not None]
    if not known:
        return "nothing to compare."
    return (
        f"to prove one per cent, SGD-s took {median(known)} times the passes of a "
        "run whose eps was tuned with knowledge of the optimum (median over "
        f"{len(known)} sets and C)."
    )


def _accurate_windows(results: Results) -> str:
    """The gain of windows in Table 1."""
    ratios, alone = [], []
    for name in results.sets:
        plain, windows = (results.accurate.get((name, s)) for s in ("SGD-s", "SGD-s, windows"))
        if plain is None or windows is None:
            continue
        gain = ratio(epochs_of(windows), epochs_of(plain))
        if gain is not None:
            ratios.append(gain)
        if "failure" in plain and "failure" not in windows:
            alone.append(name)
    parts = []
    if ratios:
        parts.append(
            f"they took {median(ratios)} of the epochs of SGD-s as published "
            f"(median over {len(ratios)} sets)"
        )
    if alone:
        parts.append(f"they alone reached it on {', '.join(alone)}")
    return f"To a proved 1e-5 at C = 0.1, {', and '.join(parts)}." if parts else ""


def _default(results: Results) -> str:
    return "; ".join(
        f"C = {C:g}, before {system}: {duel(results, C, 'auto', system)}"
        for C in TABLES[9].C
        for system in ("DCD", "SGD-m")
    )


def _seconds(cell: dict[str, Any] | None) -> str:
    if cell is None:
        return report.MISSING
    if "failure" not in cell:
        return f"{cell['seconds']:.3g}{report.missed(cell)}"
    if cell["failure"].startswith("not reached"):
        return f"not in time{report.reached(cell)}"
    return "too many columns"


def _links(tables: dict[int, dict[str, Any]], folder: Path, to: str) -> dict[str, str]:
    links = []
    for number in tables:
        table = TABLES[number]
        at = ", ".join(f"{C:g}" for C in table.C)
        links.append(f"* [Table {number}]({to}/table-{number}.md): {table.title}, C = {at}")
    pictures = [f"![{path.stem}]({to}/{path.name})" for path in sorted(folder.glob("*.png"))]
    if pictures:
        legend = "Solid: distance to the optimum. Dashed: what was proved."
        pictures = ["## Pictures", "", legend, "", *pictures]
    return {"tables": "\n".join(links), "pictures": "\n".join(pictures)}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.paper.page", description=__doc__)
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder of the tables")
    parser.add_argument("--page", type=Path, default=PAGE, help="what to write")
    arguments = parser.parse_args()
    write(arguments.results.absolute(), arguments.page.absolute())


if __name__ == "__main__":
    main()
