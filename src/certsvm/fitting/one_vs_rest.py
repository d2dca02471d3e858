"""One binary problem for each class, made when it is needed, and training them all."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from certsvm.problem.memory import Problem
from certsvm.problem.rows import Rows
from certsvm.solvers import Start
from certsvm.training.loop import INTERRUPTED, Result


def classes_of(y: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """The labels that occur, and the position of each row's label among them."""
    classes = np.unique(y)
    if classes.size == 2:
        # Much faster than a search, and the usual case.
        return classes, (y == classes[1]).astype(np.intp)
    return classes, np.searchsorted(classes, y)


def positive_classes(classes: NDArray[Any]) -> list[int]:
    """The class on the positive side of each binary problem, by position."""
    return [1] if classes.size == 2 else list(range(classes.size))


class OneVsRest(NamedTuple):
    """What the binary problems have in common."""

    rows: Rows
    classes: NDArray[Any]
    y_index: NDArray[np.intp]
    weights: NDArray[np.float64] | None
    C: float

    def __len__(self) -> int:
        return len(positive_classes(self.classes))

    @property
    def labels(self) -> list[Any]:
        """The class on the positive side of each problem."""
        return [self.classes[i] for i in positive_classes(self.classes)]

    def problem(self, i: int) -> Problem:
        """The i-th problem."""
        positive = positive_classes(self.classes)[i]
        signs = np.where(self.y_index == positive, 1.0, -1.0)
        return Problem(self.rows, signs, C=self.C, weights=self.weights)


@dataclass(frozen=True)
class PreviousSolution:
    """Where a warm start begins."""

    coef: NDArray[np.float64]
    intercept: NDArray[np.float64]
    classes: NDArray[Any]
    epochs: int
    alpha: NDArray[np.float64] | None

    def fits(self, data: OneVsRest) -> bool:
        """Whether it is about problems of the same shape."""
        return self.coef.shape[1] == data.rows.n_columns and np.array_equal(
            self.classes, data.classes
        )

    def start(self, problem: Problem, i: int) -> Start:
        """The start of the i-th problem."""
        w = problem.weight_vector(self.coef[i], float(self.intercept[i]))
        if self.alpha is None or self.alpha.shape[1] != problem.rows.n_rows:
            return Start(w, self.epochs)
        return Start(w, self.epochs, self.alpha[i])


def run_all(
    one: Callable[[int], Result], n: int, workers: int, stop: threading.Event
) -> list[Result]:
    """Run ``one(0) ... one(n - 1)``; after Ctrl-C, let each finish its pass and return."""
    if workers == 1:
        results = []
        for i in range(n):
            results.append(one(i))
            if results[-1].reason == INTERRUPTED:
                stop.set()
        return results
    with ThreadPoolExecutor(workers) as executor:
        futures: list[Future[Result]] = [executor.submit(one, i) for i in range(n)]
        try:
            wait(futures)
        except KeyboardInterrupt:
            stop.set()
            wait(futures)
        return [future.result() for future in futures]
