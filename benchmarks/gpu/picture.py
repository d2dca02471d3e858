"""The picture of docs/_static/gpu.png, from what was measured: python -m benchmarks.gpu.picture."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt

ROOT = Path(__file__).parents[2]
MEASURED = ROOT / "benchmarks" / "results" / "gpu.json"
PICTURE = ROOT / "docs" / "_static" / "gpu.png"
TABLE = "1,000,000 x 1024, float32, with PyTorch's optimisers"
COLUMN = "to 1e-05, s"
# Where the optimisers were stopped, in seconds.
LIMIT = 4.0
SYSTEMS = {"certsvm, with the proof": "C0", "L-BFGS": "C1", "SGD, best of three steps": "0.6"}
TITLES = {
    "as of embeddings": "Rows like embeddings",
    "alike": "Isotropic rows, the easiest case",
}


def seconds_of(rows: list[dict[str, Any]], system: str) -> float | None:
    """The best time of a system, or None if it took longer than the limit."""
    name = system.partition(",")[0]
    times = [row[COLUMN] for row in rows if row["system"].partition(",")[0] == name]
    return min((time for time in times if isinstance(time, float)), default=None)


def main() -> None:
    measured = json.loads(MEASURED.read_text())
    rows = measured["tables"][TABLE]
    figure, axes = plt.subplots(1, 2, figsize=(9, 4.2), sharey=True, layout="constrained")
    for axis, (directions, title) in zip(axes, TITLES.items(), strict=True):
        here = [row for row in rows if row["directions"] == directions]
        Cs = sorted({row["C"] for row in here})
        for j, (system, colour) in enumerate(SYSTEMS.items()):
            for i, C in enumerate(Cs):
                time = seconds_of([row for row in here if row["C"] == C], system)
                place = i + 0.26 * (j - 1)
                axis.barh(
                    place, time or LIMIT, 0.24, color=colour, label=system if i == 0 else None,
                    alpha=1.0 if time else 0.35,
                )  # fmt: skip
                text = f" {time:.2g} s" if time else f" > {LIMIT:g} s"
                axis.text(time or LIMIT, place, text, verticalalignment="center", fontsize=9)
        axis.set(xscale="log", xlim=(0.02, 20), xlabel="seconds to 0.001 % of the optimum")
        axis.set_yticks(range(len(Cs)), [f"C = {C:g}" for C in Cs])
        axis.set_title(title, loc="left")
        axis.spines[["top", "right"]].set_visible(False)
    axes[0].invert_yaxis()
    machine = measured["machine"]
    figure.suptitle(
        f"A million rows of 1024 columns on one {machine['card']}, {machine['date']}", fontsize=12
    )
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False)
    figure.savefig(PICTURE, dpi=110)


if __name__ == "__main__":
    main()
