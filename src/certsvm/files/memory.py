"""Sizes, and the memory of this process."""

from __future__ import annotations

import re

import psutil

# Memory that interpreter and libraries may still allocate.
_SPARE = 60_000_000
# Memory of a process that trains from blocks, without them: interpreter, libraries, compiler.
_TRAINING = 340_000_000
LEAST = 16_000_000
"""The least memory for data, in bytes."""
BLOCKS_AT_ONCE = 3
"""Blocks in memory during training: in use, the next, and one that is being read or checked."""
LEAST_BLOCK, LARGEST_BLOCK = 1_000_000, 16_000_000
"""Sizes of blocks, unless one is asked for."""


def parse_size(text: str) -> int:
    """A number of bytes: 2000000, 512M, 1.5GB, 4GiB.

    Examples
    --------
    >>> parse_size("512M"), parse_size("1.5GB"), parse_size("2 GiB")
    (512000000, 1500000000, 2147483648)
    """
    pattern = r"\s*(\d{1,18}(?:\.\d{1,18})?)\s*(?:([kmgt])(i?))?b?\s*"
    match = re.fullmatch(pattern, text, re.IGNORECASE)
    if match is None:
        raise ValueError(f"{text[:40]!r} is not a size: write 500M, 4G or 1.5GiB, for example")
    number, unit, binary = match.groups()
    return int(float(number) * (1024 if binary else 1000) ** " kmgt".index((unit or " ").lower()))


def block_bytes_for(memory: int) -> int:
    """Size of blocks from which a process of ``memory`` bytes can train.

    Examples
    --------
    >>> block_bytes_for(500_000_000), block_bytes_for(360_000_000), block_bytes_for(100_000_000)
    (16000000, 6666666, 1000000)
    """
    share = (memory - _TRAINING) // BLOCKS_AT_ONCE
    return max(LEAST_BLOCK, min(share, LARGEST_BLOCK))


def left_of(memory: int) -> int:
    """Bytes left for data if the whole process may use ``memory``."""
    used = int(psutil.Process().memory_info().rss) + _SPARE
    if memory - used < LEAST:
        needed = -(-(used + LEAST) // 10**6)
        raise ValueError(
            f"{memory / 1e6:.0f} MB of memory are not enough: interpreter and libraries take most "
            f"of them. Give at least {needed} MB."
        )
    return memory - used
