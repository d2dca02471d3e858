"""What a fit leaves for the next one to go on from."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.datasets import make_classification

from certsvm import LinearSVC
from certsvm.fitting.sources import MemorySource

X, y = make_classification(n_samples=120, random_state=0)


def fitted(**parameters: object) -> LinearSVC:
    how = {"C": 1.0, "solver": "dcd", "warm_start": True, "random_state": 0} | parameters
    return LinearSVC(**how).fit(X, y)


def test_another_C_scales_alpha_and_keeps_the_weights() -> None:
    clf = fitted().set_params(C=0.25)
    (start,) = clf._starts(MemorySource(X, y, intercept_scaling=1.0)) or []
    np.testing.assert_array_equal(start.w[:-1], clf.coef_[0])
    assert start.w[-1] == clf.intercept_[0]
    np.testing.assert_allclose(start.alpha, 0.25 * clf._ends[0].alpha)
    assert start.epochs == max(1, round(clf._ends[0].epochs * 0.25))


def test_another_scaling_of_the_intercept_gives_the_same_function() -> None:
    clf = fitted()
    (start,) = clf._starts(MemorySource(X, y, intercept_scaling=2.0)) or []
    assert 2.0 * start.w[-1] == pytest.approx(clf.intercept_[0])


@pytest.mark.parametrize(
    "source",
    [MemorySource(X[:, :5], y), MemorySource(X, y + 1), MemorySource(X, np.arange(120) % 3)],
    ids=["columns", "labels", "classes"],
)
def test_what_does_not_fit_is_not_gone_on_from(source: MemorySource) -> None:
    assert fitted()._starts(source) is None


def test_other_rows_take_the_weights_only() -> None:
    (start,) = fitted()._starts(MemorySource(X[:50], y[:50])) or []
    assert start.alpha is None


def test_only_on_request() -> None:
    clf = fitted().set_params(warm_start=False)
    assert clf._starts(MemorySource(X, y)) is None
    assert LinearSVC(warm_start=True)._starts(MemorySource(X, y)) is None


def test_arrays_survive_pickling() -> None:
    clf = fitted()
    again = pickle.loads(pickle.dumps(clf))
    np.testing.assert_array_equal(again._ends[0].alpha, clf._ends[0].alpha)
