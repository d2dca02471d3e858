"""Tensors from other kinds of arrays, and labels."""

from typing import Any

import numpy as np
import pytest
import torch

from certsvm import LinearSVC
from certsvm.torch.data import as_tensor, float_rows, like
from tests.torch.problems import data


@pytest.mark.parametrize(
    ("X", "dtype"),
    [
        (np.ones((2, 2), dtype=np.float32), torch.float32),
        (np.ones((2, 2), dtype=np.int32), torch.float64),
        ([[True, False]], torch.float64),
        (torch.ones((2, 2), dtype=torch.bfloat16), torch.bfloat16),
        (torch.ones((2, 2), dtype=torch.int8), torch.float64),
    ],
)
def test_rows_become_floating_point_numbers(X: Any, dtype: torch.dtype) -> None:
    assert float_rows(X).dtype == dtype


def test_what_shares_memory() -> None:
    class Elsewhere:
        """What CuPy's arrays are: something with DLPack, on a device."""

        def __init__(self, tensor: torch.Tensor, device: int = 2) -> None:
            self.tensor, self.device, self.shape = tensor, device, tensor.shape

        def __dlpack__(self, **options: Any) -> Any:
            return self.tensor.__dlpack__()

        def __dlpack_device__(self) -> tuple[int, int]:
            return (self.device, 0)

    X = data()[0].cpu()
    if not torch.cuda.is_available():
        with pytest.raises(ValueError, match="PyTorch sees no GPU here"):
            LinearSVC().fit(Elsewhere(X), np.zeros(len(X)))
    assert torch.equal(as_tensor(Elsewhere(X, device=1)), X)
    assert like(X, X) is X
    assert isinstance(like(X.numpy(), X), np.ndarray)


def test_labels_that_end_in_nul_are_refused() -> None:
    X = torch.eye(4)
    for y in (["a", "a\0"] * 2, np.array(["a", "a\0"] * 2, dtype=object)):
        with pytest.raises(ValueError, match="ends in NUL"):
            LinearSVC().fit(X, y)
