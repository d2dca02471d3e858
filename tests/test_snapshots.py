"""What is taken can be restored; what is no snapshot is refused, whatever it says."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from certsvm.certificates.certificate import Certificate
from certsvm.certificates.dual import Response
from certsvm.certificates.rounding import Bound
from certsvm.training.checkpoints import Checkpoint
from certsvm.training.snapshots import Snapshot, restore, take

# What a file can hold.
DTYPES = [np.float64, np.float32, np.int64, np.uint8, np.bool_]

scalars = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(),
    st.text(st.characters(codec="utf-8")),
    st.floats().map(np.float64), st.floats(width=32).map(np.float32),
    st.integers(-(2**63), 2**63 - 1).map(np.int64), st.booleans().map(np.bool_),
    st.sampled_from([np.float32, np.float64, np.int64]),
)  # fmt: skip
arrays = st.sampled_from(DTYPES).flatmap(
    lambda dtype: hnp.arrays(dtype, hnp.array_shapes(min_dims=1, max_dims=2, min_side=0))
)
plain = st.recursive(
    st.one_of(scalars, arrays),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.lists(inner, max_size=4).map(tuple),
        st.dictionaries(st.text(st.characters(codec="utf-8")), inner, max_size=4),
    ),
    max_leaves=20,
)


def alike(a: Any, b: Any) -> bool:
    """The same types and the same bits."""
    if type(a) is not type(b):
        return False
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(alike, a, b))
    if isinstance(a, dict):
        return list(a) == list(b) and all(alike(a[key], b[key]) for key in a)
    if isinstance(a, np.ndarray | np.generic):
        return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    if isinstance(a, float) and math.isnan(a):
        return math.isnan(b)
    return bool(a == b) and (not isinstance(a, float) or math.copysign(1, a) == math.copysign(1, b))


@given(plain)
def test_plain_data_round_trips(thing: Any) -> None:
    whole = [thing]
    assert alike(restore(take(whole, {}), {}), whole)


@given(plain)
def test_plain_data_round_trips_through_a_file(
    tmp_path_factory: pytest.TempPathFactory, thing: Any
) -> None:
    checkpoint = Checkpoint(tmp_path_factory.mktemp("run") / "state", {})
    checkpoint.save(take([thing], {}))
    found = checkpoint.load()
    assert found is not None
    assert alike(restore(found, {}), [thing])


def test_objects_of_the_package_round_trip() -> None:
    certificate = Certificate(primal=2.0, dual=1.0, target=0.1, bound="a test")
    response = Response(np.arange(3.0), 0.5)
    bound, again, found = restore(take([Bound(1.0, 0.1), certificate, response], {}), {})
    assert bound == Bound(1.0, 0.1)
    assert again == certificate
    assert isinstance(found, Response)
    assert found.w.tolist() == [0.0, 1.0, 2.0]


def test_what_appears_twice_is_one_object_afterwards() -> None:
    w = np.ones(2)
    bound = Bound(1.0, 0.0)
    first, second, third, fourth = restore(take([w, w, bound, (bound,)], {}), {})
    assert first is second
    assert third is fourth[0]
    assert first is not w


def test_what_refers_to_itself() -> None:
    loop: dict[str, Any] = {"list": []}
    loop["list"].append(loop)
    again = restore(take(loop, {}), {})
    assert again["list"][0] is again


def test_arrays_are_copied() -> None:
    snapshot = take([np.zeros(2)], {})
    one, other = restore(snapshot, {}), restore(snapshot, {})
    one[0][0] = 7.0
    assert other[0][0] == 0.0
    assert snapshot.arrays["array 1"][0] == 0.0


def test_what_is_around_is_not_taken() -> None:
    around, other = object(), object()
    snapshot = take([around, 1], {"it": around})
    assert restore(snapshot, {"it": other}) == [other, 1]
    with pytest.raises(ValueError, match="not the state of an object"):
        restore(snapshot, {})


def test_functions_are_no_state() -> None:
    assert restore(take([len, lambda: 1, [].append], {}), {}) == [None, None, None]


@pytest.mark.parametrize("thing", [{1: 2}, {1, 2}, 1j, object(), Path("a"), b"bytes"])
def test_what_is_not_plain_is_refused(thing: Any) -> None:
    with pytest.raises(TypeError, match="not plain data"):
        take([thing], {})


MALICIOUS: list[Any] = [
    [],
    [None],
    [1],
    ["array"],
    [[]],
    [{}],
    [{"array": "missing"}],
    [{"array": ["unhashable"]}],
    [{"list": 5}],
    [{"list": [{"at": 1}]}],
    [{"list": [{"at": "0"}]}],
    [{"list": [{"at": []}]}],
    [{"list": [{"scalar": "missing"}]}],
    [{"list": [{"around": "missing"}]}],
    [{"list": [{"int": "no number"}]}],
    [{"list": [{"int": "9" * 5000}]}],
    [{"list": [{"type": "no type"}]}],
    [{"list": [{"what": 1}]}],
    [{"list": [{"at": 0, "around": 1}]}],
    [{"list": [{}]}],
    [{"dict": []}],
    [{"class": "os:system", "attributes": {}}],
    [{"class": "subprocess:Popen", "attributes": {}}],
    [{"class": "builtins:eval", "items": ["1"]}],
    [{"class": "certsvmx.bounds:Bound", "attributes": {}}],
    [{"class": "certsvm.nowhere:Bound", "attributes": {}}],
    [{"class": "certsvm.certificates.bounds:Nothing", "attributes": {}}],
    [{"class": "certsvm.certificates.bounds:total", "attributes": {}}],
    [{"class": "certsvm.certificates.bounds:", "attributes": {}}],
    [{"class": "certsvm.certificates.bounds", "attributes": {}}],
    [{"class": 5, "attributes": {}}],
    [{"class": "certsvm.certificates.bounds:Bound"}],
    [{"class": "certsvm.certificates.bounds:Bound", "attributes": 5}],
    [{"class": "certsvm.certificates.bounds:Response", "items": [1]}],
    [{"class": "certsvm.certificates.bounds:Bound", "items": [1]}],
    [{"class": "certsvm.training.loop:threading.Thread", "attributes": {"_target": None}}],
    [{"class": "certsvm.data.compressed:zlib.error", "attributes": {}}],
    [{"tuple": [{"at": 0}]}],
    [{"list": [{"type": "(,i4"}]}],
    [{"list": [{"at": -1}]}],
]


@pytest.mark.parametrize("objects", MALICIOUS, ids=lambda objects: repr(objects)[:60])
def test_malicious_snapshots_are_refused(objects: Any) -> None:
    with pytest.raises(ValueError, match=r"."):
        restore(Snapshot(objects, {}), {})
