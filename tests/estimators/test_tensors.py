"""What counts as a tensor; answers to tensors are tested in tests/torch."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from certsvm.estimators.tensors import are_tensors


@pytest.mark.parametrize(
    "X", [np.eye(2), [[1.0]], sp.eye(2, format="csr"), pd.DataFrame(np.eye(2)), np.float64(1.0)]
)
def test_what_is_in_memory_is_no_tensor(X: object) -> None:
    assert not are_tensors(X)


def test_a_tensor_is_one() -> None:
    torch = pytest.importorskip("torch")
    assert are_tensors(torch.eye(2))


class OnADevice:
    """Something like an array of CuPy's."""

    def __init__(self, kind: int) -> None:
        self._kind = kind

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._kind, 0


def test_what_is_on_a_device_can_be_made_one() -> None:
    pytest.importorskip("torch")
    assert are_tensors(OnADevice(2))
    assert not are_tensors(OnADevice(1))
