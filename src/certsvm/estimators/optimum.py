"""What a fitted ``LinearSVC`` can tell about the exact optimum of its training problem."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from certsvm.certificates.certificate import Certificate
from certsvm.estimators import tensors
from certsvm.estimators.scores import rows_to_score
from certsvm.models import optimum
from certsvm.models.scores import products
from certsvm.verification.interval_arithmetic import Vector
from certsvm.verification.optimum_intervals import (
    Array,
    OptimumIntervals,
    RowSizes,
    added_up,
    row_sizes,
)


class OptimumMixin(optimum.OptimumMixin):
    """Intervals that contain what the exact optimum would answer, also of tensors."""

    coef_: NDArray[np.float64] | sp.csr_matrix
    intercept_: NDArray[np.float64]
    classes_: NDArray[Any]
    class_weight_: NDArray[np.float64]
    certificates_: list[Certificate] | None
    n_features_in_: int

    def _optimum(self) -> OptimumIntervals:
        check_is_fitted(self)
        return OptimumIntervals(self.coef_, self.intercept_, self.certificates_)

    def _labels_and_weights(self) -> tuple[NDArray[Any], Vector]:
        return self.classes_, self.class_weight_

    def _scores_and_sizes(self, X: Any) -> tuple[Array, RowSizes]:
        if tensors.are_tensors(X):
            return tensors.scores_and_sizes(self, X)
        X = added_up(rows_to_score(self, X))
        return products(X, self.coef_) + self.intercept_, row_sizes(X)

    def _to_host(self, values: Any) -> Any:
        return tensors.on_host(values)

    def _like(self, X: Any, values: NDArray[Any], *, upwards: bool | None = None) -> Any:
        if not tensors.are_tensors(X):
            return values
        if upwards is None:
            return tensors.answer(X, values)
        return tensors.end_of_interval(X, values, upwards=upwards)
