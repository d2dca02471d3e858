"""The problems of the other tests, in tensors; CERTSVM_TEST_DEVICE=cuda puts them on a GPU."""

import os
from typing import Any

import numpy as np
import torch

from certsvm import LinearSVC, verify
from certsvm.kernels.losses import HINGE, SQUARED_HINGE
from certsvm.problem.base import Objective
from certsvm.torch import TensorProblem, TensorRows
from tests.problems import Case

DEVICE = os.environ.get("CERTSVM_TEST_DEVICE", "cpu")
DTYPES = {
    "float64": torch.float64,
    "float32": torch.float32,
    "float16": torch.float16,
    "bfloat16": torch.bfloat16,
}
OBJECTIVES = {
    "hinge": Objective(),
    "squared hinge": Objective(loss=SQUARED_HINGE),
    "hinge, free intercept": Objective(loss=HINGE, penalize_intercept=False),
    "squared hinge, free intercept": Objective(loss=SQUARED_HINGE, penalize_intercept=False),
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
    return torch.as_tensor(array).clone().to(DEVICE)


def tensor_problem(
    case: Case, X: torch.Tensor, objective: Objective = OBJECTIVES["hinge"], **rows: Any
) -> TensorProblem:
    """The problem of the case, with its C."""
    return TensorProblem(
        TensorRows(X, intercept_scaling=case.intercept_scaling, **rows),
        device(case.labels),
        C=case.C,
        loss=objective.loss,
        penalize_intercept=objective.penalize_intercept,
        row_weights=None if case.weights is None else device(case.weights),
    )


def generated(n: int, d: int, seed: int = 0, flipped: float = 0.05) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)).astype(np.float32)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    y = np.where(X @ rng.standard_normal(d) > 0, 1.0, -1.0)
    return X, np.where(rng.random(n) < flipped, -y, y)


def data(rows: int = 1500, columns: int = 8, classes: int = 2) -> tuple[Any, Any]:
    generator = torch.Generator().manual_seed(0)
    X = torch.randn(rows, columns, generator=generator)
    noise = 0.3 * torch.randn(rows, classes, generator=generator)
    y = (X[:, :classes] + noise).argmax(1) if classes > 2 else (X[:, 0] + noise[:, 0] > 0).long()
    return X.to(DEVICE), y.to(DEVICE)


def agrees(clf: LinearSVC, X: Any, y: Any, weights: Any = None) -> None:
    """The certificates hold for the data, and their intervals overlap with NumPy's."""
    parameters = {**clf.get_params(), "device": None, "tol": 1e-7, "solver": "newton"}
    local = LinearSVC(**parameters).fit(X, y, weights)
    np.testing.assert_array_equal(clf.classes_, local.classes_)
    assert clf.certificates_ is not None
    assert local.certificates_ is not None
    for ours, theirs in zip(clf.certificates_, local.certificates_, strict=True):
        assert ours.met
        overlap(ours, theirs)
    assert verify(clf, X, y, sample_weight=weights).ok


def overlap(ours: Any, theirs: Any) -> None:
    """Both certificates are about the same optimum."""
    assert ours.dual - ours.dual_rounding <= theirs.primal + theirs.primal_rounding
    assert theirs.dual - theirs.dual_rounding <= ours.primal + ours.primal_rounding
