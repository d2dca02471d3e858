"""The demonstration as a command, on a small problem."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from certsvm import demo
from tests.cli.running import run


def test_the_demonstration(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    X, y = demo.text_like(n_documents=1000, n_words=300, length=30)
    np.testing.assert_allclose(X.multiply(X).sum(axis=1), 1.0)
    assert 0.4 < (y == 1).mean() < 0.6
    monkeypatch.setattr(demo, "text_like", lambda: (X, y))
    shown = run("demo", cwd=tmp_path)
    assert shown.code == 0
    assert "target 1e-05 % met" in shown.err
    assert "certificate confirmed" in shown.out
    assert "SGDClassifier" in shown.out
