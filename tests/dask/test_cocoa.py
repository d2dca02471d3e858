"""CoCoA: rounds, states on the workers, and copies of alpha."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from distributed import Client
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning

import certsvm
import certsvm.dask.cocoa as cocoa_module
from certsvm.certificates.dual import RowSums
from certsvm.dask import LinearSVC
from certsvm.dask.cocoa import CocoaRun, GroupState, work
from certsvm.kernels.losses import HINGE, SQUARED_HINGE, box_end
from certsvm.problem.part import Part
from certsvm.problem.rows import Rows
from tests.dask.problems import blocks


def test_rounds_do_not_pile_up_on_the_scheduler(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cocoa_module, "_CHAIN", 3)
    epoch, counts = CocoaRun.epoch, []

    def count(dask_scheduler: Any) -> int:
        return sum(1 for key in dask_scheduler.tasks if "cocoa-round" in str(key))

    def counting(self: Any) -> Any:
        result = epoch(self)
        counts.append(client.run_on_scheduler(count))
        return result

    monkeypatch.setattr(CocoaRun, "epoch", counting)
    X, y, parts, labels = blocks()
    clf = LinearSVC(1.0, tol=1e-9, max_iter=25, solver="cocoa", random_state=0, client=client)
    with pytest.warns(ConvergenceWarning):
        clf.fit(parts, labels)
    groups = len(client.scheduler_info()["workers"])
    assert len(counts) == 25
    assert max(counts[10:]) <= 12 * groups
    assert certsvm.verify(clf, X, y).ok


def group(seed: int) -> tuple[list[Part], GroupState]:
    """Two parts of a group, as a worker gets them, and where they begin."""
    rng = np.random.default_rng(seed)
    rows = [Rows(rng.standard_normal((n, 4)), intercept_scaling=0.5) for n in (30, 20)]
    parts = [Part(part, rng.uniform(-2.0, 2.0, part.n_rows)) for part in rows]
    return parts, GroupState([np.zeros(part.rows.n_rows) for part in parts])


@settings(deadline=None, max_examples=20)
@given(
    st.integers(0, 10**6), st.sampled_from([0.1, 1.0]), st.sampled_from([HINGE, SQUARED_HINGE])
)  # fmt: skip
def test_a_round_raises_the_dual_and_tells_true_sums(seed: int, C: float, loss: Any) -> None:
    parts, before = group(seed)
    w, last_dual = np.zeros(5), 0.0
    for number in range(3):
        state = work(parts, before, w, loss, C, 1.0, 2, (seed, number))
        assert state.sums is not None
        sums = state.sums.rows
        scratch = [RowSums.of(p, a, loss, C) for p, a in zip(parts, state.alphas, strict=True)]
        expected = scratch[0] + scratch[1]
        np.testing.assert_allclose(sums.w, expected.w, rtol=1e-12, atol=1e-12)
        for part, alpha in zip(parts, state.alphas, strict=True):
            assert ((alpha >= 0.0) & (alpha <= box_end(loss, C, part.weights))).all()
        J = 0.5 * w @ w + C * sum(
            part.weights @ hinge_of(loss, part.labels * (part.rows.matrix @ w[:4] + 0.5 * w[4]))
            for part in parts
        )
        assert state.sums.losses.primal(C, w, 0.0).value == pytest.approx(J, rel=1e-9)
        point = sums.point("")
        dual = float(point.sums.value - 0.5 * sums.w @ sums.w)
        assert dual >= last_dual - 1e-9 * abs(last_dual)
        before, w, last_dual = state, sums.w, dual


def hinge_of(loss: Any, margins: Any) -> Any:
    hinge = np.maximum(0.0, 1.0 - margins)
    return hinge**2 if loss == SQUARED_HINGE else hinge


def test_a_round_does_not_change_the_state_it_begins_with() -> None:
    parts, start = group(0)
    first: Any = work(parts, start, np.zeros(5), HINGE, 1.0, 1.0, 1, (0,))
    kept = [alpha.copy() for alpha in first.alphas]
    second = work(parts, first, first.sums.rows.w, HINGE, 1.0, 1.0, 5, (1,))
    assert isinstance(second, GroupState)
    for alpha, before in zip(first.alphas, kept, strict=True):
        np.testing.assert_array_equal(alpha, before)
