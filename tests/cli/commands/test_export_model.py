"""Exporting models to liblinear."""

from __future__ import annotations

from pathlib import Path

from tests.cli.running import run, write


def test_liblinear_models(tmp_path: Path) -> None:
    write(tmp_path / "data")
    run("train", "data", "-q", cwd=tmp_path)
    assert run("export", "data.model", "text", cwd=tmp_path).code == 0
    assert (tmp_path / "text").read_text().startswith("solver_type L2R_L1LOSS_SVC_DUAL")
    imported = run("import", "text", "back", cwd=tmp_path)
    assert (imported.code, "no certificate" in imported.out) == (0, True)
    first, *others = (
        run("predict", model, "data", "-q", cwd=tmp_path).out
        for model in ("data.model", "text", "back")
    )
    assert others == [first, first]
    refused = run("verify", "back", "data", cwd=tmp_path)
    assert refused.code == 2
    assert "no certificate" in refused.err
