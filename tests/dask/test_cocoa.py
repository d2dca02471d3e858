"""CoCoA: rounds, states on the workers, and copies of alpha."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from distributed import Client
from sklearn.exceptions import ConvergenceWarning

import certsvm
import certsvm.dask.cocoa as cocoa_module
from certsvm.dask import LinearSVC
from certsvm.dask.cocoa import CocoaRun, GroupState, work
from certsvm.kernels.losses import HINGE
from certsvm.problem.rows import Part, Rows
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


def test_a_round_does_not_change_the_state_it_begins_with() -> None:
    rng = np.random.default_rng(0)
    parts = [Part(Rows(rng.standard_normal((n, 5))), rng.uniform(-2.0, 2.0, n)) for n in (30, 20)]
    start = GroupState([np.zeros(part.rows.n_rows) for part in parts])
    first: Any = work(parts, start, np.zeros(5), HINGE, 1.0, 1.0, 1, (0,))
    kept = [alpha.copy() for alpha in first.alphas]
    second = work(parts, first, first.sums.rows.w, HINGE, 1.0, 1.0, 5, (1,))
    assert isinstance(second, GroupState)
    for alpha, before in zip(first.alphas, kept, strict=True):
        np.testing.assert_array_equal(alpha, before)
