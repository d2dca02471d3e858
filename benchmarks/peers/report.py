"""The comparison as tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.markdown import grid, measured_on
from benchmarks.peers import pictures
from benchmarks.peers.adapters import Ours
from benchmarks.peers.figures import Cell, fastest_peer, percentage, ratio

System = dict[str, Any]

ABOUT = """\
All minimise 1/2 |w|^2 + C sum {loss}, without intercept, to the same true relative
accuracy J(w) / J_opt - 1. Ours stops when it has proved the accuracy. Every peer is used with the
loosest setting that reaches it, which was looked for beforehand with knowledge of the optimum;
of several variants the fastest counts.

The seconds are those of the fit, with the data in memory in the form that the system takes from a
user of SciPy: a conversion inside the fit counts. What is not counted: for liblinear and
liblinear-multicore, the copy into their own structures; for Vowpal Wabbit (vw), the start of a
process and the writing of its cache file. The systems fit in turn, each in a process of its own;
the best of the rounds counts.

The accuracies are against the best dual bound that is known to us, so they are upper bounds on the
truth. liblinear and liblinear-multicore end after 300 passes in any case. Vowpal Wabbit's penalty
is close to the problem's but not the same, and it computes in single precision.
"""
LOSSES = {"hinge": "max(0, 1 - y w.x)", "squared_hinge": "max(0, 1 - y w.x)^2"}
MARKS = """\
Marks in the tables: `*`: one measurement, of a peer that took more than 5 s and ten times as long
as the fastest, or whose other rounds missed the accuracy. `?`: the optimum is known less well than
to a tenth of the accuracy, so that peers may be better than shown.
"""


def write(results: dict[str, Any], folder: Path) -> None:
    """peers.md and peers.png."""
    (folder / "peers.md").write_text(markdown(results))
    if results["cells"]:
        pictures.overview(results, folder / "peers.png")


def markdown(results: dict[str, Any]) -> str:
    """All tables, with the machine."""
    cells: list[Cell] = results["cells"]
    names = list(results["versions"])
    versions = ", ".join(f"{name} {version}" for name, version in results["versions"].items())
    lines = ["# peers", "", ABOUT.format(loss=LOSSES[results.get("loss", "hinge")])]
    lines += [
        f"{measured_on(results['machine'])}. Threads: {results['threads']}; "
        f"rounds: {results['repeats']}; at most {results['max_seconds']:g} s for a fit.",
        "",
    ]
    lines += [f"Versions: {versions}."]
    if results["skipped"]:
        lines += ["", f"Not installed: {', '.join(results['skipped'])}."]
    if not cells:
        return "\n".join([*lines, "", "No data.", ""])
    accuracies = sorted({cell["accuracy"] for cell in cells}, reverse=True)
    lines += ["", "## In short", "", *_summary(cells, accuracies), "", MARKS.strip()]
    for accuracy in accuracies:
        these = [cell for cell in cells if cell["accuracy"] == accuracy]
        lines += ["", f"## To {percentage(accuracy)}: seconds", "", *_seconds(these, names)]
        lines += ["", f"## To {percentage(accuracy)}: accuracy reached, at most", ""]
        lines += _table(these, names, _accuracy)
        lines += ["", f"## To {percentage(accuracy)}: seconds over those of reading the data", ""]
        lines += [
            "How often the data could have been streamed through one core in the time of the fit.",
            "",
        ]
        lines += _table(these, names, _readings)
    lines += ["", "## Memory that a fit takes, in copies of the data", ""]
    lines += ["Besides the data, and besides what was made before the clock ran.", ""]
    lines += _memory(cells, names)
    return "\n".join([*lines, ""])


def _summary(cells: list[Cell], accuracies: list[float]) -> Iterator[str]:
    for accuracy in accuracies:
        these = [cell for cell in cells if cell["accuracy"] == accuracy]
        ratios = [r for r in map(ratio, these) if r is not None]
        ours = sum(cell["systems"][Ours.name]["seconds"] is not None for cell in these)
        peers = sum(fastest_peer(cell) is not None for cell in these)
        problems = "1 problem" if len(these) == 1 else f"{len(these)} problems"
        line = f"- To {percentage(accuracy)}, {problems}: ours got there on {ours}, "
        line += f"at least one peer on {peers}."
        if ratios:
            mean = float(np.exp(np.mean(np.log(ratios))))
            line += " Where both did, ours was faster than the fastest peer on "
            line += f"{sum(r < 1 for r in ratios)} of {len(ratios)}; seconds of ours over those of "
            line += f"the fastest peer: {mean:.2f} in the geometric mean, "
            line += f"{min(ratios):.2f} to {max(ratios):.2f}."
        yield line


def _seconds(cells: list[Cell], names: list[str]) -> list[str]:
    rows = []
    for cell in cells:
        quotient = ratio(cell)
        texts = [_time(cell["systems"].get(name)) for name in names]
        last = [fastest_peer(cell) or "none", "" if quotient is None else f"{quotient:.2f}"]
        mark = " `?`" if cell["reference is wide"] else ""
        rows.append([_data(cell), f"{cell['C']:g}{mark}", *texts, *last])
    return grid(["data", "C", *names, "fastest peer", "ours / fastest peer"], rows)


def _table(cells: list[Cell], names: list[str], text: Callable[[Cell, System], str]) -> list[str]:
    rows = []
    for cell in cells:
        of_systems = (cell["systems"].get(name) for name in names)
        texts = ["" if system is None else text(cell, system) for system in of_systems]
        rows.append([_data(cell), f"{cell['C']:g}", *texts])
    return grid(["data", "C", *names], rows)


def _memory(cells: list[Cell], names: list[str]) -> list[str]:
    rows = []
    for data_set in dict.fromkeys(cell["set"] for cell in cells):
        of_set = [cell for cell in cells if cell["set"] == data_set]
        size = of_set[0]["bytes"]
        texts = []
        for name in names:
            of_system = [cell["systems"].get(name, {}).get("memory") for cell in of_set]
            most = max((m for m in of_system if m is not None), default=None)
            texts.append("n/a" if most is None else f"{most / size:.2f}")
        rows.append([data_set, f"{size / 1e6:.1f}", *texts])
    return grid(["data", "MB", *names], rows)


def _time(system: System | None) -> str:
    if system is None:
        return ""
    if system["seconds"] is None:
        return "failed" if system["why"].startswith("failed") else "not reached"
    return f"{system['seconds']:.3g}" + ("" if system["repeated"] else " `*`")


def _accuracy(cell: Cell, system: System) -> str:
    text = system["why"] if system["seconds"] is None else f"{system['accuracy']:.1e}"
    return str(text).replace("|", "/")


def _readings(cell: Cell, system: System) -> str:
    return "" if system["seconds"] is None else f"{system['seconds'] / cell['reading']:.0f}"


def _data(cell: Cell) -> str:
    return f"{cell['set']}, {cell['rows']:,} x {cell['columns']:,}"
