"""Checkpoints: training that goes on after a crash.

Where training is, is written to a file at intervals, after a pass. Writing is atomic, so the file
is complete whenever the process dies. A resumed run is a warm start: it begins at w and alpha from
the file, and computes J and L there anew. So nothing in a file is believed, and a forged one costs
time, not truth.
"""

from __future__ import annotations

import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from certsvm.problem.base import BaseProblem
from certsvm.problem.rows import Vector
from certsvm.solvers.base import Start

KIND = "checkpoint"
# Writing may take this fraction of the time.
_SHARE = 0.05
_NUMBERS = {"passes": "int", "epochs": "int", "seconds": "float", "smoothing": "float"}
_LARGEST = {"int": 2.0**31, "float": 2.0**62}


class CheckpointError(ValueError):
    """A checkpoint that this run cannot resume from."""


class CheckpointWarning(UserWarning):
    """A checkpoint could not be written; training continues."""


@dataclass(frozen=True)
class Saved:
    """Where training was.

    Attributes
    ----------
    start : Start
        Where to go on. Its alpha is that of the largest L, if it was kept; if not, and there is a
        smoothing, the ``Response`` of its w is.
    best_w : ndarray of shape (dimension,)
        The weight vector of the least J.
    passes : int
        The number of passes so far.
    seconds : float
        The time that they took.
    """

    start: Start
    best_w: Vector
    passes: int
    seconds: float


class Checkpoint:
    """The checkpoint file of one run.

    Parameters
    ----------
    path : path
        The file. Its folder is created if necessary.
    problem : dict
        What the run minimises, as JSON values: a run on another problem is refused, with the first
        that differs.
    interval : float, default=10.0
        Least number of seconds between two checkpoints; more if writing takes long.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from certsvm.problem.memory import Problem
    >>> from certsvm.problem.rows import Rows
    >>> path = Path(tempfile.mkdtemp()) / "run"
    >>> problem, w = Problem(Rows(np.eye(2)), [1, -1]), np.ones(2)
    >>> Checkpoint(path, {"C": 1.0}).save(Saved(Start(w, epochs=3), w, 3, 0.1))
    >>> Checkpoint(path, {"C": 1.0}).load(problem).passes
    3
    >>> Checkpoint(path, {"C": 2.0}).load(problem)
    Traceback (most recent call last):
    ...
    certsvm.training.checkpoints.CheckpointError: .../run is of a run with C = 1.0, not 2.0. ...
    """

    def __init__(
        self, path: str | Path, problem: dict[str, Any], *, interval: float = 10.0
    ) -> None:
        self.path = Path(path)
        self._problem = problem
        self._interval = interval
        self._wait = interval
        self._written = time.perf_counter()

    def prepare(self) -> None:
        """Create the folder; raise an OSError now if nothing can be written there."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            tempfile.TemporaryFile(dir=self.path.parent).close()
        except OSError as error:
            from certsvm.files.atomic import WriteError

            raise WriteError(
                error.errno, f"no checkpoints can be kept there: {error.strerror}",
                str(self.path.parent),
            ) from None  # fmt: skip

    def due(self) -> bool:
        """Whether the interval has passed."""
        return time.perf_counter() - self._written >= self._wait

    def save(self, saved: Saved) -> None:
        """Write where training is."""
        from certsvm.files.container import write_container

        began = time.perf_counter()
        self.path.parent.mkdir(parents=True, exist_ok=True)
        start = saved.start
        numbers = {
            "passes": saved.passes,
            "epochs": start.epochs,
            "seconds": saved.seconds,
            "smoothing": start.smoothing or 0.0,
        }
        arrays = {"w": start.w, "best_w": saved.best_w}
        if start.alpha is not None:
            arrays["alpha"] = start.alpha
        write_container(self.path, KIND, {"problem": self._problem, **numbers}, arrays)
        self._written = time.perf_counter()
        self._wait = max(self._interval, (self._written - began) / _SHARE)

    def load(self, problem: BaseProblem) -> Saved | None:
        """Where training was, in a form that fits ``problem``; None if there is no checkpoint."""
        if not self.path.exists():
            return None
        from certsvm.files.container import read_container

        try:
            file = read_container(self.path, KIND)
            self._require_same_problem(file.content.get("problem"))
            numbers: dict[str, Any] = {name: file.content.get(name) for name in _NUMBERS}
            for name, kind in _NUMBERS.items():
                value = numbers[name]
                if type(value).__name__ != kind or not 0 <= value < _LARGEST[kind]:
                    raise ValueError(f"its {name} are {value!r:.40}")
            passes, epochs, seconds, smoothing = numbers.values()
            start = Start(file.arrays["w"], epochs, file.arrays.get("alpha"), smoothing or None)
            best_w = Start(file.arrays["best_w"]).checked(problem).w
            return Saved(start.checked(problem), best_w, passes, seconds)
        except CheckpointError:
            raise
        except (ValueError, KeyError) as error:
            reason = str(error).rstrip(".")
            raise CheckpointError(
                f"{self.path} is not a valid checkpoint: {reason}. Remove it to begin anew."
            ) from None

    def _require_same_problem(self, problem: Any) -> None:
        if not isinstance(problem, dict):
            raise ValueError("it does not say of which problem it is")
        for name, value in self._problem.items():
            if problem.get(name) != value:
                raise CheckpointError(
                    f"{self.path} is of a run with {name} = {problem.get(name)}, not {value}. "
                    "Choose another folder for checkpoints, or remove this one to begin anew."
                )
