"""Plots with matplotlib."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from certsvm.certificates.certificate import LEAST_GAP

if TYPE_CHECKING:
    from certsvm.training.history import History

_COLOURS = [*(f"C{i}" for i in range(10)), "black", "gold", "navy", "lime", "crimson", "teal"]


def new_figure(width: float, height: float) -> Any:
    """An empty figure that belongs to no window."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError("plots need matplotlib: pip install 'certsvm[plot]'") from error

    return Figure(figsize=(width, height), layout="constrained")


def plot_comparison(
    histories: Mapping[str, History],
    dual: float,
    target: float,
    path: str | Path | None = None,
) -> Any:
    """Plot accuracy and proved gap of each solver against seconds and against passes.

    Solid lines show J / L - 1 with ``dual``, the best L of all solvers, wherever J was computed.
    Dashed lines show the gap that the solver itself has proved so far. What is below the level of
    rounding, 2.2e-16, is drawn there.
    """
    figure = new_figure(13, 4.5)
    axes = figure.subplots(1, 2, sharey=True)
    for column, axis in zip(("seconds", "passes"), axes, strict=True):
        for i, (name, history) in enumerate(histories.items()):
            colour = _COLOURS[i % len(_COLOURS)]
            x = history[column]
            primal = np.minimum.accumulate(np.nan_to_num(history["primal"], nan=np.inf))
            computed = np.isfinite(history["primal"])
            if dual > 0:
                accuracy = np.maximum(primal / dual - 1, LEAST_GAP)
                axis.plot(x[computed], accuracy[computed], color=colour, label=name)
            gaps = np.maximum(history["relative_gap"], LEAST_GAP)
            proved = np.isfinite(gaps)
            axis.plot(x[proved], gaps[proved], color=colour, linestyle="--", linewidth=0.8)
        axis.axhline(target, color="grey", linewidth=0.5)
        axis.set_xscale("log")
        axis.set_yscale("log")
        axis.set_xlabel(column)
    axes[0].set_ylabel("relative distance to the optimum, at most")
    figure.legend(
        *axes[1].get_legend_handles_labels(),
        loc="outside right upper",
        title="solid: accuracy\ndashed: proved",
        fontsize="small",
    )
    if path is not None:
        figure.savefig(path)
    return figure


def plot_path(
    fitted: Sequence[tuple[float, float]],
    Cs: Sequence[float],
    gaps: Sequence[float],
    tol: float,
    path: str | Path | None = None,
) -> Any:
    """Plot the proved gap over a range of C, with the fits as dots."""
    figure = new_figure(7, 4)
    axis = figure.subplots()
    finite = [gap for gap in [tol, *gaps] if np.isfinite(gap) and gap > 0]
    axis.plot(Cs, np.maximum(gaps, min(finite)), label="proved for every C")
    axis.plot(*zip(*fitted, strict=True), "o", markersize=4, label="fits")
    axis.axhline(tol, color="grey", linewidth=0.8, linestyle="--", label="asked for")
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.set_xlabel("C")
    axis.set_ylabel("relative distance to the optimum, at most")
    axis.legend()
    if path is not None:
        figure.savefig(path)
    return figure


def plot_curve(curve: Any, path: str | Path | None = None) -> Any:
    """Plot the error of cross-validation against C, with what is proved for every C.

    Parameters
    ----------
    curve : object
        With ``Cs``, ``errors``, ``edges``, ``lower``, ``upper``, ``C`` and ``bound``.
    path : path, default=None
        File to save the plot to.

    Returns
    -------
    figure : Figure
        The plot.
    """
    figure = new_figure(7, 4.5)
    axis = figure.subplots()
    if curve.lower.size:
        axis.stairs(
            curve.upper,
            curve.edges,
            baseline=curve.lower,
            fill=True,
            alpha=0.3,
            label="proved, for every C",
        )
        axis.axhline(curve.bound, color="grey", linestyle="--", label="nothing is below")
    axis.plot(curve.Cs, curve.errors, "o", color="C0", markersize=3, label="fits")
    chosen = curve.errors[np.searchsorted(curve.Cs, curve.C)]
    axis.plot([curve.C], [chosen], "*", color="C3", markersize=14, label=f"C = {curve.C:.3g}")
    axis.set_xscale("log")
    axis.set_xlabel("C")
    axis.set_ylabel("error of cross-validation")
    # The band may reach from 0 to 1 where the error was of no interest.
    top = float(np.nanmax(curve.errors))
    axis.set_ylim(0.0, min(1.0, max(1.5 * top, 1e-3)) if 0.0 <= top <= 1.0 else None)
    axis.legend()
    if path is not None:
        figure.savefig(path)
    return figure
