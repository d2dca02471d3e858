"""Importing models of liblinear."""

from __future__ import annotations

from pathlib import Path

from certsvm import Model
from tests.cli.running import run

TEXT = """solver_type L2R_L1LOSS_SVC_DUAL
nr_class 2
label 1 -1
nr_feature 2
bias -1
w
0.5
-0.25
"""


def test_an_imported_model_has_the_weights_and_no_certificate(tmp_path: Path) -> None:
    (tmp_path / "text").write_text(TEXT)
    done = run("import", "text", "model", cwd=tmp_path)
    assert done.code == 0
    assert "no certificate" in done.out
    model = Model.load(tmp_path / "model")
    assert model.coef.tolist() == [[0.5, -0.25]]
    assert model.classes.tolist() == [-1, 1]
    assert not model.certificates
