"""Classes that are trained together: bounds in exact arithmetic, and the same optimum as alone."""

from typing import Any
from unittest import mock

import numpy as np
import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st

import certsvm.torch.batch as batch_module
import certsvm.torch.rounds as rounds_module
import certsvm.torch.rows as rows_module
import certsvm.torch.source as source_module
from certsvm import LinearSVC, LinearSVCCV
from certsvm.fitting.fit_classes import fit_classes
from certsvm.kernels.losses import HINGE, SQUARED_HINGE
from certsvm.problem.base import Objective
from certsvm.torch import TensorSource
from certsvm.training.settings import Settings
from tests.problems import Case, cases
from tests.torch.problems import DEVICE, DTYPES, agrees, device, host, in_tensors
from tests.torch.test_objectives import require_true_bounds


@given(
    case=cases(),
    n_classes=st.sampled_from([2, 3, 4, 10]),
    loss=st.sampled_from([HINGE, SQUARED_HINGE]),
    dtype=st.sampled_from(sorted(DTYPES)),
    class_weight=st.sampled_from([None, "balanced"]),
    tile=st.sampled_from([16, 2**19]),
    tol=st.sampled_from([0.0, 1e-2]),
    passes=st.integers(1, 3),
    seed=st.integers(0, 2**32 - 1),
)
def test_bounds_are_true(
    case: Case, n_classes: int, loss: Any, dtype: str, class_weight: Any, tile: int, tol: float,
    passes: int, seed: int,
) -> None:  # fmt: skip
    case, X = in_tensors(case, dtype)
    codes = np.random.default_rng(seed).integers(n_classes, size=len(X))
    assume(len(set(codes[case.row_weights() > 0])) > 1)
    # With two classes, either may have a factor, which needs no test of its own.
    class_weight = None if len(set(codes)) == 2 else class_weight
    settings = Settings(
        Objective(case.C, loss), tol=tol, max_iter=passes, seed=seed, keep_alpha=True
    )
    with (
        mock.patch.object(source_module, "_FEWEST", 1),
        mock.patch.dict(rounds_module._TILE, {DEVICE: 64 * tile}),
        mock.patch.dict(batch_module._TILE, {DEVICE: tile}),
    ):
        source = TensorSource(
            X, codes, case.weights, class_weight=class_weight,
            intercept_scaling=case.intercept_scaling,
        )  # fmt: skip
        results = fit_classes(source, settings)
    for i, result in enumerate(results):
        labels = np.where(codes == source.classes[source.positive[i]], 1.0, -1.0)
        factors = source.factors_in(i)[np.searchsorted(source.classes, codes)]
        alone = case._replace(labels=labels, weights=factors * case.row_weights())
        require_true_bounds(alone, settings.objective, result)


def clustered(rows: int, columns: int, classes: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    y = rng.integers(classes, size=rows)
    X = rng.standard_normal((classes, columns))[y] + rng.standard_normal((rows, columns))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    y[: rows // 50] = rng.integers(classes, size=rows // 50)
    return X.astype(np.float32), y


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("dtype", ["float16", "float64"])
@pytest.mark.parametrize("tol", [1e-2, 1e-6])
def test_the_optimum_is_that_of_arrays(
    monkeypatch: pytest.MonkeyPatch, loss: str, dtype: str, tol: float
) -> None:
    """From samples as well, and to an accuracy beyond that of the rounds."""
    monkeypatch.setattr(batch_module, "_WORTH_SAMPLING", {DEVICE: 1e4})
    X, y = clustered(2000, 10, 7)
    given = device(X).to(DTYPES[dtype])
    weights = np.random.default_rng(1).uniform(0.0, 2.0, len(y))
    clf = LinearSVC(0.7, loss=loss, tol=tol, class_weight="balanced", intercept_scaling=0.5)
    agrees(clf.fit(given, device(y), weights), host(given), y, weights)


@pytest.mark.parametrize("scale", [1e-9, 1e9])
def test_rows_of_any_length(scale: float) -> None:
    X, y = clustered(500, 10, 4)
    given = scale * device(X).double()
    clf = LinearSVC(scale**-2.0, tol=1e-3, fit_intercept=False).fit(given, y)
    agrees(clf, host(given), y)


def test_classes_share_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = clustered(2000, 28, 12)
    read: list[int] = []
    product = rounds_module.product

    def counted(A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        read.append(len(A))
        return product(A, B)

    monkeypatch.setattr(rounds_module, "product", counted)
    for room, most in ((2**40, 12), (4 * 2000 / source_module._MASKS, 4)):
        read.clear()
        monkeypatch.setattr(source_module, "free_memory", lambda device, room=room: room)
        agrees(LinearSVC(tol=1e-2).fit(device(X), y), X, y)
        # Or the Gram matrix, perhaps padded. In half precision, W is multiplied in two pieces.
        assert max(n for n in read if n not in (29, 32)) == most * (2 if DEVICE == "cuda" else 1)


def test_rows_that_stay_on_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows_module, "free_memory", lambda device: 0)
    monkeypatch.setattr(batch_module, "_WORTH_SAMPLING", {DEVICE: 1e4})
    X, y = clustered(3000, 10, 4)
    agrees(LinearSVC(tol=1e-2).fit(device(X), y), X, y)


@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_cross_validation_is_that_of_arrays(classes: int, weighted: bool, loss: str) -> None:
    X, y = clustered(600, 8, classes)
    weights = np.random.default_rng(1).uniform(0.0, 2.0, len(y)) if weighted else None
    search = LinearSVCCV(
        Cs=[0.3, 3.0, 30.0], cv=3, loss=loss, tol=1e-5, class_weight="balanced", random_state=0
    )
    on_host = search.fit(X, y, weights)
    scores, choice = on_host.scores_, on_host.C_
    search.fit(device(X), device(y), None if weights is None else device(weights))
    # Fits to 1e-4 may differ on a row or two.
    np.testing.assert_allclose(search.scores_, scores, atol=0.02)
    assert search.C_ in (choice, *search.Cs_[scores.mean(0) > scores.mean(0).max() - 0.02])
    agrees(search.best_estimator_, X, y, weights)
    assert isinstance(search.predict(device(X)), torch.Tensor)


def test_folds_classes_and_values_of_C_share_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = clustered(900, 8, 4)
    sizes: list[int] = []
    begin = batch_module.Batch.begin

    def noted(self: Any, options: Any, **given: Any) -> None:
        if self._options is None:
            sizes.append(len(self.left))
        begin(self, options, **given)

    monkeypatch.setattr(batch_module.Batch, "begin", noted)
    search = LinearSVCCV(Cs=[0.1, 1.0, 10.0], cv=3, refit=False)
    for room, expected in ((2**40, [36]), (16 * 900 / source_module._MASKS, [16, 16, 4])):
        sizes.clear()
        monkeypatch.setattr(source_module, "free_memory", lambda device, room=room: room)
        search.fit(device(X), y)
        assert sizes == expected


def test_a_certified_choice_on_tensors() -> None:
    X, y = clustered(300, 4, 3)
    search = LinearSVCCV(C_range=(0.1, 10.0), cv=2, certify=0.1, random_state=0)
    search.fit(device(X), y)
    assert search.certified_
    on_host = LinearSVCCV(C_range=(0.1, 10.0), cv=2, certify=0.1, random_state=0).fit(X, y)
    # Both bounds hold for the error of every optimum in the range, so for that of either choice.
    for one, other in ((search, on_host), (on_host, search)):
        assert one.curve_.lower.min() <= other.curve_.upper.min() + 1e-12


def test_a_fold_without_one_of_the_classes() -> None:
    X, y = clustered(300, 5, 4)
    # The first fold is not trained on class 2.
    splits = [(np.flatnonzero(y != 2), np.flatnonzero(y == 2)), (np.arange(300) % 2 == 0, y < 2)]
    search = LinearSVCCV(Cs=[1.0, 10.0], cv=splits, refit=False, tol=1e-5)
    scores = search.fit(X, y).scores_
    assert (scores[0] == 0.0).all()
    np.testing.assert_allclose(search.fit(device(X), y).scores_, scores, atol=0.02)
    with pytest.raises(ValueError, match="scoring on tensors is accuracy"):
        search.set_params(scoring="f1_macro").fit(device(X), y)


@pytest.mark.parametrize("dtype", [torch.float16, torch.float64])
def test_the_default_type_of_tensors_is_others(dtype: torch.dtype) -> None:
    X, y = clustered(500, 10, 4)
    given = device(X)
    torch.set_default_dtype(dtype)
    try:
        clf = LinearSVC(tol=1e-3, class_weight="balanced", random_state=0).fit(given, y)
    finally:
        torch.set_default_dtype(torch.float32)
    agrees(clf, X, y)


def test_a_warm_start_of_several_classes_is_one_of_the_batch() -> None:
    X, y = clustered(3000, 10, 6)
    clf = LinearSVC(tol=1e-3, warm_start=True).fit(device(X), y)
    clf.set_params(C=1.1).fit(device(X), y)
    assert clf.n_iter_ == 1
    agrees(clf, X, y)
