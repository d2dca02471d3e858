"""What is not tested, and why."""

import sys
from importlib.util import find_spec
from typing import Any

collect_ignore_glob: list[str] = []
_LEFT_OUT: list[str] = []


def _leave_out(why: str, *patterns: str) -> None:
    collect_ignore_glob.extend(patterns)
    _LEFT_OUT.append(why)


if find_spec("torch") is None:
    # It is an extra, and gigabytes.
    _leave_out(
        "PyTorch is not installed: tests of tensors were left out; make test-torch runs them",
        "src/certsvm/torch/*",
        "tests/torch/*",
    )
if sys.platform != "linux":
    _leave_out("tests/faults needs Linux: its signals, its limits and /proc", "tests/faults/*")
if sys.platform == "win32":
    _leave_out("benchmarks need the limits of POSIX", "tests/benchmarks/*", "benchmarks/*")


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Say so."""
    for line in _LEFT_OUT:
        terminalreporter.write_line(line)
