"""The search for C: bounds against fits of high accuracy, limits and interruptions."""

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from certsvm.fitting import cross_validation
from certsvm.fitting.cross_validation import CrossValidation
from certsvm.fitting.fit_classes import fit_classes
from certsvm.fitting.folds import Fold
from certsvm.fitting.sources import MemorySource
from certsvm.kernels.losses import LOSSES
from certsvm.training.settings import Settings
from certsvm.verification.optimum_intervals import radius
from tests.settings import settings_of

Array = NDArray[np.float64]


class Data:
    """Random rows with what makes trouble: duplicates, zeros, columns that few rows have."""

    def __init__(self, seed: int, n: int = 40, classes: int = 2, loss: str = "hinge") -> None:
        rng = self.rng = np.random.default_rng(seed)
        self.loss = loss
        d = int(rng.integers(1, 6))
        centres = rng.standard_normal((classes, d))
        self.y = rng.integers(0, classes, n)
        self.y[:classes] = self.y[classes : 2 * classes] = np.arange(classes)
        X = centres[self.y] + rng.standard_normal((n, d))
        X[rng.random(n) < 0.1] = 0.0
        X[n // 2 : n // 2 + 4] = X[:4]
        rare = np.zeros((n, 3))
        rare[rng.integers(0, n, 3), np.arange(3)] = 2.0
        self.X: Any = np.hstack([X, rare])
        if rng.random() < 0.5:
            self.X = sp.csr_matrix(self.X)
        self.weights = rng.choice([0.5, 1.0, 2.0], n) if rng.random() < 0.5 else None
        self.rho = float(rng.choice([0.0, 1.0]))
        self.class_weight = rng.choice(np.array([None, "balanced"], dtype=object))
        # The first rows, one of each class, are in every training set.
        part = rng.integers(0, 3, n)
        part[: 2 * classes] = -1
        self.splits = [(np.flatnonzero(part != k), np.flatnonzero(part == k)) for k in range(3)]
        self.splits = [(train, test) for train, test in self.splits if test.size]

    def source(self, rows: Any = slice(None)) -> MemorySource:
        weights = None if self.weights is None else self.weights[rows]
        return MemorySource(
            self.X[rows], self.y[rows], weights,
            class_weight=self.class_weight, intercept_scaling=self.rho,
        )  # fmt: skip

    def folds(self) -> list[Fold]:
        source = self.source()
        return [Fold(source, train, test, self.weights) for train, test in self.splits]

    def exact_error(self, C: float) -> tuple[float, float]:
        """The least and the largest error that the exact optimum at C can have.

        Each fold is trained on a copy of its rows, to 1e-10; a row counts as uncertain if its score
        is as near to the boundary as the optimum may still be.
        """
        lows, highs = [], []
        for train, test in self.splits:
            source = self.source(train)
            options = settings_of(C=C, tol=1e-10, max_iter=5000, loss=self.loss)
            results = fit_classes(source, options)
            X = self.X[test].toarray() if sp.issparse(self.X) else self.X[test]
            X = np.hstack([X, np.full((len(test), 1), self.rho)]) if self.rho else X
            scores = np.array([X @ r.w for r in results])
            reach = np.array([radius(r.certificate) for r in results])[:, None]
            reach = reach * np.linalg.norm(X, axis=1)
            truth = np.searchsorted(source.classes, self.y[test])
            if len(results) == 1:
                sign = np.where(truth == 1, 1.0, -1.0)
                right = np.where(reach[0] > 0, sign * scores[0] > reach[0], truth == 0)
                wrong = np.where(reach[0] > 0, sign * scores[0] < -reach[0], truth == 1)
            else:
                k, i = truth, np.arange(len(test))
                mine, at = scores[k, i], reach[k, i]
                others = np.where(np.arange(len(scores))[:, None] == k, -np.inf, scores - reach)
                wrong = (others > mine + at).any(axis=0)
                others = np.where(np.arange(len(scores))[:, None] == k, -np.inf, scores + reach)
                right = (others < mine - at).all(axis=0)
            weights = np.ones(len(test)) if self.weights is None else self.weights[test]
            lows.append(weights[wrong].sum() / weights.sum())
            highs.append(1 - weights[right].sum() / weights.sum())
        return float(np.mean(lows)), float(np.mean(highs))


@settings(max_examples=25)
@given(
    st.integers(0, 10**6),
    st.sampled_from([2, 3]),
    st.sampled_from([1, 20, 1000]),
    st.sampled_from(list(LOSSES)),
)
def test_the_band_contains_the_errors(seed: int, classes: int, max_iter: int, loss: str) -> None:
    data = Data(seed, classes=classes, loss=loss)
    options = settings_of(max_iter=max_iter, loss=loss)
    search = CrossValidation(data.folds(), options, certify=0.05, max_fits=8)
    curve = search.run([0.01, 0.1, 1.0]).curve
    assert curve.edges[0] == 0.01
    assert curve.edges[-1] == 1.0
    assert (np.diff(curve.edges) > 0).all()
    for C in 10.0 ** data.rng.uniform(-2, 0, 6):
        low, high = data.exact_error(float(C))
        p = np.searchsorted(curve.edges, C) - 1
        assert curve.lower[p] <= high + 1e-12
        assert low <= curve.upper[p] + 1e-12
    for value in search.values.values():
        assert value.low <= value.error + 1e-12
        assert value.error <= value.high + 1e-12


@pytest.mark.parametrize(
    ("seed", "classes", "loss"), [(1, 2, "hinge"), (3, 3, "hinge"), (1, 2, "squared_hinge")]
)
def test_a_certified_choice_holds_against_a_dense_grid(seed: int, classes: int, loss: str) -> None:
    data = Data(seed, n=150, classes=classes, loss=loss)
    search = CrossValidation(data.folds(), settings_of(loss=loss), certify=0.04)
    curve = search.run([0.01, 0.1, 1.0]).curve
    assert search.certified
    assert curve.bound > 0.0
    grid = [data.exact_error(float(C)) for C in np.geomspace(0.01, 1.0, 60)]
    assert min(high for _, high in grid) >= curve.bound
    # The bound is close to what there is, too.
    assert min(low for low, _ in grid) - 0.04 <= curve.bound + 1e-9
    chosen = data.exact_error(search.best.C)
    assert chosen[0] <= min(high for _, high in grid) + 0.04


def test_a_free_intercept_has_errors_without_bounds() -> None:
    data = Data(7, n=120)
    data.rho = 1.0
    free = settings_of(penalize_intercept=False)
    with pytest.raises(ValueError, match="the intercept is free"):
        CrossValidation(data.folds(), free, certify=0.1)
    search = CrossValidation(data.folds(), free).run([0.01, 0.1, 1.0])
    assert sorted(search.values) == [0.01, 0.1, 1.0]
    assert all(fit.met for value in search.values.values() for fit in value.folds)
    # Without an intercept there is none that could be free.
    data.rho = 0.0
    search = CrossValidation(data.folds(), free, certify=0.2).run([0.1, 1.0])
    assert search.certified


class Interrupt:
    """A callback that presses Ctrl-C at the n-th value."""

    def __init__(self, n: int) -> None:
        self.n, self.calls = n, 0

    def __call__(self, search: CrossValidation) -> None:
        self.calls += 1
        if self.calls == self.n:
            raise KeyboardInterrupt


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("n", [2, 5])
def test_an_interruption_keeps_proofs(monkeypatch: pytest.MonkeyPatch, n_jobs: int, n: int) -> None:
    monkeypatch.setattr(cross_validation, "_WORTH_IT", 0)
    data = Data(7, n=200)
    settings, press = Settings(n_jobs=n_jobs), Interrupt(n)
    search = CrossValidation(data.folds(), settings, certify=1e-3, callback=press)
    curve = search.run([0.01, 0.1, 1.0]).curve
    assert search.reason == "interrupted"
    assert not search.certified
    assert len(search.values) == n
    assert (curve.edges[0], curve.edges[-1]) == (0.01, 1.0)
    if len(search.values) == 2:
        # The end of the range was not reached.
        assert curve.bound == 0.0
    for C in np.geomspace(0.01, 1.0, 7):
        low, high = data.exact_error(float(C))
        p = max(0, int(np.searchsorted(curve.edges, C)) - 1)
        assert curve.lower[p] <= high + 1e-12
        assert low <= curve.upper[p] + 1e-12


def test_limits_end_the_search() -> None:
    folds, Cs = Data(7, n=200).folds(), [0.01, 0.02, 0.1, 0.2, 1.0]
    search = CrossValidation(folds, Settings(), certify=1e-4, max_fits=7).run(Cs)
    assert (len(search.values), search.reason) == (7, "max_fits reached")
    search = CrossValidation(folds, Settings(), certify=1e-4, max_fits=2).run(Cs)
    assert list(search.values) == [0.01, 1.0]
    assert search.curve.edges[[0, -1]].tolist() == [0.01, 1.0]
    for certify in (None, 0.1):
        search = CrossValidation(folds, Settings(max_time=0.0), certify=certify).run([*Cs, 2.0])
        assert (list(search.values), search.reason) == ([0.01], "max_time reached")
        assert not search.certified
        assert search.bound == search.curve.bound == 0.0


def test_alpha_beyond_single_precision() -> None:
    """Rows are so short, and C so large, that alpha is up to 1e40."""
    data = Data(0)
    data.X, data.rho, data.class_weight = 1e-20 * data.X, 0.0, None
    settings = Settings(tol=1e-3, solver="dcd")
    search = CrossValidation(data.folds(), settings).run([1e39, 1e40])
    fits = [fold for value in search.values.values() for fold in value.folds]
    assert len(search.values) == 2
    assert all(fold.met for fold in fits)
