"""The kernels, which run on a GPU, against plain PyTorch."""

import numpy as np
import pytest
import torch

from certsvm.kernels.losses import LOSSES, Loss
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
        (kernels.products(X, None), (wide * wide).sum(1)),
    ):
        np.testing.assert_allclose(host(ours), host(theirs), rtol=1e-12, atol=1e-10)


@pytest.mark.parametrize("loss", LOSSES.values())
def test_nan_is_not_taken_for_a_small_number(loss: Loss) -> None:
    margins, ones = np.ones(300), device(np.ones(300))
    margins[7] = np.nan
    _, alpha, numbers = kernels.smoothed_alpha(
        loss, device(margins), 0.5 * ones, ones, ones, 1.0, 1.0, 0.1
    )
    assert np.isnan(host(alpha)[7])
    assert np.isnan(host(numbers)[[0, 2, 4]]).all()
