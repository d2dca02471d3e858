"""Sizes, and the memory of this process."""

from __future__ import annotations

import contextlib
import re
import sys
from pathlib import Path

_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_BINARY = {"ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}
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
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?i?)b?\s*", text, re.IGNORECASE)
    unit = match.group(2).lower() if match else None
    if match is None or (unit not in _UNITS and unit not in _BINARY) or len(text) > 40:
        raise ValueError(f"{text[:40]!r} is not a size: write 500M, 4G or 1.5GiB, for example")
    return int(float(match.group(1)) * (_UNITS | _BINARY)[unit or ""])


def resident() -> int:
    """Bytes of memory that this process uses now."""
    return _resident_and_peak()[0]


def peak() -> int:
    """The most bytes of memory that this process has used so far."""
    return _resident_and_peak()[1]


if sys.platform == "win32":

    def _resident_and_peak() -> tuple[int, int]:
        import ctypes
        from ctypes import wintypes

        class Counters(ctypes.Structure):
            """PROCESS_MEMORY_COUNTERS."""

            _fields_ = (
                ("size", wintypes.DWORD),
                ("page_faults", wintypes.DWORD),
                ("peak_working_set", ctypes.c_size_t),
                ("working_set", ctypes.c_size_t),
                ("quotas_and_page_file", 6 * ctypes.c_size_t),
            )

        kernel = ctypes.WinDLL("kernel32", use_last_error=True)
        kernel.GetCurrentProcess.restype = wintypes.HANDLE
        ask = kernel.K32GetProcessMemoryInfo
        ask.argtypes = (wintypes.HANDLE, ctypes.POINTER(Counters), wintypes.DWORD)
        ask.restype = wintypes.BOOL
        counters = Counters(size=ctypes.sizeof(Counters))
        if not ask(kernel.GetCurrentProcess(), ctypes.byref(counters), counters.size):
            raise ctypes.WinError(ctypes.get_last_error())
        return counters.working_set, counters.peak_working_set

else:

    def _resident_and_peak() -> tuple[int, int]:
        import resource

        # Linux's count for getrusage includes the process that started this one.
        with contextlib.suppress(OSError, ValueError, KeyError):
            status = Path("/proc/self/status").read_text(encoding="utf-8")
            kilobytes = dict(re.findall(r"(VmRSS|VmHWM):\s+(\d+) kB", status))
            return 1024 * int(kilobytes["VmRSS"]), 1024 * int(kilobytes["VmHWM"])
        # Elsewhere what is used now is unknown; the most so far is no less.
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        most *= 1 if sys.platform == "darwin" else 1024
        return most, most


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
    left = memory - resident() - _SPARE
    if left < LEAST:
        needed = -(-(resident() + _SPARE + LEAST) // 10**6)
        raise ValueError(
            f"{memory / 1e6:.0f} MB of memory are not enough: interpreter and libraries take most "
            f"of them. Give at least {needed} MB."
        )
    return left
