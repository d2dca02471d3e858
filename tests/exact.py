"""Exact optima of small problems, in rational numbers, proved by the conditions of optimality."""

import warnings
from fractions import Fraction
from functools import partial
from typing import NamedTuple

import numpy as np
from hypothesis import assume
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC

from certsvm.solvers import Newton
from certsvm.training.loop import train
from tests.problems import Array, Case, exact, objective

Numbers = list[Fraction]


class ExactOptimum(NamedTuple):
    """The optimum of a problem: w*, one optimal alpha, and the margins.

    w* is unique, but for the entry behind a free intercept under the hinge loss.
    """

    w: Numbers
    alpha: Numbers
    margins: Numbers


def exact_optimum(case: Case) -> ExactOptimum | None:
    """The optimum without rounding; None if it was not found.

    A solver says which rows are on the margin or inside it. With these, w* follows from linear
    equations, which are solved in fractions. Then the conditions of optimality are checked, which
    prove it whatever the solver said.
    """
    if case.loss == "squared_hinge":
        return _smooth_optimum(case)
    return _free_optimum(case) if case.free_intercept else _penalised_optimum(case)


def known_optimum(case: Case) -> ExactOptimum:
    """The same, in a property test: an example whose optimum was not found is left out."""
    found = exact_optimum(case)
    assume(found is not None)
    assert found is not None
    return found


def _penalised_optimum(case: Case) -> ExactOptimum | None:
    """Of the hinge loss; Newton's method says where the rows are."""
    result = train(case.problem(), Newton(), tol=0.0, max_iter=200, seed=0, keep_alpha=True)
    if result.alpha is None:
        return None
    return _hinge_optimum(case, result.alpha, case.patterns() @ result.w, Fraction(0))


def _free_optimum(case: Case) -> ExactOptimum | None:
    """Of the hinge loss with a free intercept; libsvm says where the rows are."""
    X = case.patterns()[:, :-1] * case.labels[:, None]
    weights = case.row_weights()
    used = weights > 0
    svc = SVC(C=case.C, kernel="linear", tol=1e-12, max_iter=10**6)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        svc.fit(X[used], case.labels[used], sample_weight=weights[used])
    alpha = np.zeros(len(X))
    alpha[np.flatnonzero(used)[svc.support_]] = np.abs(svc.dual_coef_[0])
    margins = case.labels * svc.decision_function(X)
    return _hinge_optimum(case, alpha, margins, exact(svc.intercept_[0] / case.intercept_scaling))


def _hinge_optimum(case: Case, near: Array, margins: Array, last: Fraction) -> ExactOptimum | None:
    """The optimum of the hinge loss, near a computed one; ``last`` is of w, if it is free."""
    Y = exact_rows(case.patterns())
    box = [exact(case.C) * exact(s) for s in case.row_weights()]
    for width in (1e-9, 1e-7, 1e-5):
        on = [k for k in range(len(Y)) if box[k] > 0 and abs(margins[k] - 1.0) <= width]
        alpha = [Fraction(0) if margins[k] > 1.0 else box[k] for k in range(len(Y))]
        guess = [min(max(exact(near[k]), Fraction(0)), box[k]) for k in on]
        for start in (guess, [_nearer_end(g, box[k]) for g, k in zip(guess, on, strict=True)]):
            for k, value in zip(on, start, strict=True):
                alpha[k] = value
            found = _solved(case, Y, box, on, list(alpha), last)
            if found is not None:
                return found
    return None


def _nearer_end(value: Fraction, end: Fraction) -> Fraction:
    """The end of the box that a value is close to, or else the value."""
    for target in (Fraction(0), end):
        if abs(value - target) <= end / 10**6:
            return target
    return value


def _solved(
    case: Case, Y: list[Numbers], box: Numbers, on: list[int], alpha: Numbers, last: Fraction
) -> ExactOptimum | None:
    """Change alpha on the given rows so that their margins are one, and check optimality.

    If the intercept is free, the last entry of w is another unknown, and alpha is to be balanced.
    """
    free = case.free_intercept
    inner = [y[:-1] for y in Y] if free else Y
    end = [last] if free else []
    w = _combination(alpha, inner) + end
    equations = [[_dot(inner[k], inner[m]) for m in on] for k in on]
    values = [1 - _dot(Y[k], w) for k in on]
    if free:
        constants = [y[-1] for y in Y]
        equations = [[*row, constants[k]] for row, k in zip(equations, on, strict=True)]
        equations.append([*(constants[k] for k in on), Fraction(0)])
        values.append(-_dot(alpha, constants))
    change = _solution(equations, values)
    if change is None:
        return None
    for k, step in zip(on, change, strict=False):
        alpha[k] += step
    if free:
        end = [last + change[-1]]
    w = _combination(alpha, inner) + end
    margins = [_dot(y, w) for y in Y]
    for a, top, margin in zip(alpha, box, margins, strict=True):
        least, most = (top, top) if margin < 1 else (0, 0) if margin > 1 else (0, top)
        if not least <= a <= most:
            return None
    return ExactOptimum(w, alpha, margins)


def _smooth_optimum(case: Case) -> ExactOptimum | None:
    """Of the squared hinge: w solves linear equations, once it is known which rows have a loss."""
    patterns, factors = case.patterns(), 2.0 * case.C * case.row_weights()
    penalised = np.ones(patterns.shape[1])
    if case.free_intercept:
        penalised[-1] = 0.0

    def gradient(w: Array) -> Array:
        return penalised * w - (factors * np.maximum(0.0, 1.0 - patterns @ w)) @ patterns

    start = np.zeros(patterns.shape[1])
    near = minimize(partial(objective, case), start, jac=gradient, method="BFGS").x
    Y, C = exact_rows(patterns), exact(case.C)
    factor = [2 * C * exact(s) for s in case.row_weights()]
    margins = [exact(margin) for margin in patterns @ near]
    for _ in range(2 * len(Y) + 10):
        lossy = [k for k in range(len(Y)) if margins[k] < 1]
        columns = range(len(penalised))
        hessian = [
            [_sum(factor[k] * Y[k][i] * Y[k][j] for k in lossy) for j in columns] for i in columns
        ]
        for j in columns:
            hessian[j][j] += int(penalised[j])
        w = _solution(hessian, [_sum(factor[k] * Y[k][j] for k in lossy) for j in columns])
        if w is None:
            return None
        margins = [_dot(y, w) for y in Y]
        alpha = [f * max(Fraction(0), 1 - m) for f, m in zip(factor, margins, strict=True)]
        gap = zip(_combination(alpha, Y), w, penalised, strict=True)
        if all(v == int(p) * e for v, e, p in gap):
            return ExactOptimum(w, alpha, margins)
    return None


def _combination(alpha: Numbers, Y: list[Numbers]) -> Numbers:
    return [_sum(a * y[j] for a, y in zip(alpha, Y, strict=True)) for j in range(len(Y[0]))]


def _solution(A: list[Numbers], b: Numbers) -> Numbers | None:
    """A solution of A x = b by elimination, with zero for the variables that are free."""
    rows = [[*row, value] for row, value in zip(A, b, strict=True)]
    pivots: list[int] = []
    for column in range(len(A)):
        top = len(pivots)
        best = next((i for i in range(top, len(rows)) if rows[i][column] != 0), None)
        if best is None:
            continue
        rows[top], rows[best] = rows[best], rows[top]
        pivot = rows[top][column]
        rows[top] = [value / pivot for value in rows[top]]
        for i, row in enumerate(rows):
            if i != top and row[column] != 0:
                rows[i] = [a - row[column] * p for a, p in zip(row, rows[top], strict=True)]
        pivots.append(column)
    if any(row[-1] != 0 for row in rows[len(pivots) :]):
        return None
    x = [Fraction(0)] * len(A)
    for row, column in zip(rows, pivots, strict=False):
        x[column] = row[-1]
    return x


def exact_rows(X: np.ndarray) -> list[Numbers]:
    """The rows of an array, without rounding."""
    return [[exact(v) for v in row] for row in X]


def _dot(a: Numbers, b: Numbers) -> Fraction:
    return _sum(x * y for x, y in zip(a, b, strict=True))


def _sum(values: object) -> Fraction:
    return sum(values, Fraction(0))  # type: ignore[call-overload, no-any-return]
