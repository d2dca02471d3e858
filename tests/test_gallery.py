"""The gallery: the quickest scripts run here. The build of the site runs all."""

from __future__ import annotations

import runpy
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.pages import ROOT

plt = pytest.importorskip("matplotlib.pyplot", reason="pip install 'certsvm[plot]'")

QUICK = ("plot_gpu", "plot_intercept", "plot_linear_probe", "plot_windows")


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


def test_every_script_has_a_place_in_the_order() -> None:
    style = runpy.run_path(str(ROOT / "docs" / "_ext" / "gallery_style.py"))
    assert set(style["ORDER"]) == {path.name for path in (ROOT / "examples").glob("*.py")}


def test_the_probe_takes_files_or_makes_up_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    probe = str(ROOT / "examples" / "linear_probe.py")
    names = [f"{i}.npy" for i in range(4)]
    for name, array in zip(names, runpy.run_path(probe)["made_up_embeddings"](), strict=True):
        np.save(name, array[::2])
    for arguments, rows in ([], "3,200"), ([*names, "--report", "probe.html"], "1,600"):
        monkeypatch.setattr("sys.argv", [probe, *arguments])
        runpy.run_path(probe, run_name="__main__")
        fit, certificates, *accuracies = capsys.readouterr().out.splitlines()
        assert fit.startswith(f"{rows} rows, 64 columns")
        assert certificates.startswith("10 of 10 certificates met")
        assert [line.split()[0] for line in accuracies] == ["accuracy", "top"]
    assert Path("probe.html").stat().st_size > 10_000
