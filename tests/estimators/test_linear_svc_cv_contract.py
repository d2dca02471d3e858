"""scikit-learn's own checks of LinearSVCCV."""

from collections.abc import Callable
from typing import Any

import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import parametrize_with_checks

from certsvm import LinearSVCCV


@pytest.mark.filterwarnings(f"ignore::{ConvergenceWarning.__module__}.ConvergenceWarning")
@parametrize_with_checks(
    [
        LinearSVCCV(Cs=3, cv=3),
        # The hinge has rows on the margins of two classes there, whose scores are equal but for
        # rounding, and so their labels depend on the processor.
        LinearSVCCV(Cs=3, cv=3, loss="squared_hinge", penalize_intercept=False),
        LinearSVCCV(certify=0.1, cv=3, max_fits=8),
    ]
)
def test_estimator(estimator: Any, check: Callable[[Any], None]) -> None:
    check(estimator)
