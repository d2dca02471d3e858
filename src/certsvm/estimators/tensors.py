"""What ``LinearSVC`` does with tensors: train where they are, and answer in kind."""

from __future__ import annotations

import sys
import threading
from collections.abc import Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils import check_random_state, column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_feature_names, check_is_fitted

from certsvm.estimators.sklearn_callbacks import FitTasks
from certsvm.fitting.class_weights import class_weights, require_two_classes
from certsvm.fitting.one_vs_rest import positive_classes, run_all
from certsvm.problem.rows import split
from certsvm.training.loop import Result, train

if TYPE_CHECKING:
    from torch import Tensor

    from certsvm.estimators.linear_svc import LinearSVC
    from certsvm.torch import TensorNewton, TensorProblem, TensorRows

# Rows whose scores are computed at a time.
_ROWS_AT_ONCE = 65_536
# Bytes for a row and a problem, and for all problems that are trained at once: a share of the
# device's free memory, or a number.
_PER_ROW, _SHARE, _ROOM = 80, 0.4, 2.0**31


def are_tensors(X: Any) -> bool:
    """Whether X is a tensor, or something on a device that can be made one."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(X, torch.Tensor):
        return True
    if isinstance(X, np.ndarray | np.generic) or not hasattr(X, "__dlpack_device__"):
        return False
    # CuPy's arrays and their like. What is on the CPU, NumPy can take as well.
    return X.__dlpack_device__()[0] != 1 and find_spec("torch") is not None


def fit_on_tensors(
    models: Sequence[LinearSVC], X: Any, y: Any, sample_weight: Any
) -> tuple[list[list[Result]], TensorNewton]:
    """Train models that differ in C only, all at once."""
    import torch

    from certsvm.torch import ProblemGroup, TensorProblem, TensorRows
    from certsvm.torch.data import as_tensor, encoded, float_rows

    first = models[0]
    solver = _solver(first)
    tensor = float_rows(X)
    if tensor.ndim != 2:
        raise ValueError(f"X must have two dimensions (rows, columns), got {tuple(tensor.shape)}")
    n_rows, n_columns = tensor.shape
    if n_rows == 0 or n_columns == 0:
        raise ValueError(
            f"X has no {'rows' if n_rows == 0 else 'columns'}: shape {(n_rows, n_columns)}"
        )
    y = _labels(y, n_rows)
    rows = TensorRows(tensor, intercept_scaling=first._bias(), device=first.device)
    classes, codes = encoded(y, rows.device)
    if classes.dtype.kind == "f" and (classes != np.floor(classes)).any():
        raise ValueError("Unknown label type: continuous. Labels must be classes, not quantities.")
    weights = None
    if sample_weight is not None:
        weights = _weights(sample_weight, n_rows, rows.device)
    totals = codes.bincount(weights, minlength=len(classes)).double().cpu().numpy()
    # To the weights of classes, a class is one row of all its weight.
    factors = class_weights(first.class_weight, classes, np.arange(classes.size), totals)
    require_two_classes(classes, np.arange(classes.size), totals * factors)
    if (factors != 1.0).any():
        of_rows = as_tensor(factors, rows.device)[codes]
        weights = of_rows if weights is None else weights * of_rows
    positive = positive_classes(classes)
    problems: list[TensorProblem] = []
    for model in models:
        for i, p in enumerate(positive):
            signs = 2 * (codes == p).to(torch.int8) - 1
            start = _start(model, rows, classes, i)
            problems.append(TensorProblem(rows, signs, C=model.C, row_weights=weights, start=start))
    at_once = _at_once(rows)
    for begin in range(0, len(problems), at_once):
        ProblemGroup(problems[begin : begin + at_once])
    all_results = []
    # One for all: after an interruption none goes on.
    stop = threading.Event()
    for number, model in enumerate(models):
        own = problems[number * len(positive) : (number + 1) * len(positive)]
        model.n_features_in_ = n_columns
        # That of a data frame; tensors have none.
        _check_feature_names(model, None if are_tensors(X) else X, reset=True)
        labels = [classes[p] for p in positive]
        given = {"X": X, "y": y, "metadata": {"sample_weight": sample_weight}}
        tasks = FitTasks(model, labels, model.max_iter, given)
        results, ends = _train(model, own, labels, solver, tasks, classes, stop)
        model._set_fitted(
            results,
            [split(result.w, rows.intercept_scaling) for result in results],
            classes,
            factors,
            n_rows,
        )
        fitted = ("coef_", "intercept_", "classes_")
        tasks.end_fit({name: getattr(model, name) for name in fitted})
        model._print_summary(labels, results)
        model._tensor_alpha = ends if model.warm_start else None
        all_results.append(results)
    return all_results, solver


def _solver(model: LinearSVC) -> TensorNewton:
    from certsvm.torch import TensorNewton

    if isinstance(model.solver, TensorNewton):
        return model.solver
    if model.solver not in ("auto", "newton"):
        name = model.solver if isinstance(model.solver, str) else model.solver.name
        raise ValueError(
            f"on tensors, training is by 'newton' (or 'auto', which is the same): {name!r} needs "
            "NumPy arrays, such as X.cpu().numpy()"
        )
    return TensorNewton()


def _labels(y: Any, n_rows: int) -> Any:
    """Labels, one for each row."""
    if y is None:
        raise ValueError("requires y to be passed, but the target y is None")
    if isinstance(y, np.ndarray) or not hasattr(y, "__dlpack__"):
        y = column_or_1d(y, warn=True)
        check_classification_targets(y)
    elif y.ndim == 2 and y.shape[1] == 1:
        y = y[:, 0]
    if y.ndim != 1 or y.shape[0] != n_rows:
        raise ValueError(f"X has {n_rows} rows, y has shape {tuple(y.shape)}")
    return y


def _weights(sample_weight: Any, n_rows: int, device: Any) -> Tensor:
    """Weights of the rows, in float64, on the device."""
    import torch

    from certsvm.torch.data import as_tensor

    if np.ndim(sample_weight) == 0 and not hasattr(sample_weight, "__dlpack__"):
        sample_weight = np.full(n_rows, float(sample_weight))
    weights = as_tensor(sample_weight, device).to(torch.float64)
    if weights.shape != (n_rows,):
        raise ValueError(f"X has {n_rows} rows, sample_weight has shape {tuple(weights.shape)}")
    if not bool(weights.isfinite().all()):
        raise ValueError("sample_weight must be finite: it contains NaN or infinity")
    if bool((weights < 0).any()):
        raise ValueError("sample_weight must not be negative")
    return weights


def _start(model: LinearSVC, rows: TensorRows, classes: Any, i: int) -> Any:
    """Where a warm start begins."""
    from certsvm.torch.data import as_tensor
    from certsvm.torch.problems import TensorStart

    if not (model.warm_start and hasattr(model, "coef_") and model._epochs > 0):
        return None
    if model.coef_.shape[1] != rows.n_columns or not np.array_equal(model.classes_, classes):
        return None
    w = model.coef_[i]
    if rows.intercept_scaling > 0:
        w = np.append(w, model.intercept_[i] / rows.intercept_scaling)
    alphas = getattr(model, "_tensor_alpha", None)
    alpha, smoothing = (None, None) if alphas is None else alphas[i]
    if alpha is not None and (alpha.shape != (rows.n_rows,) or model.certificates_ is None):
        alpha = None
    if alpha is not None and model.certificates_ is not None:
        alpha = (model.C / model.certificates_[i].C) * alpha.to(rows.device)
    return TensorStart(as_tensor(w, rows.device), alpha, smoothing)


def _at_once(rows: TensorRows) -> int:
    """How many problems there is room for at the same time."""
    import torch

    room = _ROOM
    if rows.device.type == "cuda":
        room = _SHARE * torch.cuda.mem_get_info(rows.device)[0]
    return max(1, int(room / (_PER_ROW * rows.n_rows)))


def _train(
    model: LinearSVC,
    problems: Sequence[TensorProblem],
    labels: Sequence[Any],
    solver: TensorNewton,
    tasks: FitTasks,
    classes: Any,
    stop: threading.Event,
) -> tuple[list[Result], list[tuple[Tensor, float]]]:
    """What training gives, and for each problem the alpha behind its bound, with its slope."""
    random = check_random_state(model.random_state)
    seed = int(random.randint(np.iinfo(np.int32).max))
    coef = np.zeros((len(problems), problems[0].rows.n_columns))
    intercept = np.zeros(len(problems))
    ends: list[tuple[Tensor, float]] = []

    def one(i: int) -> Result:
        def attributes(w: Any) -> dict[str, Any]:
            coef[i], intercept[i] = problems[i].coefficients(w)
            return {
                "coef_": coef.copy(),
                "intercept_": intercept.copy(),
                "classes_": classes,
                "n_features_in_": model.n_features_in_,
            }

        tasks.begin(i)
        result = train(
            problems[i],
            solver,
            tol=model.tol,
            max_iter=model.max_iter,
            max_time=model.max_time,
            seed=seed,
            keep_alpha=model.store_dual,
            callbacks=[*model._printer(labels, i), *tasks.callback(i, attributes)],
            stop=stop,
        )
        tasks.end(i)
        group = problems[i].group
        assert group is not None
        if model.warm_start:
            strand = group.team.strands[problems[i].number]
            ends.append((strand.found.alpha, strand.smoothing))
        if problems[i] is group.problems[-1]:
            # Its memory is for the next group.
            group.team = None
        return result

    return run_all(one, len(problems), 1, stop), ends


def scores_of_tensors(model: LinearSVC, X: Any) -> Tensor:
    """X coef' + intercept, in float64, on the device of X."""
    import torch

    from certsvm.torch.data import as_tensor, float_rows

    check_is_fitted(model)
    rows = float_rows(X)
    if rows.ndim != 2 or rows.shape[1] != model.n_features_in_:
        raise ValueError(
            f"X has shape {tuple(rows.shape)}, but LinearSVC is expecting "
            f"{model.n_features_in_} features as input"
        )
    coef, intercept = as_tensor(model.coef_, rows.device), as_tensor(model.intercept_, rows.device)
    scores = torch.empty((rows.shape[0], len(coef)), dtype=torch.float64, device=rows.device)
    for first in range(0, rows.shape[0], _ROWS_AT_ONCE):
        some = slice(first, first + _ROWS_AT_ONCE)
        scores[some] = rows[some].double() @ coef.T + intercept
    if not bool(torch.isfinite(scores).all()):
        raise ValueError("Input X contains NaN, or infinity, or values too large to add up")
    return scores[:, 0] if len(coef) == 1 else scores


def decide(model: LinearSVC, X: Any) -> Any:
    """Scores of tensors, as what X is; of half precision, in float32."""
    import torch

    from certsvm.torch.data import as_tensor, like

    scores = scores_of_tensors(model, X)
    own = as_tensor(X).dtype
    return like(X, scores if own in (torch.float64, torch.int64) else scores.float())


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
    from certsvm.torch.data import as_tensor

    predicted = predict(model, X)
    y = _labels(y, len(predicted))
    if isinstance(predicted, np.ndarray):
        right = as_tensor((predicted == np.asarray(y)).astype(np.float64))
    else:
        predicted = as_tensor(predicted)
        right = (predicted == as_tensor(y, predicted.device)).double()
    if sample_weight is None:
        return float(right.mean())
    weights = _weights(sample_weight, len(right), right.device)
    return float((right * weights).sum() / weights.sum())
