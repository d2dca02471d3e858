"""The choice of a solver on a cluster."""

from __future__ import annotations

from certsvm.dask.cocoa import Cocoa
from certsvm.dask.costs import Shape, newton_is_cheaper
from certsvm.solvers import SmoothedNewton, Solver

SOLVERS: dict[str, type[Solver]] = {Cocoa.name: Cocoa, SmoothedNewton.name: SmoothedNewton}
_MOST_COLUMNS = SmoothedNewton().max_size


def make_cluster_solver(
    solver: str | Solver, shape: Shape | None = None, *, free_intercept: bool = False
) -> Solver:
    """The solver for a name; "newton" means smoothed Newton, which keeps nothing per row.

    "auto" chooses by predicted cost, for which it needs the shape of the data. If the intercept is
    free, there is no choice.

    Examples
    --------
    >>> make_cluster_solver("auto", Shape(1e6, 1e8, 54, 10)).name
    'smoothed-newton'
    >>> make_cluster_solver("auto", Shape(1e6, 1e8, 1e6, 10)).name
    'cocoa'
    """
    if solver == "auto" and free_intercept:
        return SmoothedNewton()
    if solver == "auto":
        assert shape is not None
        few = shape.columns <= _MOST_COLUMNS and newton_is_cheaper(shape)
        return SmoothedNewton() if few else Cocoa()
    if isinstance(solver, Cocoa | SmoothedNewton):
        return solver
    if isinstance(solver, Solver) or solver not in (*SOLVERS, "newton"):
        name = repr(solver) if isinstance(solver, str) else type(solver).__name__
        raise ValueError(
            f"solver {name} does not run on a cluster: use 'auto', 'newton', "
            f"{', '.join(map(repr, SOLVERS))}, or an instance of Cocoa or SmoothedNewton"
        )
    return SOLVERS.get(solver, SmoothedNewton)()
