"""Witnesses: in the box without exception, and back from a file as they were."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from certsvm.files import Witness, load_witness, save_witness

BITS = st.sampled_from([8, 16, 32])
sizes = st.just(0.0) | st.floats(5e-324, 1e300)
fractions = st.sampled_from([0.0, 1.0]) | st.floats(0, 1)


@given(st.lists(st.tuples(sizes, fractions), max_size=8), BITS, st.floats(5e-324, 1.0))
def test_quantised_alphas_stay_in_the_box(
    entries: list[tuple[float, float]], bits: int, scale: float
) -> None:
    box = np.array([b for b, _ in entries])
    alpha = np.minimum(box, box * np.array([f for _, f in entries]))
    witness = Witness.quantise(alpha, box, bits)
    assert witness.bits == bits
    found = witness.alpha(0, box)
    assert ((found >= 0) & (found <= box)).all()
    assert (found[alpha == 0] == 0).all()
    assert (found[alpha == box] == box[alpha == box]).all()
    step = 0.5 / (2**bits - 1) + 1e-15
    assert (np.abs(found - alpha) <= box * step + 5e-324).all()
    scaled = replace(witness, scale=np.array([scale])).alpha(0, box)
    assert ((scaled >= 0) & (scaled <= box)).all()
    # Below, what the scale leaves has few bits.
    assert scale < 1e-290 or np.allclose(scaled, scale * found, rtol=1e-15, atol=1e-323)
    # In blocks, the same.
    blocks = [witness.alpha(0, box[:2]), witness.alpha(0, box[2:], 2)]
    assert np.array_equal(np.concatenate(blocks), found)


@given(st.lists(st.tuples(st.floats(1e-300, 1e100), st.floats(0, 1e100)), max_size=8), BITS)
def test_quantised_alphas_without_an_upper_end(
    entries: list[tuple[float, float]], bits: int
) -> None:
    box, multiples = np.array([b for b, _ in entries]), np.array([m for _, m in entries])
    alpha = box * multiples
    largest = float((alpha / box).max(initial=1e-300))
    found = Witness.quantise(alpha, box, bits, scale=largest).alpha(0, box)
    assert (found >= 0).all()
    step = (0.5 / (2**bits - 1) + 1e-15) * largest
    assert (np.abs(found - alpha) <= box * step + 1e-300).all()


def test_round_trip(tmp_path: Path) -> None:
    witness = Witness(np.array([[0, 9], [3, 2**16 - 1]], np.uint16), np.array([1.0, 0.3]))
    save_witness(tmp_path / "witness", witness, "1" * 32)
    found, about = load_witness(tmp_path / "witness")
    assert about == "1" * 32
    for name, values in vars(witness).items():
        np.testing.assert_array_equal(getattr(found, name), values, strict=True)


@pytest.mark.parametrize(
    ("codes", "scale"),
    [
        (np.zeros((1, 2)), np.ones(1)),
        (np.zeros(2, np.uint8), np.ones(1)),
        (np.zeros((1, 2), np.uint8), np.ones(2)),
        (np.zeros((1, 2), np.uint8), np.zeros(1)),
        (np.zeros((1, 2), np.uint8), np.array([np.nan])),
    ],
)
def test_witnesses_that_cannot_be(codes: Any, scale: Any) -> None:
    with pytest.raises(ValueError, match=r"codes|scales"):
        Witness(codes, scale)


@pytest.mark.parametrize(
    ("alpha", "box", "bits", "scale"),
    [
        (1.1, 1.0, 8, 1.0), (-0.1, 1.0, 8, 1.0), (np.nan, 1.0, 8, 1.0), (1.0, 0.0, 8, 1.0),
        (1.0, np.inf, 8, 1.0), (1.0, 1.0, 12, 1.0), (2.1, 1.0, 8, 2.0),
    ],
)  # fmt: skip
def test_what_cannot_be_quantised(alpha: float, box: float, bits: int, scale: float) -> None:
    with pytest.raises(ValueError, match=r"box|bits"):
        Witness.quantise(np.array([alpha]), np.array([box]), bits, scale=scale)
