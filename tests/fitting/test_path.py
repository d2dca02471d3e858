"""The path of solutions over C."""

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from certsvm.certificates.path_bounds import Chord, ChordEnd
from certsvm.fitting.fit_classes import fit_classes
from certsvm.fitting.path import trace_path
from certsvm.fitting.sources import MemorySource
from certsvm.kernels.losses import LOSSES
from certsvm.training.settings import Observer, Result, Settings
from tests.exact import exact_optimum
from tests.problems import Case, cases, exact, exact_objective, optimum, require_proof
from tests.settings import settings_of

RNG = np.random.default_rng(0)
X = RNG.standard_normal((120, 4)) * [1.0, 0.3, 3.0, 1.0]
Y = np.where(X[:, 0] + 0.5 * RNG.standard_normal(120) > 0, 1, -1)
SOURCE = MemorySource(X, Y, intercept_scaling=1.0)


def kept(tol: float, **options: Any) -> Settings:
    """Settings of a path that keeps its dual points."""
    return settings_of(tol=tol, keep_alpha=True, **options)


def upper_bound(case: Case) -> Fraction:
    """An upper bound on the optimum, the optimum itself if it is found."""
    found = exact_optimum(case)
    if found is not None:
        return exact_objective(case, found.w)
    return Fraction(10**9) if case.free_intercept else exact(optimum(case)[1])


@settings(max_examples=30)
@given(
    cases(losses=tuple(LOSSES), free_intercepts=True),
    st.sampled_from(["auto", "dcd", "working-set", "newton"]),
    st.floats(0, 1),
)
def test_every_C_has_a_model_of_the_accuracy(case: Case, solver: str, share: float) -> None:
    labels = case.labels.copy()
    if abs(labels.sum()) == len(labels):
        labels[0] = -labels[0]
        if len(labels) == 1:
            return
    case = case._replace(labels=labels)
    signed = labels * case.row_weights()
    if not signed.min() < 0 < signed.max():
        case = case._replace(weights=None)
    rho = case.intercept_scaling
    source = MemorySource(case.matrix(), labels, case.weights, intercept_scaling=rho)
    tol, low, high = 0.05, 0.01, 50.0
    kind = {"loss": case.loss, "penalize_intercept": case.penalize_intercept}
    trace = trace_path(source, kept(tol, solver=solver, max_iter=5000, **kind), (low, high))
    if case.free_intercept and solver in ("dcd", "working-set"):
        # Their multipliers converge slowly if the constant column is low.
        assume(all(knot.gap <= tol for knot in trace.knots))
    assert trace.worst_gap <= tol
    C = min(max(low * (high / low) ** share, low), high)
    between = case._replace(C=C)
    (certificate,) = trace.certificates(C)
    (result,) = trace.at(C, source)
    assert certificate.proved_gap <= tol
    J = exact_objective(between, result.w)
    assert exact(certificate.primal) + exact(certificate.primal_rounding) >= J
    assert abs(J - exact(result.certificate.primal)) <= exact(result.certificate.primal_rounding)
    for proof in (certificate, result.certificate):
        assert exact(proof.dual) - exact(proof.dual_rounding) <= upper_bound(between)
    assert result.certificate.met
    # Whoever has alpha finds the same L.
    require_proof(between, result)
    assert result.certificate.dual >= certificate.dual


def test_a_range_takes_few_fits_and_warm_starts() -> None:
    trace = trace_path(SOURCE, Settings(solver="working-set", tol=0.01), (1e-3, 10.0))
    assert trace.worst_gap <= 0.01
    assert trace.Cs == sorted(trace.Cs)
    assert len(trace.knots) < 25
    tight = Settings(solver="working-set", tol=0.0025)
    cold = sum(fit_classes(SOURCE, tight.at(C))[0].passes for C in trace.Cs)
    assert sum(knot.results[0].passes for knot in trace.knots) < 0.7 * cold


def test_fits_that_miss_the_accuracy_prove_nothing_about_it() -> None:
    trace = trace_path(SOURCE, Settings(tol=1e-6, solver="sgd-s", max_iter=2), (0.1, 10.0))
    # No fit was added to a chord whose ends are not good enough.
    assert len(trace.knots) == 3
    assert trace.worst_gap > 1e-6
    # Not even at the lowest C.
    assert trace.proved_up_to == 0.0
    for C in np.geomspace(0.1, 10.0, 17)[1:-1]:
        (certificate,) = trace.certificates(float(C))
        assert not certificate.met
        exactly = settings_of(C=float(C), tol=1e-7, solver="newton")
        optimal = fit_classes(SOURCE, exactly)[0].certificate
        assert certificate.dual <= optimal.primal + optimal.primal_rounding


class Contradicting(MemorySource):
    """L exceeds J from C = 10 on, as of a stream that is not the same in each pass."""

    def finish(self, i: int, problem: Any, result: Result) -> Result:
        claim = result.certificate
        if claim.C < 10.0:
            return result
        return replace(result, certificate=replace(claim, dual=1.1 * claim.primal))


def test_a_contradiction_at_a_fit_proves_nothing() -> None:
    trace = trace_path(Contradicting(X, Y, intercept_scaling=1.0), Settings(), (1.0, 10.0))
    assert trace.knots[-1].gap == math.inf
    assert trace.worst_gap == math.inf
    assert trace.proved_up_to == 1.0


def test_each_class_has_the_weights_of_its_own_problem() -> None:
    y = np.random.default_rng(1).integers(0, 3, 120)
    source = MemorySource(X, y, class_weight={0: 1e-9, 2: 1e3}, intercept_scaling=1.0)
    settings = Settings(tol=0.1)
    trace = trace_path(source, settings, (0.1, 1.0), [0.1, 1.0])
    certificates = trace.certificates(0.5)
    for i, results in enumerate(zip(*(knot.results for knot in trace.knots), strict=True)):
        problem = source.problem(i, settings.objective)
        ends = [ChordEnd(r.certificate, r.w, r.vector) for r in results if r.vector]
        chord = Chord(*ends, weight_sum=problem.weight_sum, R=problem.R)
        assert certificates[i].primal == chord.primal(0.5)


def test_limits_and_callbacks_end_it() -> None:
    settings, told = Settings(tol=1e-4), []
    assert len(trace_path(SOURCE, settings, (0.01, 10.0), max_fits=5).knots) == 5

    def enough(progress: Any) -> bool:
        told.append(progress)
        return progress.n_fits == 6

    trace = trace_path(SOURCE, settings, (0.01, 10.0), callback=enough)
    assert [progress.n_fits for progress in told] == [1, 2, 3, 4, 5, 6]
    assert told[-1].proved_up_to <= 10.0
    assert trace.worst_gap == told[-1].worst_gap > 1e-4


def test_without_dual_points_nothing_is_proved_between() -> None:
    trace = trace_path(SOURCE, Settings(solver="pegasos", max_iter=1), (0.1, 1.0), [0.1, 1.0])
    assert trace.worst_gap == math.inf
    for ask in (trace.certificates, lambda C: trace.at(C, SOURCE)):
        with pytest.raises(ValueError, match="nothing is proved"):
            ask(0.5)


class Pressing(Observer):
    """Ctrl-C in a later fit: before its first pass, or after it."""

    def __init__(self, after: int, where: str) -> None:
        self.after, self.where, self.begun = after, where, 0

    def begin(self, i: int, label: Any, problem: Any) -> list[Any]:
        self.begun += 1

        def press(progress: Any) -> None:
            raise KeyboardInterrupt

        if self.begun <= self.after or self.where == "in the callback":
            return []
        if self.where == "in a first pass":
            raise KeyboardInterrupt
        return [press]


@pytest.mark.parametrize("after", [1, 6])
@pytest.mark.parametrize("where", ["in a first pass", "later", "in the callback"])
def test_an_interrupt_keeps_what_is_proved(after: int, where: str) -> None:
    def called(progress: Any) -> None:
        if where == "in the callback" and progress.n_fits == after:
            raise KeyboardInterrupt

    settings = Settings(tol=1e-3, solver="dcd", max_iter=5000, observers=[Pressing(after, where)])
    trace = trace_path(SOURCE, settings, (0.01, 10.0), callback=called)
    assert trace.interrupted
    assert len(trace.knots) == after
    assert 0.01 <= trace.proved_up_to <= trace.Cs[-1]
    assert all(c.proved_gap <= 1e-3 for C in trace.Cs for c in trace.certificates(C))
    assert (trace.worst_gap == math.inf) is (after < 4)
