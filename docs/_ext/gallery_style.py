"""How the pictures of the gallery look."""

from __future__ import annotations

from typing import Any

STYLE = {
    "figure.figsize": (8.0, 4.5),
    "figure.dpi": 110,
    "figure.constrained_layout.use": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlelocation": "left",
    "axes.grid": True,
    "grid.linewidth": 0.4,
    "grid.alpha": 0.5,
    "legend.frameon": False,
}


def apply(conf: dict[str, Any], file: str) -> None:
    """Set matplotlib's defaults before each script."""
    import matplotlib as mpl

    mpl.rcParams.update(STYLE)
