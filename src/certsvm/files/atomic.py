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
    if mode not in ("wb", "w"):
        raise ValueError(f"mode must be 'wb' or 'w', got {mode!r}")
    target = os.path.realpath(path)
    folder, name = os.path.split(target)
    # The name identifies a leftover file. It is cut, as the length of names is limited.
    temporary = os.path.join(folder, f".{name[:40]}.{secrets.token_hex(8)}.tmp")
    file = None
    try:
        # An interrupt may come at any moment, also right after the file was created.
        try:
            file = _create(temporary, target, mode)
            yield file
            file.flush()
            os.fsync(file.fileno())
            file.close()
            os.replace(temporary, target)
        except BaseException:
            # If the buffer could not be written, closing the file fails again.
            with contextlib.suppress(OSError):
                if file is not None:
                    file.close()
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            raise
    except OSError as error:
        # An error that names another file was raised by the caller, inside the block.
        if isinstance(error, WriteError) or error.filename not in (None, temporary, target):
            raise
        raise _cannot_write(path, error) from error
    _sync_folder(folder)


def _create(temporary: str, target: str, mode: str) -> IO[Any]:
    """Open the temporary file, with the permissions of the target or of a new file."""
    permissions = None
    with contextlib.suppress(FileNotFoundError):
        status = os.stat(target)
        if stat.S_ISDIR(status.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "it is a device, a pipe or a socket, not a regular file")
        permissions = stat.S_IMODE(status.st_mode)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    # The system applies the umask to 0o666. A file that replaces a private one starts private.
    descriptor = os.open(temporary, flags, 0o666 if permissions is None else 0o600)
    try:
        if permissions is not None:
            os.chmod(temporary, permissions)
        if mode == "w":
            return open(descriptor, "w", encoding="utf-8", newline="\n")
        return open(descriptor, "wb")
    except BaseException:
        # It is closed already if the interrupt came when the file was open.
        with contextlib.suppress(OSError):
            os.close(descriptor)
        raise


def _sync_folder(folder: str) -> None:
    """Make the new name survive a power failure, if the system supports that."""
    if os.name != "posix":
        return
    # It fails for a folder that is not readable, and on some file systems. The new file is complete
    # and in place either way.
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _cannot_write(path: str | os.PathLike[str], error: OSError) -> WriteError:
    reason = error.strerror or str(error)
    if isinstance(error, FileNotFoundError):
        reason = f"the folder {os.path.dirname(os.path.realpath(path))} does not exist"
    message = (
        f"could not write {os.fspath(path)}: {reason}; the previous file, if any, is untouched"
    )
    explained = WriteError(message)
    explained.errno = error.errno
    return explained
