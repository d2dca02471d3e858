"""Exact optima of small problems, in rational numbers, proved by the conditions of optimality."""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

import numpy as np

from certsvm.solvers import Newton
from certsvm.training.loop import train
from tests.problems import Case, exact

Numbers = list[Fraction]


class ExactOptimum(NamedTuple):
    """The optimum of a problem: w*, which is unique, one optimal alpha, and the margins."""

    w: Numbers
    alpha: Numbers
    margins: Numbers


def exact_optimum(case: Case) -> ExactOptimum | None:
    """The optimum without rounding; None if it was not found.

    A solver says which rows are on the margin. With these, w* follows from linear equations, which
    are solved in fractions. Then the conditions of optimality are checked, which prove it whatever
    the solver said.
    """
    result = train(case.problem(), Newton(), tol=0.0, max_iter=200, seed=0, keep_alpha=True)
    if result.alpha is None:
        return None
    Y = [[exact(v) for v in row] for row in case.patterns()]
    box = [exact(case.C) * exact(s) for s in case.row_weights()]
    margins = case.patterns() @ result.w
    for width in (1e-9, 1e-7, 1e-5):
        on = [k for k in range(len(Y)) if box[k] > 0 and abs(margins[k] - 1.0) <= width]
        alpha = [Fraction(0) if margins[k] > 1.0 else box[k] for k in range(len(Y))]
        guess = [min(max(exact(result.alpha[k]), Fraction(0)), box[k]) for k in on]
        for start in (guess, [_nearer_end(g, box[k]) for g, k in zip(guess, on, strict=True)]):
            for k, value in zip(on, start, strict=True):
                alpha[k] = value
            found = _solved(Y, box, on, list(alpha))
            if found is not None:
                return found
    return None


def _nearer_end(value: Fraction, end: Fraction) -> Fraction:
    """The end of the box that a value is close to, or else the value."""
    for target in (Fraction(0), end):
        if abs(value - target) <= end / 10**6:
            return target
    return value


def _solved(Y: list[Numbers], box: Numbers, on: list[int], alpha: Numbers) -> ExactOptimum | None:
    """Change alpha on the given rows so that their margins are one, and check optimality."""
    w = [_sum(a * y[j] for a, y in zip(alpha, Y, strict=True)) for j in range(len(Y[0]))]
    gram = [[_dot(Y[k], Y[m]) for m in on] for k in on]
    change = _solution(gram, [1 - _dot(Y[k], w) for k in on])
    if change is None:
        return None
    for k, step in zip(on, change, strict=True):
        alpha[k] += step
    w = [_sum(a * y[j] for a, y in zip(alpha, Y, strict=True)) for j in range(len(Y[0]))]
    margins = [_dot(y, w) for y in Y]
    for a, end, margin in zip(alpha, box, margins, strict=True):
        least, most = (end, end) if margin < 1 else (0, 0) if margin > 1 else (0, end)
        if not least <= a <= most:
            return None
    return ExactOptimum(w, alpha, margins)


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
