"""Several solvers on one problem, side by side."""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from certsvm.certificates.certificate import DEFAULT_TOL, percent
from certsvm.fitting.bound import certify
from certsvm.fitting.sources import MemorySource
from certsvm.kernels.losses import loss_named
from certsvm.markup import element
from certsvm.matrices import exact_labels, refuse_masked
from certsvm.problem.base import Objective
from certsvm.solvers import Solver, make_solver
from certsvm.training.history import History
from certsvm.training.loop import train
from certsvm.training.settings import INTERRUPTED, Observer, Result, Settings

_SOLVERS = ("auto", "dcd", "ocas", "sgd-m")
_ROW = "{solver}  {passes:>6}  {seconds:7.3f}  {primal:12.8g}  {proved:>9}  {accuracy:>9}  {ended}"
# Of each class.
_TRIAL_ROWS = 8


@dataclass(frozen=True)
class Comparison:
    """What each solver reached, measured against the best bound of all.

    Attributes
    ----------
    results : dict of Result
        By the solver's name, with the parameters that are not at their defaults.
    dual, primal : float
        The best bounds on the optimum that were found: J_opt lies between them.
    target : float
        The relative accuracy that was asked for.
    """

    results: dict[str, Result]
    dual: float
    primal: float
    target: float

    @property
    def histories(self) -> dict[str, History]:
        """The history of each solver."""
        return {name: result.history for name, result in self.results.items()}

    @property
    def table(self) -> list[dict[str, Any]]:
        """One row for each solver, ready for ``pandas.DataFrame``.

        ``accuracy`` is J / L - 1 with the best L of all: an upper bound on how far the solver's
        answer is from the optimum, also for solvers that have no bound of their own, and zero below
        the level of rounding. ``proved_gap`` is what the solver itself proved.
        """
        rows = []
        for name, result in self.results.items():
            c = result.certificate
            accuracy = max(0.0, c.primal / self.dual - 1) if self.dual > 0 else math.inf
            seconds = result.history[-1].seconds if result.history else 0.0
            row = {"solver": name, "passes": result.passes, "seconds": seconds, "primal": c.primal}
            row |= {"dual": c.dual, "proved_gap": c.proved_gap, "accuracy": accuracy}
            rows.append(row | {"ended": result.reason})
        return rows

    def plot(self, path: str | Path | None = None) -> Any:
        """Draw accuracy and gap against seconds and passes; needs ``certsvm[plot]``.

        Parameters
        ----------
        path : str or Path, default=None
            Where to save the picture; its ending decides the format.

        Returns
        -------
        figure : matplotlib.figure.Figure
            To be shown or changed.
        """
        from certsvm.plots import comparison_charts, plot

        return plot(comparison_charts(self.histories, self.dual, self.target), path)

    def _repr_html_(self) -> str:
        """For notebooks: the table, and the interval of the optimum."""
        return element("pre", str(self))

    def __str__(self) -> str:
        problem = next(iter(self.results.values())).certificate.problem
        lines, width = [f"{problem}, target {self.target * 100:.6g} %"], max(map(len, self.results))
        header = "  passes  seconds        primal     proved   accuracy  ended"
        lines.append(f"{'solver':{width}}{header}")
        for row in self.table:
            gaps = (row["proved_gap"], row["accuracy"])
            proved, accuracy = (percent(gap) if math.isfinite(gap) else "-" for gap in gaps)
            row |= {"proved": proved, "accuracy": accuracy, "solver": row["solver"].ljust(width)}
            lines.append(_ROW.format(**row))
        optimum = f"the optimum lies between {self.dual:.8g} and {self.primal:.8g}"
        return "\n".join([*lines, optimum])

    __repr__ = __str__


def compare(
    X: Any, y: ArrayLike, *, solvers: str | Solver | Sequence[str | Solver] | None = None,
    C: float = 1.0, loss: str = "hinge", tol: float = DEFAULT_TOL, fit_intercept: bool = True,
    intercept_scaling: float = 1.0, penalize_intercept: bool = True,
    sample_weight: ArrayLike | None = None, max_iter: int = 1000, max_time: float | None = None,
    random_state: int | None = 0, observers: Sequence[Observer] = (),
    stop: threading.Event | None = None,
) -> Comparison:  # fmt: skip
    """Train several solvers on the same binary problem.

    Kernels are compiled before the clock starts, on a handful of rows.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_samples, n_features)
        The data.
    y : array-like of shape (n_samples,)
        Two labels.
    solvers : str, Solver or sequence of these, default=None
        Names, or configured objects. None takes those of "auto", "dcd", "ocas" and "sgd-m" that
        minimise this objective.
    C : float, default=1.0
        Weight of the loss relative to the regulariser.
    loss : {"hinge", "squared_hinge"}, default="hinge"
        The loss.
    tol : float, default=1e-4
        The relative accuracy to prove, at which a solver ends.
    fit_intercept : bool, default=True
        Whether there is an intercept.
    intercept_scaling : float, default=1.0
        Height of the constant column behind it.
    penalize_intercept : bool, default=True
        Whether the regulariser contains it.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights >= 0 of the rows.
    max_iter : int, default=1000
        Limit on passes over the data, for each solver.
    max_time : float, default=None
        Limit in seconds, for each solver.
    random_state : int, default=0
        Of the order of the rows, the same for all solvers.
    observers : sequence of Observer, default=()
        Told when solvers begin and end, with callbacks for their passes.
    stop : threading.Event, default=None
        Ends the comparison when it is set, as Ctrl-C does.

    Returns
    -------
    comparison : Comparison
        ``print`` it, ``plot`` it, or take its ``table`` and ``histories``. Ctrl-C leaves out the
        solvers whose training had not begun.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> import certsvm
    >>> X, y = make_classification(random_state=0)
    >>> comparison = certsvm.compare(X, y, solvers=["dcd", "ocas"], C=0.01)
    >>> [row["solver"] for row in comparison.table]
    ['dcd', 'ocas']
    >>> comparison.dual <= comparison.primal
    True
    """
    objective = Objective(C, loss_named(loss), penalize_intercept)
    settings = Settings(objective, tol=tol, max_iter=max_iter, max_time=max_time, stop=stop)
    named = [solvers] if isinstance(solvers, str | Solver) else solvers
    made = [make_solver(solver) for solver in (_SOLVERS if named is None else named)]
    if solvers is None:
        free = objective.frees(float(fit_intercept))
        made = [solver for solver in made if solver.solves(objective.loss, free_intercept=free)]
    names = [solver.label for solver in made]
    if not names or len(set(names)) < len(names):
        raise ValueError(f"name at least one solver, and none twice, got {names}")
    refuse_masked(sample_weight=sample_weight)
    source = MemorySource(
        X, exact_labels(y).ravel(),
        None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64),
        intercept_scaling=intercept_scaling if fit_intercept else 0.0,
    )  # fmt: skip
    if source.classes.size != 2:
        what = f"compare needs two classes, and there are {source.classes.size}"
        raise ValueError(f"{what}: choose one (y == label, or --positive LABEL)")
    problem, seed = source.problem(0, objective), np.random.SeedSequence(random_state)
    sides = [np.flatnonzero(sign * problem.signed_weights > 0) for sign in (1, -1)]
    few = problem.sample(np.concatenate([side[:_TRIAL_ROWS] for side in sides]))
    for solver in made:
        train(few, solver, replace(settings, max_iter=3, max_time=None), seed=seed)
    results: dict[str, Result] = {}
    try:
        for i, (name, solver) in enumerate(zip(names, made, strict=True)):
            each = [c for observer in observers for c in observer.begin(i, name, problem)]
            results[name] = train(problem, solver, settings, seed=seed, callbacks=each, name=name)
            for observer in observers:
                observer.end(i, name, results[name])
            if results[name].reason == INTERRUPTED:
                break
    except KeyboardInterrupt:
        if not results:
            raise
    best = min(results.values(), key=lambda result: result.certificate.primal)
    dual = max(r.certificate.dual - r.certificate.dual_rounding for r in results.values())
    if dual <= 0:
        certificate = certify(problem, best.w, settings.tol)
        dual = certificate.dual - certificate.dual_rounding
    return Comparison(results, dual, best.certificate.primal, settings.tol)
