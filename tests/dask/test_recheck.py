"""The independent second computation of a certificate."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from distributed import Client
from hypothesis import given, settings
from hypothesis import strategies as st

import certsvm
import certsvm.dask.recheck as recheck_module
from certsvm.certificates.dual import Response, dual_bound, dual_point, largest_multiple
from certsvm.certificates.primal import primal_bound
from certsvm.dask import CertificateRefutedError, Cocoa, LinearSVC
from certsvm.dask.cluster import WorkerGoneError
from certsvm.dask.cocoa import AlphaOnWorkers
from certsvm.dask.problem import ClusterProblem
from certsvm.dask.recheck import Recomputed, recheck, recheck_alpha, recheck_response
from certsvm.kernels.losses import HINGE, SQUARED_HINGE
from certsvm.parallel import ALONE
from certsvm.problem.memory import Problem
from certsvm.problem.rows import Rows
from certsvm.solvers.smoothed_newton import SmoothedNewton, alpha_of
from certsvm.training.loop import train
from certsvm.training.result import NOT_KEPT, TARGET_MET
from tests.dask.problems import blocks, cluster_problem


@pytest.mark.parametrize("solver", [SmoothedNewton(samples=False), "cocoa"], ids=str)
def test_a_wrong_certificate_is_refuted(
    client: Client, monkeypatch: pytest.MonkeyPatch, solver: Any
) -> None:
    """Whatever goes wrong on the way: here, blocks that are counted twice, or not at all."""
    _, _, parts, labels = blocks()
    groups = ClusterProblem.groups
    for members in (lambda m: m + m[:1], lambda m: m[1:]):

        def wrong(self: Any, members: Any = members) -> Any:
            wrong_groups = groups(self)
            if not getattr(self, "_spoilt", False):
                self._spoilt = True
                wrong_groups[0].members = members(wrong_groups[0].members)
            return wrong_groups

        monkeypatch.setattr(ClusterProblem, "groups", wrong)
        with pytest.raises(CertificateRefutedError, match="rows, not 4000"):
            LinearSVC(0.1, solver=solver, random_state=0, client=client).fit(parts, labels)


def test_the_best_alpha_lost_after_the_last_round(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The certificate is then that of the copy, and its rounding is counted."""
    X, y, parts, labels = blocks()

    def lost(*_: Any) -> Any:
        raise WorkerGoneError("gone")

    monkeypatch.setattr(recheck_module, "add_up", lost)
    clf = LinearSVC(0.01, tol=1e-3, solver="cocoa", random_state=0, client=client).fit(
        parts, labels
    )
    optimum = certsvm.LinearSVC(0.01, tol=1e-7, random_state=0).fit(X, y).certificate_
    assert 0 < clf.certificate_.dual <= optimum.primal
    assert clf.certificate_.dual_rounding > 0
    assert certsvm.verify(clf, X, y).ok


def in_memory(seed: int, rho: float = 0.5, **objective: Any) -> tuple[Problem, Any]:
    rng = np.random.default_rng(seed)
    rows = Rows(rng.standard_normal((40, 3)), intercept_scaling=rho)
    weights = rng.integers(0, 3, 40).astype(float)
    weights[:2] = 1.0
    labels = rng.choice([-1.0, 1.0], 40)
    labels[:2] = -1.0, 1.0
    return Problem(rows, labels, C=0.7, weights=weights, **objective), rng


@settings(deadline=None, max_examples=50)
@given(
    st.integers(0, 10**6), st.sampled_from([0.0, 0.5]), st.sampled_from([HINGE, SQUARED_HINGE]),
    st.booleans(),
)  # fmt: skip
def test_sums_agree_with_the_bounds(seed: int, rho: float, loss: Any, penalised: bool) -> None:
    problem, rng = in_memory(seed, rho, loss=loss, penalize_intercept=penalised)
    recomputed, most = Recomputed.of(problem), largest_multiple(loss)
    w, other = rng.standard_normal((2, problem.dimension))
    response = Response(other, 0.9)
    alpha = alpha_of(problem, response, ALONE)
    J, L = primal_bound(problem, w).value, dual_bound(dual_point(problem, alpha, ""))[0].value
    for sums in (
        recheck_alpha(problem, ALONE, alpha, w, recomputed),
        recheck_response(problem, ALONE, w, recomputed, response),
    ):
        assert sums.n_rows == 40
        assert sums.primal(w, recomputed) == pytest.approx(J, rel=1e-12)
        assert sums.dual(most) == pytest.approx(L, rel=1e-9)
        # The sums of both halves of the rows are added.
        assert len(sums.sides) == (2 if problem.free_intercept else 1)
        sums += recheck_alpha(problem, ALONE, alpha, w, recomputed)
        assert sum(side.alpha_sum for side in sums.sides) == pytest.approx(2.0 * alpha.sum())
    same = recheck_response(problem, ALONE, other, recomputed, response)
    assert same.dual(most) == pytest.approx(L, rel=1e-9)
    assert recheck_response(problem, ALONE, w, recomputed, None).dual(most) == 0.0


@pytest.mark.parametrize("value", [-1e-9, 1.5, np.nan])
def test_a_dual_point_outside_the_box_is_refuted(value: float) -> None:
    problem, _ = in_memory(0)
    alpha = np.zeros(40)
    alpha[0] = value
    with pytest.raises(CertificateRefutedError, match="not feasible"):
        recheck_alpha(problem, ALONE, alpha, np.zeros(4), Recomputed.of(problem))


@pytest.mark.parametrize(
    ("k", "value", "feasible"),
    [(0, -1e-9, False), (0, np.nan, False), (0, np.inf, False), (0, 1.5, True), (2, 1.5, False)],
)
def test_the_box_of_the_squared_hinge(k: int, value: float, feasible: bool) -> None:
    """It has no end, except for rows without weight."""
    problem, _ = in_memory(0, loss=SQUARED_HINGE)
    problem.signed_weights[2] = 0.0
    alpha = np.zeros(40)
    alpha[k] = value
    if feasible:
        recheck_alpha(problem, ALONE, alpha, np.zeros(4), Recomputed.of(problem))
        return
    with pytest.raises(CertificateRefutedError, match="not feasible"):
        recheck_alpha(problem, ALONE, alpha, np.zeros(4), Recomputed.of(problem))


@pytest.mark.parametrize("solver", [SmoothedNewton(samples=False), Cocoa(passes=2)], ids=str)
@pytest.mark.parametrize("keep_alpha", [False, True])
@pytest.mark.parametrize("loss", [HINGE, SQUARED_HINGE], ids=lambda loss: loss.name)
@pytest.mark.parametrize("penalised", [True, False])
def test_a_certificate_that_claims_more_is_refuted(
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
    assert recheck(problem, result).certificate == result.certificate
    certificate = result.certificate
    for name, value in (("primal", 0.99), ("dual", 1.01)):
        false = replace(certificate, **{name: value * getattr(certificate, name)})
        with pytest.raises(CertificateRefutedError, match=f"{'J' if name == 'primal' else 'L'} is"):
            recheck(problem, replace(result, certificate=false))


def test_states_that_were_lost_are_replaced_by_the_copy(client: Client) -> None:
    _, _, parts, labels = blocks(400, count=3)
    problem = cluster_problem(client, parts, labels, C=0.1)
    result = train(problem, Cocoa(passes=2), tol=1e-2, seed=0)
    assert isinstance(result.response, AlphaOnWorkers)
    response = replace(result.response, states=[])
    checked = recheck(problem, replace(result, response=response)).certificate
    assert 0.0 < checked.dual <= result.certificate.primal
    assert recheck(problem, replace(result, response=response)).vector is None
    nothing = replace(result, response=replace(response, copy=None))
    assert recheck(problem, nothing).certificate.dual == 0.0
    # A copy that is not feasible proves nothing.
    wrong = [np.full(size, 1.0) for size in np.diff(problem.firsts)]
    with pytest.raises(CertificateRefutedError, match="not feasible"):
        recheck(problem, replace(result, response=replace(response, copy=wrong)))


def test_the_vector_of_a_result_belongs_to_its_certificate(client: Client) -> None:
    """Also if both are those of the copy: chords between results rely on it."""
    _, _, parts, labels = blocks(400, count=3)
    problem = cluster_problem(client, parts, labels, C=0.1)
    result = train(problem, Cocoa(passes=2), tol=1e-2, seed=0, keep_vector=True)
    assert isinstance(result.response, AlphaOnWorkers)
    assert result.vector is not None
    confirmed = recheck(problem, result)
    assert confirmed.vector is result.vector
    # An older copy, far from the best alpha.
    sizes = np.diff(problem.firsts)
    copy = [np.full(size, 0.01 * problem.C) for size in sizes]
    lost = replace(result, response=replace(result.response, states=[], copy=copy))
    checked = recheck(problem, lost)
    certificate, vector = checked.certificate, checked.vector
    assert vector is not None
    assert certificate.dual < 0.9 * result.certificate.dual
    assert (result.reason, checked.reason) == (TARGET_MET, NOT_KEPT)
    alpha_sum = certificate.scale * sum(float(alpha.sum()) for alpha in copy)
    L = alpha_sum - 0.5 * vector.v @ vector.v
    assert pytest.approx(certificate.dual, rel=1e-9) == L
    Y = np.concatenate(parts) * np.where(np.concatenate(labels) == "yes", 1.0, -1.0)[:, None]
    expected = certificate.scale * Y.T @ np.concatenate(copy)
    assert np.linalg.norm(vector.v - expected) <= 1e-9 * np.linalg.norm(expected)
