"""SGD-s and SGD-m: the published sequence, Propositions 1 and 3, and the update itself."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from certsvm.certificates.dual import dual_bound
from certsvm.solvers import Options, SGDm, SGDs
from certsvm.solvers.growing_margin import GrowingMargin, errors_among
from tests.problems import Case, cases

seeds = st.integers(0, 2**32 - 1)


class Paper:
    """SGD-s, or SGD-m if ``multiple``, as the paper prints it: one presentation at a time."""

    def __init__(self, case: Case, seed: int, multiple: bool) -> None:
        self.patterns = case.patterns()
        self.C = case.C
        self.m = len(self.patterns)
        self.rng = np.random.default_rng(seed)
        self.multiple = multiple
        self.a = np.zeros(self.patterns.shape[1])
        self.t = self.M = self.T = self.passes = 0

    def epoch(self) -> tuple[np.ndarray, int, int, float]:  # type: ignore[type-arg]
        self.passes += 1
        ell = 5 if self.multiple and 0 < self.passes % 9 < 5 else 1
        for k in self.rng.permutation(self.m):
            for _ in range(ell):
                if self.a @ self.patterns[k] <= self.t / (self.C * self.m):
                    self.a = self.a + self.patterns[k]
                    self.M += 1
                self.t += 1
        self.T += ell
        w = self.a * (self.C * self.m) / self.t
        return w, self.M, self.T, self.C * self.M / self.T - 0.5 * float(w @ w)


@pytest.mark.parametrize("solver", [SGDs, SGDm])
@given(case=cases(dyadic=True, weighted=False), seed=seeds)
def test_the_published_sequence(solver: type[SGDs], case: Case, seed: int) -> None:
    as_published = solver(windows=0, shuffled=False)
    run = as_published.start(case.problem(), Options(np.random.default_rng(seed)))
    paper = Paper(case, seed, multiple=solver is SGDm)
    errors = 0
    for _ in range(12):
        w, M, T, L = paper.epoch()
        epoch = run.epoch()
        errors += epoch.margin_errors or 0
        assert (errors, epoch.epochs) == (M, T)
        np.testing.assert_allclose(next(run.candidates()), w, rtol=1e-12)
        point = run.dual()
        assert point is not None
        value = dual_bound(point, scaled=False)[0].value
        assert value == pytest.approx(L, rel=1e-9, abs=1e-9)


small = st.integers(-64, 64).map(lambda n: Fraction(n, 8))
sizes = small.map(abs)


def simulate(ell: int, P: Fraction, lambda_: Fraction, curvature: Fraction) -> int:
    """Margin errors among ell presentations, one presentation at a time."""
    errors = 0
    for _ in range(ell):
        if P <= 0:
            errors += 1
            P += curvature
        P -= lambda_
    return errors


@given(ell=st.integers(1, 12), P=small, lambda_=sizes.filter(bool), curvature=sizes)
def test_proposition_3(ell: int, P: Fraction, lambda_: Fraction, curvature: Fraction) -> None:
    expected = simulate(ell, P, lambda_, curvature)
    assert errors_among(ell, float(P), float(lambda_), float(curvature)) == expected


@given(cases(dyadic=True), st.integers(1, 6), seeds)
def test_multiple_presentations_are_single_ones_in_a_row(case: Case, ell: int, seed: int) -> None:
    problem = case.problem()
    order = np.random.default_rng(seed).permutation(problem.active)
    at_once = GrowingMargin(problem, keep_counts=True)
    one_by_one = GrowingMargin(problem, keep_counts=True)
    for _ in range(3):
        at_once.present(order, ell)
        for k in order:
            one_by_one.present(np.repeat(k, ell))
    # Small integers times a power of two: float64 is exact here, ties included.
    np.testing.assert_array_equal(at_once.a, one_by_one.a)
    np.testing.assert_array_equal(at_once.counts, one_by_one.counts)
    assert (at_once.t, at_once.error_mass) == (one_by_one.t, one_by_one.error_mass)


@given(cases(), st.integers(1, 6), seeds)
def test_proposition_1(case: Case, ell: int, seed: int) -> None:
    problem = case.problem()
    rng = np.random.default_rng(seed)
    state = GrowingMargin(problem)
    S = problem.largest_weight
    for _ in range(4):
        for k in rng.permutation(problem.active):
            state.present(np.array([k]), ell)
            # S + (S^2 R^2 / lambda - S) / t, written without the cancellation.
            inner = S * (state.t - 1) / state.t + S**2 * problem.R**2 / problem.lambda_ / state.t
            bound = math.sqrt(inner / problem.lambda_)
            assert np.linalg.norm(state.w) <= bound * (1 + 1e-12)
            assert np.linalg.norm(state.a) <= state.largest_norm * (1 + 1e-12)
