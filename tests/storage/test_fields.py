"""Kinds of fields: valid values round trip; anything else is refused and changes nothing."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest

from certsvm.kernels.losses import HINGE
from certsvm.storage.fields import (
    array,
    columns,
    count,
    each,
    flag,
    generator,
    maybe,
    nested,
    number,
    record,
    row_indices,
    table,
    text,
)
from certsvm.storage.state import Field, State, StateError, Stateful

PROBLEM = SimpleNamespace(
    n_rows=4, dimension=2, m=3, C=2.0, weights=np.array([1.0, 0.0, 1.0, 0.5]), loss=HINGE
)


class Pair(NamedTuple):
    left: int
    right: float


class Inner(Stateful):
    STATE = State(w=array("dimension"))

    def __init__(self) -> None:
        self.w = np.zeros(2)


class Holder(Stateful):
    """An object with one field of the kind to be tested, after one that is always valid."""

    def __init__(self, kind: Field, value: Any) -> None:
        self.STATE = State(before=count(), value=kind)  # type: ignore[misc]
        self._problem, self._before, self.value, self._most = PROBLEM, 0, value, 5

    def made(self, values: Any) -> Inner:
        assert values == {"before": 7}
        return Inner()


def load(kind: Field, value: Any, present: Any = None) -> Any:
    holder = Holder(kind, present)
    try:
        holder.load_state_dict({"before": 7, "value": value})
    except StateError:
        assert holder._before == 0
        assert holder.value is present
        raise
    assert holder._before == 7
    return holder.value


w = np.arange(2.0)
VALID: list[tuple[Field, Any]] = [
    (count(), 0),
    (count(3), 3),
    (count("_most"), 5),
    (number(), -1.5),
    (number(infinite=True), math.inf),
    (flag(), True),
    (text(), "epochs 1 to 3"),
    (text("a", "b"), "b"),
    (array("dimension"), w),
    (array("any", "any"), np.eye(3)),
    (array("n_rows", low=0.0, high="box"), np.array([2.0, 0.0, 1.0, 1.0])),
    (array(1, infinite=True, nan=True), np.array([math.nan])),
    (array(2, dtype=np.float32), w.astype(np.float32)),
    (row_indices(), np.array([3, 0])),
    (row_indices(every=True), np.array([3, 0, 2])),
    (row_indices(ascending=True), np.array([0, 3])),
    (maybe(count()), None),
    (maybe(count()), 2),
    (record(Pair, left=count(), right=number()), Pair(1, 2.0)),
    (table(Pair, left=array("n", dtype=np.int64), right=array("n")), [Pair(1, 2.0), Pair(3, 4.0)]),
    (columns(left=array("n"), right=array("n")), {"left": w, "right": 2 * w}),
]


@pytest.mark.parametrize(("kind", "value"), VALID, ids=lambda v: repr(v)[:30])
def test_what_is_valid_round_trips(kind: Field, value: Any) -> None:
    again = load(kind, kind.plain(value), value)
    assert type(again) is type(value)
    np.testing.assert_equal(again, value)
    if isinstance(value, np.ndarray):
        assert again is not value
        assert again.flags.writeable


INVALID: list[tuple[Field, Any]] = [
    (count(), -1),
    (count(), 2**62 + 1),
    (count(3), 4),
    (count("_most"), 6),
    *[(count(), value) for value in (True, 1.0, "1", None, (), np.int64(1))],
    (number(), math.nan),
    (number(), math.inf),
    (number(low=0.0), -1e-300),
    (number(infinite=True), math.nan),
    *[(number(), value) for value in (1, True, "1", None, np.zeros(()))],
    *[(flag(), value) for value in (0, 1, None, "true")],
    *[(text(), value) for value in (None, 1, "two\nlines", "x" * 201)],
    (text("a"), "b"),
    *[(array("dimension"), value) for value in (None, 1.0, [0.0, 1.0], w[:1], w[None], np.eye(2))],
    (array("dimension"), w.astype(np.float32)),
    (array("dimension"), w.astype(np.int64)),
    (array("dimension"), np.array([0.0, math.nan])),
    (array("dimension"), np.array([0.0, math.inf])),
    (array("any", "any"), np.zeros((2, 3))),
    (array("any", "any"), np.zeros(2)),
    (array("n_rows", low=0.0, high="box"), np.array([2.1, 0.0, 1.0, 1.0])),
    (array("n_rows", low=0.0, high="box"), np.array([2.0, 1e-9, 1.0, 1.0])),
    (array("n_rows", low=0.0, high="box"), np.array([-1e-9, 0.0, 1.0, 1.0])),
    (row_indices(), np.array([0, 4])),
    (row_indices(), np.array([0, -1])),
    (row_indices(), np.array([0, 1])),
    (row_indices(), np.array([0, 0])),
    (row_indices(), np.array([2**62])),
    (row_indices(), np.array([0.0])),
    (row_indices(every=True), np.array([3, 0])),
    (row_indices(ascending=True), np.array([3, 0])),
    (record(Pair, left=count(), right=number()), {"left": 1}),
    (record(Pair, left=count(), right=number()), {"left": 1, "right": 2.0, "more": 0}),
    (record(Pair, left=count(), right=number()), {"left": -1, "right": 2.0}),
    (record(Pair, left=count(), right=number()), [1, 2.0]),
    (table(Pair, left=array("n"), right=array("n")), {"left": w, "right": w[:1]}),
    (columns(left=array("n"), right=array("n")), {"left": w, "right": w[:1]}),
    (columns(left=array("n")), {"left": w, "right": w}),
    (nested(), {"w": w}),
]


@pytest.mark.parametrize(("kind", "value"), INVALID, ids=lambda v: repr(v)[:30])
def test_anything_else_is_refused_and_changes_nothing(kind: Field, value: Any) -> None:
    with pytest.raises(StateError, match=r"state\.value"):
        load(kind, value)


def test_nested_objects_stay_the_same_objects() -> None:
    inner = Inner()
    assert load(nested(), {"w": w}, inner) is inner
    assert inner.w.tolist() == [0.0, 1.0]
    with pytest.raises(StateError, match=r"state\.value\.w has the shape"):
        load(nested(), {"w": np.zeros(3)}, inner)
    with pytest.raises(StateError, match="no fields"):
        load(nested(), None, inner)


def test_nested_objects_may_be_made_from_what_came_before() -> None:
    assert load(nested(fresh="made"), {"w": w}).w.tolist() == [0.0, 1.0]


def test_lists_are_as_long_as_they_say() -> None:
    kind: Any = each(array(dtype=None))
    present = [w.astype(np.float32)]
    value = kind.plain([present[0], present[0] + 1])
    assert [v.tolist() for v in load(kind, value, present)] == [[0.0, 1.0], [1.0, 2.0]]
    for wrong in (
        {},
        {"1": present[0]},
        {"0": w},
        {"0": present[0], "2": present[0]},
        [present[0]],
    ):
        with pytest.raises(StateError):
            load(kind, wrong, present)


def test_random_numbers_go_on() -> None:
    rng, other = np.random.default_rng(0), np.random.default_rng(1)
    rng.integers(2**31, size=3)  # half of a number of 64 bits is left
    state = generator().plain(rng)
    expected = rng.integers(2**31, size=5).tolist()
    assert load(generator(), state, other) is other
    assert other.integers(2**31, size=5).tolist() == expected
    for name, wrong in [
        ("state", "x" * 32),
        ("state", "0"),
        ("increment", "0" * 32),
        ("half", 2**32),
    ]:
        with pytest.raises(StateError):
            load(generator(), {**state, name: wrong}, other)
