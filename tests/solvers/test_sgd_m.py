"""SGD-m: the schedule of multiple passes, and the published sequence."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from certsvm.solvers import SGDm
from tests.problems import Case, cases
from tests.solvers.test_sgd_s import assert_follows_the_paper


@given(case=cases(dyadic=True, weighted=False), seed=st.integers(0, 2**32 - 1))
def test_the_published_sequence(case: Case, seed: int) -> None:
    assert_follows_the_paper(SGDm(published=True), case, seed, multiple=True)


def test_the_schedule_is_a_parameter() -> None:
    solver = SGDm(multiplicity=3, period=4, single_from=2)
    assert [solver.ell(p) for p in range(1, 9)] == [3, 1, 1, 1, 3, 1, 1, 1]


@pytest.mark.parametrize("arguments", [{"multiplicity": 0}, {"period": 0}])
def test_bad_parameters(arguments: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=f"SGDm: {next(iter(arguments))} must be"):
        SGDm(**arguments)
