"""The warning of columns of different scales: when, how often, and what it says."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp

from certsvm import LinearSVC
from certsvm.problem.rows import Rows
from certsvm.training import loop
from certsvm.training.loop import ScaleWarning, difference_in_scale
from tests.problems import Array


def unscaled() -> Array:
    X: Array = np.random.default_rng(0).standard_normal((60, 3)) * [1.0, 50.0, 2e5]
    return X


def warned(X: object, *, max_iter: int = 5, classes: int = 2) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        y = np.arange(60) % classes
        LinearSVC(solver="sgd-s", tol=1e-9, max_iter=max_iter, random_state=0).fit(X, y)
    return [str(w.message) for w in caught if issubclass(w.category, ScaleWarning)]


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop, "_LONG", 0.0)


@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
def test_one_warning_for_a_fit(form: type, classes: int, at_once: None) -> None:
    X = unscaled()
    (message,) = warned(form(X), classes=classes)
    assert f"by a factor of {np.abs(X).max(0)[2] / np.abs(X).max(0)[0]:.2g}" in message
    assert "StandardScaler" in message


def test_no_warning_before_it_takes_long() -> None:
    assert not warned(unscaled())


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_difference(dtype: type) -> None:
    X: Array = np.array([[0.0, -8.0, 1.0, 0.0], [2.0, 4.0, 0.5, 0.0]], dtype=dtype)
    for form in (np.asarray, sp.csr_matrix):
        assert difference_in_scale(Rows(form(X), intercept_scaling=100.0)) == 8.0
        assert difference_in_scale(Rows(form(0.0 * X))) == 1.0
