"""scikit-learn's own checks of an estimator."""

from collections.abc import Callable
from typing import Any

import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import parametrize_with_checks

from certsvm import LinearSVC


@pytest.mark.filterwarnings(f"ignore::{ConvergenceWarning.__module__}.ConvergenceWarning")
@parametrize_with_checks(
    [
        LinearSVC(),
        LinearSVC(loss="squared_hinge"),
        LinearSVC(penalize_intercept=False),
        LinearSVC(loss="squared_hinge", penalize_intercept=False),
    ]
)
def test_estimator(estimator: Any, check: Callable[[Any], None]) -> None:
    check(estimator)
