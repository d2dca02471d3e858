"""Plots hold what was measured."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from certsvm import compare
from certsvm.plots import draw_bounds, draw_gap, plot_comparison, svg
from certsvm.training.history import History, Record
from tests.cli.running import noisy

pytest.importorskip("matplotlib")


def test_lines_are_accuracies_and_proved_gaps(tmp_path: Path) -> None:
    X, y = noisy()
    result = compare(X, y, solvers=["dcd", "pegasos"], max_iter=20, random_state=0)
    path = tmp_path / "plot.png"
    figure = plot_comparison(result.histories, result.dual, 0.01, path)
    assert path.read_bytes().startswith(b"\x89PNG")
    assert [axis.get_xlabel() for axis in figure.axes] == ["seconds", "passes"]
    _, passes = figure.axes
    lines = {line.get_label(): line for line in passes.lines}
    for name in ("dcd", "pegasos"):
        history = result.histories[name]
        computed = np.isfinite(history["primal"])
        np.testing.assert_array_equal(lines[name].get_xdata(), history["passes"][computed])
        accuracy = lines[name].get_ydata()
        assert (np.diff(accuracy) <= 0).all()
        assert accuracy[-1] == np.nanmin(history["primal"]) / result.dual - 1
    dashed = [line for line in passes.lines if line.get_linestyle() == "--"]
    assert max(len(line.get_xdata()) for line in dashed) > 0


def test_a_gap_below_rounding_has_a_place_on_the_axis() -> None:
    history = History()
    for passes, (primal, gap) in enumerate([(3.0, 0.5), (2.0, 0.0)], start=1):
        history.append(Record(0.1 * passes, passes, passes, primal=primal, relative_gap=gap))
    figure = plot_comparison({"solver": history}, 2.0000000000000004, 0.01)
    solid, dashed, _ = figure.axes[1].lines
    assert 0.0 < solid.get_ydata()[-1] == dashed.get_ydata()[-1] < 1e-15


@settings(max_examples=20, deadline=None)
@given(
    st.lists(
        st.sampled_from(
            [-np.inf, -1e308, -1e-320, 0.0, 5e-324, 1e-300, 1.0, 1e300, 1.7e308, np.inf]
        ),
        min_size=2,
        max_size=5,
    )
)
def test_whatever_a_file_says_can_be_drawn(values: list[float]) -> None:
    x = list(range(1, len(values) + 1))
    for draw in (
        lambda axis: draw_bounds(axis, "passes", x, values, values[::-1]),
        lambda axis: draw_gap(axis, "passes", x, values),
    ):
        drawn = svg(draw, "chart")
        assert drawn.startswith("<svg")
        assert "passes" in drawn
        # Pages have other colours.
        assert "#000000" not in drawn
