"""Who wants to deceive: no verdict is false, whatever the data, the model and the claims."""

from __future__ import annotations

import random
import warnings
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import assume, given
from hypothesis import strategies as st

from certsvm import LinearSVC, verify
from certsvm.certificates.enclosures import DualObjective, RowBlock
from certsvm.certificates.verification import CONFIRMED, HALF_CONFIRMED, REFUTED, UNDECIDED
from certsvm.models import WeightsWitness
from tests.certificates.forgeries import ERROR, KINDS, Case, claim_truth, honest, judge


@pytest.mark.parametrize("kind", KINDS)
@given(st.randoms(use_true_random=False))
def test_no_verdict_is_false(kind: str, r: random.Random) -> None:
    case = KINDS[kind](r)
    _, found = judge(case)
    assert not found, case


@given(st.randoms(use_true_random=False))
def test_what_is_true_is_confirmed(r: random.Random) -> None:
    case = honest(r)
    if isinstance(case.witness, WeightsWitness):
        # Steeper ones may depend on the last digits of the margins.
        steepness = np.minimum(case.witness.sigma, 1.0)
        case.witness = replace(case.witness, sigma=steepness)
        claim_truth(case)
    # Near the least numbers, underflow is all there is.
    claimed = [abs(value) for c in case.claims for value in (c.primal, c.dual)]
    assume(not any(0.0 < value < 1e-280 for value in claimed))
    assume(not any(0.0 < abs(value) < 1e-140 for value in case.coef.flat))
    assume(all(c.scale == 0.0 or c.scale > 1e-100 for c in case.claims))
    verdict, _ = judge(case)
    assert verdict in (CONFIRMED, HALF_CONFIRMED), case


@given(st.randoms(use_true_random=False))
def test_what_is_infeasible_or_outside_the_problem_is_never_confirmed(r: random.Random) -> None:
    assert judge(KINDS["infeasible"](r))[0] == REFUTED
    assert judge(KINDS["truncated"](r))[0] == ERROR


def absorbing(huge: float) -> Case:
    """1000 equal rows between two of both signs, and alpha at the top of every box.

    In float64, from the top down, the sum of the rows is lost: J = L = 1002 at w = 0. In truth J is
    2.25 at (0.5, 0.5).
    """
    n = 1000
    ones = np.tile([[1.0, 1.0], [-1.0, -1.0]], (n // 2, 1))
    case = Case(
        X=np.vstack([[huge, -huge], ones, [-huge, huge]]),
        labels=np.concatenate([[1], np.tile([1, 0], n // 2), [1]]),
        weights=None, class_weight=np.ones(2), C=1.0, rho=0.0,
        coef=np.zeros((1, 2)), intercept=np.zeros(1), alphas=np.ones((1, n + 2)),
    )  # fmt: skip
    claim_truth(case)
    return case


@pytest.mark.parametrize("huge", [1e16, 1e20])
def test_large_rows_do_not_hide_the_others(huge: float) -> None:
    case = absorbing(huge)
    true = case.claims[0]
    assert true.primal == 1002.0
    assert true.dual < -998_000.0
    case.claims = [replace(true, dual=1002.0)]
    assert judge(case) == (REFUTED, [])
    case.claims = [true]
    assert judge(case) == (CONFIRMED, [])


def test_rows_too_large_to_tell() -> None:
    case = absorbing(1e40)
    case.claims = [replace(case.claims[0], dual=1002.0)]
    assert judge(case) == (UNDECIDED, [])


@pytest.mark.parametrize("solver", ["auto", "dcd", "working-set", "sgd-s", "ocas"])
def test_large_allowances_do_not_refute(solver: str) -> None:
    """A column far from zero makes allowances of more than a per cent of J."""
    largest = 0.0
    for seed in range(4):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((60, 3))
        X[:, 0] += 1e7
        y = np.where(rng.random(60) < 0.5, 1, -1)
        clf = LinearSVC(store_dual=True, random_state=0, C=100.0, solver=solver, max_iter=30)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            clf.fit(X, y)
        assert clf.certificate_ is not None
        largest = max(largest, clf.certificate_.primal_rounding, clf.certificate_.dual_rounding)
        assert verify(clf, X, y).verdict == CONFIRMED
    assert largest > 0.0


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -1.0])
@pytest.mark.parametrize("others", [0.0, 1.0, np.nan])
def test_weights_that_are_none(wrong: float, others: float) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((50, 3))
    y = np.where(X[:, 0] > 0, 1, -1)
    clf = LinearSVC(store_dual=True, random_state=0).fit(X, y)
    weights = np.full(50, others)
    weights[0] = wrong
    with pytest.raises(ValueError, match="weights of rows must be finite and not negative"):
        verify(clf, X, y, weights)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda X: X[:, 0], "two dimensions"),
        (lambda X: X * 1j, "Complex data not supported"),
        (lambda X: np.ma.MaskedArray(X, X > 1), "masked entries"),
        (lambda X: np.where(X > 1, np.nan, X), "contains NaN or infinity"),
        (lambda X: X.astype(str), "real numbers"),
        (lambda X: [[None] * X.shape[1]] * len(X), "contains NaN or infinity"),
        (lambda X: [[{}] * X.shape[1]] * len(X), "real numbers"),
    ],
)
def test_what_is_no_matrix(change: Any, message: str) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((50, 3))
    y = np.where(X[:, 0] > 0, 1, -1)
    clf = LinearSVC(store_dual=True, random_state=0).fit(X, y)
    with pytest.raises(ValueError, match=message):
        verify(clf, change(X), y)


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "bsr"])
def test_values_stored_twice_are_added_up_as_in_training(form: str) -> None:
    """In float64, 1e16 + 1 - 1e16 is 0."""
    entries = np.array([1e16, 1.0, -1e16, 1.0])
    X = sp.csr_matrix((entries, np.zeros(4, int), np.array([0, 3, 4])), shape=(2, 1))
    rows = X if form == "csr" else X.tocoo(copy=False).asformat(form)
    clf = LinearSVC(C=1.0, store_dual=True, random_state=0).fit(rows, [1, 0])
    assert verify(clf, rows, [1, 0]).verdict == CONFIRMED
    # A flag that lies changes nothing.
    if form == "csr":
        rows.has_canonical_format = True
        assert verify(clf, rows, [1, 0]).verdict == CONFIRMED


def test_an_integer_C_is_the_float_that_it_stands_for() -> None:
    C, s = 2486589735230767365, 1.9346497238697411e-16
    box = float(C) * s
    rows = RowBlock(np.zeros(1), np.zeros(1, np.intp), np.zeros(1, np.intp), 1, 1)
    L = DualObjective(1, C, 0.0)
    L.add(rows, np.ones(1), np.array([s]), np.array([box]), np.zeros(1))
    low, high = L.interval()
    assert Fraction(low) <= min(Fraction(box), Fraction(float(C)) * Fraction(s)) <= Fraction(high)
