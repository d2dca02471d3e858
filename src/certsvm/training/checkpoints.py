"""Checkpoints: training that goes on after a crash as if there had been none.

After a pass, now and then, the whole state of training is written to a file, atomically: whenever
the process dies, the file is a complete one. It says what it is the state of: the data by their
fingerprint, C, the solver and its parameters, the seed, the number of threads, and the version of
the code. A run that differs in any of these is not the one that was interrupted; it is refused,
with the reason. Limits (``max_iter``, ``max_time``) may differ.

A run that goes on gives the same bits as one that was never interrupted.
"""

from __future__ import annotations

import tempfile
import time
from functools import cache
from pathlib import Path
from typing import Any

import xxhash

from certsvm._version import __version__
from certsvm.storage.atomic import WriteError
from certsvm.storage.container import ModelFileError, read_container, write_container
from certsvm.training.snapshots import Snapshot

KIND = "checkpoint"
# Writing may take this part of the time.
_SHARE = 0.05


class CheckpointError(ValueError):
    """A checkpoint that this run cannot go on from."""


class CheckpointWarning(UserWarning):
    """A checkpoint could not be written; training goes on."""


@cache
def _code() -> str:
    """The digest of all sources: other code may take other steps from the same state."""
    digest = xxhash.xxh3_64()
    for file in sorted(Path(__file__).parent.rglob("*.py")):
        digest.update(file.read_bytes())
    return digest.hexdigest()


class Checkpoint:
    """The file of one run.

    Parameters
    ----------
    path : path
        The file. Its folder is made if there is none.
    identity : dict
        What the run is about, as JSON can say it.
    interval : float, default=10.0
        Seconds between two writings, at least. More if a writing takes long.

    Examples
    --------
    >>> import tempfile
    >>> from certsvm.training.snapshots import take
    >>> path = Path(tempfile.mkdtemp()) / "run"
    >>> Checkpoint(path, {"C": 1.0}).save(take({"passes": 3}, {}))
    >>> Checkpoint(path, {"C": 1.0}).load().objects
    [{'dict': {'passes': 3}}]
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
        """Make the folder, and see that it can be written to: better now than after hours."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            tempfile.TemporaryFile(dir=self.path.parent).close()
        except OSError as error:
            raise WriteError(
                error.errno, f"no checkpoints can be kept there: {error.strerror}",
                str(self.path.parent),
            ) from None  # fmt: skip

    def due(self) -> bool:
        """Whether it is time to write."""
        return time.perf_counter() - self._written >= self._wait

    def save(self, snapshot: Snapshot) -> None:
        """Write the state of training."""
        began = time.perf_counter()
        self.path.parent.mkdir(parents=True, exist_ok=True)
        content = {"identity": self._identity, "objects": snapshot.objects}
        write_container(self.path, KIND, content, snapshot.arrays)
        self._written = time.perf_counter()
        self._wait = max(self._interval, (self._written - began) / _SHARE)

    def load(self) -> Snapshot | None:
        """The state to go on from; None if there is no checkpoint."""
        if not self.path.exists():
            return None
        try:
            found = read_container(self.path, KIND)
        except ModelFileError as error:
            raise CheckpointError(f"{error}. Remove it to begin anew.") from None
        theirs = found.content.get("identity", {})
        for name in {**self._identity, **theirs}:
            if self._identity.get(name) != theirs.get(name):
                raise CheckpointError(
                    f"{self.path} is of a run with {name} = {theirs.get(name)}, not "
                    f"{self._identity.get(name)}. Choose another folder for checkpoints, or "
                    "remove this one to begin anew."
                )
        return Snapshot(found.content["objects"], found.arrays)
