"""Rounds on up to 1000 workers, simulated event by event, against the cost model.

The client submits tasks and sends w to the workers one after the other. The time of a worker varies
by about a tenth, and the slowest one counts. Sums are added in a tree with a fan-in of eight, and a
receiver gets its inputs one after the other. The network moves 1 GB/s to or from a machine. Only
time is simulated; the number of rounds to one per cent (20 for Newton, 60 for CoCoA) is the
assumption of ``certsvm.dask.costs``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from certsvm.dask.costs import (
    COCOA_ROUNDS,
    NEWTON_ROUNDS,
    Network,
    Shape,
    cocoa_round,
    newton_round,
)

# Rows, stored values, columns.
SHAPES = [
    (1e6, 1e8, 100.0),
    (1e8, 1e10, 1000.0),
    (1e9, 1e12, 2000.0),
    (1e9, 1e12, 1e6),
]
WORKERS = (1, 10, 100, 1000)
_JITTER = 0.1
_FAN_IN = 8


def run(folder: Path | None) -> list[dict[str, Any]]:
    network = Network()
    table = []
    for rows, stored, columns in SHAPES:
        for workers in WORKERS:
            shape = Shape(rows, stored, columns, workers)
            for solver in ("smoothed-newton", "cocoa"):
                if solver == "smoothed-newton" and columns > 5000:
                    continue
                newton = solver == "smoothed-newton"
                model = (newton_round if newton else cocoa_round)(shape, network)
                simulated = float(
                    np.median([simulate(shape, network, newton, i) for i in range(5)])
                )
                table.append(
                    {
                        "rows": f"{rows:.0e}",
                        "values": f"{stored:.0e}",
                        "columns": f"{columns:.0e}",
                        "workers": workers,
                        "solver": solver,
                        "simulated, s a round": f"{simulated:.3g}",
                        "model, s a round": f"{model:.3g}",
                        "minutes to 1 %": f"{simulated * rounds(newton) / 60:.2g}",
                    }
                )
    return table


def rounds(newton: bool) -> int:
    return NEWTON_ROUNDS if newton else COCOA_ROUNDS


def simulate(shape: Shape, network: Network, newton: bool, seed: int) -> float:
    """Seconds of one round."""
    rng = np.random.default_rng(seed)
    G, d = shape.groups, shape.columns
    alone = Network(bandwidth=np.inf, latency=0.0, per_task=0.0)
    # The work alone, without the system that the client solves.
    work = (newton_round if newton else cocoa_round)(shape, alone) - 2e-11 * d**3 * newton
    durations = work * np.exp(_JITTER * rng.standard_normal(G))
    per_group = 1 if newton else 2
    begun = np.arange(1, G + 1) * (network.per_task * per_group + 8.0 * d / network.bandwidth)
    ready = begun + network.latency * (per_group + 0.5) + durations
    size = 8.0 * d * (d if newton else 1.0)
    while ready.size > _FAN_IN:
        ready = np.array(
            [
                received(ready[i : i + _FAN_IN], size, network) + network.latency + network.per_task
                for i in range(0, ready.size, _FAN_IN)
            ]
        )
    return received(ready, size, network) + 0.5 * network.latency + 2e-11 * d**3 * newton


def received(ready: Any, size: float, network: Network) -> float:
    """When the last result has arrived, if the receiver gets them one after the other."""
    now = 0.0
    for moment in np.sort(ready):
        now = max(now, float(moment)) + size / network.bandwidth
    return now
