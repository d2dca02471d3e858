"""Conversion of rows, labels and weights to tensors, from PyTorch, CuPy and NumPy."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray
from torch import Tensor

from certsvm.fitting.sources import refuse_other_indicators
from certsvm.matrices import dense, exact_labels, refuse_masked

# DLPack's numbers of CUDA, ROCm and CUDA's managed memory.
_GPUS = (2, 10, 13)
# Replacements for types that NumPy does not have, or that PyTorch cannot compare.
_WIDER = {torch.bfloat16: torch.float32, torch.uint16: torch.int64, torch.uint32: torch.int64}


def as_tensor(values: Any, device: torch.device | None = None) -> Tensor:
    """A tensor on the given device, which shares the memory of ``values`` where possible."""
    if isinstance(values, Tensor):
        tensor = values.detach()
    elif not _on_host(values):
        if values.__dlpack_device__()[0] in _GPUS and not torch.cuda.is_available():
            raise ValueError("the data are on a GPU, and PyTorch sees no GPU here")
        tensor = torch.from_dlpack(values)
    else:
        array = np.ascontiguousarray(values)
        # PyTorch has no read-only tensors, and warns about read-only arrays.
        tensor = torch.from_numpy(array if array.flags.writeable else array.copy())
    return tensor if device is None else tensor.to(device)


def like(values: Any, tensor: Tensor) -> Any:
    """Convert a tensor to the type of ``values``, such as a CuPy array."""
    if isinstance(values, Tensor):
        return tensor
    module = sys.modules.get(type(values).__module__.partition(".")[0])
    back = getattr(module, "from_dlpack", None)
    return tensor if back is None else back(tensor)


def float_rows(X: Any) -> Tensor:
    """Rows as a floating-point tensor; integers become float64."""
    if sp.issparse(X):
        raise ValueError(
            "sparse matrices are trained on the CPU only: omit device, or make them dense"
        )
    if _on_host(X):
        refuse_masked(X=X)
        X = np.asarray(X)
        if X.dtype.kind not in "fiub":
            raise ValueError(f"X must hold real numbers, got dtype {X.dtype}")
    tensor = as_tensor(X)
    if tensor.is_complex():
        raise ValueError("Complex data not supported: X must hold real numbers")
    return tensor if tensor.is_floating_point() else tensor.double()


def _on_host(values: Any) -> bool:
    """Whether NumPy is to take the values, rather than DLPack."""
    return isinstance(values, np.ndarray) or not hasattr(values, "__dlpack__")


def labels_of(y: Any, n_rows: int) -> Any:
    """Checked labels: one for each row, or a matrix of zeros and ones."""
    if y is None:
        raise ValueError("requires y to be passed, but the target y is None")
    if _on_host(y):
        y = exact_labels(dense(y) if sp.issparse(y) else y)
    if y.ndim == 2 and y.shape[1] == 1:
        y = y[:, 0]
    if y.ndim not in (1, 2) or y.shape[0] != n_rows or 0 in y.shape[1:]:
        raise ValueError(f"X has {n_rows} rows, y has shape {tuple(y.shape)}")
    if y.ndim == 2:
        refuse_other_indicators(y)
    return y


def weights_of(sample_weight: Any, n_rows: int, device: torch.device) -> Tensor:
    """Checked row weights, in float64, on the device."""
    if np.ndim(sample_weight) == 0 and not hasattr(sample_weight, "__dlpack__"):
        sample_weight = np.full(n_rows, float(sample_weight))
    weights = as_tensor(sample_weight, device)
    if weights.is_complex():
        raise ValueError("Complex data not supported: sample_weight must hold real numbers")
    weights = weights.to(torch.float64)
    if weights.shape != (n_rows,):
        raise ValueError(f"X has {n_rows} rows, sample_weight has shape {tuple(weights.shape)}")
    if not bool(weights.isfinite().all()):
        raise ValueError("sample_weight must be finite: it contains NaN or infinity")
    if bool((weights < 0).any()):
        raise ValueError("sample_weight must not be negative")
    return weights


def encoded(y: Any, device: torch.device) -> tuple[NDArray[Any], Tensor]:
    """The labels in ascending order, on the host, and the position of each row's, on the device.

    Examples
    --------
    >>> classes, codes = encoded(torch.tensor([3, -1, 3]), torch.device("cpu"))
    >>> classes.tolist(), codes.tolist()
    ([-1, 3], [1, 0, 1])
    """
    if _on_host(y):
        values, index = np.unique(np.asarray(y), return_inverse=True)
        return values, torch.from_numpy(index.astype(np.int64)).to(device)
    labels = as_tensor(y, device)
    if labels.dtype == torch.uint64:
        raise ValueError("labels of type uint64 cannot be compared on tensors: convert them")
    labels = labels.to(_WIDER.get(labels.dtype, labels.dtype))
    whole = labels.to(torch.uint8) if labels.dtype == torch.bool else labels
    low, high = whole.min(), whole.max()
    top = whole == high
    if bool((top | (whole == low)).all()):
        # The usual case, without sorting.
        classes = torch.stack([low, high]) if bool(low != high) else low[None]
        codes = top.long() if len(classes) == 2 else torch.zeros_like(top, dtype=torch.long)
    else:
        classes, codes = torch.unique(whole, return_inverse=True)
    return classes.to(labels.dtype).cpu().numpy(), codes
