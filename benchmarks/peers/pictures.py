"""The comparison and the growth curves as pictures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.peers.adapters import Ours
from benchmarks.peers.figures import Cell, percentage

_MARKERS = "osD^v<>P"


def overview(results: dict[str, Any], path: Path) -> None:
    """Every peer's seconds over ours: a row for each problem, a panel for each accuracy."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        print("matplotlib is not installed: no picture")
        return
    cells: list[Cell] = results["cells"]
    accuracies = sorted({cell["accuracy"] for cell in cells}, reverse=True)
    rows = list(dict.fromkeys((cell["set"], cell["C"]) for cell in cells))
    peers = [name for name in results["versions"] if name != Ours.name]
    figure = Figure(figsize=(3 + 5 * len(accuracies), 1.8 + 0.28 * len(rows)), layout="constrained")
    axes = figure.subplots(1, len(accuracies), sharey=True, squeeze=False)[0]
    for accuracy, axis in zip(accuracies, axes, strict=True):
        systems_of_rows = {
            rows.index((c["set"], c["C"])): c["systems"] for c in cells if c["accuracy"] == accuracy
        }
        _panel(axis, systems_of_rows, peers)
        axis.set_title(f"to a true {percentage(accuracy)}")
    axes[0].set_yticks(range(len(rows)), [f"{name}, C = {C:g}" for name, C in rows])
    axes[0].set_ylim(len(rows) - 0.5, -0.5)
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside right upper")
    figure.savefig(path, dpi=120)


def _panel(axis: Any, systems_of_rows: dict[int, Cell], peers: list[str]) -> None:
    """One accuracy; peers that did not reach it are in a grey strip on the right."""
    ratios = {
        (peer, row): systems[peer]["seconds"] / systems[Ours.name]["seconds"]
        for row, systems in systems_of_rows.items()
        for peer in peers
        if systems[Ours.name]["seconds"] and systems[peer]["seconds"]
    }
    band = 1.5 * max(1.0, *ratios.values()) if ratios else 1.5
    for i, peer in enumerate(peers):
        # Side by side in the band, so that none hides another.
        unreached = band * 1.3 ** (i + 1)
        points = {
            row: ratios.get((peer, row), unreached)
            for row, systems in systems_of_rows.items()
            if systems[Ours.name]["seconds"]
        }
        axis.scatter(
            list(points.values()), list(points), s=28, color=f"C{i}", label=peer,
            marker=_MARKERS[i % len(_MARKERS)],
        )  # fmt: skip
    edges = band, band * 1.3 ** (len(peers) + 1)
    axis.axvspan(*edges, color="lightgrey", zorder=0, label="not reached")
    axis.axvline(1.0, color="black", linewidth=1)
    axis.set_xscale("log")
    axis.set_xlabel("seconds of the peer / seconds of ours\n(right of the line: ours is faster)")
    axis.grid(linewidth=0.3)
    axis.set_axisbelow(True)


def growth(table: list[dict[str, Any]], path: Path) -> None:
    """Nanoseconds per stored value and pass against the growth of rows or columns."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        print("matplotlib is not installed: no picture")
        return
    figure = Figure(figsize=(9, 4), layout="constrained")
    axes = figure.subplots(1, 2)
    solvers = list(dict.fromkeys(row["solver"] for row in table))
    for axis, solver in zip(axes, solvers, strict=True):
        for what in dict.fromkeys(row["growing"] for row in table):
            curve = [r for r in table if r["solver"] == solver and r["growing"] == what]
            axis.plot([r["times"] for r in curve], [r["ns per value and pass"] for r in curve],
                      marker="o", label=f"more {what}")  # fmt: skip
        axis.set_xscale("log", base=2)
        axis.set_ylim(bottom=0)
        axis.set_title(solver)
        axis.set_xlabel("times as many")
        axis.legend()
    axes[0].set_ylabel("nanoseconds per stored value and pass")
    figure.savefig(path, dpi=120)
