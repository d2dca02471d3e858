"""certsvm, as a solver for benchopt's benchmark of linear SVMs without intercept.

The benchmark minimises    1/2 |beta|^2 + C sum_k max(0, 1 - y_k beta.x_k),    y_k = +1 or -1,

which is certsvm's J without intercept and weights: the same C, and no factor in between.

A point of the curve is a fit from nothing, with everything that a user pays for: looking through
the data, bringing it into order, training, and the proof that J <= (1 + tol) J_opt, which is what
ends it. The knob is ``tol``, in half decades from 1 down to 1e-8. Callbacks during one long fit
would give more points for less, but of a fit that nobody asks for: what ``auto`` takes, and when J
is computed, depend on how much is to be proved.

The curve ends with the last of these tolerances, or with the first that could not be proved in the
time that a point may take. That the objective has not changed for some points is no reason to end
it, as it would be with benchopt's default: several tolerances may be met by the same pass.

Compiled functions are made ready in ``set_objective``. benchopt has ``warm_up`` for that, but calls
it once for a solver, on the first of all data sets, and when its time limit is running already.

Solvers without a dual bound never know that they have arrived, so ``tol`` cannot be their knob:
they are skipped, as are Newton's methods on many columns.

This file does not belong to a package: benchopt reads it by its path, or from ``solvers/``.
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
"""For one point: benchopt looks at its own limit only between points."""

NO_LIMIT = 10**8
"""Passes. Only a proof is to end a fit, or the clock."""

FIRST_PASSES = 100
"""Enough to come by all compiled functions."""

AUTO = ("working-set", "newton")
"""What "auto" may take; which of them, it says only while at work."""


class LastTolerance(StoppingCriterion):  # type: ignore[misc]
    """Stop after the last tolerance, or after one that was not proved."""

    def check_convergence(self, objective_list: list[dict[str, Any]]) -> tuple[bool, float]:
        """Whether that was the last point, and the share of the points that are done."""
        last = objective_list[-1]["stop_val"] <= TOLERANCES[-1]
        return last or self.solver.missed, min(1.0, len(objective_list) / len(TOLERANCES))


class Solver(BaseSolver):  # type: ignore[misc]
    """One of certsvm's solvers, by its name."""

    name = "certsvm"
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
        """Whether this solver is of no use here, and why."""
        solver = make_solver(self.solver)
        if not solver.certifies:
            return True, f"{self.solver} proves nothing, and its points would have no end"
        if not np.array_equal(np.unique(y), [-1, 1]):
            return True, "the labels are not -1 and +1, which the objective multiplies by"
        most = getattr(solver, "max_columns", None)
        if most is not None and X.shape[1] > most:
            return True, f"{self.solver} takes at most {most} columns, X has {X.shape[1]}"
        return False, None

    def set_objective(self, X: Any, y: Any, C: float) -> None:
        """Take the problem as it is; what is to be done with the data counts as work."""
        another = X is not self.X or C != self.C
        self.X, self.y, self.C = X, y, C
        self.seed = int(self.get_seed(use_repetition=True))
        self.beta: NDArray[np.float64] = np.zeros(X.shape[1])
        self.missed = False
        if another:
            self._compile()

    def _compile(self) -> None:
        """Have everything compiled that this problem needs, or loaded if it was compiled before."""
        for name in AUTO if self.solver == "auto" else (self.solver,):
            most = getattr(make_solver(name), "max_columns", None)
            if most is None or self.X.shape[1] <= most:
                self._fit(name, TOLERANCES[-1], max_iter=FIRST_PASSES)

    def get_next(self, stop_val: float) -> float:
        """The tolerance after this one; the first is infinite, for which ``run`` takes 1."""
        return next((tol for tol in TOLERANCES[1:] if tol < stop_val), TOLERANCES[-1])

    def run(self, stop_val: float) -> None:
        """Train until the tolerance is proved."""
        fitted = self._fit(self.solver, min(stop_val, TOLERANCES[0]), max_iter=NO_LIMIT)
        self.beta = fitted.coef_.ravel()
        self.missed = fitted.certificate_ is None or not fitted.certificate_.met

    def get_result(self) -> dict[str, NDArray[np.float64]]:
        """What the objective is evaluated at."""
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
