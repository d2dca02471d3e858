"""Features and the columns that they are made of."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from certsvm.files.columns import Features

words = st.text("ab=", max_size=3)


@given(st.lists(words, unique=True, max_size=4), st.data())
def test_names_and_spans_say_it_all(columns: list[str], data: st.DataObject) -> None:
    values = {}
    for column in columns:
        if data.draw(st.booleans()):
            values[column] = tuple(data.draw(st.lists(words, unique=True, min_size=1, max_size=3)))
    names = [
        name
        for column in columns
        for name in ([f"{column}={v}" for v in values[column]] if column in values else [column])
    ]
    if len(set(names)) < len(names):
        with pytest.raises(ValueError, match="would be called"):
            Features(tuple(columns), values)
        return
    features = Features(tuple(columns), values)
    assert features.names == names
    assert Features.from_names(features.names, features.spans) == features


@pytest.mark.parametrize(
    "spans",
    [1, {"a": None}, {"a": [0]}, {"a": [0, 9]}, {"a": [1, 0]}, {"a": [-1, 1]}, {"b": [0, 1]},
     {"a": [0, 2], "c": [1, 2]}, {"a": [1, 1]}, {"a": [0.0, 1.0]}],
)  # fmt: skip
def test_spans_from_a_file_that_make_no_sense(spans: Any) -> None:
    names = ["a=x", "a=y", "c"]
    assert Features.from_names(names, {"a": [0, 2]}).columns == ("a", "c")
    with pytest.raises(ValueError, match="one-hot columns"):
        Features.from_names(names, spans)
