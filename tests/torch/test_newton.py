"""The second-order method on tensors: the same propositions as on NumPy's arrays."""

import numpy as np
import pytest
import torch

import certsvm.torch.rows as rows_module
from certsvm.problem.problems import Problem
from certsvm.problem.rows import Rows
from certsvm.solvers import Newton, Options, Start
from certsvm.torch import TensorNewton
from certsvm.training.loop import train
from tests.problems import Case
from tests.torch.problems import DEVICE, device, generated, host, in_tensors, tensor_problem

SOLVER = TensorNewton()


def coarse_gram(rows: torch.Tensor) -> torch.Tensor:
    """What a GPU may make of it, unless it is to be exact."""
    values = rows if rows.dtype == torch.float64 else rows.to(torch.bfloat16).float()
    return (values.T @ values).double()


@pytest.mark.parametrize("C", [0.01, 100.0])
def test_columns_of_very_different_scales(monkeypatch: pytest.MonkeyPatch, C: float) -> None:
    """A coarse Gram matrix leads astray here; that is noticed."""
    monkeypatch.setattr(rows_module, "_gram", coarse_gram)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((20_000, 40)) * np.logspace(0, -3, 40) + 3.0
    y = np.where(X[:, 0] - 3.0 + 0.5 * rng.standard_normal(20_000) > 0, 1.0, -1.0)
    case = Case(X, y, None, C, 1.0, "dense-float64-int32")
    case, tensor = in_tensors(case, "float32")
    result = train(tensor_problem(case, tensor), SOLVER, tol=1e-5, max_iter=60, seed=0)
    assert result.certificate.met, f"{result.certificate!r} after {result.passes} steps"


@pytest.mark.parametrize("scale", [1e-30, 1e-12, 1e12, 1e30])
def test_rows_whose_squares_leave_single_precision(scale: float) -> None:
    X, y = generated(200, 5)
    case = Case(scale * X.astype(float), y, None, scale**-2.0, 0.0, "dense-float64-int32")
    result = train(tensor_problem(case, device(case.X)), SOLVER, tol=1e-6, seed=0)
    assert result.certificate.met


def test_half_precision_is_exact() -> None:
    """The certificate is about the values as they are stored."""
    X, y = generated(5000, 8)
    half = device(X).to(torch.bfloat16)
    case = Case(X.astype(float), y, None, 1.0, 0.0, "dense-float64-int32")
    result = train(tensor_problem(case, half), SOLVER, tol=1e-8, seed=0).certificate
    stored = Problem(Rows(host(half)), y, C=1.0)
    reference = train(stored, Newton(), tol=1e-8, seed=0).certificate
    assert result.dual <= reference.primal + reference.primal_rounding
    assert reference.dual <= result.primal + result.primal_rounding
    rounded = train(Problem(Rows(X), y, C=1.0), Newton(), tol=1e-8, seed=0).certificate
    assert rounded.dual > result.primal or rounded.primal < result.dual


def test_what_it_does_not_take() -> None:
    X, y = generated(20, 3)
    case = Case(X.astype(float), y, None, 1.0, 0.0, "dense-float64-int32")
    with pytest.raises(ValueError, match="more than max_size = 2"):
        train(tensor_problem(case, device(X)), TensorNewton(max_size=2))
    with pytest.raises(ValueError, match="needs rows in tensors"):
        SOLVER.start(case.problem(), Options(np.random.default_rng(0)))
    with pytest.raises(ValueError, match="no row has a positive weight"):
        tensor_problem(case._replace(weights=np.zeros(20)), device(X))


def test_separable_classes_at_a_huge_C() -> None:
    X, _ = generated(300, 10)
    y = np.where(X[:, 0] > 0, 1.0, -1.0)
    case = Case(X.astype(float), y, None, 1e8, 0.0, "dense-float64-int32")
    result = train(tensor_problem(case, device(X)), SOLVER, tol=1e-5, max_iter=100, seed=0)
    assert result.certificate.met, f"{result.certificate!r} after {result.passes} steps"


def test_a_start_is_not_changed() -> None:
    X, y = generated(50, 3)
    case = Case(X.astype(float), y, np.full(50, 0.5), 1.0, 0.0, "dense-float64-int32")
    alpha, w = -torch.ones(50, dtype=torch.float64, device=DEVICE), np.ones(3)
    train(tensor_problem(case, device(X)), SOLVER, tol=1e-3, start=Start(w, 1, alpha))
    assert bool((alpha == -1.0).all())
    assert (w == 1.0).all()
