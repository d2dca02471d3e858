"""The source of labelled rows in tensors."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest
import torch

import certsvm.torch.newton as newton_module
import certsvm.torch.rows as rows_module
from certsvm import LinearSVC
from certsvm.fitting.sources import MemorySource
from certsvm.kernels.losses import SQUARED_HINGE
from certsvm.problem.objective import Objective
from certsvm.solvers import DCD, Newton, Start
from certsvm.torch import TensorNewton, TensorSource
from tests.torch.problems import DEVICE, agrees, data, host

ONE = Objective()


@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("class_weight", [None, "balanced"])
def test_it_is_the_source_in_memory(classes: int, weighted: bool, class_weight: Any) -> None:
    X, y = data(200, classes=classes)
    weights = torch.rand(200, generator=torch.Generator().manual_seed(1)) if weighted else None
    options = {"class_weight": class_weight, "intercept_scaling": 0.5}
    objective = Objective(0.3, SQUARED_HINGE, penalize_intercept=weighted)
    ours = TensorSource(X, y, weights, **options)
    on_host = None if weights is None else host(weights)
    theirs = MemorySource(host(X), host(y).astype(int), on_host, **options)
    assert ours.labels == theirs.labels
    assert (ours.n_rows, ours.n_columns, ours.dimension) == (200, 8, 9)
    np.testing.assert_allclose(ours.factors, theirs.factors)
    # It may be rounded up.
    assert theirs.weight_sum(0) * (1.0 - 1e-12) <= ours.weight_sum(0)
    assert ours.weight_sum(0) == pytest.approx(theirs.weight_sum(0))
    for i in range(len(ours.labels)):
        problem, expected = ours.problem(i, objective), theirs.problem(i, objective)
        np.testing.assert_array_equal(host(problem.signs), expected.labels)
        np.testing.assert_allclose(problem.weights, expected.weights)
        assert problem.C == expected.C
        assert problem.loss == expected.loss
        assert problem.free_intercept == expected.free_intercept


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        (torch.ones(3), [0, 1, 0], "two dimensions"),
        (torch.ones(0, 3), [], "no rows"),
        (torch.ones(3, 0), [0, 1, 0], "no columns"),
        (torch.ones(3, 2), [0, 1], "X has 3 rows"),
        (torch.ones(3, 2), torch.tensor([0.5, 1.0, 2.0]), "continuous"),
        (torch.ones(3, 2), None, "y is None"),
        (torch.full((3, 2), torch.nan), [0, 1, 0], "contains NaN"),
    ],
)
def test_data_that_are_refused(X: Any, y: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        TensorSource(X, y)


def test_solvers() -> None:
    source = TensorSource(*data(50))
    assert source.solver("auto") == source.solver("newton") == TensorNewton()
    solver = TensorNewton(corrections=1)
    assert source.solver(solver) is solver
    for other, name in (("dcd", "'dcd'"), (DCD(), "DCD"), (Newton(), "Newton")):
        with pytest.raises(ValueError, match=f"solver {name} does not run on tensors"):
            source.solver(other)


def test_a_start_keeps_only_an_alpha_of_these_rows() -> None:
    source = TensorSource(*data(50))
    w = np.zeros(8)
    start = source.start(w, 3, np.ones(50), 0.5)
    assert (start.epochs, start.smoothing) == (3, 0.5)
    assert isinstance(start.alpha, torch.Tensor)
    assert start.alpha.device.type == torch.device(DEVICE).type
    assert source.start(w, 3, np.ones(49), 0.5) == Start(w, 3)


def test_problems_in_lockstep_are_released_with_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TensorSource, "_at_once", lambda self: 2)
    source = TensorSource(*data(100, classes=3))
    first, second, third = (source.problem(i, ONE) for i in range(3))
    assert first.group is second.group is not third.group
    assert source.problem(2, ONE) is third
    result: Any = object()
    assert source.finish(2, third, result) is result
    assert source.problem(2, ONE) is not third


def test_classes_go_in_lockstep(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = data(400, classes=5)
    readings = []
    products = rows_module.TensorRows.products

    def counted(self: Any, vectors: Any) -> Any:
        if self.n_rows == 400:
            readings.append(len(vectors))
        return products(self, vectors)

    monkeypatch.setattr(rows_module.TensorRows, "products", counted)
    together = LinearSVC(tol=1e-3, random_state=0).fit(X, y)
    assert max(readings) == 5
    n_together = len(readings)
    readings.clear()
    monkeypatch.setattr(TensorSource, "_at_once", lambda self: 1)
    alone = LinearSVC(tol=1e-3, random_state=0).fit(X, y)
    assert set(readings) == {1}
    assert n_together < 0.5 * len(readings)
    agrees(alone, host(X), host(y))
    agrees(together, host(X), host(y))


def test_other_class_weights_make_other_problems() -> None:
    source = TensorSource(*data(200, classes=3))
    assert source.problem(0, ONE).row_weights is None
    source.set_class_weight({0: 5.0, 1: 1.0, 2: 1.0})
    assert source.problem(0, ONE).row_weights is not None


@pytest.mark.parametrize(
    "another", [ONE.at(2.0), Objective(loss=SQUARED_HINGE), Objective(penalize_intercept=False)]
)
def test_another_objective_is_another_group(another: Objective) -> None:
    source = TensorSource(*data(200, classes=3), intercept_scaling=1.0)
    one, other = source.problem(1, ONE), source.problem(1, another)
    assert one.group is not other.group
    assert (other.C, other.loss) == (another.C, another.loss)
    assert other.free_intercept != another.penalize_intercept
    assert source.problem(2, another).group is other.group


def test_the_memory_of_a_group_is_for_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = data(400, classes=6)
    monkeypatch.setattr(TensorSource, "_at_once", lambda self: 2)
    alive: list[int] = []
    begin = newton_module.begin

    def counted(*given: Any) -> Any:
        gc.collect()
        alive.append(sum(type(o) is newton_module.Lockstep for o in gc.get_objects()))
        return begin(*given)

    monkeypatch.setattr(newton_module, "begin", counted)
    clf = LinearSVC(tol=1e-3, random_state=0).fit(X, y)
    assert alive == [0, 0, 0]
    agrees(clf, host(X), host(y))
