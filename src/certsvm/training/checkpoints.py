"""Checkpoints: training that goes on after a crash.

Where training is, is written to a file at intervals, after a pass. Writing is atomic, so the file
is complete whenever the process dies. A resumed run is a warm start: it begins at w and alpha from
the file, and computes J and L there anew. So nothing in a file is believed, and a forged one costs
time, not truth.
"""

from __future__ import annotations

import tempfile
import time
import warnings
from pathlib import Path
from typing import NamedTuple

import numpy as np

from certsvm.problem.base import BaseProblem
from certsvm.problem.rows import Vector
from certsvm.solvers.base import Start

KIND = "checkpoint"
# Writing may take this fraction of the time.
_SHARE = 0.05
# What is stored besides arrays: passes, epochs, seconds and smoothing, each less than this.
_LARGEST = np.array([2.0**31, 2.0**31, 2.0**62, 2.0**62])


class CheckpointError(ValueError):
    """A checkpoint that this run cannot resume from."""


class CheckpointWarning(UserWarning):
    """A checkpoint could not be written; training continues."""


class Saved(NamedTuple):
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
    problem : str, default=""
        What the run minimises, in words: a run on another problem is refused.
    interval : float, default=10.0
        Least number of seconds between two checkpoints; more if writing takes long.

    Examples
    --------
    >>> import tempfile
    >>> from certsvm.problem.memory import Problem
    >>> from certsvm.problem.rows import Rows
    >>> path = Path(tempfile.mkdtemp()) / "run"
    >>> problem, w = Problem(Rows(np.eye(2)), [1, -1]), np.ones(2)
    >>> Checkpoint(path, "C = 1").save(Saved(Start(w, epochs=3), w, 3, 0.1))
    >>> Checkpoint(path, "C = 1").load(problem).passes
    3
    >>> Checkpoint(path, "C = 2").load(problem)
    Traceback (most recent call last):
    ...
    certsvm.training.checkpoints.CheckpointError: .../run is of a run on 'C = 1', not 'C = 2'. ...
    """

    def __init__(self, path: str | Path, problem: str = "", *, interval: float = 10.0) -> None:
        self.path, self._problem = Path(path), problem
        self._interval = self._wait = interval
        self._written = time.perf_counter()

    def due(self) -> bool:
        """Whether the interval has passed."""
        return time.perf_counter() - self._written >= self._wait

    def save(self, saved: Saved) -> None:
        """Write where training is; a failure is a warning."""
        from certsvm.files.container import write_container

        began = time.perf_counter()
        start = saved.start
        numbers = [saved.passes, start.epochs, saved.seconds, start.smoothing or 0.0]
        arrays = {"w": start.w, "best_w": saved.best_w, "numbers": np.array(numbers)}
        if start.alpha is not None:
            arrays["alpha"] = start.alpha
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            write_container(self.path, KIND, {"problem": self._problem}, arrays)
        except OSError as error:
            text = f"no checkpoint was written: {error}"
            warnings.warn(text, CheckpointWarning, stacklevel=3)
        self._written = time.perf_counter()
        self._wait = max(self._interval, (self._written - began) / _SHARE)

    def load(self, problem: BaseProblem) -> Saved | None:
        """Where training was, in a form that fits ``problem``; None if there is no checkpoint.

        Raises an OSError if nothing can be written there.
        """
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            tempfile.TemporaryFile(dir=self.path.parent).close()
        except OSError as error:
            from certsvm.files.atomic import WriteError

            reason = f"no checkpoints can be kept there: {error.strerror}"
            raise WriteError(error.errno, reason, str(self.path.parent)) from None
        if not self.path.exists():
            return None
        from certsvm.files.container import read_container

        try:
            file = read_container(self.path, KIND)
            if (of := file.content["problem"]) != self._problem:
                raise CheckpointError(
                    f"{self.path} is of a run on {of!r:.200}, not {self._problem!r}. Choose "
                    "another folder for checkpoints, or remove this one to begin anew."
                )
            numbers = file.arrays["numbers"]
            if numbers.shape != _LARGEST.shape or not ((numbers >= 0) & (numbers < _LARGEST)).all():
                raise ValueError(f"its numbers are {numbers}")
            passes, epochs, seconds, smoothing = numbers.tolist()
            alpha = file.arrays.get("alpha")
            start = Start(file.arrays["w"], int(epochs), alpha, smoothing or None)
            best_w = Start(file.arrays["best_w"]).checked(problem).w
            return Saved(start.checked(problem), best_w, int(passes), float(seconds))
        except CheckpointError:
            raise
        except (ValueError, KeyError) as error:
            reason = str(error).rstrip(".")
            raise CheckpointError(
                f"{self.path} is not a valid checkpoint: {reason}. Remove it to begin anew."
            ) from None
