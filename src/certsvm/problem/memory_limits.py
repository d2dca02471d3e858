"""Whether weight vectors fit in memory, asked before the first one is allocated.

A weight vector has a number for each column, whether the column occurs in one row or in all. So a
single large index in sparse data can ask for more memory than there is. Linux grants such requests
and ends the process when it writes to them.
"""

from __future__ import annotations

import contextlib
from pathlib import Path

import psutil

# Smaller amounts are not compared with the memory: reading its state takes longer than the check is
# worth.
_ALWAYS_GRANTED = 1 << 26
_CGROUPS, _OWN_CGROUPS = "/sys/fs/cgroup", "/proc/self/cgroup"


class NotEnoughMemoryError(MemoryError):
    """Vectors of this length do not fit in memory; the message says how much they would take."""


def require_memory_for(n_columns: int, n_vectors: int) -> None:
    """Raise a ``NotEnoughMemoryError`` if ``n_vectors`` vectors of float64 do not fit in memory.

    Parameters
    ----------
    n_columns : int
        Length of the vectors.
    n_vectors : int
        How many are needed at the same time, at least.

    Examples
    --------
    >>> require_memory_for(1000, 12)
    """
    needed = 8 * n_columns * n_vectors
    if needed > _ALWAYS_GRANTED and needed > (available := available_memory()):
        raise NotEnoughMemoryError(
            f"X has {n_columns:,} columns. That takes {needed / 1e9:,.1f} GB of memory, for "
            f"{n_vectors} vectors with a number for each column, and {available / 1e9:,.1f} GB are "
            "available. In sparse data, a single large index makes so many columns. Renumber the "
            "columns that occur, or hash them."
        )


def available_memory() -> int:
    """Bytes that this process can still allocate.

    The least of what the machine has left, with swap, and of the limits on this process: of its
    control groups and of its address space.
    """
    of_machine: int = psutil.virtual_memory().available + psutil.swap_memory().free
    return max(0, min([of_machine, *_of_cgroups(), *limits_of_process().values()]))


def physical_memory() -> int:
    """Bytes of memory that the machine has."""
    return int(psutil.virtual_memory().total)


def limits_of_process() -> dict[str, int]:
    """Bytes left of the limits on this process alone, by the option of ``ulimit`` that sets them.

    "-v" limits the address space, "-d" the part of it that can be written to.
    """
    process = psutil.Process()
    # Only Linux tells how much of them is used.
    if not hasattr(process, "rlimit"):
        return {}
    used = process.memory_info()
    left = {}
    for option, kind, size in (
        ("-v", psutil.RLIMIT_AS, used.vms), ("-d", psutil.RLIMIT_DATA, used.data)
    ):  # fmt: skip
        if (limit := process.rlimit(kind)[0]) != psutil.RLIM_INFINITY:
            left[option] = limit - size
    return left


def _of_cgroups() -> list[int]:
    """What is left of the limits of the control group of this process, and of those above."""
    left: list[int] = []
    with contextlib.suppress(OSError, ValueError, StopIteration):
        lines = Path(_OWN_CGROUPS).read_text().splitlines()
        path = next(line.removeprefix("0::/") for line in lines if line.startswith("0::/"))
        # In a container, only the innermost group may be visible, as the root.
        root = Path(_CGROUPS)
        for folder in (root / path, *(root / path).parents):
            if not folder.is_relative_to(root):
                break
            with contextlib.suppress(OSError, ValueError):
                most = int((folder / "memory.max").read_text())
                used = int((folder / "memory.current").read_text())
                statistics = (folder / "memory.stat").read_text().split()
                # Files that are cached count as used, and are dropped when memory is short.
                cached = int(statistics[statistics.index("inactive_file") + 1])
                left.append(max(1, most - used + cached))
    return left
