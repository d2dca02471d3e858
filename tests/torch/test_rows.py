"""Rows in tensors: products, sums and Gram matrices, whole and in blocks."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch

import certsvm.torch.rows as rows_module
from certsvm.torch import TensorRows, kernels
from tests.torch.problems import DEVICE, DTYPES, device, generated, host


def augmented(X: torch.Tensor, rho: float) -> Any:
    return np.column_stack([host(X), np.full(len(X), rho)]) if rho else host(X)


@pytest.mark.parametrize("rho", [0.0, 0.5])
@pytest.mark.parametrize("blocks", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
def test_readings(monkeypatch: pytest.MonkeyPatch, dtype: str, blocks: bool, rho: float) -> None:
    monkeypatch.setattr(rows_module, "_BLOCKS", (256, 2**28))
    monkeypatch.setattr(kernels, "_ROWS", 16)
    monkeypatch.setattr(rows_module, "GATHERED", 7)
    rng = np.random.default_rng(0)
    X = device(rng.standard_normal((100, 6))).to(DTYPES[dtype])
    rows = TensorRows(X, intercept_scaling=rho, memory=0 if blocks else None)
    assert (len(rows._blocks) > 1) == blocks
    Y = augmented(X, rho)
    np.testing.assert_allclose(host(rows.squared_norms), (Y * Y).sum(1), rtol=1e-12)
    for count in (1, 3, 9):
        v, a = rng.standard_normal((count, Y.shape[1])), rng.standard_normal((count, 100))
        np.testing.assert_allclose(host(rows.products(device(v))), v @ Y.T, atol=1e-10)
        np.testing.assert_allclose(host(rows.sums(device(a))), a @ Y, atol=1e-10)
    which = np.arange(0, 100, 3)
    weights = rng.standard_normal((2, which.size))
    totals = rows.sums_of(device(which), device(weights))
    np.testing.assert_allclose(host(totals), weights @ Y[which], atol=1e-10)
    np.testing.assert_array_equal(host(rows.gathered(device(which))), host(X)[which])
    taken = rows.take(device(which))
    assert taken.n_rows == which.size
    np.testing.assert_allclose(host(taken.products(device(v))), v @ Y[which].T, atol=1e-10)


@pytest.mark.parametrize("rho", [0.0, 0.5])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("scale", [1e-20, 1.0, 1e20])
def test_gram_matrices(scale: float, weighted: bool, rho: float) -> None:
    rng = np.random.default_rng(0)
    X = device(scale * rng.standard_normal((50, 4)))
    rows = TensorRows(X, intercept_scaling=scale * rho)
    assert rows.ordinary == (scale == 1.0)
    scales = rng.random(50) if weighted else np.ones(50)
    Y = augmented(X, scale * rho) * scales[:, None]
    for exact in (True, False):
        G = rows.gram(X, device(scales) if weighted else None, exact=exact)
        accuracy = 1e-12 if exact else 0.05
        np.testing.assert_allclose(host(G), Y.T @ Y, atol=50 * accuracy * scale**2)


def test_what_rows_are_not() -> None:
    with pytest.raises(ValueError, match="two dimensions"):
        TensorRows(torch.zeros(3, device=DEVICE))
    with pytest.raises(ValueError, match="must be of type float16"):
        TensorRows(torch.zeros((2, 2), dtype=torch.int64, device=DEVICE))
    with pytest.raises(ValueError, match="must be dense"):
        TensorRows(torch.eye(2).to_sparse())
    for value, name in ((np.nan, "NaN"), (np.inf, "infinity")):
        X = device(np.array([[1.0, 2.0], [3.0, value]]))
        with pytest.raises(ValueError, match=f"contains {name}: row 1, column 1"):
            TensorRows(X)
    with pytest.raises(ValueError, match="Row 0 of X has values so large"):
        TensorRows(device(np.full((1, 2), 1e200)))


def test_columns_need_not_lie_side_by_side() -> None:
    X = device(np.arange(12.0).reshape(3, 4)).T
    rows = TensorRows(X)
    np.testing.assert_allclose(host(rows.products(device(np.ones((1, 3)))))[0], host(X).sum(1))


def test_blocks_are_not_too_small() -> None:
    X, _ = generated(400, 3)
    rows = TensorRows(device(X), memory=0)
    assert len(rows._blocks) == 1
    many = TensorRows(device(np.zeros((3_000_000, 2))), memory=0)
    assert 2 <= len(many._blocks) <= 4


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
