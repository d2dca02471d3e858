"""Masked and complex data are refused wherever data come in."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from certsvm import LinearSVC, Model, Problem, Rows, bound, compare, fit_path
from certsvm.matrices import refuse_masked

X = np.random.default_rng(0).standard_normal((30, 3))
Y = np.arange(30) % 2
WEIGHTS = np.ones(30)
FITTED = LinearSVC(random_state=0).fit(X, Y)
MODEL = Model.from_estimator(FITTED)

TAKE_ROWS: dict[str, Callable[[Any], Any]] = {
    "fit": lambda X: LinearSVC().fit(X, Y),
    "partial_fit": lambda X: LinearSVC().partial_fit(X, Y, classes=[0, 1]),
    "predict": FITTED.predict,
    "decision_function": FITTED.decision_function,
    "score": lambda X: FITTED.score(X, Y),
    "fit_path": lambda X: fit_path(LinearSVC(), X, Y, [1.0]),
    "bound": lambda X: bound(FITTED, X, Y),
    "compare": lambda X: compare(X, Y, solvers="dcd"),
    "Rows": Rows,
    "Model.predict": MODEL.predict,
    "Model.decision_function": MODEL.decision_function,
}
TAKE_LABELS: dict[str, Callable[[Any, Any], Any]] = {
    "fit": lambda y, s: LinearSVC().fit(X, y, sample_weight=s),
    "partial_fit": lambda y, s: LinearSVC().partial_fit(X, y, [0, 1], sample_weight=s),
    "fit_path": lambda y, s: fit_path(LinearSVC(), X, y, [1.0], sample_weight=s),
    "bound": lambda y, s: bound(FITTED, X, y, sample_weight=s),
    "compare": lambda y, s: compare(X, y, solvers="dcd", sample_weight=s),
    "Problem": lambda y, s: Problem(Rows(X), 2.0 * y - 1.0, weights=s),
}


@pytest.mark.parametrize("way", TAKE_ROWS)
def test_masked_and_complex_rows(way: str) -> None:
    with pytest.raises(ValueError, match="X has masked entries"):
        TAKE_ROWS[way](np.ma.array(X, mask=X > 1.0))
    for rows in (X + 0.5j, sp.csr_matrix(X + 0.5j)):
        with pytest.raises(ValueError, match=r"must hold real numbers|Complex data not supported"):
            TAKE_ROWS[way](rows)


@pytest.mark.parametrize("way", TAKE_LABELS)
def test_labels_and_weights_with_masked_entries(way: str) -> None:
    with pytest.raises(ValueError, match="has masked entries"):
        TAKE_LABELS[way](np.ma.array(Y, mask=Y > 0), WEIGHTS)
    with pytest.raises(ValueError, match=r"weights? has masked entries"):
        TAKE_LABELS[way](Y, np.ma.array(WEIGHTS, mask=Y > 0))


def test_a_mask_that_hides_nothing_is_no_obstacle() -> None:
    complete = np.ma.array(X, mask=np.zeros(X.shape, dtype=bool))
    refuse_masked(X=complete)
    np.testing.assert_array_equal(FITTED.predict(complete), FITTED.predict(X))
