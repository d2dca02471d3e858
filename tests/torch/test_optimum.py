"""Intervals of tensors: tensors, and as true as those of arrays."""

from typing import Any

import numpy as np
import pytest
import torch

from certsvm import LinearSVC, SupportStatus
from certsvm.torch.answers import rounded
from tests.torch.problems import DEVICE, DTYPES, data, host


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("classes", [2, 3])
def test_answers_are_tensors(dtype: str, classes: int) -> None:
    X, y = data(rows=400, classes=classes)
    X = X.to(DTYPES[dtype])
    clf = LinearSVC(0.5, tol=1e-6, random_state=0).fit(X, y)
    low, high = clf.decision_interval(X)
    scores = clf.decision_function(X)
    assert low.dtype == high.dtype == scores.dtype
    assert low.shape == high.shape == scores.shape
    assert low.device == high.device == X.device
    # Outwards, and by no more than the type needs.
    expected = clf.decision_interval(host(X))
    assert (host(low) <= expected[0] + 1e-12).all()
    assert (host(high) >= expected[1] - 1e-12).all()
    np.testing.assert_allclose(host(low), expected[0], rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(host(high), expected[1], rtol=1e-6, atol=1e-6)
    assert clf.stability(X) == clf.stability(host(X))
    weights = torch.rand(400, device=DEVICE)
    assert clf.stability(X, weights) == pytest.approx(clf.stability(host(X), host(weights)))


@pytest.mark.parametrize("classes", [2, 3])
def test_support_status(classes: int) -> None:
    X, y = data(rows=400, classes=classes)
    X = X.double()
    weights = torch.rand(400, device=DEVICE, dtype=torch.float64)
    clf = LinearSVC(0.5, tol=1e-10, class_weight="balanced").fit(X, y, weights)
    status = clf.support_status(X, y, weights)
    assert status.dtype == torch.int8
    assert status.device == X.device
    expected = clf.support_status(host(X), y.cpu().numpy(), host(weights))
    np.testing.assert_array_equal(status.cpu().numpy(), expected)
    assert (expected == SupportStatus.SUPPORT).any()

    def blocks() -> Any:
        for part in (slice(0, 150), slice(150, 400)):
            yield X[part], y[part], weights[part]

    np.testing.assert_array_equal(clf.support_status(blocks), expected)
    pairs = list(clf.decision_interval(blocks))
    assert all(isinstance(end, torch.Tensor) for pair in pairs for end in pair)
    assert clf.stability(blocks) == pytest.approx(clf.stability(X, weights))


def test_ends_are_rounded_outwards() -> None:
    single = torch.zeros((1, 1), dtype=torch.float32, device=DEVICE)
    ends = np.array([1.0 + 1e-12, -1.0 - 1e-12, 1e60, -1e60, 0.25, np.inf, -np.inf, 1e-60])
    low = rounded(single, ends, upwards=False)
    high = rounded(single, ends, upwards=True)
    assert low.dtype == high.dtype == torch.float32
    assert (host(low) <= ends).all()
    assert (host(high) >= ends).all()
    assert host(low)[4] == host(high)[4] == 0.25
    assert host(high)[0] == 1.0 + 2.0**-23
