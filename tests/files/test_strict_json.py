"""JSON that keeps every value exactly, or refuses it."""

import json
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from certsvm.files.strict_json import encoded, from_json, to_json

texts = st.text(st.characters(exclude_categories=["Cs"]))
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False)
    | texts,
    lambda inner: st.lists(inner) | st.dictionaries(texts.filter(lambda k: k != "$float"), inner),
    max_leaves=20,
)


@given(values)
def test_values_round_trip(value: Any) -> None:
    again = from_json(to_json(value, "value"))
    # repr tells 1 from 1.0 and True, and 0.0 from -0.0.
    assert repr(again) == repr(value)


@given(values)
def test_the_text_is_ordinary_json(value: Any) -> None:
    assert json.loads(to_json(value, "value")) == json.loads(json.dumps(encoded(value, "value")))


def test_nan() -> None:
    assert to_json([math.nan], "value") == b'[{"$float":"nan"}]'
    assert math.isnan(from_json(b'{"$float":"nan"}'))


def test_tuples_become_lists() -> None:
    assert from_json(to_json((1, (2,)), "value")) == [1, [2]]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"a": [0, 2**64]}, r"value\['a'\]\[1\] is .* more than 64 bits"),
        (-(2**63) - 1, "more than 64 bits"),
        ({"a": {1: 2}}, r"value\['a'\] has the key 1"),
        ({"$float": "inf"}, "the key '\\$float'"),
        ([b"bytes"], r"value\[0\] is of type bytes"),
        (np.int64(1), "is of type int64"),
        ({"a": {1, 2}}, "is of type set"),
        ("\ud800", "lone surrogate"),
    ],
)
def test_values_that_json_does_not_have(value: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        to_json(value, "value")


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{",
        b"[1,]",
        b"NaN",
        b"-Infinity",
        b"1e999",
        b'{"a":1,"a":1}',
        b"18446744073709551616",
        b"-9223372036854775809",
        b"9" * 5000,
        b'{"$float":"0"}',
        b'{"$float":1}',
        b'{"$float":"inf","b":1}',
        b'"\\ud800"',
        b'{"\\udfff":1}',
        b'"\xff"',
        b"[" * 100_000 + b"]" * 100_000,
    ],
    ids=lambda text: repr(text)[:20],
)
def test_texts_that_are_not_strictly_valid(text: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011
        from_json(text)


def test_escaped_pairs_of_surrogates_are_text() -> None:
    assert from_json(b'"\\ud83d\\ude00"') == "\U0001f600"
