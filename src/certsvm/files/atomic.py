"""Atomic writes: a file has either its old content or its new one.

The new content is written to a temporary file in the same folder and flushed to the disk, and then
the file is renamed. A process killed in between leaves the old file as it was, and a temporary file
``.NAME.(hexadecimal digits).tmp``, which may be deleted.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
from collections.abc import Iterator
from functools import partial
from typing import IO, Any, Literal


class WriteError(OSError):
    """A file could not be written; the previous file is untouched.

    ``errno`` is the operating system's, so that callers can tell a full disk from a lack of
    permission.
    """


@contextlib.contextmanager
def atomic_write(
    path: str | os.PathLike[str], mode: Literal["wb", "w"] = "wb"
) -> Iterator[IO[Any]]:
    """Open a file that appears under ``path`` when the block ends without an error.

    The mode is "wb" for bytes, or "w" for text in UTF-8 with line feeds on every system. A file
    that is replaced hands on its permission bits; a new file gets those of the umask. If ``path``
    is a symbolic link, the file it points to is replaced. Failure raises a ``WriteError``.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "numbers.txt")
    ...     with atomic_write(path, "w") as file:
    ...         _ = file.write("1 2 3")
    ...     open(path).read(), os.listdir(folder)
    ('1 2 3', ['numbers.txt'])
    """
    target = os.path.realpath(path)
    folder, name = os.path.split(target)
    # The name identifies a leftover file. It is cut, as the length of names is limited.
    temporary = os.path.join(folder, f".{name[:40]}.{secrets.token_hex(8)}.tmp")
    text: dict[str, Any] = {"encoding": "utf-8", "newline": "\n"} if mode == "w" else {}
    before = os.stat(target).st_mode if os.path.exists(target) else None
    try:
        if before is not None and not stat.S_ISREG(before):
            raise OSError(errno.EINVAL, "it is a folder, a device or a pipe, not a regular file")
        # An interrupt may come at any moment, also right after the file was created. The system
        # applies the umask to 0o666. A file that replaces a private one starts private.
        opener = partial(os.open, mode=0o666 if before is None else 0o600)
        with open(temporary, mode.replace("w", "x"), opener=opener, **text) as file:
            if before is not None:
                os.chmod(temporary, stat.S_IMODE(before))
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException as error:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        # An error that names another file was raised by the caller, inside the block.
        if isinstance(error, WriteError) or not isinstance(error, OSError):
            raise
        if error.filename not in (None, temporary, target):
            raise
        missing = isinstance(error, FileNotFoundError)
        reason = f"the folder {folder} does not exist" if missing else error.strerror or error
        what = f"could not write {os.fspath(path)}: {reason}"
        failure = WriteError(f"{what}; the previous file, if any, is untouched")
        failure.errno = error.errno
        raise failure from error
    # The new name is to survive a power failure. That fails for a folder that is not readable, and
    # on some file systems; the new file is complete and in place either way.
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
