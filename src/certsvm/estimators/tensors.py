"""What ``LinearSVC`` does with tensors: train where they are, and answer in kind."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import _check_feature_names

from certsvm.certificates.weights import dense
from certsvm.matrices import refuse_masked
from certsvm.verification.optimum_intervals import RowSizes, in_single

if TYPE_CHECKING:
    from torch import Tensor

    from certsvm.estimators.classifier import LinearClassifier
    from certsvm.estimators.linear_svc import LinearSVC
    from certsvm.torch.source import TensorSource

# Rows whose scores are computed at a time.
_ROWS_AT_ONCE = 65_536


def are_tensors(X: Any) -> bool:
    """Whether X is a tensor, or something on a device that can be made one."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(X, torch.Tensor):
        return True
    if isinstance(X, np.ndarray | np.generic) or not hasattr(X, "__dlpack_device__"):
        return False
    # CuPy's arrays and their like. What is on the CPU, NumPy can take as well.
    return X.__dlpack_device__()[0] != 1 and find_spec("torch") is not None


def tensor_source(model: LinearSVC, X: Any, y: Any, sample_weight: Any) -> TensorSource:
    """The data as tensors, where ``fit`` trains on them."""
    from certsvm.torch.source import TensorSource

    refuse_masked(X=X, y=y, sample_weight=sample_weight)
    source = TensorSource(
        X, y, sample_weight,
        class_weight=model.class_weight, intercept_scaling=model._rho(), device=model.device,
    )  # fmt: skip
    model.n_features_in_ = source.n_columns
    # A data frame's; tensors have none.
    _check_feature_names(model, None if are_tensors(X) else X, reset=True)
    return source


def scores_of(model: LinearClassifier, X: Any) -> Tensor:
    """X coef' + intercept, in float64, on the device of X: a column for each problem."""
    import torch

    from certsvm.torch.data import as_tensor, float_rows

    rows = float_rows(X)
    if rows.ndim != 2 or rows.shape[1] != model.n_features_in_:
        raise ValueError(
            f"X has shape {tuple(rows.shape)}, but LinearSVC is expecting "
            f"{model.n_features_in_} features as input"
        )
    coef = as_tensor(dense(model.coef_), rows.device)
    intercept = as_tensor(model.intercept_, rows.device)
    scores = torch.empty((len(rows), len(coef)), dtype=torch.float64, device=rows.device)
    for part in _parts(len(rows)):
        scores[part] = rows[part].double() @ coef.T + intercept
    if not bool(torch.isfinite(scores).all()):
        raise ValueError("Input X contains NaN, or infinity, or values too large to add up")
    return scores


def row_sizes(X: Any) -> RowSizes:
    """The sizes of rows, on the host."""
    import torch

    from certsvm.torch.data import float_rows

    rows = float_rows(X)
    squares = torch.zeros(len(rows), dtype=torch.float64, device=rows.device)
    counts = torch.zeros(len(rows), dtype=torch.int64, device=rows.device)
    for part in _parts(len(rows)):
        squares[part] = rows[part].double().square().sum(dim=1)
        counts[part] = (rows[part] != 0).sum(dim=1)
    return RowSizes(squares.cpu().numpy(), counts.cpu().numpy())


def _parts(n_rows: int) -> Iterator[slice]:
    for first in range(0, n_rows, _ROWS_AT_ONCE):
        yield slice(first, first + _ROWS_AT_ONCE)


def rounded(X: Any, values: Any, upwards: bool | None = None) -> Any:
    """Scores, ends of intervals or statuses as what X is, where X is.

    Of rows in half or single precision, scores are in float32, and ends of intervals are rounded
    outwards.
    """
    import torch

    from certsvm.torch.data import as_tensor, like

    rows = as_tensor(X)
    if rows.dtype not in (torch.float64, torch.int64):
        if upwards is not None:
            values = in_single(values, upwards=upwards)
        elif isinstance(values, torch.Tensor):
            values = values.float()
    return like(X, as_tensor(values, rows.device))


def labels(X: Any, classes: NDArray[Any], index: Tensor) -> Any:
    """Labels at an index: numbers as what X is, others as a NumPy array."""
    from certsvm.torch.data import as_tensor, like

    if classes.dtype.kind not in "biuf":
        return classes[index.cpu().numpy()]
    return like(X, as_tensor(classes, index.device)[index])


def score(model: LinearClassifier, X: Any, y: Any, sample_weight: Any) -> float:
    """The share of rows that are predicted rightly."""
    from certsvm.torch.data import as_tensor, labels_of, weights_of

    predicted = on_host(model.predict(X))
    right = as_tensor(predicted == on_host(labels_of(y, len(predicted)))).double()
    if sample_weight is None:
        return float(right.mean())
    weights = weights_of(sample_weight, len(right), right.device)
    return float((right * weights).sum() / weights.sum())


def on_host(values: Any) -> Any:
    """Labels or weights as an array, if they are a tensor."""
    if not are_tensors(values):
        return values
    from certsvm.torch.data import as_tensor

    tensor = as_tensor(values)
    return (tensor.double() if tensor.is_floating_point() else tensor).cpu().numpy()
