"""Gap against time and against passes, a picture for each data set."""

from __future__ import annotations

from pathlib import Path

from benchmarks.data import DataSet
from certsvm.fitting.comparison import compare
from certsvm.solvers import DCD, MPU, OCAS, Auto, Newton, Pegasos, SGDm, SGDr, SGDs, Solver, SVMperf
from certsvm.training.settings import INTERRUPTED

C = 1.0
# Lower than the tables' accuracy, to see how it goes on.
GAP = 1e-4
_LARGEST_SIZE = Newton().max_size
# Without windows, SGD-s proves what it proves in the paper.
SOLVERS: tuple[Solver, ...] = (
    Pegasos(), SGDr(), SGDs(windows=0), SGDs(), SGDm(), SVMperf(), OCAS(), DCD(), MPU(), Newton(),
    Auto(),
)  # fmt: skip


def draw(data: DataSet, seconds: float, path: Path) -> None:
    """Let each solver run for so long, and draw them all."""
    solvers = [s for s in SOLVERS if s.name != "newton" or min(data.X.shape) <= _LARGEST_SIZE]
    comparison = compare(
        data.X, data.y, solvers=solvers, C=C, tol=GAP, fit_intercept=False, max_iter=10**9,
        max_time=seconds,
    )  # fmt: skip
    if any(result.reason == INTERRUPTED for result in comparison.results.values()):
        raise KeyboardInterrupt
    figure = comparison.plot()
    figure.suptitle(f"{data.name}, {data.X.shape[0]:,} x {data.X.shape[1]:,}, C = {C:g}")
    figure.savefig(path, dpi=80)
