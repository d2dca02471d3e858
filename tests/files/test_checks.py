"""Labels and certificates of models."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from certsvm.certificates.certificate import Certificate
from certsvm.files.checks import check_certificate, checked_labels, is_finite, listing
from certsvm.matrices import read_only


@given(
    st.sets(st.integers(-(2**63), 2**63 - 1), min_size=2, max_size=6)
    | st.sets(st.floats(allow_nan=False, allow_infinity=False), min_size=2, max_size=6)
    | st.sets(st.text(st.characters(exclude_characters="\0"), max_size=5), min_size=2, max_size=6)
)
def test_distinct_ascending_labels_are_kept(labels: set[Any]) -> None:
    ascending = sorted(labels)
    dtype = object if isinstance(ascending[0], str) else None
    kept = checked_labels(np.array(ascending, dtype=dtype))
    assert kept.tolist() == ascending
    assert kept.dtype.kind in "ifU"
    with pytest.raises(ValueError, match="distinct and ascending"):
        checked_labels(np.array(ascending[::-1], dtype=dtype))


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([1], "two classes or more"),
        ([[1, 2]], "two classes or more"),
        ([1, 1], "distinct"),
        ([1.0, math.nan], "kept exactly|distinct"),
        ([1j, 2j], "numbers, booleans or strings"),
        (np.array(["a", 1], dtype=object), "numbers, booleans or strings"),
        (np.array([1, 2**64 - 1], dtype=np.uint64), "kept exactly"),
        (np.array(["a", "b\0"], dtype=object), "kept exactly"),
    ],
)
def test_labels_that_no_file_holds(labels: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        checked_labels(labels)


VALID = Certificate(primal=2.0, dual=1.5, target=0.5)


@pytest.mark.parametrize("target", [0.0, math.inf])
def test_certificates_of_training(target: float) -> None:
    check_certificate(replace(VALID, target=target))
    check_certificate(replace(VALID, loss="squared_hinge", scale=1.5, penalize_intercept=False))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"primal": math.nan}, "primal of a certificate"),
        ({"dual": "1"}, "dual of a certificate"),
        ({"dual": True}, "dual of a certificate"),
        ({"target": -1.0}, "target of a certificate"),
        ({"target": math.nan}, "target of a certificate"),
        ({"bound": 1}, "bound of a certificate"),
        ({"primal_rounding": -1e-9}, "must not be negative"),
        ({"dual_rounding": -1e-9}, "must not be negative"),
        ({"intercept_scaling": -1.0}, "must not be negative"),
        ({"scale": 1.5}, "a scale >= 0, which is at most 1 for the hinge"),
        ({"scale": -0.5, "loss": "squared_hinge"}, "a scale >= 0"),
        ({"scale": math.inf, "loss": "squared_hinge"}, "scale of a certificate"),
        ({"loss": "log"}, "loss must be 'hinge' or 'squared_hinge', got 'log'"),
        ({"loss": None}, "loss must be"),
        ({"penalize_intercept": 1}, "penalize_intercept must be true or false"),
        ({"C": 0.0}, "C > 0"),
    ],
)
def test_certificates_that_cannot_be(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        check_certificate(replace(VALID, **change))


def test_small_helpers() -> None:
    assert is_finite(1)
    assert is_finite(np.float64(1.5))
    assert not any(map(is_finite, (True, math.inf, math.nan, "1", None)))
    assert listing([1.0, 2.5]) == "1, 2.5"
    assert listing(range(9)) == "0, 1, 2, 3, 4, ..."
    array = np.arange(3)
    view = read_only(array)
    with pytest.raises(ValueError, match="read-only"):
        view[0] = 1
    array[0] = 1
