"""Declared states: they load completely or not at all."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from certsvm.kernels.losses import HINGE, SQUARED_HINGE
from certsvm.storage.fields import array, count, nested
from certsvm.storage.state import Scope, State, StateError, Stateful


class Inner(Stateful):
    STATE = State(w=array("dimension"))

    def __init__(self) -> None:
        self.w = np.zeros(2)
        self.length = 0.0

    def state_loaded(self) -> None:
        self.length = float(np.linalg.norm(self.w))


class Outer(Stateful):
    """The private attribute ``_passes``, the public ``updates`` and an object."""

    STATE = State(passes=count(), updates=count(), inner=nested())

    def __init__(self, passes: int = 0, updates: int = 0) -> None:
        self._problem = SimpleNamespace(dimension=2, n_rows=3, m=3)
        self._passes, self.updates, self.inner = passes, updates, Inner()

    def require_consistent(self, state: Mapping[str, Any], scope: Scope) -> None:
        if state["updates"] < state["passes"]:
            scope.fail("has fewer updates than passes")


def test_a_state_is_plain_data_and_loads_again() -> None:
    outer, other = Outer(2, 5), Outer()
    outer.inner.w[:] = 3.0, 4.0
    state = outer.state_dict()
    assert state == {"passes": 2, "updates": 5, "inner": {"w": outer.inner.w}}
    inner = other.inner
    other.load_state_dict(state)
    assert (other._passes, other.updates) == (2, 5)
    assert other.inner is inner
    assert inner.w.tolist() == [3.0, 4.0]
    assert inner.w is not outer.inner.w
    assert inner.length == 5.0, "attributes that follow from the state are restored"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"passes": -1}, r"state\.passes is -1"),
        ({"inner": {"w": np.zeros(3)}}, r"state\.inner\.w has the shape"),
        ({"inner": {}}, r"state\.inner lacks 'w'"),
        ({"updates": 1}, "fewer updates than passes"),
        ({"more": 1}, "state has an unknown field 'more'"),
    ],
)
def test_an_invalid_state_changes_nothing(change: dict[str, Any], message: str) -> None:
    outer = Outer(7, 8)
    state = {"passes": 2, "updates": 5, "inner": {"w": np.ones(2)}} | change
    with pytest.raises(StateError, match=message):
        outer.load_state_dict(state)
    assert (outer._passes, outer.updates, outer.inner.w.tolist()) == (7, 8, [0.0, 0.0])


@pytest.mark.parametrize("state", [{}, {"passes": 1}, [], None, 3])
def test_the_fields_are_those_declared(state: Any) -> None:
    with pytest.raises(StateError, match=r"lacks '|no fields"):
        Outer().load_state_dict(state)


def test_lengths_without_a_size_of_the_problem_are_shared() -> None:
    scope = Scope(SimpleNamespace(n_rows=3, dimension=2, m=1), None)
    assert [scope.length(name, 9) for name in ("n_rows", "dimension", "m", 4)] == [3, 2, 1, 4]
    assert [scope.length("cuts", actual) for actual in (6, 7)] == [6, 6]


def test_limits() -> None:
    problem = SimpleNamespace(C=2.0, weights=np.array([1.0, 0.5]), loss=HINGE)
    scope = Scope(problem, SimpleNamespace(most=5))
    assert scope.limit("box").tolist() == [2.0, 1.0]
    problem.loss = SQUARED_HINGE
    assert scope.limit("box").tolist() == [np.inf, np.inf]
    assert (scope.limit("most"), scope.limit(3)) == (5, 3)
