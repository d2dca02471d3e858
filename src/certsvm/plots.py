"""Plots with matplotlib: for their own sake, and as SVG for pages and notebooks."""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from certsvm.certificates.certificate import LEAST_GAP
from certsvm.markup import Html

_COLOURS = [*(f"C{i}" for i in range(10)), "black", "gold", "navy", "lime", "crimson", "teal"]
# What matplotlib draws with, and what pages show instead: they are light or dark.
_ON_PAGES = {"#000000": "currentColor"} | {
    colour: f"var(--certsvm-{i},{colour})"
    for i, colour in enumerate(("#1f77b4", "#ff7f0e", "#2ca02c", "#d62728"))
}
# Inches: half as wide as a page, or as wide as a telephone.
_WIDTH, _HEIGHT = 4.8, 2.9
# J is shown up to this multiple of the best L.
_HIGHEST = 2.0
_LARGEST = 1e150

Draw = Callable[[Any], object]
"""Draws on an axis of matplotlib."""


def new_figure(width: float, height: float) -> Any:
    """An empty figure that belongs to no window."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError("charts need matplotlib: pip install 'certsvm[plot]'") from error
    figure: Any = Figure(figsize=(width, height), layout="constrained")
    # For notebooks: matplotlib's own formatter goes first where it is active.
    figure._repr_png_ = partial(_png, figure)
    return figure


def _png(figure: Any) -> bytes:
    file = io.BytesIO()
    figure.savefig(file, format="png", bbox_inches="tight")
    return file.getvalue()


def svg(draw: Draw, label: str) -> Html:
    """A chart as an element of a page, in whose colours it is.

    The attributes ``data-left`` to ``data-bottom`` have the ends of its axes.
    """
    figure = new_figure(_WIDTH, _HEIGHT)
    from matplotlib import style

    file = io.StringIO()
    # Whatever the user's own style is.
    with style.context(["default", {"svg.fonttype": "none"}]):
        axis = figure.subplots()
        draw(axis)
        axis.spines[["top", "right"]].set_visible(False)
        if names := axis.get_legend_handles_labels()[1]:
            axis.legend(
                loc="lower right", bbox_to_anchor=(1, 1), frameon=False, handlelength=1.3,
                columnspacing=1.5, ncols=2 if len(names) > 3 else 4,
            )  # fmt: skip
        unsaid = dict.fromkeys(("Creator", "Date", "Format", "Type"))
        figure.savefig(file, format="svg", transparent=True, metadata=unsaid)
    # Without a prolog, and without the names that are the same in every chart of a page.
    text = re.sub(r' id="[\w.]+_\d+"', "", file.getvalue()[file.getvalue().index("<svg") :])
    for colour, shown in _ON_PAGES.items():
        text = text.replace(colour, shown)
    # In points, from the left and from the top.
    ends = 72.0 * np.abs(axis.get_position().get_points() - (0, 1)) * (_WIDTH, _HEIGHT)
    (left, bottom), (right, top) = ends.round(2).tolist()
    return Html(
        f'<svg class="chart" role="img" aria-label="{label}" data-left="{left}"'
        f' data-right="{right}" data-top="{top}" data-bottom="{bottom}" fill="currentColor"'
        f' style="width:100%;height:auto"{text[4:]}'
    )


def charts(**drawn: Draw) -> list[Html]:
    """Charts of a page, by their labels."""
    return [svg(draw, label) for label, draw in drawn.items()]


def notebook_chart(draw: Draw, label: str) -> Html | None:
    """A chart for a notebook; None without matplotlib."""
    with contextlib.suppress(ImportError):
        return Html(f'<div style="max-width:40em">{svg(draw, label)}</div>')
    return None


def plot(drawn: Sequence[Draw], path: str | Path | None = None) -> Any:
    """A figure with charts beside each other, which is saved if there is a path."""
    figure = new_figure(6.5 * len(drawn), 4)
    for axis, draw in zip(figure.subplots(1, len(drawn), squeeze=False).flat, drawn, strict=True):
        draw(axis)
        if 1 < len(axis.get_legend_handles_labels()[1]) <= len(_COLOURS):
            axis.legend()
    if path is not None:
        figure.savefig(path)
    return figure


def comparison_charts(histories: Mapping[str, Any], dual: float, target: float) -> list[Draw]:
    """Accuracy and proved gap of each solver against seconds, and against passes.

    Solid lines show J / L - 1 with ``dual``, the best L of all solvers, wherever J was computed.
    Dashed lines show the gap that the solver itself has proved so far. What is below the level of
    rounding, 2.2e-16, is drawn there.
    """

    def lines(axis: Any, column: str) -> None:
        for i, (name, history) in enumerate(histories.items()):
            x, how = history[column], {"color": _COLOURS[i % len(_COLOURS)]}
            primal = np.minimum.accumulate(np.nan_to_num(history["primal"], nan=np.inf))
            gaps = np.maximum(history["relative_gap"], LEAST_GAP)
            computed, proved = np.isfinite(history["primal"]), np.isfinite(gaps)
            if dual > 0:
                accuracy = np.maximum(primal / dual - 1, LEAST_GAP)
                _line(axis, x[computed], accuracy[computed], label=name, **how)
            _line(axis, x[proved], gaps[proved], linestyle="--", linewidth=0.8, **how)
        axis.axhline(target, color="grey", linewidth=0.5)
        axis.set(xscale="log", yscale="log", xlabel=column, ylabel="accuracy (dashed: proved)")

    return [partial(lines, column=column) for column in ("seconds", "passes")]


def training_charts(histories: Mapping[str, Any]) -> list[Draw]:
    """J and L of a single run against seconds, and the gap of each; J where nothing is proved."""
    runs = [(h["seconds"], *h.best_bounds(), h["relative_gap"]) for h in histories.values()]
    alone, proved = len(runs) == 1, any(np.isfinite(gaps).any() for *_, gaps in runs)

    def lines(axis: Any) -> None:
        for i, (name, (x, primal, _, gaps)) in enumerate(zip(histories, runs, strict=True)):
            how = {} if alone else {"label": name, "color": _COLOURS[i % len(_COLOURS)]}
            draw_gap(axis, "seconds", x, gaps if proved else primal, **how)
            if not proved:
                axis.set_ylabel("objective")

    x, primal, dual, _ = runs[0]
    bounds = partial(draw_bounds, xlabel="seconds", x=x, primal=primal, dual=dual)
    if not alone:
        return [lines]
    return [bounds, lines] if proved else [bounds]


def draw_bounds(axis: Any, xlabel: str, x: Sequence[float], primal: Any, dual: Any) -> None:
    """J and L closing in on each other, against what is called ``xlabel``."""
    x, primal, dual = map(_drawable, (x, primal, dual))
    best, high = np.nanmax([0.0, *dual]), np.nanmax([0.0, *primal])
    _line(axis, x, primal, label="J")
    if best > 0.0:
        _line(axis, x, dual, label="L")
        high = min(high, _HIGHEST * best)
    axis.set(xlabel=xlabel, ylabel="objective", ylim=(0.0, 1.05 * high or 1.0))
    axis.set_xlim(left=0.0)


def draw_gap(axis: Any, xlabel: str, x: Sequence[float], gaps: Any, **how: Any) -> None:
    """The relative gap against what is called ``xlabel``."""
    _line(axis, _drawable(x), _drawable(np.maximum(gaps, LEAST_GAP)), **how)
    axis.set(xlabel=xlabel, ylabel="relative gap", yscale="log")
    axis.set_xlim(left=0.0)


def draw_path(
    axis: Any, Cs: Sequence[float], gaps: Sequence[float], fitted: Sequence[float], tol: float
) -> None:
    """The proved gap over a range of C, with the fits as dots."""
    shown = _drawable(gaps)
    axis.plot(Cs, shown, label="proved for every C")
    if not np.isfinite(shown).any():
        axis.text(0.5, 0.5, "nothing is proved", ha="center", transform=axis.transAxes)
    at_fits = shown[np.searchsorted(Cs, fitted)]
    axis.plot(fitted, at_fits, "o", markersize=4, clip_on=False, label="fits")
    axis.axhline(tol, color="grey", linewidth=0.8, linestyle="--", label="asked for")
    _percent_against_C(axis, Cs, "relative gap, proved")


def draw_errors(axis: Any, Cs: Sequence[float], errors: Sequence[float]) -> None:
    """The share of wrong predictions at each C."""
    axis.plot(Cs, errors)
    _percent_against_C(axis, Cs, "wrong predictions")


def draw_curve(axis: Any, curve: Any) -> None:
    """The error of cross-validation against C, with what is proved for every C.

    Parameters
    ----------
    axis : Axes
        Where to draw.
    curve : object
        With ``Cs``, ``errors``, ``edges``, ``lower``, ``upper``, ``C`` and ``bound``.
    """
    if curve.lower.size:
        axis.stairs(
            curve.upper, curve.edges, baseline=curve.lower, fill=True, color="C0", alpha=0.3,
            label="proved, for every C",
        )  # fmt: skip
        axis.axhline(curve.bound, color="grey", linestyle="--", label="nothing is below")
    axis.plot(curve.Cs, curve.errors, "o", color="C0", markersize=3, label="fits")
    chosen = curve.errors[np.searchsorted(curve.Cs, curve.C)]
    axis.plot([curve.C], [chosen], "*", color="C3", markersize=14, label=f"C = {curve.C:.3g}")
    # The band may reach from 0 to 1 where the error was of no interest.
    top = float(np.nanmax(curve.errors))
    highest = min(1.0, max(1.5 * top, 1e-3)) if 0.0 <= top <= 1.0 else None
    _percent_against_C(axis, curve.edges, "error of cross-validation", highest)


def _line(axis: Any, x: Any, y: Any, **how: Any) -> None:
    """A line, or a dot if there is a single point."""
    axis.plot(x, y, marker="o" if np.isfinite(y).sum() == 1 else None, **how)


def _percent_against_C(
    axis: Any, Cs: Sequence[float], ylabel: str, top: float | None = None
) -> None:
    from matplotlib.ticker import LogLocator, PercentFormatter

    axis.set(xscale="log", xlabel="C", ylabel=ylabel, ylim=(0.0, top))
    if len(Cs) > 1:
        axis.set_xlim(Cs[0], Cs[-1])
    axis.xaxis.set_minor_locator(LogLocator(subs=(2.0, 5.0)))
    axis.yaxis.set_major_formatter(PercentFormatter(1.0, symbol=" %"))


def _drawable(values: Any) -> Any:
    """The values, NaN where matplotlib's own arithmetic would overflow."""
    return np.where(np.abs(values) <= _LARGEST, values, np.nan)
