"""The key that authenticates a user's checkpoints.

A checkpoint holds bounds that cannot be recomputed from the rest of it. So its digest is keyed, and
it is resumed only with the key that it was written with. The key is a file of random bytes that
only its owner may read. It is made when it is first needed.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from pathlib import Path

VARIABLE = "CERTSVM_KEY_FILE"
_SIZE = 32


class KeyFileError(OSError):
    """The key can be neither read nor made."""


def key_file() -> Path:
    """The file of the key: ``CERTSVM_KEY_FILE``, or one in the user's folder of states."""
    given = os.environ.get(VARIABLE)
    if given:
        return Path(given)
    variable = "LOCALAPPDATA" if os.name == "nt" else "XDG_STATE_HOME"
    folder = os.environ.get(variable) or os.path.join(os.path.expanduser("~"), ".local", "state")
    return Path(folder) / "certsvm" / "key"


def user_key() -> bytes:
    """The key, which is made if there is none.

    Raises a ``KeyFileError`` if that fails, if the file is not a key, or if others may read it.
    """
    path = key_file()
    if not (path.is_absolute() or os.environ.get(VARIABLE)):
        raise KeyFileError(
            f"there is no home folder for the key of your checkpoints. Set {VARIABLE} to a file in "
            "a folder that only you can write to."
        )
    try:
        if not path.exists():
            _make(path)
        key = path.read_bytes()
        mode = path.stat().st_mode
    except OSError as error:
        raise KeyFileError(
            error.errno,
            f"the key of your checkpoints can be neither read nor made ({error.strerror}). Set "
            f"{VARIABLE} to a file in a folder that only you can write to",
            str(path),
        ) from None
    if len(key) != _SIZE:
        raise KeyFileError(
            f"{path} is not a key of certsvm: it has {len(key)} bytes, not {_SIZE}. Remove it to "
            "have a new one made; checkpoints that were written with it cannot be resumed then."
        )
    if os.name == "posix" and stat.S_IMODE(mode) & 0o077:
        raise KeyFileError(
            f"{path}, the key of your checkpoints, may be read or written by others: run "
            f"chmod 600 {path}"
        )
    return key


def _make(path: Path) -> None:
    """Write a new key; if another process does so at the same time, one of the two stays."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with open(descriptor, "wb") as file:
            file.write(secrets.token_bytes(_SIZE))
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(temporary, path)
        except FileExistsError:
            pass
        except OSError:
            # A file system without hard links; here the later of two processes wins.
            os.replace(temporary, path)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
