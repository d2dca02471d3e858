"""The gallery: every script is one, and the quickest run here. The build of the site runs all."""

from __future__ import annotations

import ast
import re
import runpy
import warnings
from pathlib import Path
from typing import Any

import pytest

from tests.pages import ROOT

plt = pytest.importorskip("matplotlib.pyplot", reason="pip install 'certsvm[plot]'")

SCRIPTS = sorted((ROOT / "examples").glob("plot_*.py"))
QUICK = ("plot_gpu", "plot_intercept", "plot_windows")


def test_there_are_scripts() -> None:
    assert len(SCRIPTS) >= 10
    assert {path.stem for path in SCRIPTS} >= set(QUICK)


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_a_script_has_a_title_sections_and_a_picture(script: Path) -> None:
    source = script.read_text()
    title, underline, empty, *_ = ast.get_docstring(ast.parse(source)).splitlines()
    assert (set(underline), len(underline), empty) == ({"="}, len(title), "")
    assert "\n# %%\n" in source
    # Sections with a title begin with a mark that sphinx-gallery knows.
    titles = re.findall(r"^# -{3,}$", source, re.MULTILINE)
    assert len(titles) <= len(re.findall(r"^# %%$", source, re.MULTILINE))
    assert not re.search(r"^##", source, re.MULTILINE)
    # The picture is the end, but for a word about it.
    code = [line for line in source.splitlines() if line and not line.startswith("#")]
    assert code[-1] == "plt.show()"
    # Nobody reads more than a screen or two.
    assert len(source.splitlines()) <= 110


@pytest.mark.parametrize("name", QUICK)
def test_a_script_runs_and_draws(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[Any] = []

    def show() -> None:
        drawn.extend(plt.figure(number) for number in plt.get_fignums())
        plt.close("all")

    plt.switch_backend("Agg")
    monkeypatch.setattr(plt, "show", show)
    monkeypatch.chdir(ROOT / "examples")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        runpy.run_path(f"{name}.py")
    assert drawn
    for figure in drawn:
        figure.canvas.draw()
        shown = [axes for axes in figure.axes if axes.axison]
        for axes in shown:
            assert axes.get_xlabel(), axes
            assert axes.get_ylabel(), axes
        # A stored picture fills the figure and has its axes inside.
        assert shown or figure.axes[0].images


def test_the_linear_probe_proves_its_classes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("torch")
    monkeypatch.setattr("sys.argv", ["linear_probe.py", "--rows", "2000", "--classes", "10"])
    runpy.run_path(str(ROOT / "examples" / "linear_probe.py"), run_name="__main__")
    assert "10 classes, the worst 0." in capsys.readouterr().out


def test_every_script_has_a_place_in_the_order() -> None:
    style = runpy.run_path(str(ROOT / "docs" / "_ext" / "gallery_style.py"))
    assert set(style["ORDER"]) == {path.name for path in (ROOT / "examples").glob("*.py")}
