"""How the pictures of the gallery look, and in which order they come."""

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

# As one would read them: what a certificate is, what it is good for, where the data may be, and the
# paper.
ORDER = (
    "plot_closing_in.py",
    "plot_text.py",
    "plot_audit.py",
    "plot_every_c.py",
    "plot_choose_c.py",
    "plot_intercept.py",
    "plot_verified.py",
    "plot_stream.py",
    "plot_cluster.py",
    "plot_linear_probe.py",
    "linear_probe.py",
    "plot_gpu.py",
    "plot_windows.py",
    "plot_solvers.py",
)


class ReadingOrder:
    """The key by which sphinx-gallery sorts scripts; one that is not listed is an error."""

    def __init__(self, folder: str) -> None:
        pass

    def __call__(self, name: str) -> int:
        """The place of a script."""
        return ORDER.index(name)


def apply(conf: dict[str, Any], file: str) -> None:
    """Set matplotlib's defaults before each script."""
    import matplotlib as mpl

    mpl.rcParams.update(STYLE)
