"""Auto: dual coordinate descent, and Newton when that has taken long enough.

Which of the two is faster depends on what cannot be known beforehand: the passes that DCD will
need, a handful at small C, thousands at large. What a pass and a step cost can be estimated. With n
stored values in m rows and d columns, and q the sum of the squares of the rows' lengths:

    a pass of DCD     4 n, plus 250 m if the data does not fit into a cache: its rows come in random
                      order, and each then has to be waited for;
    all of Newton     15 steps of 6 n + d^3 / 3, and 2 q: its rows come in order, and about four
                      times all of them are in the band

in nanoseconds; only the ratio matters. The numbers were fitted to times of both solvers on five
sets (a9a, w8a, ijcnn1, kdd99, covtype) on one machine, and may suit other data less.

So DCD begins, and when it has cost as much as Newton is expected to cost in all, Newton takes over,
from DCD's alpha. If the estimate were right, that would be at most twice as much as the better of
the two alone; it is only an estimate, and more has been seen. With too many columns for Newton, DCD
goes on.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from certsvm.bounds import DualPoint
from certsvm.kernels.rows import Vector
from certsvm.problem import Problem
from certsvm.solvers.base import Epoch, Options, Run, Solver, Start
from certsvm.solvers.dcd import DCD
from certsvm.solvers.newton import Newton

_STEPS = 15
# The memory for the matrix, in columns.
_MOST_COLUMNS = 5000
# Bytes that fit into a cache, more or less.
_CACHE = 32_000_000
# Beyond so many passes of DCD it is not worth thinking about.
_MOST_PATIENCE = 100_000


@dataclass(frozen=True)
class Auto(Solver):
    """Dual coordinate descent, then Newton if that takes too long.

    Examples
    --------
    >>> Auto().name
    'auto'
    """

    name: ClassVar[str] = "auto"
    goes_on_from_alpha: ClassVar[bool] = True

    def start(self, problem: Problem, options: Options) -> AutoRun:
        """Begin with dual coordinate descent."""
        return AutoRun(problem, options)


class AutoRun(Run):
    """Both, one after the other, on one problem."""

    def __init__(self, problem: Problem, options: Options) -> None:
        self._problem = problem
        self._options = options
        # Newton will want alpha.
        self._run: Run = DCD().start(problem, replace(options, keep_alpha=True))
        self._passes = 0
        self._switch_after = patience(problem)
        self.solver_name = DCD.name

    def epoch(self) -> Epoch:
        """A pass of the one, or a step of the other."""
        if self._passes == self._switch_after:
            point = self._run.dual()
            if point is not None and point.alpha is not None:
                start = Start(next(self._run.candidates()).copy(), 1, point.alpha())
                self._run = Newton(max_columns=_MOST_COLUMNS).start(
                    self._problem, replace(self._options, start=start)
                )
                self.solver_name = f"{DCD.name}, then {Newton.name}"
        self._passes += 1
        return replace(self._run.epoch(), epochs=self._passes)

    def candidates(self) -> Iterator[Vector]:
        """Those of the one at work."""
        yield from self._run.candidates()

    def dual(self) -> DualPoint | None:
        """That of the one at work."""
        return self._run.dual()


def patience(problem: Problem) -> int:
    """After how many passes of DCD Newton takes over; -1 if never.

    Examples
    --------
    >>> from certsvm.rows import Rows
    >>> patience(Problem(Rows(np.ones((10_000, 10))), np.ones(10_000)))
    27
    >>> patience(Problem(Rows(np.ones((10, 10_000))), np.ones(10)))
    -1
    """
    rows = problem.rows
    if rows.dimension > _MOST_COLUMNS:
        return -1
    n, m, d = float(rows.n_stored + rows.n_rows), float(rows.n_rows), float(rows.dimension)
    lengths = rows.lengths.astype(np.float64)
    bytes_per_value = rows.arrays.values.itemsize + 4
    one_pass = 4.0 * n + (250.0 * m if bytes_per_value * rows.n_stored > _CACHE else 0.0)
    newton = _STEPS * (6.0 * n + d**3 / 3.0) + 2.0 * float(lengths @ lengths)
    passes = round(newton / one_pass)
    return passes if passes <= _MOST_PATIENCE else -1
