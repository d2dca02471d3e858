"""Sizes, and the memory of this process."""

from __future__ import annotations

import re
import resource
import sys
from pathlib import Path

_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_BINARY = {"ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}
# Memory that interpreter and libraries may still allocate.
_SPARE = 60_000_000
LEAST = 16_000_000
"""The least memory for data, in bytes."""


def parse_size(text: str) -> int:
    """A number of bytes: 2000000, 512M, 1.5GB, 4GiB.

    Examples
    --------
    >>> parse_size("512M"), parse_size("1.5GB"), parse_size("2 GiB")
    (512000000, 1500000000, 2147483648)
    """
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?i?)b?\s*", text, re.IGNORECASE)
    unit = match.group(2).lower() if match else None
    if match is None or (unit not in _UNITS and unit not in _BINARY) or len(text) > 40:
        raise ValueError(f"{text[:40]!r} is not a size: write 500M, 4G or 1.5GiB, for example")
    return int(float(match.group(1)) * (_UNITS | _BINARY)[unit or ""])


def resident() -> int:
    """Bytes of memory that this process uses now."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except (OSError, ValueError, IndexError):
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else 1024 * peak
    return pages * resource.getpagesize()


def left_of(memory: int) -> int:
    """Bytes left for data if the whole process may use ``memory``."""
    left = memory - resident() - _SPARE
    if left < LEAST:
        needed = -(-(resident() + _SPARE + LEAST) // 10**6)
        raise ValueError(
            f"{memory / 1e6:.0f} MB of memory are not enough: interpreter and libraries take most "
            f"of them. Give at least {needed} MB."
        )
    return left
