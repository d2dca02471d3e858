"""Which solver on a cluster."""

from __future__ import annotations

from certsvm.dask.cocoa import Cocoa
from certsvm.dask.costs import Shape, newton_is_cheaper
from certsvm.solvers import SmoothedNewton, Solver

SOLVERS: dict[str, type[Solver]] = {Cocoa.name: Cocoa, SmoothedNewton.name: SmoothedNewton}
_MOST_COLUMNS = SmoothedNewton().max_columns


def make_cluster_solver(solver: str | Solver, shape: Shape | None = None) -> Solver:
    """The solver for a name; "newton" is its form without numbers for rows.

    "auto" takes what is cheaper by the model of costs, which needs the shape of the data.

    Examples
    --------
    >>> make_cluster_solver("auto", Shape(1e6, 1e8, 54, 10)).name
    'smoothed-newton'
    >>> make_cluster_solver("auto", Shape(1e6, 1e8, 1e6, 10)).name
    'cocoa'
    """
    if isinstance(solver, Solver):
        if not isinstance(solver, tuple(SOLVERS.values())):
            raise ValueError(
                f"{type(solver).__name__} does not run on a cluster; "
                f"{', '.join(kind.__name__ for kind in SOLVERS.values())} do"
            )
        return solver
    if solver == "auto":
        assert shape is not None
        few = shape.columns <= _MOST_COLUMNS and newton_is_cheaper(shape)
        return SmoothedNewton() if few else Cocoa()
    if solver == "newton":
        return SmoothedNewton()
    if solver not in SOLVERS:
        raise ValueError(
            f"solver {solver!r} does not run on a cluster; 'auto', 'newton' and "
            f"{', '.join(map(repr, SOLVERS))} do"
        )
    return SOLVERS[solver]()
