"""scikit-learn's own checks of an estimator."""

from collections.abc import Callable
from typing import Any

import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import parametrize_with_checks

from certsvm import LinearSVC

# These compare two trainings to seven digits; ours agree to the certified accuracy.
EXPECTED = {
    "check_sample_weight_equivalence_on_dense_data": "agrees within tol only",
    "check_sample_weight_equivalence_on_sparse_data": "agrees within tol only",
}


def expected_failures(estimator: LinearSVC) -> dict[str, str]:
    return EXPECTED


@pytest.mark.filterwarnings(f"ignore::{ConvergenceWarning.__module__}.ConvergenceWarning")
@parametrize_with_checks([LinearSVC()], expected_failed_checks=expected_failures)
def test_estimator(estimator: Any, check: Callable[[Any], None]) -> None:
    check(estimator)
