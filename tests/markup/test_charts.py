"""Charts put points where they belong."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from certsvm.markup.charts import Axis, Band, Chart, Line, axis_for, bars

numbers = st.floats(1e-9, 1e9)


@given(st.lists(numbers, min_size=1), st.booleans())
def test_an_axis_contains_its_values_and_its_ticks(values: list[float], logarithmic: bool) -> None:
    axis = axis_for("x", values, logarithmic=logarithmic)
    assert axis.low <= min(values) * (1 + 1e-12)
    assert max(values) <= axis.high * (1 + 1e-12)
    assert all(-1e-9 <= axis.share(v) <= 1 + 1e-9 for v in [*values, *axis.ticks])
    assert 1 <= len(axis.ticks) <= 9


def test_values_that_are_none_do_not_count() -> None:
    axis = axis_for("x", [math.nan, math.inf, -1.0, 0.0, 0.02], logarithmic=True)
    assert (axis.low, axis.high) == (0.01, 0.1)
    assert axis_for("x", []).low < axis_for("x", []).high


@given(
    st.lists(st.sampled_from([-1e308, -1e-320, 0.0, 5e-324, 1e-300, 1.0, 1e300, 1.7e308])),
    st.booleans(),
)
def test_extreme_values_are_drawn_or_left_out(values: list[float], logarithmic: bool) -> None:
    axis = axis_for("x", values, logarithmic=logarithmic)
    assert all(math.isfinite(tick) for tick in axis.ticks)
    assert all(0.0 <= axis.share(value) <= 1.0 for value in values)


def test_shares() -> None:
    assert Axis("C", 0.01, 1.0, logarithmic=True).share(0.1) == pytest.approx(0.5)
    assert Axis("s", 0.0, 4.0).share(1.0) == 0.25
    assert Axis("s", 0.0, 4.0).share(9.0) == 1.0


def test_a_chart_draws_what_is_finite() -> None:
    chart = Chart(Axis("x", 0.0, 1.0), Axis("y", 0.0, 1.0), width=100.0, height=100.0)
    drawn = chart.svg(
        [Line("line", [0.0, 0.5, 1.0], [0.0, math.inf, 1.0]), Line("dot", [0.5], [0.5])],
        [Band("band", [0.0, 0.5, 1.0], [0.1, 0.2], [0.8, 0.9])],
    )
    (x0, y0), (x1, y1) = chart.place(0.0, 0.0), chart.place(1.0, 1.0)
    assert f'points="{x0},{y0} {x1},{y1}"' in drawn
    assert drawn.count("<circle") == 1
    assert drawn.count("<polygon") == 1
    assert all(name in drawn for name in ("line", "dot", "band"))
    assert y1 < y0
    assert x0 < x1


def test_bars_have_an_interval_each() -> None:
    drawn = bars(["a", "<b>"], [1.0, -2.0], [0.5, -math.inf], [1.5, math.inf], "weight")
    assert drawn.count("<rect") == 2
    assert "&lt;b&gt;" in drawn
    assert "<b>" not in drawn
