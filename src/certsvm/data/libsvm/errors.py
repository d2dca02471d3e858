"""What is wrong with a file, and where."""

from __future__ import annotations

from typing import Any


class LibsvmError(ValueError):
    """Text that is not in the format, and where.

    Attributes
    ----------
    file : str
        Name of the file.
    line, column : int or None
        Both count from 1; columns are bytes. None if the file as a whole is meant.
    text : str
        The offending text, shortened if it is long.
    """

    def __init__(
        self, what: str, file: str, line: int | None = None, column: int | None = None,
        text: str = "",
    ) -> None:  # fmt: skip
        where = file if line is None else f"{file}, line {line}, column {column}"
        super().__init__(f"{where}: {what}")
        self.what, self.file, self.line, self.column, self.text = what, file, line, column, text

    def __reduce__(self) -> tuple[Any, ...]:
        return LibsvmError, (self.what, self.file, self.line, self.column, self.text)


def changed(file: str) -> LibsvmError:
    """A file that somebody wrote to meanwhile."""
    return LibsvmError("the file was changed while it was read; read it again", file)
