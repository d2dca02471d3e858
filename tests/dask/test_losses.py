"""Both losses, and an intercept with and without penalty, on a cluster."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from distributed import Client

from certsvm.dask import ClusterSource, Cocoa
from certsvm.dask.cluster import Cluster
from certsvm.fitting.fit_classes import fit_classes
from certsvm.fitting.sources import MemorySource
from certsvm.problem.objective import Objective
from certsvm.solvers import SmoothedNewton
from tests.dask.problems import cut, data
from tests.settings import settings_of

FREE = Objective(penalize_intercept=False)


def source(client: Client, X: Any, y: Any, weights: Any = None, **options: Any) -> ClusterSource:
    n = len(y)
    edges = n // 7, n // 2, n // 2 + 1
    return ClusterSource(
        Cluster(client, 20.0), cut(X, *edges), cut(y, *edges),
        None if weights is None else cut(weights, *edges), intercept_scaling=0.8, **options,
    )  # fmt: skip


def require_same_optimum(
    ours: ClusterSource, theirs: MemorySource, solver: str, tol: float, **settings: Any
) -> list[Any]:
    """Train on both; the intervals overlap, and the second computation has confirmed them."""
    results = fit_classes(ours, settings_of(solver=solver, tol=tol, **settings))
    expected = fit_classes(theirs, settings_of(tol=1e-7, **settings))
    for result, other in zip(results, expected, strict=True):
        a, b = result.certificate, other.certificate
        assert result.solver == solver
        assert a.met
        assert b.met
        assert (a.loss, a.penalize_intercept) == (b.loss, b.penalize_intercept)
        assert a.dual - a.dual_rounding <= b.primal + b.primal_rounding
        assert b.dual - b.dual_rounding <= a.primal + a.primal_rounding
    return results


@pytest.mark.parametrize(
    ("classes", "loss", "penalised"),
    [(2, "hinge", True), (3, "hinge", False), (3, "squared_hinge", True)],
)
def test_newton_minimises_them_all(
    client: Client, classes: int, loss: str, penalised: bool
) -> None:
    X, y = data(800, classes=classes)
    # The intercept matters, and so does its penalty.
    X = X + 2.0
    weights = np.random.default_rng(1).choice([0.0, 0.5, 1.0, 2.0], 800)
    ours = source(client, X, y, weights, class_weight="balanced")
    theirs = MemorySource(X, y, weights, class_weight="balanced", intercept_scaling=0.8)
    results = require_same_optimum(
        ours, theirs, "smoothed-newton", 1e-5, loss=loss, penalize_intercept=penalised,
        keep_alpha=True, max_iter=100,
    )  # fmt: skip
    if penalised:
        return
    for label, result in zip(ours.labels, results, strict=True):
        signed = np.where(y == label, 1.0, -1.0) * result.alpha
        assert abs(signed.sum()) <= 1e-9 * result.alpha.sum()


def test_cocoa_minimises_the_squared_hinge(client: Client) -> None:
    X, y = data(400, columns=300)
    weights = np.random.default_rng(1).choice([0.0, 0.5, 1.0, 2.0], 400)
    ours = source(client, X, y, weights)
    theirs = MemorySource(X, y, weights, intercept_scaling=0.8)
    for C in (1e-3, 1.0):
        require_same_optimum(ours, theirs, "cocoa", 1e-3, loss="squared_hinge", C=C)


def test_an_intercept_without_penalty_is_for_newton(client: Client) -> None:
    X, y = data(300, columns=60)
    ours = source(client, X, y)
    ours.n_columns = 10**6
    assert isinstance(ours.solver("auto"), Cocoa)
    assert isinstance(ours.solver("auto", FREE), SmoothedNewton)
    # Without an intercept there is nothing to be free.
    ours.intercept_scaling = 0.0
    assert isinstance(ours.solver("auto", FREE), Cocoa)
    ours.n_columns, ours.intercept_scaling = 60, 0.8
    free: dict[str, Any] = {"penalize_intercept": False}
    with pytest.raises(ValueError, match="'cocoa' needs penalize_intercept=True"):
        fit_classes(ours, settings_of(solver="cocoa", **free))
    with pytest.raises(ValueError, match="Use 'cocoa'"):
        fit_classes(ours, settings_of(solver=SmoothedNewton(max_size=10), **free))


def test_rows_must_be_on_both_sides_of_a_free_intercept(client: Client) -> None:
    X, y = data(300, classes=3)
    ours = source(client, X, y, class_weight={1: 0.0})
    assert ours.problem(1, Objective()).m < 300
    ours.problem(0, FREE)
    with pytest.raises(ValueError, match="on the same side"):
        ours.problem(1, FREE)
