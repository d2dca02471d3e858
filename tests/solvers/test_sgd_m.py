"""SGD-m: the schedule of multiple passes, and the published sequence."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from certsvm.solvers import SGDm
from tests.problems import Case, cases
from tests.solvers.test_sgd_s import AS_PUBLISHED, assert_follows_the_paper


@given(case=cases(dyadic=True, weighted=False), seed=st.integers(0, 2**32 - 1))
def test_the_published_sequence(case: Case, seed: int) -> None:
    assert_follows_the_paper(SGDm(**AS_PUBLISHED), case, seed, multiple=True)
