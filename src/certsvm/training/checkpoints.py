"""Checkpoints: training that resumes after a crash, with the same bits as without one.

The whole state of training is written to a file at intervals, after a pass. Writing is atomic, so
the file is complete whenever the process dies. It holds the identity of the run: the fingerprint of
the data, C, the solver and its parameters, the seed, the number of threads, and the version of the
code. A run with another identity is refused, with the reason. Limits (``max_iter``, ``max_time``)
may differ.

A file holds numbers, short texts and arrays under the names that the objects of a run declare
(``storage.state``); the code alone decides which objects there are. Loading checks names, types,
shapes and ranges, and J at the best weight vector on the data at hand. The dual bound, and the sums
from which a solver makes its next one, cannot be recomputed in general. So a checkpoint carries a
digest with the user's key (``storage.keys``), without which it is refused.
"""

from __future__ import annotations

import tempfile
import time
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import xxhash
from numpy.typing import NDArray

from certsvm._version import __version__
from certsvm.storage.atomic import WriteError
from certsvm.storage.container import ModelFileError, read_container, write_container
from certsvm.storage.keys import VARIABLE, key_file, user_key

KIND = "checkpoint"
# Writing may take this fraction of the time.
_SHARE = 0.05


class CheckpointError(ValueError):
    """A checkpoint that this run cannot resume from."""


class CheckpointWarning(UserWarning):
    """A checkpoint could not be written; training continues."""


@cache
def _code() -> str:
    """Digest of all sources: other code may take other steps from the same state."""
    digest = xxhash.xxh3_64()
    for file in sorted(Path(__file__).parents[1].rglob("*.py")):
        digest.update(file.read_bytes())
    return digest.hexdigest()


class Checkpoint:
    """The checkpoint file of one run.

    Parameters
    ----------
    path : path
        The file. Its folder is created if necessary.
    identity : dict
        The identity of the run, as JSON values.
    interval : float, default=10.0
        Least number of seconds between two checkpoints; more if writing takes long.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "run"
    >>> Checkpoint(path, {"C": 1.0}).save({"passes": 3, "run": {"w": np.ones(2)}})
    >>> Checkpoint(path, {"C": 1.0}).load()
    {'passes': 3, 'run': {'w': array([1., 1.])}}
    >>> Checkpoint(path, {"C": 2.0}).load()
    Traceback (most recent call last):
    ...
    certsvm.training.checkpoints.CheckpointError: .../run is of a run with C = 1.0, not 2.0. ...
    """

    def __init__(
        self, path: str | Path, identity: dict[str, Any], *, interval: float = 10.0
    ) -> None:
        self.path = Path(path)
        self._identity = {"certsvm": __version__, "code": _code(), **identity}
        self._interval = interval
        self._wait = interval
        self._written = time.perf_counter()

    def prepare(self) -> None:
        """Create the folder and the key; raise an OSError now if one of them cannot be written."""
        user_key()
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            tempfile.TemporaryFile(dir=self.path.parent).close()
        except OSError as error:
            raise WriteError(
                error.errno, f"no checkpoints can be kept there: {error.strerror}",
                str(self.path.parent),
            ) from None  # fmt: skip

    def due(self) -> bool:
        """Whether the interval has passed."""
        return time.perf_counter() - self._written >= self._wait

    def save(self, state: dict[str, Any]) -> None:
        """Write the state of training: nested dicts of JSON values and arrays."""
        began = time.perf_counter()
        self.path.parent.mkdir(parents=True, exist_ok=True)
        numbers, arrays = _separated(state)
        content = {"identity": self._identity, "state": numbers}
        write_container(self.path, KIND, content, arrays, user_key())
        self._written = time.perf_counter()
        self._wait = max(self._interval, (self._written - began) / _SHARE)

    def load(self) -> dict[str, Any] | None:
        """The saved state, not yet checked; None if there is no checkpoint."""
        if not self.path.exists():
            return None
        try:
            file = read_container(self.path, KIND, user_key())
        except ModelFileError as error:
            raise CheckpointError(
                f"{str(error).rstrip('.')}. Remove it to begin anew. (The key of your checkpoints "
                f"is {key_file()}; {VARIABLE} names another one.)"
            ) from None
        self._require_same_run(file.content.get("identity"))
        try:
            return _joined(file.content.get("state"), file.arrays)
        except ValueError as error:
            raise self.refused(error) from None

    def refused(self, reason: object) -> CheckpointError:
        """The error that the file is not valid, for this reason."""
        return CheckpointError(
            f"{self.path} is not a valid checkpoint: {reason}. Remove it to begin anew."
        )

    def _require_same_run(self, identity: Any) -> None:
        if not isinstance(identity, dict):
            raise self.refused("it has no identity of its run")
        for name in {**self._identity, **identity}:
            if self._identity.get(name) != identity.get(name):
                raise CheckpointError(
                    f"{self.path} is of a run with {name} = {identity.get(name)}, not "
                    f"{self._identity.get(name)}. Choose another folder for checkpoints, or "
                    "remove this one to begin anew."
                )


def _separated(
    state: dict[str, Any], prefix: str = ""
) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Split a state into JSON values and arrays, which are named by their place."""
    numbers: dict[str, Any] = {}
    arrays: dict[str, NDArray[Any]] = {}
    for name, value in state.items():
        if isinstance(value, np.ndarray):
            arrays[prefix + name] = value
        elif isinstance(value, dict):
            numbers[name], inner = _separated(value, f"{prefix}{name}.")
            arrays |= inner
        else:
            numbers[name] = value
    return numbers, arrays


def _joined(numbers: Any, arrays: dict[str, NDArray[Any]]) -> dict[str, Any]:
    """Join what ``_separated`` split."""
    for place, array in arrays.items():
        *parents, name = place.split(".")
        inner = numbers
        for parent in parents:
            inner = inner.get(parent) if isinstance(inner, dict) else None
        if not isinstance(inner, dict) or name in inner:
            raise ValueError(f"there is no place for an array {place!r:.80}")
        inner[name] = array
    if not isinstance(numbers, dict):
        raise ValueError("it has no state")
    return numbers
