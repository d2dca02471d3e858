"""Rows in tensors: products, sums and Gram matrices, whole and in blocks."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch

import certsvm.torch.rows as rows_module
from certsvm.torch import TensorRows, kernels
from tests.torch.problems import DTYPES, device, host


def augmented(X: torch.Tensor, rho: float) -> Any:
    return np.column_stack([host(X), np.full(len(X), rho)]) if rho else host(X)


@pytest.mark.parametrize("rho", [0.0, 0.5])
@pytest.mark.parametrize("blocks", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
def test_readings(monkeypatch: pytest.MonkeyPatch, dtype: str, blocks: bool, rho: float) -> None:
    monkeypatch.setattr(rows_module, "_BLOCKS", (256, 2**28))
    monkeypatch.setattr(kernels, "_ADDED", 16)
    monkeypatch.setattr(rows_module, "_GATHERED", 42)
    rng = np.random.default_rng(0)
    X = device(rng.standard_normal((100, 6))).to(DTYPES[dtype])
    rows = TensorRows(X, intercept_scaling=rho, memory=0 if blocks else None)
    assert (len(rows._blocks) > 1) == blocks
    Y = augmented(X, rho)
    np.testing.assert_allclose(host(rows.squared_norms), (Y * Y).sum(1), rtol=1e-12)
    v = rng.standard_normal(Y.shape[1])
    for count in (1, 2):
        a = rng.standard_normal((count, 100))
        np.testing.assert_allclose(host(rows.products(device(v))), Y @ v, atol=1e-10)
        np.testing.assert_allclose(host(rows.sums(device(a))), a @ Y, atol=1e-10)
    which = np.arange(0, 100, 3)
    np.testing.assert_array_equal(host(rows.gathered(device(which))), host(X)[which])
    taken = rows.take(device(which))
    assert taken.n_rows == which.size
    np.testing.assert_allclose(host(taken.products(device(v))), Y[which] @ v, atol=1e-10)


@pytest.mark.parametrize("intercept_scaling", [0.0, 3.0])
@pytest.mark.parametrize("n", [5, 4096, 20_000])
def test_sums_go_through_no_more_additions_than_they_say(n: int, intercept_scaling: float) -> None:
    rng = np.random.default_rng(n)
    X, a = rng.standard_normal((n, 2)), rng.random(n)
    rows = TensorRows(device(X), intercept_scaling=intercept_scaling)
    ours = host(rows.sums(device(a)[None])[0])
    for j, column in enumerate(
        [X[:, 0], X[:, 1], *([np.full(n, intercept_scaling)] if intercept_scaling else [])]
    ):
        terms = [Fraction(float(v)) * Fraction(float(x)) for v, x in zip(a, column, strict=True)]
        error = abs(Fraction(float(ours[j])) - sum(terms))
        length = sum(map(abs, terms))
        assert error <= (rows.additions + 1) * Fraction(2) ** -53 * length
