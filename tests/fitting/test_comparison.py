from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import make_classification

from certsvm import compare
from certsvm.solvers import SOLVERS

X, y = make_classification(n_samples=300, n_features=8, flip_y=0.1, random_state=0)


def test_all_solvers_side_by_side(tmp_path: Path) -> None:
    comparison = compare(X, y, solvers=list(SOLVERS), C=0.1, max_iter=200)
    table = comparison.table
    assert [row["solver"] for row in table] == list(SOLVERS)
    assert comparison.dual <= comparison.primal
    for row in table:
        assert row["accuracy"] <= 0.1
        assert len(comparison.histories[row["solver"]]) == row["passes"]
        assert SOLVERS[row["solver"]].certifies == np.isfinite(row["proved_gap"])
    text = str(comparison)
    assert "the optimum lies between" in text
    assert all(name in text for name in SOLVERS)
    comparison.plot(tmp_path / "gaps.png")
    assert (tmp_path / "gaps.png").stat().st_size > 10_000


@pytest.mark.parametrize("penalize_intercept", [True, False])
def test_solvers_that_minimise_the_squared_hinge(penalize_intercept: bool) -> None:
    how: dict[str, Any] = {"fit_intercept": True, "penalize_intercept": penalize_intercept}
    comparison = compare(X, y, C=0.1, loss="squared_hinge", tol=1e-3, **how)
    assert list(comparison.results) == ["auto", "dcd"]
    # At the objective's own value, by NumPy.
    result = comparison.results["auto"]
    losses = np.maximum(0.0, 1.0 - np.where(y == 1, 1, -1) * (X @ result.w[:-1] + result.w[-1]))
    penalised = result.w if penalize_intercept else result.w[:-1]
    J = 0.5 * penalised @ penalised + 0.1 * losses @ losses
    assert result.certificate.primal == pytest.approx(J)
    assert comparison.dual <= comparison.primal <= 1.001 * comparison.dual
    text = str(comparison)
    assert text.startswith("C = 0.1, squared hinge loss, intercept ")
    assert ("without penalty" in text) != penalize_intercept
    with pytest.raises(ValueError, match=r"'ocas' needs .* loss='squared_hinge'"):
        compare(X, y, loss="squared_hinge", solvers=["ocas"])


def test_errors() -> None:
    with pytest.raises(ValueError, match="at least one solver"):
        compare(X, y, solvers=[])
    with pytest.raises(ValueError, match="two classes"):
        compare(X, np.arange(300))
    with pytest.raises(ValueError, match="none twice"):
        compare(X, y, solvers=["dcd", "auto", "auto"])
    with pytest.raises(ValueError, match=r"unknown solver 'ocsa': use 'auto', .*'ocas'"):
        compare(X, y, solvers=["ocsa"])
