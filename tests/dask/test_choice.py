"""The choice of a solver on a cluster."""

from __future__ import annotations

import pytest

from certsvm.dask.choice import make_cluster_solver
from certsvm.dask.cocoa import Cocoa
from certsvm.dask.costs import Shape
from certsvm.solvers import DCD, SmoothedNewton


def test_names() -> None:
    assert make_cluster_solver("cocoa") == Cocoa()
    assert make_cluster_solver("newton") == make_cluster_solver("smoothed-newton")
    assert isinstance(make_cluster_solver("newton"), SmoothedNewton)


@pytest.mark.parametrize("solver", [Cocoa(passes=3), SmoothedNewton(samples=False)])
def test_a_configured_solver_is_used_as_it_is(solver: Cocoa | SmoothedNewton) -> None:
    assert make_cluster_solver(solver) is solver


def test_auto_counts_columns() -> None:
    assert isinstance(make_cluster_solver("auto", Shape(1e6, 1e8, 54, 10)), SmoothedNewton)
    assert isinstance(make_cluster_solver("auto", Shape(1e6, 1e8, 1e6, 10)), Cocoa)
    # More than it can hold, however cheap.
    assert isinstance(make_cluster_solver("auto", Shape(1e12, 1e16, 6000, 1000)), Cocoa)


def test_a_free_intercept_leaves_no_choice() -> None:
    many = Shape(1e6, 1e8, 1e6, 10)
    assert isinstance(make_cluster_solver("auto", many, free_intercept=True), SmoothedNewton)
    assert isinstance(make_cluster_solver("cocoa", many, free_intercept=True), Cocoa)


@pytest.mark.parametrize(("solver", "name"), [("dcd", "'dcd'"), (DCD(), "DCD")])
def test_other_solvers_are_refused(solver: object, name: str) -> None:
    with pytest.raises(ValueError, match=f"{name} does not run on a cluster"):
        make_cluster_solver(solver)  # type: ignore[arg-type]
