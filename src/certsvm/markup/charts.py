"""Charts as SVG: lines and bands over linear or logarithmic axes, and bars with intervals.

Colours are CSS variables with defaults, and text has the colour of its surroundings, so that a
chart suits a light and a dark page.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from certsvm.markup.html import Html, element

COLOURS = ("#2563eb", "#d97706", "#059669", "#9333ea", "#dc2626", "#475569")
# Distances from the edges of the picture to the axes: left, right, top, bottom.
_MARGINS = (64.0, 16.0, 30.0, 44.0)
_MOST_TICKS = 7
# Between these, quotients and differences of an axis neither overflow nor vanish.
_LEAST, _LARGEST = 1e-150, 1e150


@dataclass(frozen=True)
class Line:
    """Points to connect, or to mark by dots."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    dots: bool = False
    dashed: bool = False


@dataclass(frozen=True)
class Band:
    """From ``low`` to ``high`` in each of the pieces between ``edges``."""

    name: str
    edges: Sequence[float]
    low: Sequence[float]
    high: Sequence[float]


@dataclass(frozen=True)
class Axis:
    """A linear or logarithmic axis.

    Examples
    --------
    >>> Axis("C", 0.01, 10.0, logarithmic=True).ticks
    [0.01, 0.1, 1.0, 10.0]
    >>> Axis("seconds", 0.0, 3.0).ticks
    [0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0]
    """

    label: str
    low: float
    high: float
    logarithmic: bool = False

    @property
    def ticks(self) -> list[float]:
        """Round numbers between the ends."""
        if self.logarithmic:
            first = math.ceil(math.log10(self.low) - 1e-9)
            last = math.floor(math.log10(self.high) + 1e-9)
            every = max(1, -(-(last - first + 1) // _MOST_TICKS))
            return [10.0**power for power in range(first, last + 1, every)]
        span = self.high - self.low
        unit = 10.0 ** math.floor(math.log10(span / 4.0))
        step = unit * next(f for f in (1.0, 2.0, 5.0, 10.0) if span / (f * unit) <= _MOST_TICKS - 1)
        start = math.ceil(self.low / step - 1e-9)
        return [i * step for i in range(start, math.floor(self.high / step + 1e-9) + 1)]

    def share(self, value: float) -> float:
        """The position of a value, from 0 to 1; values beyond the ends are moved to them."""
        value = min(max(value, self.low), self.high)
        if self.logarithmic:
            return math.log(value / self.low) / math.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)


def axis_for(
    label: str,
    values: Sequence[float],
    *,
    logarithmic: bool = False,
    low: float | None = None,
    high: float | None = None,
) -> Axis:
    """An axis that contains the finite values, or ends where it is told to.

    Values so large or small that its arithmetic would overflow or underflow count as none.

    Examples
    --------
    >>> axis_for("gap", [0.5, 0.002, float("inf")], logarithmic=True)
    Axis(label='gap', low=0.001, high=1.0, logarithmic=True)
    """
    drawable = [v for v in values if abs(v) <= _LARGEST and (v >= _LEAST or not logarithmic)]
    finite = drawable or [1.0]
    if logarithmic:
        low = 10.0 ** math.floor(math.log10(min(finite))) if low is None else low
        high = 10.0 ** math.ceil(math.log10(max(finite))) if high is None else high
        return Axis(label, low, high if high > low else 10.0 * low, logarithmic=True)
    low = min(finite) if low is None else low
    high = max(finite) if high is None else min(high, _LARGEST)
    if not high - low >= _LEAST:
        low, high = low - 0.5 * abs(low) - 0.5, high + 0.5 * abs(high) + 0.5
    return Axis(label, low, high)


@dataclass(frozen=True)
class Chart:
    """Lines and bands over two axes.

    Examples
    --------
    >>> chart = Chart(Axis("seconds", 0.0, 1.0), Axis("J", 0.0, 2.0))
    >>> chart.svg([Line("primal", [0.0, 1.0], [2.0, 1.0])]).startswith("<svg")
    True
    """

    x: Axis
    y: Axis
    width: float = 560.0
    height: float = 280.0
    attributes: dict[str, object] = field(default_factory=dict)

    def place(self, x: float, y: float) -> tuple[float, float]:
        """The position of a point in the picture."""
        left, right, top, bottom = _MARGINS
        return (
            round(left + self.x.share(x) * (self.width - left - right), 2),
            round(self.height - bottom - self.y.share(y) * (self.height - top - bottom), 2),
        )

    def svg(self, lines: Sequence[Line], bands: Sequence[Band] = ()) -> Html:
        """The picture, with a legend."""
        items: list[Line | Band] = [*bands, *lines]
        drawn = [
            self._band(item, i) if isinstance(item, Band) else self._line(item, i)
            for i, item in enumerate(items)
        ]
        names = [item.name for item in items]
        return element(
            "svg", *self._frame(), *drawn, self._legend(names),
            viewBox=f"0 0 {self.width:g} {self.height:g}", role="img",
            style=f"max-width:{self.width:g}px;width:100%;height:auto",
            aria_label=f"{self.y.label} against {self.x.label}: {', '.join(names)}",
            data_left=_MARGINS[0], data_right=self.width - _MARGINS[1],
            data_top=_MARGINS[2], data_bottom=self.height - _MARGINS[3], **self.attributes,
        )  # fmt: skip

    def _frame(self) -> list[Html]:
        x0, y0 = self.place(self.x.low, self.y.low)
        x1, y1 = self.place(self.x.high, self.y.high)
        grid: list[Html] = []
        for tick in self.y.ticks:
            _, y = self.place(self.x.low, tick)
            grid.append(element("line", x1=x0, x2=x1, y1=y, y2=y, style=_style("grid")))
            grid.append(_text(_number(tick), x0 - 8, y + 4, "end"))
        for tick in self.x.ticks:
            x, _ = self.place(tick, self.y.low)
            grid.append(element("line", x1=x, x2=x, y1=y0, y2=y0 + 5, style=_style("axis")))
            grid.append(_text(_number(tick), x, y0 + 18, "middle"))
        grid.append(element("line", x1=x0, x2=x1, y1=y0, y2=y0, style=_style("axis")))
        grid.append(_text(self.x.label, 0.5 * (x0 + x1), y0 + 36, "middle"))
        grid.append(
            element(
                "text", self.y.label, transform=f"translate(14 {0.5 * (y0 + y1):g}) rotate(-90)",
                text_anchor="middle", style=_style("text"),
            )
        )  # fmt: skip
        return grid

    def _line(self, line: Line, i: int) -> Html:
        colour = colour_of(i)
        points = [
            self.place(x, y)
            for x, y in zip(line.x, line.y, strict=True)
            if math.isfinite(x) and math.isfinite(y)
        ]
        if line.dots or len(points) == 1:
            return element(
                "g",
                *(element("circle", cx=x, cy=y, r=3.5, style=f"fill:{colour}") for x, y in points),
            )
        dash = ";stroke-dasharray:5 4" if line.dashed else ""
        return element(
            "polyline", points=" ".join(f"{x},{y}" for x, y in points),
            style=f"fill:none;stroke:{colour};stroke-width:2{dash}",
        )  # fmt: skip

    def _band(self, band: Band, i: int) -> Html:
        upper, lower = [], []
        for a, b, low, high in zip(
            band.edges[:-1], band.edges[1:], band.low, band.high, strict=True
        ):
            upper += [self.place(a, high), self.place(b, high)]
            lower += [self.place(a, low), self.place(b, low)]
        points = " ".join(f"{x},{y}" for x, y in upper + lower[::-1])
        return element(
            "polygon", points=points, style=f"fill:{colour_of(i)};fill-opacity:0.22;stroke:none"
        )

    def _legend(self, names: Sequence[str]) -> Html:
        # Beside each other above the axes, from right to left.
        x, y, keys = self.width - _MARGINS[1], 14.0, []
        for i, name in reversed(list(enumerate(names))):
            x -= 7.0 * len(name) + 24.0
            keys.append(
                element("rect", x=x, y=y - 8, width=10, height=10, style=f"fill:{colour_of(i)}")
            )
            keys.append(_text(name, x + 14, y + 1, "start"))
        return element("g", *keys)


def bars(
    names: Sequence[str],
    values: Sequence[float],
    low: Sequence[float],
    high: Sequence[float],
    label: str,
    width: float = 560.0,
) -> Html:
    """Horizontal bars from zero, each with an interval.

    Examples
    --------
    >>> bars(["age"], [0.5], [0.4], [0.6], "weight").count("<rect")
    1
    """
    row, left, right, top = 22.0, 180.0, 16.0, 6.0
    most = max([abs(v) for v in [*values, *low, *high] if math.isfinite(v)], default=1.0) or 1.0
    axis = Axis(label, -most, most)
    height = top + row * len(names) + 40.0

    def place(value: float) -> float:
        return round(left + axis.share(value) * (width - left - right), 2)

    bottom = top + row * len(names)
    drawn: list[Html] = []
    for tick in axis.ticks:
        x = place(tick)
        drawn.append(element("line", x1=x, x2=x, y1=top, y2=bottom, style=_style("grid")))
        drawn.append(_text(_number(tick), x, bottom + 16, "middle"))
    for i, (name, value, a, b) in enumerate(zip(names, values, low, high, strict=True)):
        y = top + row * i
        x0, x1 = sorted((place(0.0), place(value)))
        drawn.append(_text(_shortened(name), left - 8, y + 15, "end"))
        drawn.append(
            element(
                "rect", element("title", f"{name}: {value:.4g}, from {a:.4g} to {b:.4g}"),
                x=x0, y=y + 4, width=max(x1 - x0, 0.5), height=row - 8,
                style=f"fill:{colour_of(0 if value >= 0 else 4)};fill-opacity:0.75",
            )
        )  # fmt: skip
        middle = y + 0.5 * row
        drawn.append(
            element(
                "line", x1=place(a), x2=place(b), y1=middle, y2=middle,
                style="stroke:currentColor;stroke-width:1.5",
            )
        )  # fmt: skip
    drawn.append(_text(label, left + 0.5 * (width - left - right), bottom + 34, "middle"))
    return element(
        "svg", *drawn, viewBox=f"0 0 {width:g} {height:g}", role="img",
        style=f"max-width:{width:g}px;width:100%;height:auto",
        aria_label=f"{label} of {len(names)} columns",
    )  # fmt: skip


def colour_of(i: int) -> str:
    """The colour of the i-th line."""
    i %= len(COLOURS)
    return f"var(--certsvm-{i},{COLOURS[i]})"


def _style(kind: str) -> str:
    return {
        "grid": "stroke:currentColor;stroke-opacity:0.12",
        "axis": "stroke:currentColor;stroke-opacity:0.6",
        "text": "fill:currentColor;font:12px system-ui,sans-serif",
    }[kind]


def _text(text: str, x: float, y: float, anchor: str) -> Html:
    return element(
        "text", text, x=round(x, 2), y=round(y, 2), text_anchor=anchor, style=_style("text")
    )


def _number(value: float) -> str:
    return f"{value:.4g}" if value == 0.0 or 1e-4 <= abs(value) < 1e5 else f"{value:.0e}"


def _shortened(name: str, most: int = 24) -> str:
    return name if len(name) <= most else name[: most - 1] + "…"
