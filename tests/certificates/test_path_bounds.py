"""Chords, against exact rational arithmetic at any C between their ends."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from certsvm import Certificate, train
from certsvm.certificates.dual import DualVector, dual_bound, dual_point, scaled_vector
from certsvm.certificates.path_bounds import Chord, ChordEnd
from certsvm.certificates.primal import primal_bound
from certsvm.certificates.rounding import Bound
from certsvm.kernels.losses import LOSSES
from certsvm.solvers import DCD
from tests import problems
from tests.problems import Array, Case, cases, exact, exact_dual, exact_objective

seeds = st.integers(0, 2**32 - 1)
shares = st.one_of(st.sampled_from([0.0, 1e-16, 1e-9, 0.5, 1.0]), st.floats(0, 1))


def an_end(case: Case, w: Array, alpha: Array) -> tuple[ChordEnd, list[Fraction]]:
    """The end of a chord at any w and any feasible alpha, and the alpha of its bound."""
    problem = case.problem()
    if case.free_intercept:
        used, vector, dual, scale = *balanced(case, alpha), 1.0
    else:
        point = dual_point(problem, alpha, "a test")
        dual, scale = dual_bound(point)
        vector, used = scaled_vector(point, scale), [exact(a) for a in scale * alpha]
    primal = primal_bound(problem, w)
    certificate = Certificate(
        primal.value, dual.value, 0.01, "a test", scale, primal.rounding, dual.rounding, case.C,
        case.intercept_scaling, case.loss, case.penalize_intercept,
    )  # fmt: skip
    return ChordEnd(certificate, w, vector), used


def balanced(case: Case, alpha: Array) -> tuple[list[Fraction], DualVector, Bound]:
    """A balanced alpha without rounding, with its v and L rounded to floats."""
    used = problems.exactly_balanced(case, [exact(a) for a in alpha])
    L = exact_dual(case, used)
    v = [problems.exact_dot(used, column) for column in case.patterns().T]
    stored = np.array([float(x) for x in v])
    off = float(sum(abs(exact(a) - x) for a, x in zip(stored, v, strict=True)))
    bound = Bound(float(L), 2.0 * abs(float(L - exact(float(L)))))
    return used, DualVector(stored, 2.0 * off), bound


def a_chord(case: Case, ratio: float, seed: int) -> tuple[Chord, list[Case], list[list[Fraction]]]:
    """A chord from C to ratio * C between random points, its ends' problems and their alphas."""
    rng = np.random.default_rng(seed)
    ends, alphas = [], []
    both = [case, case._replace(C=case.C * ratio)]
    for one in both:
        problem = one.problem()
        w = rng.choice([0.01, 1.0, 30.0]) * rng.standard_normal(problem.dimension)
        share = np.clip(rng.normal(0.5, 1.0, problem.n_rows), 0.0, 1.0)
        end, alpha = an_end(one, w, share * (one.C * one.row_weights()))
        ends.append(end)
        alphas.append(alpha)
    problem = case.problem()
    return Chord(*ends, weight_sum=problem.weight_sum, R=problem.R), both, alphas


@given(
    cases(losses=tuple(LOSSES), free_intercepts=True),
    st.sampled_from([1.0 + 1e-9, 1.1, 3.0, 1e5]),
    shares,
    seeds,
)
def test_bounds_hold_at_every_C(case: Case, ratio: float, share: float, seed: int) -> None:
    chord, both, alphas = a_chord(case, ratio, seed)
    C = min(max((1.0 - share) * both[0].C + share * both[1].C, both[0].C), both[1].C)
    between = case._replace(C=C)
    # The model as it is stored.
    s, t = chord.shares(C)
    w = s * chord.first.w + t * chord.last.w
    assert exact_objective(between, w) <= exact(chord.primal(C))
    # The dual point without rounding.
    exact_t = (exact(C) - exact(both[0].C)) / (exact(both[1].C) - exact(both[0].C))
    alpha = [(1 - exact_t) * a + exact_t * b for a, b in zip(*alphas, strict=True)]
    L, bound = exact_dual(between, alpha), chord.dual(C)
    assert exact(bound.value) - exact(bound.rounding) <= L
    # With the alphas of the ends, L is known from both sides; with the hinge, without them.
    stored = [np.array([float(a) for a in of_end]) for of_end in alphas]
    same = chord.dual_of(C, stored[0], stored[1], case.row_weights())
    assert same == bound or case.loss == "squared_hinge"
    assert abs(exact(same.value) - L) <= exact(same.rounding)
    assert same.rounding <= 1e-11 * (abs(bound.value) + sum(a.sum() for a in stored)) + 1e-290


@pytest.mark.parametrize("sign", [1, -1])
def test_alpha_that_is_balanced_up_to_rounding(sign: int) -> None:
    """L is that of a balanced alpha, from which the stored one differs as much as it may."""
    case = Case(np.array([[0.1], [0.1]]), np.array([1.0, -1.0]), intercept_scaling=1.0)
    case = case._replace(loss="squared_hinge", penalize_intercept=False)
    off, ends, alphas, stored = 1e-6, [], [], []
    for C, alpha in ((1.0, 3.0), (100.0, 0.01)):
        one = case._replace(C=C)
        used = [Fraction(alpha), Fraction(alpha)]
        # What underlies the bound is off by as much, too.
        L, rounding = exact_dual(one, used), off * 2.0 * alpha
        certificate = Certificate(
            10.0 * C, float(L) + sign * rounding, 0.01, C=C, dual_rounding=1.000001 * rounding,
            intercept_scaling=1.0, loss="squared_hinge", penalize_intercept=False,
        )  # fmt: skip
        ends.append(ChordEnd(certificate, np.zeros(2), DualVector(np.zeros(2), 0.0)))
        alphas.append(used)
        stored.append(np.array([alpha, alpha]) * (1.0 + 0.999 * sign * off))
    chord = Chord(*ends, weight_sum=2.0, R=2.0)
    for C in (1.5, 10.0, 90.0):
        t = (exact(C) - 1) / 99
        alpha_t = [(1 - t) * a + t * b for a, b in zip(*alphas, strict=True)]
        bound = chord.dual_of(C, stored[0], stored[1], case.row_weights())
        L = exact_dual(case._replace(C=C), alpha_t)
        assert abs(exact(bound.value) - L) <= exact(bound.rounding)


@given(cases(losses=tuple(LOSSES), free_intercepts=True), st.sampled_from([1.1, 3.0, 1e5]), seeds)
def test_the_worst_gap_is_the_largest(case: Case, ratio: float, seed: int) -> None:
    chord, both, _ = a_chord(case, ratio, seed)
    low, high = both[0].C, both[1].C
    Cs = np.concatenate([np.geomspace(low, high, 50), np.linspace(low, high, 50)]).clip(low, high)
    gaps = [chord.certificate(float(C), 0.01).proved_gap for C in Cs]
    assert max(gaps) <= chord.worst_gap
    if math.isfinite(chord.worst_gap):
        # It is not far above what is attained.
        dense = [chord.certificate(float(C), 0.01).proved_gap for C in np.linspace(low, high, 300)]
        assert chord.worst_gap <= 1.05 * max([*gaps, *dense]) + 1e-6


@pytest.mark.parametrize("loss", LOSSES)
def test_the_model_between_is_rounded(loss: str) -> None:
    """Of long rows across w, the losses are off by far more than J at the ends."""
    rng, moved = np.random.default_rng(0), 0
    for _ in range(50):
        w = 1e3 * rng.standard_normal(3)
        X = 1e10 * rng.standard_normal((4, 3))
        X -= np.outer(X @ w / (w @ w), w)
        case = Case(X, np.ones(4), C=1e3, loss=loss)
        ends = []
        for C in (case.C, 7.0 * case.C):
            J = math.nextafter(float(exact_objective(case._replace(C=C), w)), math.inf)
            ends.append(ChordEnd(Certificate(J, 0.0, 0.01, C=C, loss=loss), w, DualVector(w, 0.0)))
        chord = Chord(*ends, weight_sum=4.0, R=case.problem().R)
        for C in rng.uniform(case.C, 7.0 * case.C, 20).tolist():
            s, t = chord.shares(C)
            stored = s * w + t * w
            moved += int((stored != w).any())
            assert exact_objective(case._replace(C=C), stored) <= exact(chord.primal(C))
        # No more than the roundings may come to.
        added = chord.primal(case.C) - ends[0].certificate.primal
        steep = 2.0 * math.sqrt(4.0 * ends[0].loss.value) if loss == "squared_hinge" else 4.0
        assert added <= 1e-14 * case.C * chord._largest * case.problem().R * steep
    assert moved > 20


def test_no_certificate_exceeds_the_worst_gap_if_v_is_hardly_known() -> None:
    """The allowance of v moves the place of the largest gap."""
    rng = np.random.default_rng(0)
    X, labels = rng.standard_normal((8, 3)), rng.choice([-1.0, 1.0], 8)
    ends = []
    for C in (0.1, 0.4):
        case = Case(X, labels, C=C, intercept_scaling=1.0)
        fit = train(case.problem(), DCD(), tol=0.01, seed=0, keep_vector=True)
        assert fit.vector is not None
        ends.append(ChordEnd(fit.certificate, fit.w, fit.vector._replace(rounding=0.2)))
    chord = Chord(*ends, weight_sum=8.0, R=case.problem().R)
    gaps = [chord.certificate(float(C), 0.01).proved_gap for C in np.linspace(0.1, 0.4, 400)]
    assert max(gaps) <= chord.worst_gap <= 1.001 * max(gaps)


@pytest.mark.parametrize(
    ("primal", "dual", "last"), [(1.0, 1.5, 0.999), (1.0, 0.0, 0.9), (math.inf, 0.5, 0.9)]
)
def test_an_end_without_a_proof_proves_nothing(primal: float, dual: float, last: float) -> None:
    """A contradiction, as of a stream that is not the same in each pass; no dual bound; no J."""
    w = np.zeros(1)
    certificates = Certificate(primal, dual, 0.01, C=1.0), Certificate(1.0, last, 0.01, C=2.0)
    ends = [ChordEnd(certificate, w, DualVector(w, 0.0)) for certificate in certificates]
    assert Chord(*ends, weight_sum=1.0, R=1.0).worst_gap == math.inf
