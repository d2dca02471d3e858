"""The problems of the other tests, in tensors; CERTSVM_TEST_DEVICE=cuda puts them on a GPU."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import torch

from certsvm.torch import TensorProblem, TensorRows
from tests.problems import Case

DEVICE = os.environ.get("CERTSVM_TEST_DEVICE", "cpu")
DTYPES = {
    "float64": torch.float64,
    "float32": torch.float32,
    "float16": torch.float16,
    "bfloat16": torch.bfloat16,
}


def in_tensors(case: Case, dtype: str) -> tuple[Case, torch.Tensor]:
    """The rows in a tensor of that type, and the case with the values that the type can hold."""
    X = torch.tensor(case.X, dtype=DTYPES[dtype], device=DEVICE)
    return case._replace(X=host(X), form="dense-float64-int32"), X


def host(tensor: torch.Tensor) -> Any:
    """The same values in a NumPy array of float64."""
    return tensor.double().cpu().numpy()


def device(array: Any) -> torch.Tensor:
    """The same values in a tensor."""
    return torch.tensor(array, device=DEVICE)


def tensor_problem(case: Case, X: torch.Tensor, **rows: Any) -> TensorProblem:
    return TensorProblem(
        TensorRows(X, intercept_scaling=case.intercept_scaling, **rows),
        device(case.labels),
        C=case.C,
        row_weights=None if case.weights is None else device(case.weights),
    )


def generated(n: int, d: int, seed: int = 0, flipped: float = 0.05) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)).astype(np.float32)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    y = np.where(X @ rng.standard_normal(d) > 0, 1.0, -1.0)
    return X, np.where(rng.random(n) < flipped, -y, y)
