"""A fit that fails leaves the estimator as it was."""

from __future__ import annotations

from typing import Any

import pytest

from certsvm.estimators.rollback import fitted_attributes, rollback


class Estimator:
    """Attributes of all kinds."""

    def __init__(self) -> None:
        self.C = 1.0
        self._private = 2
        self.coef_: Any = "old"
        self._warm: Any = "old"


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_fitted_attributes_are_put_back(error: type[BaseException]) -> None:
    estimator = Estimator()

    def failing_fit() -> None:
        with rollback(estimator):
            estimator.coef_, estimator._warm = "new", "new"
            estimator.history_ = "new"  # type: ignore[attr-defined]
            estimator.C = 3.0
            raise error

    with pytest.raises(error):
        failing_fit()
    assert fitted_attributes(estimator) == {"coef_": "old", "_warm": "old"}
    assert estimator.C == 3.0


def test_without_an_error_all_stays() -> None:
    estimator = Estimator()
    with rollback(estimator):
        estimator.coef_ = "new"
    assert fitted_attributes(estimator) == {"coef_": "new", "_warm": "old"}
