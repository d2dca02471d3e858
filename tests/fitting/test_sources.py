"""Sources: class weights, and folds as sources of their training rows."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from certsvm.fitting.fit_classes import fit_classes
from certsvm.fitting.folds import Fold, stratified_folds
from certsvm.fitting.sources import MemorySource, class_factors
from certsvm.problem.base import Objective
from tests.settings import settings_of


def test_class_weights_may_be_set_afterwards() -> None:
    source = MemorySource(np.eye(3), np.array([0, 1, 1]))
    source.set_class_weight({0: 3.0, 1: 1.0})
    assert source.problem(0, Objective()).weights.tolist() == [3.0, 1.0, 1.0]
    with pytest.raises(ValueError, match=r"at least 2 classes, .* only one class, 1"):
        source.set_class_weight({0: 0.0, 1: 1.0})
    with pytest.raises(ValueError, match="no class at all"):
        source.set_class_weight({0: 0.0, 1: 0.0})


@given(st.lists(st.floats(0.01, 100.0), min_size=2, max_size=6))
def test_balanced_classes_weigh_the_same_and_as_much_in_all(totals: list[float]) -> None:
    weights = np.array(totals)
    balanced = weights * class_factors("balanced", np.arange(weights.size), weights)
    np.testing.assert_allclose(balanced, weights.sum() / weights.size)


def test_a_key_may_be_missing_from_the_data() -> None:
    assert class_factors({0: 2.0, 1: 3.0, 5: 4.0}, np.array([0, 1]), np.ones(2)).tolist() == [2, 3]


rng = np.random.default_rng(0)
X = rng.standard_normal((60, 4))
y = rng.integers(0, 3, 60)


@pytest.mark.parametrize("class_weight", [None, "balanced", {0: 2.0}])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_fold_is_the_problem_of_its_rows(class_weight: object, weighted: bool) -> None:
    weights = rng.uniform(0.5, 2.0, 60) if weighted else None
    # Some rows twice.
    train = np.r_[0:40, 10:15]
    whole = MemorySource(X, y, weights, class_weight=class_weight, intercept_scaling=1.0)
    cut = MemorySource(
        X[train], y[train], None if weights is None else weights[train],
        class_weight=class_weight, intercept_scaling=1.0,
    )  # fmt: skip
    settings = settings_of(C=0.3, tol=1e-10)
    fold = Fold(whole, train, [50])
    for ours, theirs in zip(fit_classes(fold, settings), fit_classes(cut, settings), strict=True):
        assert ours.certificate.primal == pytest.approx(theirs.certificate.primal, rel=1e-9)
        np.testing.assert_allclose(ours.w, theirs.w, atol=1e-4)


def test_a_class_that_is_missing_in_a_fold() -> None:
    whole = MemorySource(X, y)
    train = np.flatnonzero(y != 1)
    fold = Fold(whole, train, np.flatnonzero(y == 1))
    assert fold.classes.tolist() == [0, 2]
    assert fold.held_out.truth.tolist() == [-1] * int((y == 1).sum())
    assert fold.held_out.error(np.ones(fold.test.size, dtype=bool)) == 1.0
    with pytest.raises(ValueError, match="at least 2 classes"):
        Fold(whole, np.flatnonzero(y == 0), [1])


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
def test_columns_of_no_training_row_do_not_count(form: type) -> None:
    data = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 5.0], [2.0, 5.0]])
    whole = MemorySource(form(data), np.array([0, 1, 0, 1]))
    fold = Fold(whole, [0, 1], [2, 3])
    assert fold.products(np.array([1.0, 7.0])).tolist() == [0.0, 2.0]
    assert fold.held_out._norms.round(9).tolist() == [0.0, 2.0]


def test_weights_of_classes_do_not_count_in_the_error() -> None:
    weights = rng.uniform(0.5, 2.0, 60)
    plain, weighted = (
        stratified_folds(MemorySource(X, y, weights, class_weight=factors), 4, seed=0)
        for factors in (None, {0: 9.0})
    )
    for ours, theirs in zip(plain, weighted, strict=True):
        assert ours.test.tolist() == theirs.test.tolist()
        found = rng.integers(0, 3, ours.test.size)
        assert ours.held_out.error(found) == theirs.held_out.error(found)
    total = np.concatenate([fold.test for fold in plain])
    assert sorted(total.tolist()) == list(range(60))
