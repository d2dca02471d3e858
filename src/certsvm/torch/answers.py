"""What a fitted classifier answers to tensors: tensors, where they are."""

from __future__ import annotations

from collections.abc import Iterator
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


def _batches(model: Any, X: Any) -> Iterator[Tensor]:
    """X coef' + intercept, in float64, on the device of X: a column for each problem."""
    rows = float_rows(X)
    if rows.ndim != 2 or rows.shape[1] != model.n_features_in_:
        raise ValueError(
            f"X has shape {tuple(rows.shape)}, but LinearSVC is expecting "
            f"{model.n_features_in_} features as input"
        )
    coef = as_tensor(dense(model.coef_), rows.device)
    intercept = as_tensor(model.intercept_, rows.device)
    for block in rows.split(_ROWS_AT_ONCE):
        scores = block.double() @ coef.T + intercept
        if not bool(torch.isfinite(scores).all()):
            raise ValueError("Input X contains NaN, or infinity, or values too large to add up")
        yield scores


def scores_of(model: Any, X: Any) -> Tensor:
    """The scores of all rows."""
    return torch.cat(list(_batches(model, X)))


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


def _top(model: Any, X: Any, k: int) -> Tensor:
    """The positions of the k classes of the highest scores, for each row; the first of equals."""
    positions = []
    for scores in _batches(model, X):
        of_classes = torch.hstack([-scores, scores]) if scores.shape[1] == 1 else scores
        top = of_classes.topk(k).indices if k > 1 else of_classes.argmax(1, keepdim=True)
        positions.append(top)
    return torch.cat(positions)


def predict(model: Any, X: Any) -> Any:
    """Labels: numbers as what X is, others as a NumPy array."""
    if model.multilabel_:
        return like(X, torch.cat([(scores > 0).long() for scores in _batches(model, X)]))
    classes, index = model.classes_, _top(model, X, 1)[:, 0]
    if classes.dtype.kind not in "biuf":
        return classes[index.cpu().numpy()]
    return like(X, as_tensor(classes, index.device)[index])


def score(model: Any, X: Any, y: Any, sample_weight: Any, k: int = 1) -> float:
    """The share of rows whose label is among the k best; of several labels, all predicted."""
    labels = host(labels_of(y, as_tensor(X).shape[0]))
    expected = (len(model.classes_),) if model.multilabel_ else ()
    if labels.shape[1:] != expected:
        raise ValueError(f"y must have shape {(len(labels), *expected)}, got {labels.shape}")
    if model.multilabel_:
        right = (host(predict(model, X)) == labels).all(1)
    else:
        right = (model.classes_[host(_top(model, X, k))] == labels[:, None]).any(1)
    weights = None
    if sample_weight is not None:
        weights = host(weights_of(sample_weight, len(right), torch.device("cpu")))
    return float(np.average(right, weights=weights))


def host(values: Any) -> NDArray[Any]:
    """Labels or weights as an array."""
    if isinstance(values, np.ndarray):
        return values
    tensor = as_tensor(values)
    array: NDArray[Any] = (tensor.double() if tensor.is_floating_point() else tensor).cpu().numpy()
    return array
