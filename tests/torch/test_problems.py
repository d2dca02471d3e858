"""Problems in tensors: their sizes, samples of them, and groups."""

from typing import Any

import numpy as np
import pytest
import torch

from certsvm.problem.base import Objective
from certsvm.problem.problems import Problem
from certsvm.problem.rows import Rows
from certsvm.solvers import Start
from certsvm.torch import TensorNewton, TensorProblem, TensorRows
from certsvm.training.loop import train
from tests.torch.problems import DEVICE, OBJECTIVES, device, generated


def both(weights: Any, objective: Objective = OBJECTIVES["hinge"]) -> tuple[TensorProblem, Problem]:
    X, y = generated(40, 3)
    tensors = None if weights is None else device(weights)
    rows = TensorRows(device(X), intercept_scaling=2.0)
    given: Any = {
        "C": 0.3, "loss": objective.loss, "penalize_intercept": objective.penalize_intercept
    }  # fmt: skip
    ours = TensorProblem(rows, device(y), row_weights=tensors, **given)
    theirs = Problem(Rows(X, intercept_scaling=2.0), y, weights=weights, **given)
    return ours, theirs


def test_a_free_intercept_needs_rows_of_both_classes() -> None:
    X, y = generated(40, 3)
    rows, signs = TensorRows(device(X), intercept_scaling=1.0), device(y).to(torch.int8)
    assert TensorProblem(rows, signs, penalize_intercept=False).free_intercept
    only = device((y > 0).astype(float))
    for given in ({"signs": torch.ones_like(signs)}, {"signs": signs, "row_weights": only}):
        with pytest.raises(ValueError, match="the best intercept is infinite"):
            TensorProblem(rows, penalize_intercept=False, **given)
        assert not TensorProblem(rows, **given).free_intercept
    assert not TensorProblem(TensorRows(device(X)), signs, penalize_intercept=False).free_intercept


def test_starts_are_checked() -> None:
    alpha = torch.ones(40, dtype=torch.float64, device=DEVICE)
    bad = [
        Start(np.zeros(3)),
        Start(np.zeros(4), 1, alpha[:39]),
        Start(np.zeros(4), 1, np.nan * alpha),
        Start(np.zeros(4), 1, np.full(40, np.inf)),
        Start(np.zeros(4), smoothing=0.0),
        Start(np.zeros(4), smoothing=np.nan),
    ]
    for start in bad:
        with pytest.raises(ValueError, match=r"start\.(w|alpha|smoothing) must be"):
            train(both(None)[0], TensorNewton(), start=start)


@pytest.mark.parametrize("weights", [[0.1] * 20, [-1.0] * 20, [np.nan] * 20, [1.0] * 3])
def test_weights_of_a_problem(weights: list[float]) -> None:
    """In single precision, C s_k would be rounded, and alpha could leave the box."""
    X, y = generated(20, 3)
    rows, signs = TensorRows(device(X)), device(y)
    single = device(np.array(weights, dtype=np.float32))
    if weights != [0.1] * 20:
        with pytest.raises(ValueError, match="weights must"):
            TensorProblem(rows, signs, row_weights=single)
        return
    problem = TensorProblem(rows, signs, C=0.1, row_weights=single)
    result = train(problem, TensorNewton(), tol=1e-6, keep_alpha=True)
    assert result.alpha is not None
    assert (result.alpha <= 0.1 * np.float64(np.float32(0.1))).all()
    with pytest.raises(ValueError, match=r"signs must be \+1 or -1"):
        TensorProblem(rows, 0.5 * signs)
