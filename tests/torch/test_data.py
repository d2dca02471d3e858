"""Tensors from other kinds of arrays, and labels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from certsvm import LinearSVC
from certsvm.torch.data import as_tensor, encoded, float_rows, like
from tests.torch.problems import DEVICE, data, host


def test_memory_is_shared_where_possible() -> None:
    array = np.arange(3.0)
    tensor = as_tensor(array)
    array[0] = 7.0
    assert tensor[0] == 7.0
    assert as_tensor(tensor).data_ptr() == tensor.data_ptr()
    array.flags.writeable = False
    assert as_tensor(array).tolist() == [7.0, 1.0, 2.0]
    assert as_tensor([1, 2], torch.device(DEVICE)).device.type == torch.device(DEVICE).type


def test_what_is_not_from_another_library_stays_a_tensor() -> None:
    tensor = torch.ones(2)
    assert like(torch.zeros(1), tensor) is tensor
    assert like([0.0], tensor) is tensor


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


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (sp.csr_matrix(np.eye(2)), "sparse matrices"),
        (np.array([["a"]]), "real numbers"),
        (torch.ones((1, 1), dtype=torch.complex64), "Complex data"),
    ],
)
def test_rows_that_are_none(X: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        float_rows(X)


@pytest.mark.parametrize(
    "y", [[3, 1, 3, 2], [True, False, True, True], [1.5, -0.5, 1.5, 1.5], [4, 4, 4, 4]]
)
def test_labels_as_numpy_has_them(y: Any) -> None:
    classes, index = np.unique(np.asarray(y), return_inverse=True)
    for labels in (np.asarray(y), torch.tensor(y, device=DEVICE)):
        ours, codes = encoded(labels, torch.device(DEVICE))
        np.testing.assert_array_equal(ours, classes)
        np.testing.assert_array_equal(host(codes), index)


def test_labels_that_are_none() -> None:
    with pytest.raises(ValueError, match="not finite"):
        encoded(torch.tensor([1.0, np.nan]), torch.device("cpu"))
    with pytest.raises(ValueError, match="uint64"):
        encoded(torch.tensor([1, 2], dtype=torch.uint64), torch.device("cpu"))


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


def test_labels_are_encoded_in_order() -> None:
    for y in (torch.tensor([2, 0, 1, 2]), np.array(["c", "a", "b", "c"])):
        classes, codes = encoded(y, torch.device("cpu"))
        assert codes.tolist() == [2, 0, 1, 2]
        assert len(classes) == 3


def test_labels_that_end_in_nul_are_refused() -> None:
    X = torch.eye(4)
    for y in (["a", "a\0"] * 2, np.array(["a", "a\0"] * 2, dtype=object)):
        with pytest.raises(ValueError, match="ends in NUL"):
            LinearSVC().fit(X, y)
