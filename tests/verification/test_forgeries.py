"""Who wants to deceive: no verdict is false, whatever the data, the model and the claims."""

import random
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from certsvm import Problem, Rows, train
from certsvm.files import Witness
from certsvm.kernels.losses import loss_named
from certsvm.solvers import Newton
from certsvm.verification.verify import CONFIRMED, HALF_CONFIRMED, REFUTED, UNDECIDED
from tests.verification import forgeries


@pytest.mark.parametrize("kind", forgeries.KINDS)
@given(st.randoms(use_true_random=False))
def test_no_verdict_is_false(kind: str, r: random.Random) -> None:
    case = forgeries.KINDS[kind](r)
    _, found = forgeries.judge(case)
    assert not found, case


@given(st.randoms(use_true_random=False))
def test_what_is_true_is_confirmed(r: random.Random) -> None:
    case = forgeries.honest(r)
    # Near the least numbers, underflow is all there is.
    claimed = [abs(value) for c in case.claims for value in (c.primal, c.dual)]
    assume(not any(0.0 < value < 1e-280 for value in claimed))
    numbers = [case.C, *case.coef.flat, *([] if case.alphas is None else case.alphas.flat)]
    assume(not any(0.0 < abs(value) < 1e-140 for value in numbers))
    verdict, _ = forgeries.judge(case)
    assert verdict in (CONFIRMED, HALF_CONFIRMED), case


@given(st.randoms(use_true_random=False))
def test_what_is_infeasible_or_outside_the_problem_is_never_confirmed(r: random.Random) -> None:
    assert forgeries.judge(forgeries.KINDS["infeasible"](r))[0] == REFUTED
    assert forgeries.judge(forgeries.KINDS["truncated"](r))[0] == forgeries.ERROR


@given(st.randoms(use_true_random=False), st.sampled_from([1.0 + 2.0**-52, 2.0, 1e300]))
def test_a_scale_that_leaves_the_box_is_never_confirmed(r: random.Random, scale: float) -> None:
    case = forgeries.honest(r)
    case.squared, case.alphas = False, None
    shape = len(case.positives), len(case.labels)
    case.weights = np.ones(shape[1])
    case.class_weight = np.ones(case.class_weight.size)
    case.witness = Witness(np.full(shape, 255, np.uint8), np.full(shape[0], scale))
    forgeries.claim_truth(case)
    verdict, faults = forgeries.judge(case)
    # Where sums overflow, nothing can be said.
    assert verdict in (REFUTED, UNDECIDED)
    assert faults == []


def two_clouds(loss: str, *, penalize_intercept: bool) -> forgeries.Case:
    """Trained, with the alpha of the optimum; the classes are not equally large."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((90, 3)) + 0.5
    labels = (X[:, 0] + rng.standard_normal(90) > 1.0).astype(int)
    problem = Problem(
        Rows(X, intercept_scaling=1.0), np.where(labels == 1, 1, -1), C=0.5,
        loss=loss_named(loss), penalize_intercept=penalize_intercept,
    )  # fmt: skip
    result = train(problem, Newton(), tol=1e-8, keep_alpha=True)
    assert result.alpha is not None
    coef, intercept = problem.coefficients(result.w)
    return forgeries.Case(
        X=X, labels=labels, weights=None, class_weight=np.ones(2), C=0.5, rho=1.0,
        coef=coef[None], intercept=np.array([intercept]), alphas=result.alpha[None],
        squared=loss == "squared_hinge", free=not penalize_intercept, claims=[result.certificate],
    )  # fmt: skip


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("penalize_intercept", [True, False])
def test_a_certificate_of_another_problem(loss: str, penalize_intercept: bool) -> None:
    case = two_clouds(loss, penalize_intercept=penalize_intercept)
    assert forgeries.judge(case) == (CONFIRMED, [])
    assert case.claims[0].met
    true = case.claims[0]
    for other_loss, other_penalty in (
        (loss, not penalize_intercept),
        ("hinge" if case.squared else "squared_hinge", penalize_intercept),
        ("hinge" if case.squared else "squared_hinge", not penalize_intercept),
    ):
        case.squared, case.free = other_loss == "squared_hinge", not other_penalty
        case.claims = [replace(true, loss=other_loss, penalize_intercept=other_penalty)]
        assert forgeries.judge(case) == (REFUTED, [])


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_an_alpha_that_is_not_balanced_proves_less(loss: str) -> None:
    case = two_clouds(loss, penalize_intercept=False)
    (true,) = case.claims
    assert case.alphas is not None
    (alpha,) = case.alphas
    case.alphas = np.where(case.labels == 0, alpha, 0.5 * alpha)[None]
    assert forgeries.judge(case) == (REFUTED, [])
    (found,) = case.verified()
    assert found.box_violation == 0.0
    assert found.L is not None
    assert 0.0 < found.L.high < true.dual
    # What it proves is confirmed.
    forgeries.claim_truth(case)
    assert case.claims[0].dual == pytest.approx(found.L.low)
    assert forgeries.judge(case) == (CONFIRMED, [])


@pytest.mark.parametrize(("loss", "proved"), [("hinge", 2.0), ("squared_hinge", 3.0)])
def test_an_alpha_that_seems_to_prove_the_optimum(loss: str, proved: float) -> None:
    """Of four equal rows, one is of the other class. J is 4 at zero, and ``proved`` at best."""
    case = forgeries.Case(
        X=np.zeros((4, 1)), labels=np.array([0, 0, 0, 1]), weights=None, class_weight=np.ones(2),
        C=1.0, rho=1.0, coef=np.zeros((1, 1)), intercept=np.zeros(1), squared=loss != "hinge",
        free=True, alphas=np.full((1, 4), 1.0 if loss == "hinge" else 2.0),
    )  # fmt: skip
    forgeries.claim_truth(case)
    assert case.claims[0].dual <= proved
    assert forgeries.judge(case) == (CONFIRMED, [])
    forgeries.naive_claims(case, random.Random(0))
    assert case.claims[0].primal == case.claims[0].dual == 4.0
    assert forgeries.judge(case) == (REFUTED, [])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"loss": "hinges"}, "about no problem that is known: loss 'hinges'"),
        ({"loss": None}, "loss None"),
        ({"penalize_intercept": 1}, "penalize_intercept 1"),
        ({"penalize_intercept": "no"}, "penalize_intercept 'no'"),
    ],
)
def test_a_problem_that_is_none(change: dict[str, Any], message: str) -> None:
    case = two_clouds("hinge", penalize_intercept=True)
    case.claims = [replace(case.claims[0], **change)]
    with pytest.raises(ValueError, match=message):
        case.verified()


def absorbing(huge: float) -> forgeries.Case:
    """1000 equal rows between two of both signs, and alpha at the top of every box.

    In float64, from the top down, the sum of the rows is lost: J = L = 1002 at w = 0. In truth J is
    2.25 at (0.5, 0.5).
    """
    n = 1000
    ones = np.tile([[1.0, 1.0], [-1.0, -1.0]], (n // 2, 1))
    case = forgeries.Case(
        X=np.vstack([[huge, -huge], ones, [-huge, huge]]),
        labels=np.concatenate([[1], np.tile([1, 0], n // 2), [1]]),
        weights=None, class_weight=np.ones(2), C=1.0, rho=0.0,
        coef=np.zeros((1, 2)), intercept=np.zeros(1), alphas=np.ones((1, n + 2)),
    )  # fmt: skip
    forgeries.claim_truth(case)
    return case


@pytest.mark.parametrize("huge", [1e16, 1e20])
def test_large_rows_do_not_hide_the_others(huge: float) -> None:
    case = absorbing(huge)
    true = case.claims[0]
    assert true.primal == 1002.0
    assert true.dual < -998_000.0
    case.claims = [replace(true, dual=1002.0)]
    assert forgeries.judge(case) == (REFUTED, [])
    case.claims = [replace(true, dual_rounding=1e-6 * huge / 1e16)]
    assert forgeries.judge(case) == (CONFIRMED, [])


def test_rows_too_large_to_tell() -> None:
    case = absorbing(1e40)
    case.claims = [replace(case.claims[0], dual=1002.0)]
    assert forgeries.judge(case) == (UNDECIDED, [])
