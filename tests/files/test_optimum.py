"""What is said about support vectors is true of the exact optimum."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from certsvm.files import Model
from certsvm.kernels.losses import LOSSES
from certsvm.problem.rows import split
from certsvm.solvers import DCD, Newton
from certsvm.training.loop import train
from certsvm.training.settings import Result
from certsvm.verification.optimum_intervals import SupportStatus
from tests.exact import ExactOptimum, exact_optimum
from tests.problems import Case, exact
from tests.verification.test_optimum_intervals import hard_cases


def statuses(case: Case, result: Result, blocks: int = 1) -> Any:
    """Of the rows of a case, in a number of blocks."""
    X = case.matrix()
    cuts = np.linspace(0, X.shape[0], blocks + 1).astype(int)
    parts = [slice(a, b) for a, b in pairwise(cuts.tolist())]
    stream = iter([(X[p], case.labels[p], case.row_weights()[p]) for p in parts])
    coef, intercept = split(result.w, case.intercept_scaling)
    classes = np.array([-1.0, 1.0])
    model = Model([coef], [intercept], classes, np.ones(2), (result.certificate,))
    return model.support_status(stream)


def require_true(case: Case, optimum: ExactOptimum, status: Any) -> None:
    """Assert every statement about a row of every optimal dual point."""
    weights = case.row_weights()
    for k, margin in enumerate(optimum.margins):
        if status[k] == SupportStatus.NONE:
            assert margin > 1 or exact(weights[k]) == 0
        elif status[k] == SupportStatus.SUPPORT:
            assert margin < 1
            assert weights[k] > 0


@given(
    case=hard_cases(losses=tuple(LOSSES)), passes=st.integers(1, 40), newton=st.booleans(),
    blocks=st.integers(1, 3),
)  # fmt: skip
def test_every_statement_is_true(case: Case, passes: int, newton: bool, blocks: int) -> None:
    solver = Newton() if newton else DCD()
    result = train(case.problem(), solver, tol=0.0, max_iter=passes, seed=0)
    optimum = exact_optimum(case)
    assume(optimum is not None)
    assert optimum is not None
    require_true(case, optimum, statuses(case, result, min(blocks, len(case.labels))))


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("form", ["dense", "csr"])
@pytest.mark.parametrize("rho", [0.0, 1.0, 3.0])
def test_an_accurate_certificate_decides(rho: float, form: str, loss: str) -> None:
    """All rows off the margin."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((60, 4))
    labels = np.where(X[:, 0] + rng.standard_normal(60) > 0, 1.0, -1.0)
    case = Case(X, labels, rng.random(60) + 0.5, 0.7, rho, f"{form}-float64-int32", loss)
    result = train(case.problem(), Newton(), tol=0.0, max_iter=200, seed=0)
    optimum = exact_optimum(case)
    assert optimum is not None
    expected = [(m < 1) - (m == 1) for m in optimum.margins]
    assert statuses(case, result, 4).tolist() == expected
    # It does not take all rows.
    part = case._replace(X=case.X[:20], labels=case.labels[:20], weights=case.row_weights()[:20])
    assert statuses(part, result).tolist() == expected[:20]
