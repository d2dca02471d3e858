"""Tracing the path of solutions over C."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from certsvm.fitting.fit_classes import fit_classes
from certsvm.fitting.path import SHARE_OF_FITS, Knot, Trace, scaled_starts, trace_range
from certsvm.fitting.settings import Settings
from certsvm.fitting.sources import MemorySource
from certsvm.kernels.losses import LOSSES
from certsvm.solvers import Start
from certsvm.training.result import INTERRUPTED, Result
from tests.exact import exact_optimum
from tests.problems import Case, cases, exact, exact_objective, optimum, require_proof

RNG = np.random.default_rng(0)
X = RNG.standard_normal((120, 4)) * [1.0, 0.3, 3.0, 1.0]
Y = np.where(X[:, 0] + 0.5 * RNG.standard_normal(120) > 0, 1, -1)
SOURCE = MemorySource(X, Y, intercept_scaling=1.0)


def fits(source: MemorySource, tol: float, **options: Any) -> Any:
    """Fits to the accuracy that tracing to ``tol`` needs."""

    def fit(C: float, start: Sequence[Start] | None) -> list[Result]:
        chosen = Settings(
            C=C, tol=SHARE_OF_FITS * tol, keep_alpha=True, keep_vector=True, **options
        )
        return fit_classes(source, chosen, start=start)

    return fit


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
    if case.weights is not None and not (
        (case.weights * (labels > 0)).any() and (case.weights * (labels < 0)).any()
    ):
        case = case._replace(weights=None)
    source = MemorySource(
        case.matrix(), labels, case.weights, intercept_scaling=case.intercept_scaling
    )
    tol, low, high = 0.05, 0.01, 50.0
    kind = {"loss": case.loss, "penalize_intercept": case.penalize_intercept}
    trace = trace_range(
        fits(source, tol, solver=solver, max_iter=5000, **kind), source, (low, high), tol,
        objective=Settings(**kind).objective, keep_alpha=True,
    )  # fmt: skip
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
    passes = []
    fit = fits(SOURCE, 0.01, solver="working-set")

    def counted(C: float, start: Any) -> list[Result]:
        results = fit(C, start)
        passes.append((C, results[0].passes))
        return results

    trace = trace_range(counted, SOURCE, (1e-3, 10.0), 0.01)
    assert trace.worst_gap <= 0.01
    assert trace.Cs == sorted(C for C, _ in passes)
    assert len(passes) < 25
    cold = sum(fit(C, None)[0].passes for C, _ in passes)
    assert sum(n for _, n in passes) < 0.7 * cold


def test_fits_that_miss_the_accuracy_prove_nothing_about_it() -> None:
    trace = trace_range(fits(SOURCE, 1e-6, solver="sgd-s", max_iter=2), SOURCE, (0.1, 10.0), 1e-6)
    # No fit was added to a chord whose ends are not good enough.
    assert len(trace.knots) == 3
    assert trace.worst_gap > 1e-6
    # Not even at the lowest C.
    assert trace.proved_up_to == 0.0
    for C in np.geomspace(0.1, 10.0, 17)[1:-1]:
        (certificate,) = trace.certificates(float(C))
        assert not certificate.met
        optimal = fits(SOURCE, 1e-7, solver="newton")(float(C), None)[0].certificate
        assert certificate.dual <= optimal.primal + optimal.primal_rounding


def test_a_contradiction_at_a_fit_proves_nothing() -> None:
    """L exceeds J, as of a stream that is not the same in each pass."""
    fit = fits(SOURCE, 0.01)

    def contradicting(C: float, start: Any) -> list[Result]:
        results = fit(C, start)
        if C < 10.0:
            return results
        return [
            replace(r, certificate=replace(r.certificate, dual=1.1 * r.certificate.primal))
            for r in results
        ]

    trace = trace_range(contradicting, SOURCE, (1.0, 10.0), 0.01)
    assert trace.knots[-1].gap == math.inf
    assert trace.worst_gap == math.inf
    assert trace.proved_up_to == 1.0


def test_limits_and_callbacks_end_it() -> None:
    fit = fits(SOURCE, 1e-4)
    told = []
    assert len(trace_range(fit, SOURCE, (0.01, 10.0), 1e-4, max_fits=5).knots) == 5

    def enough(progress: Any) -> bool:
        told.append(progress)
        return progress.n_fits == 6

    trace = trace_range(fit, SOURCE, (0.01, 10.0), 1e-4, callback=enough)
    assert [progress.n_fits for progress in told] == [1, 2, 3, 4, 5, 6]
    assert len(trace.knots) == 6
    assert told[-1].proved_up_to <= 10.0
    assert trace.worst_gap == told[-1].worst_gap > 1e-4


@pytest.mark.parametrize("after", [1, 3, 6])
@pytest.mark.parametrize("raised", [False, True])
def test_an_interrupt_keeps_what_is_proved(after: int, raised: bool) -> None:
    fit, done = fits(SOURCE, 1e-3), []

    def interrupted(C: float, start: Any) -> list[Result]:
        done.append(C)
        if len(done) <= after:
            return fit(C, start)
        if raised:
            raise KeyboardInterrupt
        partly = fit_classes(SOURCE, Settings(C=C, solver="sgd-s", max_iter=1, keep_vector=True))
        return [replace(result, reason=INTERRUPTED) for result in partly]

    trace = trace_range(interrupted, SOURCE, (0.01, 10.0), 1e-3)
    assert len(trace.knots) == after
    assert len(done) == after + 1
    assert 0.01 <= trace.proved_up_to <= trace.Cs[-1]
    if after < 4:
        assert trace.worst_gap == math.inf


@pytest.mark.parametrize("moment", ["callback", "chord", "start"])
def test_an_interrupt_between_fits_keeps_them(monkeypatch: pytest.MonkeyPatch, moment: str) -> None:
    calls = 0

    def interrupt(*args: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == 2:
            raise KeyboardInterrupt
        return original(*args)

    original: Any = lambda *args: None  # noqa: E731
    if moment == "chord":
        original = Trace._chord
        monkeypatch.setattr(Trace, "_chord", interrupt)
    elif moment == "start":
        original = scaled_starts
        monkeypatch.setattr("certsvm.fitting.path.scaled_starts", interrupt)
    callback = interrupt if moment == "callback" else None
    trace = trace_range(fits(SOURCE, 1e-4), SOURCE, (0.01, 10.0), 1e-4, callback=callback)
    assert len(trace.knots) == len(trace._chords) + 1 == 2
    assert trace.worst_gap == math.inf
    assert all(certificate.gap <= 1e-4 for C in trace.Cs for certificate in trace.certificates(C))


def test_an_interrupt_of_the_first_fit_is_raised() -> None:
    def interrupted(C: float, start: Any) -> list[Result]:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        trace_range(interrupted, SOURCE, (0.01, 10.0), 1e-3)


def test_dual_points_are_dropped_when_they_are_no_longer_needed() -> None:
    kept = trace_range(fits(SOURCE, 0.01), SOURCE, (0.1, 1.0), 0.01, keep_alpha=True)
    assert all(knot.results[0].alpha is not None for knot in kept.knots)
    (result,) = kept.at(0.2345, SOURCE)
    assert result.alpha is not None
    assert (result.alpha <= 0.2345).all()
    light = trace_range(fits(SOURCE, 0.01), SOURCE, (0.1, 1.0), 0.01)
    assert all(knot.results[0].alpha is None for knot in light.knots)
    assert light.at(0.2345, SOURCE)[0].alpha is None


def test_where_there_is_nothing() -> None:
    trace = Trace(SOURCE, (0.1, 1.0), 0.01)
    assert trace.worst_gap == math.inf
    with pytest.raises(ValueError, match="outside the path, which is empty"):
        trace.find(0.5)
    trace.add(Knot(0.1, fits(SOURCE, 0.01)(0.1, None)))
    with pytest.raises(ValueError, match=r"from 0\.1 to 0\.1"):
        trace.find(0.5)
    # Without a dual vector there is no chord.
    results = fits(SOURCE, 0.01)(1.0, None)
    trace.add(Knot(1.0, [replace(result, vector=None) for result in results]))
    with pytest.raises(ValueError, match="nothing is proved"):
        trace.certificates(0.5)
    with pytest.raises(ValueError, match="nothing is proved"):
        trace.at(0.5, SOURCE)


def test_starts_stay_in_the_box() -> None:
    results = fits(SOURCE, 0.01, solver="dcd")(1.0, None)
    (start,) = scaled_starts(SOURCE, results, 0.25)
    assert start.alpha is not None
    np.testing.assert_allclose(start.alpha, 0.25 * results[0].alpha)
