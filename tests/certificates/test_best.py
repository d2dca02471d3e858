"""The best bounds of a run, and the certificate they amount to."""

import numpy as np
import pytest
from hypothesis import given

from certsvm import Problem, Rows
from certsvm.certificates.best import BestBounds
from certsvm.certificates.dual import AlphaSums, DualPoint, dual_point
from certsvm.certificates.rounding import Bound
from certsvm.kernels.losses import loss_named
from tests.problems import Case, cases, exact, exact_sum


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_the_ledger_ignores_what_is_no_number(value: float) -> None:
    ledger = BestBounds(Problem(Rows(np.eye(2)), [1, -1]), 0.1)
    ledger.offer_dual(DualPoint(AlphaSums(Bound(value, 0.0)), np.zeros(2), "bad"))
    assert ledger.certificate().dual == 0.0
    ledger.offer_primal(np.zeros(2), Bound(value, 0.0))
    assert not ledger.certificate().met


@given(cases(losses=("hinge", "squared_hinge"), free_intercepts=True))
def test_j_at_zero_is_within_its_allowance(case: Case) -> None:
    best = BestBounds(case.problem(), 0.1)
    best.offer_zero()
    error = exact(best.primal.value) - exact(case.C) * exact_sum(case.row_weights())
    assert abs(error) <= exact(best.primal.rounding)
    assert best.w is not None
    assert not best.w.any()


def test_the_kept_alpha_is_the_multiple_that_was_bounded() -> None:
    problem = Problem(Rows(np.eye(2)), [1, -1], C=0.5, loss=loss_named("squared_hinge"))
    best = BestBounds(problem, 0.1, keep_vector=True)
    best.offer_dual(dual_point(problem, np.array([1e-3, 1e-3]), "a test"))
    # L(a) = 2 a - a^2 - a^2: largest at 1/2, far beyond what was offered.
    assert best.dual.scale == pytest.approx(500.0)
    assert best.dual.alpha is not None
    np.testing.assert_allclose(best.dual.alpha, [0.5, 0.5])
    assert best.dual.vector is not None
    np.testing.assert_allclose(best.dual.vector.v, [0.5, -0.5])
    certificate = best.certificate()
    assert certificate.dual == pytest.approx(0.5)
    assert (certificate.loss, certificate.penalize_intercept) == ("squared_hinge", True)
