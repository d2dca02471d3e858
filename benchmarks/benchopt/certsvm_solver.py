"""certsvm, as a solver for benchopt's benchmark of linear SVMs without intercept.

The benchmark minimises    1/2 |beta|^2 + C sum_k max(0, 1 - y_k beta.x_k),    y_k = +1 or -1,

which is certsvm's J without intercept and weights: the same C, and no factor in between.

A point of the curve is a cold fit with everything that a user pays for: input checks, training, and
the proof that J <= (1 + tol) J_opt, which stops it. The knob is ``tol``, in half decades from 1
down to 1e-8. Callbacks during one long fit would give more points for less, but that fit would not
be representative: the choice of ``auto`` and the passes at which J is computed depend on ``tol``.

The curve ends with the last of these tolerances, or with the first that was not proved in the time
limit of a point. benchopt's default criterion, an objective that has not changed for several
points, would end it too early: several tolerances may be met by the same pass.

Kernels are compiled in ``set_objective``. benchopt has ``warm_up`` for that, but calls it only once
for a solver, on the first data set, when its time limit is already running.

Solvers without a dual bound cannot stop at a tolerance. They are skipped, as are second-order
solvers on many rows and columns.

This file is not part of a package: benchopt reads it by its path, or from ``solvers/``.
"""

from __future__ import annotations

import warnings
from typing import Any, ClassVar

import numpy as np
from benchopt import BaseSolver
from benchopt.stopping_criterion import StoppingCriterion
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from certsvm import LinearSVC
from certsvm.solvers import make_solver

TOLERANCES: tuple[float, ...] = tuple(10.0 ** (-half / 2) for half in range(17))
"""From 1 to 1e-8, two for each factor of ten."""

MOST_SECONDS = 30.0
"""Limit of one point: benchopt checks its own limit only between points."""

NO_LIMIT = 10**8
"""Passes. Only a proof or the clock may stop a fit."""

FIRST_PASSES = 100
"""Enough passes to compile all kernels."""

AUTO = ("working-set", "newton")
"""The solvers that "auto" chooses between while it runs."""


class LastTolerance(StoppingCriterion):  # type: ignore[misc]
    """Stop after the last tolerance, or after one that was not proved."""

    def check_convergence(self, objective_list: list[dict[str, Any]]) -> tuple[bool, float]:
        """Whether that was the last point, and the share of the points that are done."""
        last = objective_list[-1]["stop_val"] <= TOLERANCES[-1]
        return last or self.solver.missed, min(1.0, len(objective_list) / len(TOLERANCES))


class Solver(BaseSolver):  # type: ignore[misc]
    """One of certsvm's solvers, by name."""

    name = "certsvm"
    install_cmd = "conda"
    requirements: ClassVar[list[str]] = ["pip::certsvm"]
    parameters: ClassVar[dict[str, list[str]]] = {
        "solver": ["auto", "working-set", "newton", "dcd", "sgd-s", "sgd-m"],
    }
    sampling_strategy = "tolerance"
    stopping_criterion = LastTolerance()
    references: ClassVar[list[str]] = [
        "C. Panagiotakopoulos and P. Tsampouka, The Stochastic Gradient Descent for the Primal "
        "L1-SVM Optimization Revisited, ECML-PKDD 2013.",
    ]

    solver: str
    X: Any = None
    C: float = 0.0

    def skip(self, X: Any, y: Any, C: float) -> tuple[bool, str | None]:
        """Whether to skip this solver here, and why."""
        solver = make_solver(self.solver)
        if not solver.certifies:
            return True, f"{self.solver} proves nothing, so it cannot stop at a tolerance"
        if not np.array_equal(np.unique(y), [-1, 1]):
            return True, "the labels are not -1 and +1"
        if not _takes(solver, X):
            return True, f"{self.solver} does not take {X.shape[0]} x {X.shape[1]} values"
        return False, None

    def set_objective(self, X: Any, y: Any, C: float) -> None:
        """Keep the problem as it is; conversions of the data are timed."""
        another = X is not self.X or C != self.C
        self.X, self.y, self.C = X, y, C
        self.seed = int(self.get_seed(use_repetition=True))
        self.beta: NDArray[np.float64] = np.zeros(X.shape[1])
        self.missed = False
        if another:
            self._compile()

    def _compile(self) -> None:
        """Compile all kernels that this problem needs, or load them from the cache."""
        for name in AUTO if self.solver == "auto" else (self.solver,):
            if _takes(make_solver(name), self.X):
                self._fit(name, TOLERANCES[-1], max_iter=FIRST_PASSES)

    def get_next(self, stop_val: float) -> float:
        """The tolerance after this one; the first is infinite, which ``run`` reads as 1."""
        return next((tol for tol in TOLERANCES[1:] if tol < stop_val), TOLERANCES[-1])

    def run(self, stop_val: float) -> None:
        """Train until the tolerance is proved."""
        fitted = self._fit(self.solver, min(stop_val, TOLERANCES[0]), max_iter=NO_LIMIT)
        self.beta = fitted.coef_.ravel()
        self.missed = fitted.certificate_ is None or not fitted.certificate_.met

    def get_result(self) -> dict[str, NDArray[np.float64]]:
        """The weight vector at which the objective is evaluated."""
        return {"beta": self.beta}

    def _fit(self, name: str, tol: float, *, max_iter: int) -> LinearSVC:
        estimator = LinearSVC(
            C=self.C, tol=tol, solver=name, fit_intercept=False, max_iter=max_iter,
            max_time=MOST_SECONDS, n_jobs=1, random_state=self.seed,
        )  # fmt: skip
        with warnings.catch_warnings():
            # That a tolerance was missed is noted in ``run``.
            warnings.simplefilter("ignore", ConvergenceWarning)
            estimator.fit(self.X, self.y)
        return estimator


def _takes(solver: Any, X: Any) -> bool:
    """Whether the systems of a second-order solver are small enough."""
    most = getattr(solver, "max_size", None)
    size = X.shape[1] if solver.name == "smoothed-newton" else min(X.shape)
    return most is None or size <= most
