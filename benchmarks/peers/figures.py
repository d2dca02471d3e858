"""Figures derived from a cell of the comparison, for tables and pictures."""

from __future__ import annotations

from typing import Any

from benchmarks.peers.adapters import Ours

Cell = dict[str, Any]


def ratio(cell: Cell) -> float | None:
    """Our time relative to the fastest peer; None unless both reached the accuracy."""
    ours, peer = cell["systems"][Ours.name]["seconds"], fastest_peer(cell)
    if ours is None or peer is None:
        return None
    return float(ours / cell["systems"][peer]["seconds"])


def fastest_peer(cell: Cell) -> str | None:
    """The name of the fastest peer that reached the accuracy, if any."""
    successful = {
        name: system["seconds"]
        for name, system in cell["systems"].items()
        if name != Ours.name and system["seconds"] is not None
    }
    return min(successful, key=lambda name: successful[name], default=None)


def percentage(accuracy: float) -> str:
    """A large accuracy in per cent, a small one as it is.

    Examples
    --------
    >>> percentage(0.01), percentage(1e-6)
    ('1 %', '1e-06')
    """
    return f"{100 * accuracy:g} %" if accuracy >= 1e-3 else f"{accuracy:g}"
