"""What ``LinearSVC`` does with tensors: train where they are, and answer in kind."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import _check_feature_names, check_is_fitted

from certsvm.certificates.weights import dense
from certsvm.matrices import refuse_masked
from certsvm.verification.optimum_intervals import RowSizes, in_single

if TYPE_CHECKING:
    from torch import Tensor

    from certsvm.estimators.linear_svc import LinearSVC
    from certsvm.estimators.optimum import OptimumMixin
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
        X,
        y,
        sample_weight,
        class_weight=model.class_weight,
        intercept_scaling=model._rho(),
        device=model.device,
    )
    model.n_features_in_ = source.n_columns
    # A data frame's; tensors have none.
    _check_feature_names(model, None if are_tensors(X) else X, reset=True)
    return source


def scores_of_tensors(model: OptimumMixin, X: Any) -> Tensor:
    """X coef' + intercept, in float64, on the device of X."""
    import torch

    from certsvm.torch.data import as_tensor

    check_is_fitted(model)
    rows = _rows_of(model, X)
    coef = as_tensor(dense(model.coef_), rows.device)
    intercept = as_tensor(model.intercept_, rows.device)
    scores = torch.empty((rows.shape[0], len(coef)), dtype=torch.float64, device=rows.device)
    for first in range(0, rows.shape[0], _ROWS_AT_ONCE):
        part = slice(first, first + _ROWS_AT_ONCE)
        scores[part] = rows[part].double() @ coef.T + intercept
    if not bool(torch.isfinite(scores).all()):
        raise ValueError("Input X contains NaN, or infinity, or values too large to add up")
    return scores[:, 0] if len(coef) == 1 else scores


def _rows_of(model: OptimumMixin, X: Any) -> Tensor:
    from certsvm.torch.data import float_rows

    rows = float_rows(X)
    if rows.ndim != 2 or rows.shape[1] != model.n_features_in_:
        raise ValueError(
            f"X has shape {tuple(rows.shape)}, but LinearSVC is expecting "
            f"{model.n_features_in_} features as input"
        )
    return rows


def scores_and_sizes(model: OptimumMixin, X: Any) -> tuple[NDArray[np.float64], RowSizes]:
    """The scores of rows and their sizes, on the host."""
    import torch

    rows, scores = _rows_of(model, X), scores_of_tensors(model, X)
    squares = torch.zeros(len(rows), dtype=torch.float64, device=rows.device)
    counts = torch.zeros(len(rows), dtype=torch.int64, device=rows.device)
    for first in range(0, len(rows), _ROWS_AT_ONCE):
        part = slice(first, first + _ROWS_AT_ONCE)
        squares[part] = rows[part].double().square().sum(dim=1)
        counts[part] = (rows[part] != 0).sum(dim=1)
    columns = scores if scores.ndim == 2 else scores[:, None]
    return columns.cpu().numpy(), RowSizes(squares.cpu().numpy(), counts.cpu().numpy())


def answer(X: Any, values: NDArray[Any]) -> Any:
    """An array as what X is, where X is."""
    from certsvm.torch.data import as_tensor, like

    return like(X, as_tensor(values, as_tensor(X).device))


def end_of_interval(X: Any, ends: NDArray[np.float64], *, upwards: bool) -> Any:
    """Ends of intervals as what X is, and in the type of its scores: rounded outwards."""
    import torch

    from certsvm.torch.data import as_tensor

    if as_tensor(X).dtype not in (torch.float64, torch.int64):
        return answer(X, in_single(ends, upwards=upwards))
    return answer(X, ends)


def on_host(values: Any) -> Any:
    """Labels or weights as an array, if they are a tensor."""
    if not are_tensors(values):
        return values
    from certsvm.torch.data import as_tensor

    tensor = as_tensor(values)
    return (tensor.double() if tensor.is_floating_point() else tensor).cpu().numpy()


def decide(model: LinearSVC, X: Any) -> Any:
    """Scores of tensors, as what X is; of half precision, in float32."""
    import torch

    from certsvm.torch.data import as_tensor, like

    scores = scores_of_tensors(model, X)
    dtype = as_tensor(X).dtype
    return like(X, scores if dtype in (torch.float64, torch.int64) else scores.float())


def predict(model: LinearSVC, X: Any) -> Any:
    """Labels of tensors: numbers as what X is, others as a NumPy array."""
    from certsvm.torch.data import as_tensor, like

    scores = scores_of_tensors(model, X)
    index = (scores > 0).long() if scores.ndim == 1 else scores.argmax(dim=1)
    if model.classes_.dtype.kind not in "biuf":
        return model.classes_[index.cpu().numpy()]
    return like(X, as_tensor(model.classes_, index.device)[index])


def score(model: LinearSVC, X: Any, y: Any, sample_weight: Any) -> float:
    """The share of rows that are predicted rightly."""
    from certsvm.torch.data import as_tensor, labels_of, weights_of

    predicted = predict(model, X)
    y = labels_of(y, len(predicted))
    if isinstance(predicted, np.ndarray):
        right = as_tensor((predicted == np.asarray(y)).astype(np.float64))
    else:
        predicted = as_tensor(predicted)
        right = (predicted == as_tensor(y, predicted.device)).double()
    if sample_weight is None:
        return float(right.mean())
    weights = weights_of(sample_weight, len(right), right.device)
    return float((right * weights).sum() / weights.sum())
