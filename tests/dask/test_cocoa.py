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
from certsvm.certificates.dual import RowSums, dual_bound
from certsvm.dask import Cocoa, LinearSVC
from certsvm.dask.blocks import load
from certsvm.dask.cluster import Group
from certsvm.dask.cocoa import AlphaOnWorkers, CocoaRun, GroupState, peak_along, work
from certsvm.dask.messages import packed
from certsvm.kernels.losses import HINGE, SQUARED_HINGE, box_end
from certsvm.problem.part import Part
from certsvm.solvers import Options
from tests.dask.problems import blocks, cluster_problem, cut, data


def test_limits_and_the_word_about_them(client: Client) -> None:
    X, y = data()
    clf = LinearSVC(10.0, tol=1e-9, solver=Cocoa(passes=1), max_iter=3, random_state=0)
    with pytest.warns(ConvergenceWarning, match="max_iter reached"):
        clf.fit(cut(X, 300), cut(y, 300))
    assert clf.n_iter_ == 3
    assert 0 < clf.certificate_.dual <= clf.certificate_.primal


def test_alpha_is_not_used_for_other_rows(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """When blocks are put into other groups while alpha is on the workers."""
    X, y, parts, labels = blocks()
    epoch = CocoaRun.epoch

    def moving(self: Any) -> Any:
        result = epoch(self)
        if self._rounds == 2:
            groups = self._problem.groups()
            members = [group.members for group in groups]
            self._problem._groups = [
                Group(group.worker, other)
                for group, other in zip(groups, members[::-1], strict=True)
            ]
        return result

    monkeypatch.setattr(CocoaRun, "epoch", moving)
    weights = np.random.default_rng(0).uniform(0.1, 2.0, y.size)
    edges = np.cumsum([len(part) for part in labels])[:-1]
    clf = LinearSVC(0.01, tol=1e-4, solver="cocoa", random_state=0, client=client)
    clf.fit(parts, labels, np.split(weights, edges))
    assert certsvm.verify(clf, X, y, sample_weight=weights).ok


def test_rounds_do_not_pile_up_on_the_scheduler(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cocoa_module, "_LONGEST_CHAIN", 3)
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
    groups = len(clf.traffic_ and client.scheduler_info()["workers"])
    assert len(counts) == 25
    assert max(counts[10:]) <= 12 * groups
    assert certsvm.verify(clf, X, y).ok


def group_inputs(seed: int) -> list[list[Any]]:
    """Two blocks of a group, as a worker gets them."""
    rng = np.random.default_rng(seed)
    inputs: list[list[Any]] = []
    for first, n_rows in ((0, 30), (30, 20)):
        X, signed = rng.standard_normal((n_rows, 4)), rng.uniform(-2.0, 2.0, n_rows)
        block = load(X, np.sign(signed), None, 0.5, 0)
        inputs.append([block, signed, block.digest, first])
    return inputs


@settings(deadline=None, max_examples=40)
@given(
    st.integers(0, 10**6), st.sampled_from([0.1, 1.0]), st.sampled_from([HINGE, SQUARED_HINGE])
)  # fmt: skip
def test_a_round_raises_the_dual_and_tells_true_sums(seed: int, C: float, loss: Any) -> None:
    inputs = group_inputs(seed)
    parts = [Part(block.rows, signed, first) for block, signed, _, first in inputs]
    before: GroupState | None = None
    w, last_dual = np.zeros(5), 0.0
    for number in range(3):
        state = work(inputs, before, packed(w), loss, C, 1.0, 2, (seed, number))
        sums = state.sums.row_sums
        scratch = [RowSums.of(p, a, loss, C) for p, a in zip(parts, state.alphas, strict=True)]
        expected = scratch[0] + scratch[1]
        np.testing.assert_allclose(sums.w, expected.w, rtol=1e-12, atol=1e-12)
        for part, alpha in zip(parts, state.alphas, strict=True):
            assert ((alpha >= 0.0) & (alpha <= box_end(loss, C, part.weights))).all()
        # Of all points on the line, J is what it is from scratch.
        steps = (0.0, *cocoa_module._STEPS) if before is not None else (0.0,)
        assert len(state.sums.losses) == len(steps)
        for step, losses in zip(steps, state.sums.losses, strict=True):
            at = w if before is None else (1.0 + step) * w - step * before.w
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


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 10**6), st.sampled_from([HINGE, SQUARED_HINGE]))
def test_the_dual_is_largest_at_its_peak(seed: int, loss: Any) -> None:
    """Along the change of a round, whatever its spread."""
    inputs, C = group_inputs(seed), 0.5
    parts = [Part(block.rows, signed, first) for block, signed, _, first in inputs]
    first = work(inputs, None, packed(np.zeros(5)), loss, C, 1.0, 1, (seed, 0))
    w = first.sums.row_sums.w
    second = work(inputs, first, packed(w), loss, C, 3.0, 1, (seed, 1))

    def dual(t: float) -> tuple[float, float, Any]:
        """L on the line, L without its term in |w|, and w."""
        alphas = [(1 - t) * a + t * b for a, b in zip(first.alphas, second.alphas, strict=True)]
        sums = [RowSums.of(p, np.abs(a), loss, C) for p, a in zip(parts, alphas, strict=True)]
        point = (sums[0] + sums[1]).point("")
        # Beyond the box |alpha| stands for alpha in the penalty only.
        value = sum(float(a.sum()) for a in alphas) - point.sums.penalty.value
        v = w + t * (second.sums.row_sums.w - w)
        return value - 0.5 * float(v @ v), value, v

    (_, before, _), (_, after, w_after) = dual(0.0), dual(1.0)
    peak = peak_along(w, w_after - w, after - before, second.sums.change_penalty)
    assert peak is not None
    best = dual(peak)[0]
    for t in (0.0, 1.0, 0.9 * peak, 1.1 * peak):
        assert dual(t)[0] <= best + 1e-9 * abs(best)
    assert peak_along(w, np.zeros(5), 0.0, 0.0) is None


def test_a_round_does_not_change_the_state_it_begins_with() -> None:
    inputs = group_inputs(0)
    first = work(inputs, None, packed(np.zeros(5)), HINGE, 1.0, 1.0, 1, (0,))
    kept = [alpha.copy() for alpha in first.alphas]
    second = work(inputs, first, packed(first.sums.row_sums.w), HINGE, 1.0, 1.0, 5, (1,))
    assert isinstance(second, GroupState)
    for alpha, before in zip(first.alphas, kept, strict=True):
        np.testing.assert_array_equal(alpha, before)
    with pytest.raises(ValueError, match="other rows"):
        work(inputs[:1], first, packed(np.zeros(5)), HINGE, 1.0, 1.0, 1, (0,))


def test_after_a_loss_points_know_the_copy_only(client: Client) -> None:
    """Or Dask would compute the lost states again, from the first round on."""
    _, _, parts, labels = blocks(400, count=3)
    problem = cluster_problem(client, parts, labels, C=0.1)
    run = Cocoa(passes=1).start(problem, Options(np.random.default_rng(0)))
    run.epoch()
    first = run.dual()
    run.epoch()
    second = run.dual()
    assert first is not None
    assert second is not None
    for point in (first, second):
        assert isinstance(point.response, AlphaOnWorkers)
        assert len(point.response.states) == len(problem.groups())
    run._fall_back()
    for point in (first, second):
        assert point.response.states == []
        assert point.response.copy is run._copy is not None
    # It goes on from the copy, which is not worse than the first point.
    run.epoch()
    third = run.dual()
    assert third is not None
    assert dual_bound(third)[0].value >= 0.99 * dual_bound(first)[0].value
    assert len(third.response.states) == len(problem.groups())


@pytest.mark.parametrize("passes", [0, -1])
def test_passes_must_be_positive(passes: int) -> None:
    with pytest.raises(ValueError, match="passes must be > 0"):
        Cocoa(passes=passes)
