"""Writing a file so that there is always a whole one: the old or the new.

The new content goes to a temporary file in the same folder, reaches the disk, and only then
takes the name, in one step that cannot be half done. A process killed in between leaves a file
named ``.NAME.(letters and digits).tmp`` behind, which may be deleted, and the old file as it was.
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
    """A file could not be written; what was there before is still there.

    ``errno`` is that of the error behind it, so that a full disk can be told from a folder that
    may not be written to.
    """


@contextlib.contextmanager
def atomic_write(
    path: str | os.PathLike[str], mode: Literal["wb", "w"] = "wb"
) -> Iterator[IO[Any]]:
    """Open a file that takes its name when everything is written, or not at all.

    A file that is replaced hands on its permission bits; a new one has those that the umask
    leaves. Of a symbolic link, the file it points to is replaced.

    Parameters
    ----------
    path : str or path-like
        The file to write.
    mode : {"wb", "w"}, default="wb"
        Bytes, or text in UTF-8 with lines that end in a newline on every system.

    Yields
    ------
    file : file object
        What is written to it appears under ``path`` when the block ends without an error.

    Raises
    ------
    WriteError
        An OSError: it could not be written. The previous file, if any, is untouched.

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
    # The name is there for whoever finds a leftover; cut, as names have a longest length.
    temporary = os.path.join(folder, f".{name[:40]}.{secrets.token_hex(8)}.tmp")
    try:
        file = _create(temporary, target, mode)
        try:
            yield file
            file.flush()
            os.fsync(file.fileno())
            file.close()
            os.replace(temporary, target)
        except BaseException:
            # A buffer that could not be written fails once more when the file is closed.
            with contextlib.suppress(OSError):
                file.close()
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            raise
    except OSError as error:
        # An error that names another file is the caller's, who read it inside the block.
        if isinstance(error, WriteError) or error.filename not in (None, temporary, target):
            raise
        raise _cannot_write(path, error) from error
    _settle(folder)


def _create(temporary: str, target: str, mode: str) -> IO[Any]:
    """Open the temporary file, with the permissions that the target has or would get."""
    permissions = None
    with contextlib.suppress(FileNotFoundError):
        status = os.stat(target)
        if stat.S_ISDIR(status.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "it is a device, a pipe or a socket, not a regular file")
        permissions = stat.S_IMODE(status.st_mode)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    # The system applies the umask to 0o666. What replaces a private file is private at once.
    descriptor = os.open(temporary, flags, 0o666 if permissions is None else 0o600)
    try:
        if permissions is not None:
            os.chmod(temporary, permissions)
        if mode == "w":
            return open(descriptor, "w", encoding="utf-8", newline="\n")
        return open(descriptor, "wb")
    except BaseException:
        os.close(descriptor)
        os.unlink(temporary)
        raise


def _settle(folder: str) -> None:
    """Make the new name survive a power failure, where the system lets us."""
    if os.name != "posix":
        return
    # A folder may be writable but not readable, and some file systems cannot do it: the new
    # file is complete and in place either way.
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
