"""The tables, as Markdown and as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.markdown import grid, measured_on
from benchmarks.paper.tables import TABLES, Table

MISSING = "–"
MARKS = {"paper": "", "stand-in": " ¹", "generated": " ²"}
NOTES = {
    "stand-in": "¹ not in the paper; it stands in for a set that is not at hand",
    "generated": "² not in the paper; generated, or scikit-learn's own",
}


def write(number: int, results: dict[str, Any], folder: Path) -> None:
    """table-N.json and table-N.md."""
    (folder / f"table-{number}.json").write_text(json.dumps(results, indent=1) + "\n")
    (folder / f"table-{number}.md").write_text(markdown(TABLES[number], results))


def read(folder: Path) -> dict[int, dict[str, Any]]:
    """The tables that are there."""
    paths = {number: folder / f"table-{number}.json" for number in TABLES}
    return {n: json.loads(path.read_text()) for n, path in paths.items() if path.exists()}


def markdown(table: Table, results: dict[str, Any]) -> str:
    """One table, with the machine and the limits."""
    at = "C = " + ", ".join(f"{C:g}" for C in table.C)
    lines = [
        f"# Table {table.number}: {table.title}, {at}",
        "",
        f"{measured_on(results['machine'])}; certsvm {results['version']}. "
        + limits(table, results),
        "",
        *_FORMS[table.kind](table, results),
        "",
    ]
    kinds = {row["of"] for row in results["sets"]}
    lines += [f"{NOTES[kind]}.  " for kind in NOTES if kind in kinds]
    return "\n".join(lines).rstrip() + "\n"


def limits(table: Table, results: dict[str, Any]) -> str:
    """The limits of a run."""
    settings = results["settings"]
    at_once = f"; {settings['jobs']} runs at a time" if settings["jobs"] > 1 else ""
    if table.kind == "gap":
        return f"At most {settings['accurate_seconds']:g} s{at_once}."
    if table.kind == "length":
        return f"The largest of {settings['seeds']} seeds."
    return (
        f"At most {settings['seconds']:g} s for a run; the best of {settings['repeats']} counts, "
        f"for runs that are not long. The median of {settings['seeds']} seeds, with the range"
        f"{at_once}."
    )


def accurate(table: Table, results: dict[str, Any]) -> list[str]:
    """The rows of Table 1."""
    rows = []
    for about in results["sets"]:
        for cell in cells_of(results, about["set"]):
            reached = "failure" not in cell
            published = "T by f" in cell
            f = f"{cell['f']:g}" if cell.get("f") else "10 or more"
            rows.append(
                [
                    named(about),
                    f"{about['rows']:,}",
                    f"{about['columns']:,}",
                    cell["system"],
                    f"{cell['J']:.8g}",
                    f"{cell['L']:.8g}",
                    f"{cell['gap']:.1e}",
                    f"{cell['epochs']:,}" if reached else f"more than {cell['epochs']:,}",
                    f if reached and published else MISSING,
                    f"{cell['seconds']:.3g}",
                ]
            )
    titles = ["data", "rows", "columns", "", "J", "L", "J/L - 1", "T", "f", "s"]
    return grid(titles, rows)


def lengths(table: Table, results: dict[str, Any]) -> list[str]:
    """|w| as a share of its bounds."""
    names = {row["set"]: named(row) for row in results["sets"]}
    keys = ("R / lambda", "proposition", "after one pass", "after ten passes")
    rows = [
        [names[cell["set"]], f"{cell['C']:g}", *(f"{cell[key]:.3g}" for key in keys)]
        for cell in results["cells"]
    ]
    titles = [
        "data", "C", "of R / lambda, at most", "of the proposition's bound, at most",
        "of 1 / sqrt(lambda) after one pass", "after ten",
    ]  # fmt: skip
    return grid(titles, rows)


def timed(table: Table, results: dict[str, Any]) -> list[str]:
    """Seconds, T and the parameter of each system, by data set."""
    titles = ["data", "C"] if len(table.C) > 1 else ["data"]
    parameters = {
        cell["system"]: cell["parameter"] for cell in results["cells"] if cell.get("parameter")
    }
    for system in table.systems:
        titles += [f"{system}: s", "T"]
        if parameters.get(system) == "eps":
            titles.append("eps")
    rows = []
    for about in results["sets"]:
        for C in table.C:
            row = [named(about), f"{C:g}"] if len(table.C) > 1 else [named(about)]
            cells = {c["system"]: c for c in cells_of(results, about["set"]) if c["C"] == C}
            for system in table.systems:
                entries = timed_entries(cells.get(system))
                row += entries if parameters.get(system) == "eps" else entries[:2]
            rows.append(row)
    return grid(titles, rows)


def timed_entries(cell: dict[str, Any] | None) -> list[str]:
    """Seconds and T with their ranges, and the parameter of the median run."""
    if cell is None:
        return [MISSING] * 3
    if "failure" in cell:
        return [cell["failure"] + reached(cell), MISSING, MISSING]
    value = f"{cell['value']:g}" if cell.get("value") is not None else MISSING
    return [
        f"{cell['seconds']:.3g}{_range(cell, 'seconds', '.2g')}{missed(cell)}",
        f"{cell['epochs']:,}{_range(cell, 'epochs', ',')}",
        value,
    ]


def missed(cell: dict[str, Any]) -> str:
    """The seeds that did not reach the goal, where the median did."""
    return f", {cell['failures']} of {cell['seeds']} failed" if cell.get("failures") else ""


def reached(cell: dict[str, Any]) -> str:
    """The seeds that reached the goal, where the median did not."""
    if "seconds range" not in cell:
        return ""
    low, high = (f"{value:.2g}" for value in cell["seconds range"])
    count = cell["seeds"] - cell["failures"]
    times = low if low == high else f"{low}–{high}"
    return f"; {count} of {cell['seeds']} seeds reached it, in {times}"


def _range(cell: dict[str, Any], key: str, form: str) -> str:
    low, high = (format(value, form) for value in cell[f"{key} range"])
    return f" ({low}–{high})" if low != high else ""


def cells_of(results: dict[str, Any], name: str) -> list[dict[str, Any]]:
    """The cells of a data set."""
    return [cell for cell in results["cells"] if cell["set"] == name]


def named(about: dict[str, Any]) -> str:
    """The name of a set, marked if it is not the paper's."""
    return str(about["set"]) + MARKS[about["of"]]


_FORMS: dict[str, Callable[[Table, dict[str, Any]], list[str]]] = {
    "gap": accurate, "length": lengths, "accuracy": timed,
}  # fmt: skip
