"""SvmSgd: SGD with the rate eta_0 / (1 + lambda eta_0 t).

Minimises    lambda/2 |w|^2 + 1/m sum_k s_k max(0, 1 - w.y_k),     lambda = 1/(C m)     (J / (C m))

with one row at a time (``scaled_sgd``):

    w <- (1 - eta_t lambda) w,   plus  eta_t s_k y_k  if w.y_k <= 1,

with eta_t = eta_0 / (1 + lambda eta_0 t). The rows are shuffled once and visited in that order
in every pass. eta_0 is the constant rate that gives the least objective after one pass over the
first thousand rows: 1, doubled or halved while that helps.

Given:      C, s, the rows; eta_0, the precision, whether to shuffle the rows.
Result:     the last w. Primal only.
Difference: when the search of the published program halves the rate, it ends with half of the best
            rate; here it ends with the best, and tries at most 1/(2 lambda). The program divides
            each row by its length, unless told not to, and does not shuffle. Its intercept has a
            separate rate and is not regularised; here it is a column like the others. Single
            precision is a parameter.

Reference: L. Bottou, Stochastic Gradient Descent Examples, version 2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from certsvm.problem.problems import Problem
from certsvm.solvers.base import Options, Solver, float_type
from certsvm.solvers.published import scaled_sgd
from certsvm.solvers.published.scaled_sgd import TRIAL_ROWS, ScaledSGD


@dataclass(frozen=True)
class SvmSgd(Solver):
    """SGD with the rate eta_0 / (1 + lambda eta_0 t).

    Parameters
    ----------
    eta_0 : float, default=None
        The first rate; None finds one by trial.
    shuffle : bool, default=True
        Whether to shuffle the rows once. The published program leaves this to its user.
    precision : {"double", "single"}, default="double"
        Precision of w. Certificates are always computed in double precision.

    Examples
    --------
    >>> SvmSgd(precision="single").name
    'svmsgd'
    """

    name: ClassVar[str] = "svmsgd"
    certifies: ClassVar[bool] = False
    ranges: ClassVar = {"eta_0": "> 0", "precision": '"double" or "single"'}

    eta_0: float | None = None
    shuffle: bool = True
    precision: Literal["double", "single"] = "double"

    def start(self, problem: Problem, options: Options) -> ScaledSGD:
        """Begin a run."""
        rows = problem.active
        order = options.rng.permutation(rows) if self.shuffle else rows
        eta_0 = self.eta_0 or scaled_sgd.search_rate(problem, order[:TRIAL_ROWS])
        scaled_sgd.require_stable(self, problem, eta_0)
        return ScaledSGD(
            problem, options, order, eta_0, decay=problem.lambda_ * eta_0,
            dtype=float_type(self, self.precision, problem),
        )  # fmt: skip
