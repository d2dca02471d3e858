"""The independent second computation of a certificate."""

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from distributed import Client
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning

import certsvm
from certsvm import Certificate, Problem, train
from certsvm.certificates.dual import Response
from certsvm.dask import CertificateRefutedWarning, Cocoa, LinearSVC
from certsvm.dask.cluster import Cluster, interval_sums, recheck
from certsvm.kernels.losses import HINGE, SQUARED_HINGE
from certsvm.problem.rows import Part, Rows
from certsvm.resources import ALONE
from certsvm.solvers.smoothed_newton import SmoothedNewton, alpha_of
from tests.dask.problems import blocks, cluster_problem
from tests.problems import Case, exact, exact_dual, exact_objective, exactly_balanced


@pytest.mark.parametrize("solver", [SmoothedNewton(samples=False), "cocoa"], ids=str)
def test_wrong_sums_are_seen(client: Client, monkeypatch: pytest.MonkeyPatch, solver: Any) -> None:
    """Whatever goes wrong on the way: here, blocks that are counted twice, or not at all."""
    X, y, parts, labels = blocks()
    groups = Cluster.groups
    for members in (lambda m: m + m[:1], lambda m: m[1:]):

        def wrong(self: Any, futures: Any, members: Any = members) -> Any:
            first, *others = groups(self, futures)
            return [replace(first, members=members(first.members)), *others]

        monkeypatch.setattr(Cluster, "groups", wrong)
        clf = LinearSVC(0.1, solver=solver, random_state=0, client=client)
        with pytest.warns(CertificateRefutedWarning), pytest.warns(ConvergenceWarning):
            clf.fit(parts, labels)
        assert not clf.certificate_.met
        optimum = certsvm.LinearSVC(0.1, tol=1e-6, random_state=0).fit(X, y).certificate_
        assert 0.0 < clf.certificate_.dual <= optimum.primal
        assert certsvm.verify(clf, X, y).ok


def in_memory(seed: int, rho: float = 0.5, **objective: Any) -> tuple[Problem, Any]:
    rng = np.random.default_rng(seed)
    rows = Rows(rng.standard_normal((40, 3)), intercept_scaling=rho)
    weights = rng.integers(0, 3, 40).astype(float)
    weights[:2] = 1.0
    labels = rng.choice([-1.0, 1.0], 40)
    labels[:2] = -1.0, 1.0
    return Problem(rows, labels, C=0.7, weights=weights, **objective), rng


@settings(deadline=None, max_examples=60)
@given(
    st.integers(0, 10**6), st.sampled_from([0.0, 0.5, 100.0]),
    st.sampled_from([HINGE, SQUARED_HINGE]), st.booleans(), st.sampled_from([1.0, 1e4, 1e12]),
)  # fmt: skip
def test_intervals_of_J_and_L(
    seed: int, rho: float, loss: Any, penalised: bool, sigma: float
) -> None:
    """Of J, and of L at the alpha of a response, in two blocks."""
    problem, rng = in_memory(seed, rho, loss=loss, penalize_intercept=penalised)
    w, other = rng.standard_normal((2, problem.dimension))
    response = Response(other, sigma)
    alpha = alpha_of(problem, response, ALONE)
    claimed = certificate_of(problem)
    X, signs = problem.rows.matrix, np.where(problem.signed_weights < 0, -1.0, 1.0)
    case = Case(X, signs, problem.weights, problem.C, rho, loss=loss.name)
    case = case._replace(penalize_intercept=not problem.free_intercept)
    box = [exact(problem.C) * exact(s) for s in problem.weights]
    meant = [exact(a) for a in alpha]
    if not loss.is_smooth:
        beyond = [a > end for a, end in zip(meant, box, strict=True)]
        meant = [exact(a) for a in np.where(beyond, np.nextafter(alpha, 0.0), alpha)]
    if problem.free_intercept:
        meant = exactly_balanced(case, meant)
    J, L = exact_objective(case, w), exact_dual(case, meant)
    first, second = (
        interval_sums(part_of(problem, rows), ALONE, alpha[rows], w, claimed)
        for rows in (slice(0, 17), slice(17, 40))
    )
    first += second
    low, high = first.J()
    # The intercept is a rounded product.
    slack = Fraction(1, 10**14) * J
    assert exact(low) - slack <= J <= exact(high) + slack
    assert first.box_violation == 0.0
    low, high = first.L()
    assert exact(low) <= L <= exact(high)
    assert high - low <= 1e-9 * (1.0 + abs(high))


def part_of(problem: Problem, rows: slice) -> Part:
    return Part(
        Rows(problem.rows.matrix[rows], intercept_scaling=problem.intercept_scaling),
        problem.signed_weights[rows],
    )


def certificate_of(problem: Problem) -> Certificate:
    return Certificate(
        1.0, 1.0, target=0.1, C=problem.C, intercept_scaling=problem.intercept_scaling,
        loss=problem.loss.name, penalize_intercept=not problem.free_intercept,
    )  # fmt: skip


def test_honest_certificates_of_badly_scaled_data_stand(client: Client) -> None:
    """A steep sigma magnifies the rounding of margins in alpha, and so in L."""
    rng = np.random.default_rng(5)
    for _ in range(13):
        n, d = int(rng.integers(10, 40)), int(rng.integers(2, 6))
        X = rng.standard_normal((n, d)) * 10.0 ** rng.integers(-2, 4, d)
        y = rng.integers(0, 2, n)
        y[:2] = 0, 1
        s = rng.choice([0.3, 1.0, 1e4], n)
        clf = LinearSVC(
            100.0, tol=1e-3, solver="smoothed-newton", max_iter=60, random_state=0, client=client,
            penalize_intercept=bool(rng.random() < 0.5),
        )  # fmt: skip
        h = n // 2
        parts = [sp.csr_matrix(X[:h]), X[h:]]
        clf.fit(parts, [y[:h], y[h:]], sample_weight=[s[:h], s[h:]])
        assert clf.certificate_.dual <= clf.certificate_.primal


@pytest.mark.parametrize("value", [-1e-9, 1.5, np.nan])
def test_a_dual_point_outside_the_box(value: float) -> None:
    problem, _ = in_memory(0)
    alpha = np.zeros(40)
    alpha[0] = value
    sums = interval_sums(problem, ALONE, alpha, np.zeros(4), certificate_of(problem))
    assert sums.box_violation > 0.0


@pytest.mark.parametrize("solver", [SmoothedNewton(samples=False), Cocoa(sweeps=2)], ids=str)
@pytest.mark.parametrize("keep_alpha", [False, True])
@pytest.mark.parametrize("loss", [HINGE, SQUARED_HINGE], ids=lambda loss: loss.name)
@pytest.mark.parametrize("penalised", [True, False])
def test_a_certificate_that_claims_more_is_replaced(
    client: Client, solver: Any, keep_alpha: bool, loss: Any, penalised: bool
) -> None:
    if isinstance(solver, Cocoa) and not penalised:
        pytest.skip("CoCoA penalises the intercept")
    _, _, parts, labels = blocks(400, count=3)
    problem = cluster_problem(
        client, parts, labels, C=0.1, intercept_scaling=1.0, loss=loss,
        penalize_intercept=penalised,
    )  # fmt: skip
    result = train(problem, solver, tol=1e-2, keep_alpha=keep_alpha, seed=0)
    certificate = recheck(problem, result).certificate
    assert certificate == result.certificate
    for name, value in (("primal", 0.99), ("dual", 1.01)):
        false = replace(certificate, **{name: value * getattr(certificate, name)})
        with pytest.warns(CertificateRefutedWarning):
            proved = recheck(problem, replace(result, certificate=false)).certificate
        # What is proved instead is the certificate as it was, up to rounding.
        assert proved.met
        assert proved.primal == pytest.approx(certificate.primal, rel=1e-9)
        assert proved.dual == pytest.approx(certificate.dual, rel=1e-9)
