"""Progress of several problems, printed."""

from __future__ import annotations

import numpy as np
import pytest

from certsvm.fitting.fit_classes import PrintedProgress, fit_classes
from certsvm.fitting.sources import MemorySource
from certsvm.training.settings import Settings


@pytest.mark.parametrize("summary", [True, False])
def test_lines_and_summaries(summary: bool, capsys: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(0)
    source = MemorySource(rng.standard_normal((60, 3)), np.arange(60) % 3)
    settings = Settings(solver="dcd", max_iter=2, tol=0.0)
    fit_classes(source, settings, observers=[PrintedProgress(3, 0.0, summary=summary)])
    lines = capsys.readouterr().err.splitlines()
    passes = [line for line in lines if ": pass " in line]
    assert [line[:8] for line in passes] == ["class 0:"] * 2 + ["class 1:"] * 2 + ["class 2:"] * 2
    summaries = [line for line in lines if "2 passes, primal" in line]
    assert len(summaries) == (3 if summary else 0)
