"""Class weights as options give them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from certsvm.cli.app import BadInput
from certsvm.cli.class_weights import parse_class_weights

TEXT, NUMBERS = np.array(["1", "x"]), np.array([-1.0, 1.0])


@pytest.mark.parametrize(
    ("texts", "classes", "weights"),
    [
        ([], TEXT, None),
        (["balanced"], TEXT, "balanced"),
        (["1=5"], TEXT, {"1": 5.0}),
        (["1=5", "-1=0.5"], NUMBERS, {1.0: 5.0, -1.0: 0.5}),
        (["1.0=5"], NUMBERS, {1.0: 5.0}),
        (["a=b=2"], np.array(["a=b", "c"]), {"a=b": 2.0}),
    ],
)
def test_labels_are_of_the_classes_type(texts: Any, classes: Any, weights: Any) -> None:
    assert parse_class_weights(texts, classes) == weights


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["balanced", "1=2"], "does not go with"),
        (["1=much"], "write LABEL=W"),
        (["7=2"], "there is no class 7; there are -1, 1"),
        (["x=2"], "there is no class x"),
    ],
)
def test_what_makes_no_sense(texts: Any, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        parse_class_weights(texts, NUMBERS)
