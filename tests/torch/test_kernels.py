"""The kernels: what plain PyTorch computes, against NumPy; and on a GPU, against PyTorch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from certsvm.torch import kernels
from tests.torch.problems import DEVICE, DTYPES, device, host


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n", [1, 300])
def test_alpha_and_its_sums(n: int, weighted: bool) -> None:
    rng = np.random.default_rng(n)
    C, sigma, slack = 0.7, 1.9, 0.25
    margins, sizes = 2 * rng.standard_normal(n), rng.random(n)
    s = rng.choice([0.0, 0.5, 3.0], n) if weighted else np.ones(n)
    alpha_hat = C * s * rng.random(n)
    unclipped, alpha, numbers = kernels.smoothed_alpha(
        device(margins), device(alpha_hat), device(s) if weighted else None, device(sizes),
        sigma, C, slack,
    )  # fmt: skip
    np.testing.assert_allclose(host(unclipped), alpha_hat + sigma * s * (1 - margins), atol=1e-12)
    np.testing.assert_array_equal(host(alpha), np.clip(host(unclipped), 0, C * s))
    sums = [
        s @ np.maximum(0, 1 - margins),
        (s * sizes)[margins < 1 + slack].sum(),
        host(alpha).sum(),
        host(alpha) @ sizes,
    ]
    np.testing.assert_allclose(host(numbers), sums, rtol=1e-12)


@pytest.mark.parametrize("weighted", [False, True])
def test_sums_along_a_direction(weighted: bool) -> None:
    rng = np.random.default_rng(0)
    C, sigma, steps = 0.7, 1.9, np.array([0.0, 0.3, 10.0])
    unclipped, along = 2 * rng.standard_normal((2, 300))
    s = rng.choice([0.0, 0.5, 3.0], 300) if weighted else np.ones(300)
    given = device(unclipped)
    ours = kernels.clipped_sums(
        given, device(along), device(s) if weighted else None, sigma, C, device(steps)
    )
    expected = [np.clip(unclipped - t * sigma * s * along, 0, C * s) @ along for t in steps]
    np.testing.assert_allclose(host(ours), expected, rtol=1e-10, atol=1e-10)
    np.testing.assert_array_equal(host(given), unclipped)


@pytest.mark.skipif(DEVICE == "cpu", reason="kernels are for GPUs: CERTSVM_TEST_DEVICE=cuda")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(5000, 100), (4097, 1025), (1, 1), (333, 2000)])
@pytest.mark.parametrize("weighted", [False, True])
def test_kernels_compute_what_pytorch_does(
    dtype: str, shape: tuple[int, int], weighted: bool
) -> None:
    rng = np.random.default_rng(0)
    X = device(rng.standard_normal(shape)).to(DTYPES[dtype])
    v, a = device(rng.standard_normal(shape[1])), device(rng.standard_normal(shape[0]))
    wide = X.double()
    for ours, theirs in (
        (kernels.products(X, v), wide @ v),
        (kernels.sums(X, a[None])[0], wide.T @ a),
        (kernels.sums(X, torch.stack([a, 2 * a, -a]))[2], -wide.T @ a),
        (kernels.squared_norms(X), (wide * wide).sum(1)),
    ):
        np.testing.assert_allclose(host(ours), host(theirs), rtol=1e-12, atol=1e-10)
    margins, alpha_hat = device(rng.standard_normal(shape[0])), device(rng.random(shape[0]))
    sizes = device(rng.random(shape[0]))
    weights = device(rng.random(shape[0])) if weighted else None
    on_host: Any = [t if t is None else t.cpu() for t in (margins, alpha_hat, weights, sizes)]
    C = 0.1  # Not a number of single precision.
    ours = kernels.smoothed_alpha(margins, alpha_hat, weights, sizes, 0.37, C, 1e-3)
    theirs = kernels.smoothed_alpha(on_host[0], on_host[1], on_host[2], on_host[3], 0.37, C, 1e-3)
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(host(one), host(other), rtol=1e-12, atol=1e-12)
    assert bool((ours[1] <= (C if weights is None else C * weights)).all())
    steps = np.linspace(0.0, 10.0, 26)
    slopes = kernels.clipped_sums(ours[0], margins, weights, 0.37, C, device(steps))
    expected = kernels.clipped_sums(
        theirs[0],
        on_host[0],
        on_host[2],
        0.37,
        C,
        torch.tensor(steps),
    )
    np.testing.assert_allclose(host(slopes), host(expected), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("weighted", [False, True])
def test_nan_is_not_taken_for_a_small_number(weighted: bool) -> None:
    n = 300
    margins, ones = np.ones(n), device(np.ones(n))
    margins[7] = np.nan
    s = ones if weighted else None
    _, alpha, numbers = kernels.smoothed_alpha(device(margins), 0.5 * ones, s, ones, 1.0, 1.0, 0.1)
    assert np.isnan(host(alpha)[7])
    assert np.isnan(host(numbers)[[0, 2, 3]]).all()
    unclipped = device(np.where(np.arange(n) == 7, np.nan, 0.5))
    steps = device(np.array([0.0, 1.0]))
    assert np.isnan(host(kernels.clipped_sums(unclipped, ones, s, 1.0, 1.0, steps))).all()
