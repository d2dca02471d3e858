"""The source of labelled rows in tensors."""

from typing import Any

import numpy as np
import pytest
import torch

from certsvm.fitting.sources import MemorySource
from certsvm.kernels.losses import SQUARED_HINGE
from certsvm.problem.base import Objective
from certsvm.solvers import DCD, Newton
from certsvm.torch import TensorNewton, TensorSource
from tests.torch.problems import data, host


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


def test_solvers() -> None:
    source = TensorSource(*data(50))
    assert source.solver("auto") == source.solver("newton") == TensorNewton()
    solver = TensorNewton(max_size=1000)
    assert source.solver(solver) is solver
    for other, name in (("dcd", "'dcd'"), (DCD(), "DCD"), (Newton(), "Newton")):
        with pytest.raises(ValueError, match=f"solver {name} does not run on tensors"):
            source.solver(other)
