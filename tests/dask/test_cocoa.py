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
from certsvm.dask.cocoa import CocoaRun, GroupState, beginning, peak_along, work
from certsvm.kernels.losses import HINGE, SQUARED_HINGE, box_end
from certsvm.problem.part import Part
from certsvm.problem.rows import Rows
from tests.dask.problems import blocks


def test_rounds_do_not_pile_up_on_the_scheduler(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cocoa_module, "_CHAIN", 3)
    monkeypatch.setattr(cocoa_module, "_COPYING", 1e9)
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
    return parts, beginning(parts, None, np.zeros(5))


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
        # Of all points on the line, J is what it is from scratch.
        for step, losses in zip((0.0, *cocoa_module._STEPS), state.sums.losses, strict=True):
            at = (1.0 + step) * w - step * before.w
            J = 0.5 * at @ at + C * sum(
                part.weights
                @ hinge_of(loss, part.labels * (part.rows.matrix @ at[:4] + 0.5 * at[4]))
                for part in parts
            )
            assert losses.primal(C, at, 0.0).value == pytest.approx(J, rel=1e-9)
        point = sums.point("")
        dual = float(point.sums.value - 0.5 * sums.w @ sums.w)
        assert dual >= last_dual - 1e-9 * abs(last_dual)
        before, w, last_dual = state, sums.w, dual


def hinge_of(loss: Any, margins: Any) -> Any:
    hinge = np.maximum(0.0, 1.0 - margins)
    return hinge**2 if loss == SQUARED_HINGE else hinge


@settings(deadline=None, max_examples=15)
@given(st.integers(0, 10**6), st.sampled_from([HINGE, SQUARED_HINGE]))
def test_the_dual_is_largest_at_its_peak(seed: int, loss: Any) -> None:
    """Along the change of a round, whatever its spread."""
    (parts, start), C = group(seed), 0.5
    first: Any = work(parts, start, np.zeros(5), loss, C, 1.0, 1, (seed, 0))
    w = first.sums.rows.w
    second: Any = work(parts, first, w, loss, C, 3.0, 1, (seed, 1))

    def dual(t: float) -> tuple[float, float, Any]:
        """L on the line, L without its term in |w|, and w."""
        alphas = [(1 - t) * a + t * b for a, b in zip(first.alphas, second.alphas, strict=True)]
        sums = [RowSums.of(p, np.abs(a), loss, C) for p, a in zip(parts, alphas, strict=True)]
        point = (sums[0] + sums[1]).point("")
        # Beyond the box |alpha| stands for alpha in the penalty only.
        value = sum(float(a.sum()) for a in alphas) - point.sums.penalty.value
        v = w + t * (second.sums.rows.w - w)
        return value - 0.5 * float(v @ v), value, v

    (_, before, _), (_, after, w_after) = dual(0.0), dual(1.0)
    peak = peak_along(w, w_after - w, after - before, second.sums.change_penalty)
    assert peak is not None
    best = dual(peak)[0]
    for t in (0.0, 1.0, 0.9 * peak, 1.1 * peak):
        assert dual(t)[0] <= best + 1e-9 * abs(best)
    assert peak_along(w, np.zeros(5), 0.0, 0.0) is None


def test_a_round_does_not_change_the_state_it_begins_with() -> None:
    parts, start = group(0)
    first: Any = work(parts, start, np.zeros(5), HINGE, 1.0, 1.0, 1, (0,))
    kept = [alpha.copy() for alpha in first.alphas]
    second = work(parts, first, first.sums.rows.w, HINGE, 1.0, 1.0, 5, (1,))
    assert isinstance(second, GroupState)
    for alpha, before in zip(first.alphas, kept, strict=True):
        np.testing.assert_array_equal(alpha, before)
