"""Witnesses: coarse dual points that prove what the certificates say."""

from __future__ import annotations

import numpy as np
import pytest

from certsvm.fitting.fit_classes import fit_classes
from certsvm.fitting.settings import Settings
from certsvm.fitting.sources import MemorySource
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


def test_without_all_there_is_none() -> None:
    assert Witnesses().joined(2) is None


def test_who_needs_a_number_for_each_row() -> None:
    assert needs_alpha(Newton(), Problem, 10)
    assert not needs_alpha(Newton(), StreamedProblem, 10)
    assert not needs_alpha(SmoothedNewton(), Problem, 10)
    assert not needs_alpha(Auto(), StreamedProblem, 10)
    assert needs_alpha(Auto(), StreamedProblem, 100_000)
    assert needs_alpha(SGDs(), StreamedProblem, 10)
