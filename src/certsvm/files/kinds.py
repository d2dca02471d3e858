"""The kind of a data file, by its first bytes or, for CSV, by its name."""

from __future__ import annotations

import os
import stat
from pathlib import Path

CSV_ENDINGS = tuple(
    name + packed for name in (".csv", ".tsv") for packed in ("", ".gz", ".bz2", ".zst")
)


def kind_of(path: str | Path) -> str:
    """One of "blocks", "table" and "text".

    Pipes are text: bytes read from them to find out would be lost.
    """
    if not stat.S_ISREG(os.stat(path).st_mode):
        return "text"
    with open(path, "rb") as file:
        start = file.read(8)
    if start.startswith(b"ARROW1"):
        return "blocks"
    if start.startswith(b"PAR1") or os.fspath(path).lower().endswith(CSV_ENDINGS):
        return "table"
    return "text"
