"""The kernels, which run on a GPU, against plain PyTorch."""

from typing import Any

import numpy as np
import pytest
import torch

from certsvm.kernels.losses import (
    LOSSES,
    Loss,
)
from certsvm.torch import kernels
from tests.torch.problems import DEVICE, DTYPES, device, host


@pytest.mark.skipif(DEVICE == "cpu", reason="kernels are for GPUs: CERTSVM_TEST_DEVICE=cuda")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(5000, 100), (4097, 1025), (1, 1), (333, 2000)])
def test_kernels_compute_what_pytorch_does(dtype: str, shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(0)
    X = device(rng.standard_normal(shape)).to(DTYPES[dtype])
    v, a = device(rng.standard_normal(shape[1])), device(rng.standard_normal(shape[0]))
    wide = X.double()
    for ours, theirs in (
        (kernels.products(X, v), wide @ v),
        (kernels.sums(X, a[None])[0], wide.T @ a),
        (kernels.sums(X, torch.stack([a, -a]))[1], -wide.T @ a),
        (kernels.products(X), (wide * wide).sum(1)),
    ):
        np.testing.assert_allclose(host(ours), host(theirs), rtol=1e-12, atol=1e-10)


@pytest.mark.skipif(DEVICE == "cpu", reason="kernels are for GPUs: CERTSVM_TEST_DEVICE=cuda")
@pytest.mark.parametrize("loss", LOSSES.values())
@pytest.mark.parametrize("n", [1, 333, 4097, 5000])
@pytest.mark.parametrize("sided", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_kernels_of_alpha_compute_what_pytorch_does(
    loss: Loss, n: int, sided: bool, weighted: bool
) -> None:
    rng = np.random.default_rng(0)
    margins, alpha_hat = device(rng.standard_normal(n)), device(rng.random(n))
    weights = device(rng.choice([0.0, 0.3, 2.0], n)) if weighted else None
    signs = device(rng.choice([-1.0, 1.0], n)) if sided else None
    given: Any = (margins, alpha_hat, weights, signs, device(rng.random(n)), 0.37)
    on_host: Any = [t.cpu() if isinstance(t, torch.Tensor) else t for t in given]
    C = 0.1  # Not a number of single precision.
    smoothed_alpha: Any = kernels.smoothed_alpha
    ours = smoothed_alpha(loss, *given, C=C, slack=1e-3)
    theirs = smoothed_alpha(loss, *on_host, C=C, slack=1e-3)
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(host(one), host(other), rtol=1e-12, atol=1e-12)
    if not loss.is_smooth:
        assert bool((ours[1] <= (C if weights is None else C * weights)).all())
    steps = np.linspace(0.0, 10.0, 26)
    slopes = kernels.clipped_sums(loss, ours[0], margins, weights, 0.37, C, device(steps))
    expected = kernels.clipped_sums(
        loss, theirs[0], on_host[0], on_host[2], 0.37, C, torch.tensor(steps)
    )
    np.testing.assert_allclose(host(slopes), host(expected), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("loss", LOSSES.values())
@pytest.mark.parametrize("weighted", [False, True])
def test_nan_is_not_taken_for_a_small_number(weighted: bool, loss: Loss) -> None:
    n = 300
    margins, ones = np.ones(n), device(np.ones(n))
    margins[7] = np.nan
    s = ones if weighted else None
    _, alpha, numbers = kernels.smoothed_alpha(
        loss, device(margins), 0.5 * ones, s, None, ones, 1.0, 1.0, 0.1
    )
    assert np.isnan(host(alpha)[7])
    assert np.isnan(host(numbers)[[0, 2, 4]]).all()
    unclipped = device(np.where(np.arange(n) == 7, np.nan, 0.5))
    steps = device(np.array([0.0, 1.0]))
    assert np.isnan(host(kernels.clipped_sums(loss, unclipped, ones, s, 1.0, 1.0, steps))).all()


@pytest.mark.skipif(DEVICE == "cpu", reason="kernels are for GPUs: CERTSVM_TEST_DEVICE=cuda")
@pytest.mark.parametrize("squared", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("factors", [False, True])
@pytest.mark.parametrize("pieces", [1, 2])
def test_kernels_of_many_problems_compute_what_pytorch_does(
    pieces: int, factors: bool, weighted: bool, squared: bool
) -> None:
    rng = np.random.default_rng(0)
    k, n = 7, 5000

    def single(*shape: int) -> torch.Tensor:
        return torch.tensor(rng.standard_normal(shape), dtype=torch.float32)

    codes = torch.tensor(rng.integers(k, size=(2, n)), dtype=torch.int32)
    small = torch.tensor(rng.integers(2, size=(2, k)), dtype=torch.int32)
    problems = kernels.Problems(
        codes, small[0], torch.arange(k, dtype=torch.int32), single(k).abs(), 0.5 + single(k).abs(),
        squared, single(2, n).abs() if weighted else None, small[1],
        single(k, 2).abs() if factors else None,
    )  # fmt: skip
    on_device = kernels.Problems(*(device(v) if torch.is_tensor(v) else v for v in problems))
    products, units = single(pieces * k, n), single(k).abs()
    steps = torch.tensor([0.0, 0.1, 2.0])
    results = []
    for of, move in ((problems, torch.Tensor.cpu), (on_device, device)):
        short = move(torch.zeros(k, n + 8))[:, 8:]
        alpha, sums = kernels.respond(of, move(products), move(units[0]), short, torch.float32)
        masked = kernels.masked(of, move(products[:k]), short, torch.float32)
        falls = kernels.falls(of, move(products[:k]), move(units), short, move(steps))
        results.append([host(t) for t in (alpha, sums, short, masked, falls)])
    for one, other in zip(*results, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-3)
