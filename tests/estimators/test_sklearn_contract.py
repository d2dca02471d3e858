"""scikit-learn's own checks of estimators."""

from collections.abc import Callable
from typing import Any

import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import parametrize_with_checks

from certsvm import LinearSVC, LinearSVCCV

ESTIMATORS = [
    LinearSVC(),
    LinearSVC(loss="squared_hinge", penalize_intercept=False),
    # With the hinge and a free intercept, rows there have scores that are equal but for rounding,
    # so that their labels depend on the processor.
    LinearSVCCV(Cs=3, cv=3, loss="squared_hinge", penalize_intercept=False),
    LinearSVCCV(certify=0.1, cv=3, max_fits=8),
]


@pytest.mark.filterwarnings(f"ignore::{ConvergenceWarning.__module__}.ConvergenceWarning")
@parametrize_with_checks(ESTIMATORS)
def test_estimator(estimator: Any, check: Callable[[Any], None]) -> None:
    check(estimator)
