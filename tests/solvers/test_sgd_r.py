"""SGD-r: nothing is proved."""

from __future__ import annotations

from certsvm.certificates.certificate import PRIMAL_ONLY
from certsvm.solvers import SGDr, SGDs
from certsvm.training.loop import train
from tests.problems import noisy


def test_sgd_r_proves_nothing() -> None:
    result = train(noisy(), SGDr(), tol=10.0, max_iter=20, seed=0)
    assert result.certificate.bound == PRIMAL_ONLY
    assert result.certificate.dual == 0.0
    assert not result.certificate.met
    assert result.alpha is None


def test_sgd_r_converges() -> None:
    problem = noisy()
    best = train(problem, SGDs(), tol=1e-3, seed=0, max_iter=10_000)
    assert best.certificate.met
    result = train(problem, SGDr(), max_iter=300, seed=0)
    assert result.certificate.primal <= 1.02 * best.certificate.primal
