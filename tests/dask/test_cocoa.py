"""CoCoA: rounds, states on the workers, and copies of alpha."""

import copy
from typing import Any

import numpy as np
import pytest
from distributed import Client
from sklearn.exceptions import ConvergenceWarning

import certsvm
import certsvm.dask.cocoa as cocoa_module
from certsvm.certificates.dual import sum_of_part
from certsvm.dask import Cocoa, LinearSVC
from certsvm.dask.cocoa import CocoaRun, solve, sweep_group
from certsvm.kernels.losses import HINGE
from certsvm.problem.rows import Part, Rows
from tests.dask.problems import blocks, cut


def test_rounds_do_not_pile_up(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cocoa_module, "_CHAIN", 3)
    epoch, counts = CocoaRun.epoch, []

    def count(dask_scheduler: Any) -> int:
        return sum(1 for key in dask_scheduler.tasks if "certsvm-sweep" in str(key))

    def counting(self: Any) -> Any:
        result = epoch(self)
        counts.append(client.run_on_scheduler(count))
        return result

    monkeypatch.setattr(CocoaRun, "epoch", counting)
    X, y, parts, labels = blocks()
    clf = LinearSVC(1.0, tol=0.0, max_iter=25, solver="cocoa", random_state=0, client=client)
    with pytest.warns(ConvergenceWarning):
        clf.fit(parts, labels)
    groups = len(client.scheduler_info()["workers"])
    assert len(counts) == 25
    assert max(counts[10:]) <= 12 * groups
    assert certsvm.verify(clf, X, y).ok


def test_a_round_does_not_change_what_it_begins_with() -> None:
    rng = np.random.default_rng(0)
    parts = [Part(Rows(rng.standard_normal((n, 5))), rng.uniform(-2.0, 2.0, n)) for n in (30, 20)]
    before = [np.zeros(part.rows.n_rows) for part in parts]
    swept: Any = sweep_group(parts, before, np.zeros(5), HINGE, 1.0, 1.0, 1, 1.0, (0,))
    kept = copy.deepcopy(swept)
    solved = solve([swept.rest], [swept.gathered], 0.0, HINGE, 1.0, 5, 1e9, (1,))
    merged, of_rows = swept.merged(solved, 0), solved[1]
    sweep_group(parts, merged, of_rows.w, HINGE, 1.0, 1.0, 5, 1.0, (2,))
    for alpha, as_it_was, zeros in zip(swept.alphas, kept.alphas, before, strict=True):
        np.testing.assert_array_equal(alpha, as_it_was)
        assert not zeros.any()
    for (*_, alpha), (*_, as_it_was) in zip(swept.gathered, kept.gathered, strict=True):
        np.testing.assert_array_equal(alpha, as_it_was)
    # And the sums are those of the alpha that the group keeps.
    w = sum(sum_of_part(part, alpha)[0] for part, alpha in zip(parts, merged, strict=True))
    np.testing.assert_allclose(of_rows.w, w, rtol=1e-12, atol=1e-12)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("cache", [None, 0.1, 0.0])
def test_what_is_proved_holds_in_exact_arithmetic(client: Client, loss: str, cache: Any) -> None:
    rng = np.random.default_rng(3)
    for C in (1e-2, 100.0):
        X = rng.standard_normal((90, 7)) * (rng.random((90, 7)) < 0.5)
        y = (X[:, 0] + 0.3 * rng.standard_normal(90) > 0).astype(int)
        weights = rng.integers(0, 3, 90)
        how: Any = {"tol": 0.05, "max_iter": 8, "store_dual": True, "random_state": 0}
        clf = LinearSVC(C, loss=loss, solver=Cocoa(cache=cache), **how)
        clf.fit(cut(X, 20, 21), cut(y, 20, 21), cut(weights, 20, 21))
        (check,) = certsvm.verify(clf, X, y, sample_weight=weights, exact=True)
        assert check.verdict == "confirmed"
        assert check.dual_verified
        assert clf.certificate_.dual > 0.0


def test_cocoa_follows_newton_that_stalls(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """The classes are separable, and C is large."""
    monkeypatch.setattr(cocoa_module, "_ROWS_PER_COLUMN", 1)
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((120, 60)), (rng.random(120) < 0.2).astype(int)
    clf = LinearSVC(1e4, random_state=0).fit(cut(X, 50), cut(y, 50))
    assert clf.certificate_.met
    assert clf.solver_ == "smoothed-newton, then cocoa"
