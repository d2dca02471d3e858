"""What counts as a tensor, and what answers tensors: PyTorch is loaded only if there are some."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from types import ModuleType
from typing import Any

import numpy as np


def are_tensors(X: Any) -> bool:
    """Whether X is a tensor, or something on a device that can be made one."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(X, torch.Tensor):
        return True
    if isinstance(X, np.ndarray | np.generic) or not hasattr(X, "__dlpack_device__"):
        return False
    # CuPy's arrays and their like. What is on the CPU, NumPy can take as well.
    return X.__dlpack_device__()[0] != 1 and find_spec("torch") is not None


def answers() -> ModuleType:
    """``certsvm.torch.answers``."""
    from certsvm.torch import answers

    return answers


def on_host(values: Any) -> Any:
    """Labels or weights as an array, if they are a tensor."""
    return answers().host(values) if are_tensors(values) else values
