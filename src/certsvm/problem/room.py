"""Whether weight vectors fit in memory, asked before the first one is allocated.

A weight vector has a number for each column, whether the column occurs in one row or in all. So a
single large index in sparse data can ask for more memory than there is. Linux grants such requests
and ends the process when it writes to them.
"""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path
from typing import Any

# Smaller amounts are not compared with the memory: reading its state takes longer than the check is
# worth.
_ALWAYS_GRANTED = 1 << 26
_MEMINFO, _STATM = "/proc/meminfo", "/proc/self/statm"
_CGROUPS, _OWN_CGROUPS = "/sys/fs/cgroup", "/proc/self/cgroup"


class NotEnoughMemoryError(MemoryError):
    """Vectors of this length do not fit in memory; the message says how much they would take."""


def require_room(n_columns: int, n_vectors: int, rows: Any = None) -> None:
    """Raise a ``NotEnoughMemoryError`` if ``n_vectors`` vectors of float64 do not fit in memory.

    Parameters
    ----------
    n_columns : int
        Length of the vectors.
    n_vectors : int
        How many are needed at the same time, at least.
    rows : Rows, default=None
        The data, if they are in memory; the message then names the row of the largest index.

    Examples
    --------
    >>> require_room(1000, 12)
    """
    needed = 8 * n_columns * n_vectors
    if needed <= _ALWAYS_GRANTED:
        return
    available = available_memory()
    if available is None or needed <= available:
        return
    raise NotEnoughMemoryError(
        f"X has {n_columns:,} columns. That takes {needed / 1e9:,.1f} GB of memory, for "
        f"{n_vectors} vectors with a number for each column, and {available / 1e9:,.1f} GB are "
        f"available. {_reason(rows, n_columns)}Renumber the columns that occur, or hash them."
    )


def _reason(rows: Any, n_columns: int) -> str:
    largest = None if rows is None else rows.largest_column()
    # The intercept may be one more column.
    if largest is None or largest[1] < n_columns - 2:
        return "In sparse data, a single large index makes so many columns. "
    row, column = largest
    return f"The largest index makes so many: row {row + 1} has column {column + 1:,}. "


def available_memory() -> int | None:
    """Bytes that this process can still allocate; None if that is unknown.

    The least of what the machine has left, with swap, and of the limits on this process: of its
    control groups and of its address space.
    """
    known = [_of_machine(), *_of_cgroups(), *limits_of_process().values()]
    limits = [limit for limit in known if limit is not None]
    return max(0, min(limits)) if limits else None


def limits_of_process() -> dict[str, int]:
    """Bytes left of the limits on this process alone, by the option of ``ulimit`` that sets them.

    "-v" limits the address space, "-d" the part of it that can be written to.
    """
    left: dict[str, int] = {}
    # Windows has no such limits.
    if sys.platform == "win32":
        return left
    with contextlib.suppress(OSError, ValueError, IndexError):
        import resource

        pages = Path(_STATM).read_text().split()
        for option, kind, used in (("-v", "RLIMIT_AS", pages[0]), ("-d", "RLIMIT_DATA", pages[5])):
            limit = resource.getrlimit(getattr(resource, kind))[0]
            if limit != resource.RLIM_INFINITY:
                left[option] = limit - int(used) * resource.getpagesize()
    return left


def _of_machine() -> int | None:
    with contextlib.suppress(OSError, ValueError, KeyError):
        fields = dict(line.split(":") for line in Path(_MEMINFO).read_text().splitlines())
        return sum(1024 * int(fields[name].split()[0]) for name in ("MemAvailable", "SwapFree"))
    # Elsewhere only the size of the memory is known. No more than that can be had.
    return physical_memory()


if sys.platform == "win32":

    def physical_memory() -> int | None:
        """Bytes of memory that the machine has; None if that is unknown."""
        import ctypes

        kilobytes = ctypes.c_ulonglong()
        known = ctypes.WinDLL("kernel32").GetPhysicallyInstalledSystemMemory(
            ctypes.byref(kilobytes)
        )
        return 1024 * kilobytes.value if known else None

else:

    def physical_memory() -> int | None:
        """Bytes of memory that the machine has; None if that is unknown."""
        with contextlib.suppress(OSError, ValueError):
            total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
            return total if total > 0 else None
        return None


def _of_cgroups() -> list[int]:
    """What is left of the limits of the control group of this process, and of those above."""
    left = []
    with contextlib.suppress(OSError, ValueError, StopIteration):
        path = next(
            line[len("0::") :]
            for line in Path(_OWN_CGROUPS).read_text().splitlines()
            if line.startswith("0::")
        )
        # In a container, only the innermost group may be visible, as the root.
        root = Path(_CGROUPS)
        group = root / path.lstrip("/")
        for folder in (group, *group.parents):
            if folder.is_relative_to(root) and (free := _left_of_cgroup(folder)):
                left.append(free)
    return left


def _left_of_cgroup(folder: Path) -> int | None:
    with contextlib.suppress(OSError, ValueError):
        most, used = (int((folder / name).read_text()) for name in ("memory.max", "memory.current"))
        statistics = dict(
            line.split() for line in (folder / "memory.stat").read_text().splitlines()
        )
        # Files that are cached count as used, and are dropped when memory is short.
        return max(1, most - used + int(statistics.get("inactive_file", 0)))
    return None
