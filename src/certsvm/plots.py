"""Plots with matplotlib: for their own sake, and as SVG for pages and notebooks."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Mapping, Sequence
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
# Inches. A narrow chart is half as wide as a page, or as wide as a telephone.
_NARROW, _WIDE, _HEIGHT = 4.8, 9.8, 2.9
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
        raise ImportError("plots need matplotlib: pip install 'certsvm[plot]'") from error

    return Figure(figsize=(width, height), layout="constrained")


def svg(draw: Draw, label: str, width: float = _NARROW, kind: str = "chart") -> Html:
    """A chart as an element of a page, in whose colours it is.

    The attributes ``data-left`` to ``data-bottom`` have the ends of its axes.
    """
    figure = new_figure(width, _HEIGHT)
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
                columnspacing=1.5, ncols=2 if len(names) > 3 and width == _NARROW else 4,
            )  # fmt: skip
        unsaid = dict.fromkeys(("Creator", "Date", "Format", "Type"))
        figure.savefig(file, format="svg", transparent=True, metadata=unsaid)
    # Without a prolog, and without the names that are the same in every chart of a page.
    text = re.sub(r' id="[\w.]+_\d+"', "", file.getvalue()[file.getvalue().index("<svg") :])
    for colour, shown in _ON_PAGES.items():
        text = text.replace(colour, shown)
    # In points, from the left and from the top.
    ends = 72.0 * np.abs(axis.get_position().get_points() - (0, 1)) * (width, _HEIGHT)
    (left, bottom), (right, top) = ends.round(2).tolist()
    return Html(
        f'<svg class="{kind}" role="img" aria-label="{label}" data-left="{left}"'
        f' data-right="{right}" data-top="{top}" data-bottom="{bottom}" fill="currentColor"'
        f' style="width:100%;height:auto"{text[4:]}'
    )


def charts(**drawn: Draw) -> list[list[Html]]:
    """Charts beside each other; a single one is as wide as the page, be it wide or narrow."""
    sizes = {"chart": _NARROW} if len(drawn) > 1 else {"wide": _WIDE, "narrow": _NARROW}
    return [
        [svg(draw, label, width, kind) for kind, width in sizes.items()]
        for label, draw in drawn.items()
    ]


def notebook_chart(draw: Draw, label: str) -> Html | None:
    """A chart for a notebook; None without matplotlib."""
    try:
        chart = svg(draw, label)
    except ImportError:
        return None
    return Html(f'<div style="max-width:40em">{chart}</div>')


def saved(figure: Any, path: str | Path | None) -> Any:
    """The figure, saved if there is a path."""
    if path is not None:
        figure.savefig(path)
    return figure


def plot_comparison(
    histories: Mapping[str, Any], dual: float, target: float, path: str | Path | None = None
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
        axis.set(xscale="log", yscale="log", xlabel=column)
    axes[0].set_ylabel("relative distance to the optimum, at most")
    figure.legend(
        *axes[1].get_legend_handles_labels(), loc="outside right upper", fontsize="small",
        title="solid: accuracy\ndashed: proved",
    )  # fmt: skip
    return saved(figure, path)


def draw_bounds(axis: Any, label: str, x: Sequence[float], primal: Any, dual: Any) -> None:
    """J and L closing in on each other, against what has this label."""
    x, primal, dual = map(_drawable, (x, primal, dual))
    axis.plot(x, primal, label="J")
    axis.plot(x, dual, label="L")
    best, high = np.nanmax([0.0, *dual]), np.nanmax([0.0, *primal])
    if best > 0.0:
        high = min(high, _HIGHEST * best)
    axis.set(xlabel=label, ylabel="objective", ylim=(0.0, 1.05 * high or 1.0))
    axis.set_xlim(left=0.0)
    axis.locator_params(axis="x", nbins=6)


def draw_gap(axis: Any, label: str, x: Sequence[float], gaps: Any) -> None:
    """The relative gap against what has this label."""
    shown = _drawable(np.maximum(gaps, LEAST_GAP))
    axis.plot(_drawable(x), shown)
    axis.set(xlabel=label, ylabel="relative gap", yscale="log")
    axis.set_xlim(left=0.0)
    axis.locator_params(axis="x", nbins=6)
    powers = np.log10(shown[np.isfinite(shown)])
    if powers.size:
        # Whole powers of ten, lest ticks between them have labels of another kind.
        axis.set_ylim(10.0 ** np.floor(powers.min()), 10.0 ** (np.floor(powers.max()) + 1.0))


def draw_path(
    axis: Any, Cs: Sequence[float], gaps: Sequence[float], fitted: Sequence[float], tol: float
) -> None:
    """The proved gap over a range of C, with the fits as dots."""
    shown = _drawable(gaps)
    axis.plot(Cs, shown, label="proved for every C")
    at_fits = shown[np.searchsorted(Cs, fitted)]
    axis.plot(fitted, at_fits, "o", markersize=4, clip_on=False, label="fits")
    axis.axhline(tol, color="grey", linewidth=0.8, linestyle="--", label="asked for")
    axis.set(xscale="log", xlabel="C", xlim=(Cs[0], Cs[-1]), ylabel="relative gap, proved")
    _percent_from_zero(axis)


def draw_errors(axis: Any, Cs: Sequence[float], errors: Sequence[float]) -> None:
    """The share of wrong predictions at each C."""
    axis.plot(Cs, errors)
    axis.set(xscale="log", xlabel="C", xlim=(Cs[0], Cs[-1]), ylabel="wrong predictions")
    _percent_from_zero(axis)


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
        axis.set_xlim(curve.edges[0], curve.edges[-1])
    axis.plot(curve.Cs, curve.errors, "o", color="C0", markersize=3, label="fits")
    chosen = curve.errors[np.searchsorted(curve.Cs, curve.C)]
    axis.plot([curve.C], [chosen], "*", color="C3", markersize=14, label=f"C = {curve.C:.3g}")
    axis.set(xscale="log", xlabel="C", ylabel="error of cross-validation")
    # The band may reach from 0 to 1 where the error was of no interest.
    top = float(np.nanmax(curve.errors))
    _percent_from_zero(axis, min(1.0, max(1.5 * top, 1e-3)) if 0.0 <= top <= 1.0 else None)


def _percent_from_zero(axis: Any, top: float | None = None) -> None:
    from matplotlib.ticker import PercentFormatter

    axis.set_ylim(0.0, top)
    axis.yaxis.set_major_formatter(PercentFormatter(1.0, symbol=" %"))


def _drawable(values: Any) -> Any:
    """The values, NaN where matplotlib's own arithmetic would overflow."""
    return np.where(np.abs(values) <= _LARGEST, values, np.nan)
