"""Problems on the same rows in lockstep, so that one pass over the rows serves all of them.

A problem is worked on by tasks: generators that yield a request for a pass over the rows, and are
sent the result. ``Lockstep`` runs the tasks of all problems and serves their requests together.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import NamedTuple, Protocol, TypeAlias

import torch
from torch import Tensor

from certsvm.torch.rows import TensorRows


class Products(NamedTuple):
    """A request for the products of all rows [x_k, rho] with vectors, the rows of a matrix."""

    vectors: Tensor


class Sums(NamedTuple):
    """A request for the sums of all rows [x_k, rho], weighted by the rows of a matrix."""

    vectors: Tensor


Task: TypeAlias = Generator[Products | Sums, Tensor, None]


class Stepper(Protocol):
    """A problem that advances in steps."""

    @property
    def done(self) -> bool:
        """Whether the target is reached."""

    def begin(self) -> Task:
        """The work before the first step."""

    def step(self) -> Task:
        """One step."""


class Lockstep:
    """Problems on the same rows that advance together."""

    def __init__(self, rows: TensorRows, steppers: Sequence[Stepper]) -> None:
        self._rows = rows
        self._steppers = list(steppers)
        self._interrupted = False
        self._run([stepper.begin() for stepper in steppers])

    def advance(self, stepper: Stepper) -> None:
        """Take a step of the given problem, and of all that have not reached their target.

        An interruption may leave problems in the middle of a step, where w and its products do not
        belong together. After one, no problem advances, and earlier results stand.
        """
        if not self._interrupted:
            self._run([s.step() for s in self._steppers if s is stepper or not s.done])

    def _run(self, tasks: Sequence[Task]) -> None:
        try:
            self._serve(tasks)
        except BaseException:
            self._interrupted = True
            raise

    def _serve(self, tasks: Sequence[Task]) -> None:
        """Run tasks to their ends, with as few passes over the rows as possible."""
        waiting = [(task, request) for task in tasks if (request := next(task, None)) is not None]
        while waiting:
            # The kind of request that is more frequent; the others wait.
            sums = sum(isinstance(request, Sums) for _, request in waiting)
            kind = Sums if 2 * sums > len(waiting) else Products
            now = [(task, request) for task, request in waiting if isinstance(request, kind)]
            waiting = [pair for pair in waiting if not isinstance(pair[1], kind)]
            read = self._rows.sums if kind is Sums else self._rows.products
            counts = [len(request.vectors) for _, request in now]
            results = read(torch.cat([request.vectors for _, request in now])).split(counts)
            for (task, _), result in zip(now, results, strict=True):
                try:
                    waiting.append((task, task.send(result)))
                except StopIteration:
                    continue
