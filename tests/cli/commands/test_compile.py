"""What is said about compiling, certsvm compile, and the demonstration."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from certsvm import demo
from tests.cli.running import run_process, succeed, write


def test_compiling_is_said_once_and_timed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "kept"))
    write(tmp_path / "data")
    first = run_process("scale", "data", "out", cwd=tmp_path)
    assert first.code == 0
    assert first.err.count("compiling kernels, once") == 1
    second = run_process("info", "data", cwd=tmp_path)
    assert (second.code, second.err) == (0, "")


def test_a_cache_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    caching = pytest.importorskip("numba.core.caching")
    if not hasattr(caching, "UserProvidedCacheLocator"):
        pytest.skip("this Numba looks for other folders, too")
    (tmp_path / "file").touch()
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "file"))
    monkeypatch.setenv("NUMBA_CACHE_LOCATOR_CLASSES", "UserProvidedCacheLocator")
    write(tmp_path / "data")
    done = run_process("info", "data", cwd=tmp_path)
    assert done.code == 0
    assert done.err.count("NUMBA_CACHE_DIR") == 1
    assert "in every run" in done.err
    assert run_process("info", "data", "--json", cwd=tmp_path).err == ""
    refused = run_process("compile", cwd=tmp_path)
    assert refused.code == 2
    assert "NUMBA_CACHE_DIR" in refused.err


def test_after_compile_nothing_is_compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "kept"))
    done = run_process("compile", cwd=tmp_path)
    assert done.code == 0
    assert str(tmp_path / "kept") in done.out
    write(tmp_path / "data", n_rows=500, n_columns=90)
    X = np.random.default_rng(0).standard_normal((400, 70))
    rows = [",".join(map(repr, [*row, int(row[0] > 0.5)])) for row in X.tolist()]
    (tmp_path / "t.csv").write_text("\n".join([",".join(f"f{j}" for j in range(71)), *rows]))
    for name in ("data", "t.csv"):
        for options in ((), ("--float32",), ("-s", "1", "-B", "1", "-R")):
            told = run_process("train", name, "-o", "m", "--json", *options, cwd=tmp_path)
            assert told.code == 0
            assert told.json["seconds_to_compile"] == 0.0


def test_the_demonstration(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    X, y = demo.text_like(n_documents=1000, n_words=300, length=30)
    np.testing.assert_allclose(X.multiply(X).sum(axis=1), 1.0)
    assert 0.4 < (y == 1).mean() < 0.6
    monkeypatch.setattr(demo, "text_like", lambda: (X, y))
    shown = succeed("demo", cwd=tmp_path)
    assert "target 1e-05 % met" in shown.err
    assert "certificate confirmed" in shown.out
    assert "SGDClassifier" in shown.out
