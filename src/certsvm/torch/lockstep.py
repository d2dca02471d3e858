"""Several problems with the same rows, in step: one reading of the rows serves all of them.

What a problem does is written as a task that asks for a reading of the rows by ``yield`` and is
sent the answer. ``Lockstep`` runs the tasks of one problem or of many, and answers together what
they wait for.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import NamedTuple, Protocol, TypeAlias

import torch
from torch import Tensor

from certsvm.torch.rows import TensorRows


class Products(NamedTuple):
    """Ask for the products of all rows [x_k, rho] with a vector."""

    vector: Tensor


class Sums(NamedTuple):
    """Ask for the sum of all rows [x_k, rho], with a weight for each."""

    vector: Tensor


Task: TypeAlias = Generator[Products | Sums, Tensor, None]


class Stepper(Protocol):
    """What goes in step with others: a problem at some point of its way."""

    @property
    def done(self) -> bool:
        """Whether its target is reached."""

    def begin(self) -> Task:
        """What comes before the first step."""

    def step(self) -> Task:
        """One step."""


class Lockstep:
    """Problems with the same rows, which go in step.

    Parameters
    ----------
    rows : TensorRows
        The rows of all.
    steppers : sequence of Stepper
        The problems.
    """

    def __init__(self, rows: TensorRows, steppers: Sequence[Stepper]) -> None:
        self._rows = rows
        self._steppers = list(steppers)
        self._torn = False
        self._run([stepper.begin() for stepper in steppers])

    def advance(self, stepper: Stepper) -> None:
        """Let all take a step that have not reached their target, and the one that asks.

        After an interruption some may be in the middle of a step, where w and its products do not
        belong together. They then stay where they are, and what was known before stands.
        """
        if self._torn:
            return
        self._run([s.step() for s in self._steppers if s is stepper or not s.done])

    def _run(self, tasks: Sequence[Task]) -> None:
        try:
            self._answer(tasks)
        except BaseException:
            self._torn = True
            raise

    def _answer(self, tasks: Sequence[Task]) -> None:
        """Run tasks to their ends, with as few readings of the rows as possible."""
        waiting = [(task, ask) for task in tasks if (ask := next(task, None)) is not None]
        while waiting:
            # All of the kind that most wait for; the others wait a little longer.
            sums = sum(isinstance(ask, Sums) for _, ask in waiting)
            kind = Sums if 2 * sums > len(waiting) else Products
            now = [(task, ask) for task, ask in waiting if isinstance(ask, kind)]
            waiting = [(task, ask) for task, ask in waiting if not isinstance(ask, kind)]
            read = self._rows.sums if kind is Sums else self._rows.products
            answers = read(torch.stack([ask.vector for _, ask in now]))
            for (task, _), answer in zip(now, answers, strict=True):
                try:
                    waiting.append((task, task.send(answer)))
                except StopIteration:
                    continue
