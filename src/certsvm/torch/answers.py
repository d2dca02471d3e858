"""What a fitted classifier answers to tensors: tensors, where they are."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from certsvm.matrices import dense
from certsvm.torch.data import as_tensor, float_rows, labels_of, like, weights_of
from certsvm.verification.optimum_intervals import RowSizes, in_single

# Rows whose scores are computed at a time.
_ROWS_AT_ONCE = 65_536


def scores_of(model: Any, X: Any) -> Tensor:
    """X coef' + intercept, in float64, on the device of X: a column for each problem."""
    rows = float_rows(X)
    if rows.ndim != 2 or rows.shape[1] != model.n_features_in_:
        raise ValueError(
            f"X has shape {tuple(rows.shape)}, but LinearSVC is expecting "
            f"{model.n_features_in_} features as input"
        )
    coef = as_tensor(dense(model.coef_), rows.device)
    intercept = as_tensor(model.intercept_, rows.device)
    # In blocks, to bound the size of the float64 copies.
    blocks = rows.split(_ROWS_AT_ONCE)
    scores = torch.cat([block.double() @ coef.T + intercept for block in blocks])
    if not bool(torch.isfinite(scores).all()):
        raise ValueError("Input X contains NaN, or infinity, or values too large to add up")
    return scores


def row_sizes(X: Any) -> RowSizes:
    """The sizes of rows, on the host."""
    blocks = float_rows(X).split(_ROWS_AT_ONCE)
    squares = torch.cat([block.double().square().sum(dim=1) for block in blocks])
    counts = torch.cat([(block != 0).sum(dim=1) for block in blocks])
    return RowSizes(squares.cpu().numpy(), counts.cpu().numpy())


def rounded(X: Any, values: Any, upwards: bool | None = None) -> Any:
    """Scores, ends of intervals or statuses as what X is, where X is.

    Of rows in half or single precision, scores are in float32, and ends of intervals are rounded
    outwards.
    """
    rows = as_tensor(X)
    if rows.dtype not in (torch.float64, torch.int64):
        if upwards is not None:
            values = in_single(values, upwards=upwards)
        elif isinstance(values, torch.Tensor):
            values = values.float()
    return like(X, as_tensor(values, rows.device))


def labels(X: Any, classes: NDArray[Any], index: Tensor) -> Any:
    """Labels at an index: numbers as what X is, others as a NumPy array."""
    if classes.dtype.kind not in "biuf":
        return classes[index.cpu().numpy()]
    return like(X, as_tensor(classes, index.device)[index])


def score(model: Any, X: Any, y: Any, sample_weight: Any) -> float:
    """The share of rows that are predicted rightly."""
    predicted = host(model.predict(X))
    right = as_tensor(predicted == host(labels_of(y, len(predicted)))).double()
    if sample_weight is None:
        return float(right.mean())
    weights = weights_of(sample_weight, len(right), right.device)
    return float((right * weights).sum() / weights.sum())


def host(values: Any) -> NDArray[Any]:
    """Labels or weights as an array."""
    if isinstance(values, np.ndarray):
        return values
    tensor = as_tensor(values)
    array: NDArray[Any] = (tensor.double() if tensor.is_floating_point() else tensor).cpu().numpy()
    return array
