"""What all kinds of problems share: C, the loss, and sums over parts."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from certsvm.parallel import ALONE, Team
from certsvm.problem.base import PartedProblem
from certsvm.problem.memory import Problem
from certsvm.problem.objective import Objective, positive_C
from certsvm.problem.part import Part
from certsvm.problem.rows import Rows, Vector
from certsvm.problem.sizes import Sizes


class InParts(PartedProblem):
    """Rows of ones, in parts of one, two and three rows."""

    def __init__(self, C: Any = 1.0, **options: Any) -> None:
        super().__init__(Sizes(6, 2, 0.5, 6, 6.0, 1.0, 1.0, 1.5), Objective(C, **options))

    @property
    def weights(self) -> Vector:
        return np.ones(6)

    def parts(self) -> Iterator[Part]:
        for first, n_rows in ((0, 1), (1, 2), (3, 3)):
            yield Part(Rows(np.ones((n_rows, 2)), intercept_scaling=0.5), np.ones(n_rows), first)


def weighted(part: Part, team: Team, factor: float) -> Vector:
    assert team is ALONE
    return factor * np.arange(part.span.start, part.span.stop).sum(keepdims=True)


def test_the_sizes_become_attributes() -> None:
    problem = InParts(C=0.25)
    assert (problem.n_rows, problem.m, problem.dimension, problem.R) == (6, 6, 3, 1.5)
    assert (problem.weight_sum, problem.largest_weight) == (6.0, 1.0)
    assert (problem.C, problem.lambda_) == (0.25, 1 / 1.5)


def test_sums_and_lists_over_parts() -> None:
    problem = InParts()
    assert problem.total(weighted, 2.0).tolist() == [30.0]
    assert [r.tolist() for r in problem.of_each(weighted, 1.0)] == [[0.0], [3.0], [12.0]]
    assert problem.some_rows(100).rows.n_rows == 1


def test_coefficients_and_back() -> None:
    problem = Problem(Rows(np.eye(2), intercept_scaling=4.0), [1, -1])
    w = np.array([1.0, 2.0, 3.0])
    coefficients, intercept = problem.coefficients(w)
    assert coefficients.tolist() == [1, 2]
    assert intercept == 12.0
    assert problem.weight_vector(coefficients, intercept).tolist() == w.tolist()


@pytest.mark.parametrize("C", [0, -1.0, float("nan"), float("inf"), -float("inf")])
def test_C_is_a_finite_number_above_zero(C: float) -> None:
    for function in (positive_C, InParts):
        with pytest.raises(ValueError, match="C must be a finite number > 0"):
            function(C)


def test_C_becomes_a_float() -> None:
    assert type(positive_C(np.float32(2))) is float


def test_a_loss_is_one_of_ours() -> None:
    with pytest.raises(TypeError, match="loss must be one of"):
        InParts(loss="hinge")
