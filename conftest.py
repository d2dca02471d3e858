"""A key of the tests' own; what is not tested, and why: PyTorch is an extra, and gigabytes."""

import os
import tempfile
from importlib.util import find_spec
from typing import Any

# Checkpoints of tests and of the processes that they start leave the user's own key alone.
os.environ.setdefault("CERTSVM_KEY_FILE", os.path.join(tempfile.mkdtemp(), "key"))
WITHOUT_TORCH = find_spec("torch") is None
collect_ignore_glob = ["src/certsvm/torch/*", "tests/torch/*"] if WITHOUT_TORCH else []


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Say so."""
    if WITHOUT_TORCH:
        terminalreporter.write_line(
            "PyTorch is not installed: tests of tensors were left out; make test-torch runs them"
        )
