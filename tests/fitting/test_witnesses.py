"""Witnesses: coarse dual points that prove what the certificates say."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from certsvm import Model, verify_model
from certsvm.data.streams import BlockStream
from certsvm.fitting.fit_classes import fit_classes
from certsvm.fitting.fit_model import fit_model
from certsvm.fitting.settings import Settings
from certsvm.fitting.sources import MemorySource, Source, StreamSource
from certsvm.fitting.witnesses import Witnesses, needs_alpha
from certsvm.models.witness import Witness
from certsvm.problem.memory import Problem
from certsvm.problem.streamed import StreamedProblem
from certsvm.solvers import Auto, Newton, SGDs, SmoothedNewton


def test_witnesses_of_several_problems_are_joined() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((90, 4)), np.arange(90) % 3
    source, witnesses = MemorySource(X, y), Witnesses()
    settings = Settings(C=0.1, solver="dcd", keep_alpha=True)
    results = fit_classes(source, settings, finish=witnesses.take)
    joined = witnesses.joined(3)
    assert isinstance(joined, Witness)
    for i, result in enumerate(results):
        assert f"kept in {joined.bits} bits" in result.certificate.bound or joined.bits > 8
        alpha = joined.alpha(i, np.full(90, 0.1))
        v = X.T @ (np.where(y == i, 1.0, -1.0) * alpha)
        assert alpha.sum() - 0.5 * v @ v == pytest.approx(result.certificate.dual, rel=1e-9)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("penalize_intercept", [True, False])
@pytest.mark.parametrize("solver", ["auto", "dcd", "smoothed-newton", "on a stream"])
@pytest.mark.parametrize("tol", [0.01, 1e-4])
def test_witnesses_prove_what_the_certificates_say(
    tmp_path: Path, loss: str, penalize_intercept: bool, solver: str, tol: float
) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((120, 4)) + 0.5
    y = np.digitize(X[:, 0] + rng.standard_normal(120), [-0.5, 1.0])
    source: Source = MemorySource(X, y, intercept_scaling=0.5)
    if solver == "on a stream":
        blocks = [(X[:50], y[:50]), (X[50:], y[50:])]
        source, solver = StreamSource(BlockStream(lambda: blocks, intercept_scaling=0.5)), "auto"
    settings = Settings(
        C=0.5, loss=loss, penalize_intercept=penalize_intercept, solver=solver, tol=tol
    )
    model = fit_model(source, settings, witness=True).model
    assert {c.loss for c in model.certificates} == {loss}
    assert {c.penalize_intercept for c in model.certificates} == {penalize_intercept}
    model.save(tmp_path / "model")
    report = verify_model(Model.load(tmp_path / "model", witness=True), [(X, y)])
    assert report.verdict == "confirmed", report
    assert all(c.met for c in model.certificates)


def test_without_all_there_is_none() -> None:
    assert Witnesses().joined(2) is None


def test_who_needs_a_number_for_each_row() -> None:
    assert needs_alpha(Newton(), Problem, 10)
    assert not needs_alpha(Newton(), StreamedProblem, 10)
    assert not needs_alpha(SmoothedNewton(), Problem, 10)
    assert not needs_alpha(Auto(), StreamedProblem, 10)
    assert needs_alpha(Auto(), StreamedProblem, 100_000)
    assert needs_alpha(SGDs(), StreamedProblem, 10)
    # What SGD does not minimise, auto leaves to Newton.
    assert not needs_alpha(Auto(), StreamedProblem, 100_000, hinge=False)
    assert needs_alpha(Auto(), Problem, 10, hinge=False)
