"""Learning from a stream of batches, each presented once: nothing is proved."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from certsvm.fitting.class_weights import (
    ClassWeight,
    class_factors,
    factors_in_problem,
    positive_classes,
)
from certsvm.kernels.losses import HINGE
from certsvm.problem.memory import Problem
from certsvm.problem.rows import Rows, Vector
from certsvm.solvers.sgd_s import present_once
from certsvm.verification.verify import positions


def require_online(loss: str, *, free_intercept: bool) -> None:
    """Raise unless ``present`` minimises this loss, with the intercept in the penalty or not.

    Examples
    --------
    >>> require_online("hinge", free_intercept=False)
    """
    for refused, needs, other in (
        (loss != HINGE.name, f"loss={HINGE.name!r}", repr(loss)),
        (free_intercept, "an intercept in the penalty", "penalize_intercept=False"),
    ):
        if refused:
            raise ValueError(
                f"partial_fit is for {needs}, not for {other}: batches for that go to fit, or as a "
                "stream to fit_stream"
            )


class OnlineModel:
    """Weights for each class against all others, learned by SGD as in ``sgd-s``.

    Parameters
    ----------
    classes : ndarray of shape (n_classes,)
        All labels that will ever come, ascending.
    coef : ndarray of shape (n_problems, n_columns)
        Weights of the columns.
    intercept : ndarray of shape (n_problems,)
        Intercepts.
    t : int
        Presentations so far.
    """

    def __init__(self, classes: NDArray[Any], coef: Vector, intercept: Vector, t: int) -> None:
        self.classes, self.coef, self.intercept, self.t = classes, coef.copy(), intercept.copy(), t

    def present(
        self,
        rows: Rows,
        y: NDArray[Any],
        weights: Vector | None,
        class_weight: ClassWeight,
        C_total: float,
    ) -> Vector:
        """Present a batch once, in its order, and return the factors of the classes' weights.

        ``C_total`` is C times the number of rows that the loss is summed over.
        """
        y_index = positions(self.classes, y, rows.n_rows)
        factors = class_factors(class_weight, self.classes, np.ones(self.classes.size))
        t = self.t
        for i, positive in enumerate(positive_classes(self.classes.size)):
            of_rows = factors_in_problem(factors, positive)[y_index]
            of_rows = of_rows if weights is None else of_rows * weights
            if not of_rows.any():
                continue
            signs = np.where(y_index == positive, 1.0, -1.0)
            # C is such that lambda = 1 / (C m) comes out as 1 / C_total.
            C = C_total / np.count_nonzero(of_rows)
            problem = Problem(rows, signs, C=C, weights=of_rows)
            w = problem.weight_vector(self.coef[i], float(self.intercept[i]))
            w, presented = present_once(problem, w, self.t)
            t = max(t, presented)
            self.coef[i], self.intercept[i] = problem.coefficients(w)
        self.t = t
        return factors
