"""The demonstration, on a small problem."""

from typing import Any

import numpy as np
import pytest

from certsvm import demo


def test_text_like_rows() -> None:
    X, y = demo.text_like(n_documents=2000, n_words=500, length=30)
    assert X.shape == (2000, 500)
    np.testing.assert_allclose(X.multiply(X).sum(axis=1), 1.0)
    assert X.has_canonical_format
    assert 0.4 < (y == 1).mean() < 0.6


def test_main(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    small = demo.text_like(n_documents=1000, n_words=300, length=30)
    monkeypatch.setattr(demo, "text_like", lambda: small)
    demo.main()
    out, err = capsys.readouterr()
    assert "target 1 % met" in err
    assert "certificate confirmed" in out
    assert "SGDClassifier" in out
