"""Witnesses: in the box without exception, and back from a file as they were."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from certsvm.certificates.certificate import Certificate
from certsvm.files import WeightsWitness, Witness, load_witness, save_witness
from certsvm.verification.interval_arithmetic import RowBlock
from tests.problems import Case, cases, exact, exact_dot

BITS = st.sampled_from([8, 16, 32])
sizes = st.just(0.0) | st.floats(5e-324, 1e300)
fractions = st.sampled_from([0.0, 1.0]) | st.floats(0, 1)


@given(st.lists(st.tuples(sizes, fractions), max_size=8), BITS, st.floats(5e-324, 1.0))
def test_quantised_alphas_stay_in_the_box(
    entries: list[tuple[float, float]], bits: int, scale: float
) -> None:
    box = np.array([b for b, _ in entries])
    alpha = np.minimum(box, box * np.array([f for _, f in entries]))
    witness = Witness.quantise(alpha[np.newaxis], box, bits)
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


@given(cases(), st.floats(0, 1e308), st.floats(-1e150, 1e150), st.data())
def test_alphas_from_weights_stay_in_the_box(
    case: Case, sigma: float, size: float, data: st.DataObject
) -> None:
    Y, weights = case.patterns(), case.row_weights()
    v = data.draw(hnp.arrays(np.float64, Y.shape[1], elements=st.floats(-1, 1))) * size
    witness = WeightsWitness(v[np.newaxis], np.array([sigma]))
    box, signs = case.C * weights, np.ones(weights.size)
    alpha, _, _ = witness.alpha_of(0, claim(C=case.C), block_of(Y), signs, weights, 0)
    assert ((alpha >= 0) & (alpha <= box)).all()


def block_of(X: NDArray[np.float64]) -> RowBlock:
    rows, columns = np.indices(X.shape)
    return RowBlock(X.ravel(), rows.ravel(), columns.ravel(), *X.shape)


def claim(**numbers: float) -> Certificate:
    return Certificate(primal=1.0, dual=0.5, target=0.01, **numbers)


@given(BITS, st.integers(0, 5), st.data())
def test_quantised_alphas_of_blocks(bits: int, cut: int, data: st.DataObject) -> None:
    codes = data.draw(hnp.arrays(f"u{bits // 8}", (2, 5)))
    witness = Witness(codes, np.array([1.0, 0.3]))
    weights, nothing = np.array([1.0, 0.0, 2.0, 0.1, 3.0]), np.empty(0)
    no_rows = block_of(np.empty((0, 1)))
    claimed = claim(C=0.7, scale=0.5)
    for i in range(2):
        parts = [
            witness.alpha_of(i, claimed, no_rows, nothing, weights[part], part.start)[0]
            for part in (slice(0, cut), slice(cut, 5))
        ]
        assert np.array_equal(np.concatenate(parts), witness.alpha(i, 0.7 * weights))
    with pytest.raises(ValueError, match="rows"):
        witness.alpha_of(0, claimed, no_rows, nothing, weights, 1)


@given(st.lists(st.tuples(st.floats(1e-300, 1e100), st.floats(0, 1e100)), max_size=8), BITS)
def test_quantised_alphas_without_an_upper_end(
    entries: list[tuple[float, float]], bits: int
) -> None:
    box, multiples = np.array([b for b, _ in entries]), np.array([m for _, m in entries])
    alpha = box * multiples
    witness = Witness.quantise(alpha[np.newaxis], box, bits, loss="squared_hinge")
    found = witness.alpha(0, box, "squared_hinge")
    assert (found >= 0).all()
    assert (found[alpha == 0] == 0).all()
    step = (0.5 / (2**bits - 1) + 1e-15) * multiples.max(initial=0.0)
    assert (np.abs(found - alpha) <= box * step + 1e-300).all()
    if witness.scale[0] > 1.0:
        with pytest.raises(ValueError, match="about the hinge needs scales of at most 1"):
            witness.alpha(0, box)


@given(st.data(), st.sampled_from([0.0, 1.0, 0.3, 1.7]), st.sampled_from([1e-3, 1.0, 1e9]))
def test_the_uncertainty_of_alphas_of_the_squared_hinge(
    data: st.DataObject, scale: float, C: float
) -> None:
    numbers = st.one_of(st.integers(-3, 3).map(float), st.floats(-1e6, 1e6))
    X = data.draw(hnp.arrays(np.float64, (3, 2), elements=numbers))
    v = data.draw(hnp.arrays(np.float64, 3, elements=numbers))
    weights = data.draw(hnp.arrays(np.float64, 3, elements=st.sampled_from([0.0, 0.1, 1.0, 7.0])))
    signs = np.array([1.0, -1.0, 1.0])
    claimed = replace(claim(C=C, scale=scale, intercept_scaling=0.3), loss="squared_hinge")
    witness = WeightsWitness(v[np.newaxis], np.ones(1))
    alpha, uncertainty, _ = witness.alpha_of(0, claimed, block_of(X), signs, weights, 0)
    for k in range(3):
        margin = exact(signs[k]) * (exact_dot(X[k], v[:2]) + exact(0.3) * exact(v[2]))
        box = exact(C) * exact(weights[k])
        true = exact(scale) * 2 * box * max(Fraction(0), 1 - margin)
        assert abs(exact(alpha[k]) - true) <= exact(uncertainty[k])
        assert uncertainty[k] <= 1e-9 * (1 + C) * (1 + abs(margin) + (X[k] @ X[k]) * (v @ v))


def test_an_alpha_beyond_the_largest_number() -> None:
    huge = np.array([1e308])
    codes = np.full((1, 1), 255, np.uint8)
    with pytest.raises(ValueError, match="beyond the largest number"):
        Witness(codes, np.array([10.0])).alpha(0, huge, "squared_hinge")
    with pytest.raises(ValueError, match="beyond the largest number"):
        WeightsWitness(np.ones((1, 1)), np.ones(1)).alpha_of(
            0, replace(claim(), loss="squared_hinge"), block_of(np.array([[-9.0]])), np.ones(1),
            huge, 0,
        )  # fmt: skip
    for alpha, box in (([[1.0]], [0.0]), ([[np.inf]], [1.0]), ([[-1.0]], [1.0])):
        with pytest.raises(ValueError, match="leaves its box"):
            Witness.quantise(alpha, box, loss="squared_hinge")


@pytest.mark.parametrize(
    "witness",
    [
        Witness(np.array([[0, 9], [3, 2**16 - 1]], np.uint16), np.array([1.0, 0.3])),
        WeightsWitness(np.arange(6.0).reshape(2, 3) / 3, np.array([0.1, 0.0])),
    ],
)
def test_round_trip(tmp_path: Path, witness: Witness | WeightsWitness) -> None:
    save_witness(tmp_path / "witness", witness, "1" * 32)
    found, about = load_witness(tmp_path / "witness")
    assert (type(found), about) == (type(witness), "1" * 32)
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
    ("vectors", "sigma"),
    [
        (np.ones(2), np.ones(1)),
        (np.ones((2, 2)), np.ones(1)),
        (np.array([[np.nan]]), np.ones(1)),
        (np.ones((1, 2)), np.array([-1.0])),
    ],
)
def test_weights_witnesses_that_cannot_be(vectors: Any, sigma: Any) -> None:
    with pytest.raises(ValueError, match="vectors"):
        WeightsWitness(vectors, sigma)


@pytest.mark.parametrize(
    ("alpha", "box", "bits"),
    [
        ([[1.1]], [1.0], 8),
        ([[1.0]], [np.inf], 8),
        ([[1.0]], [1.0], 12),
        ([1.0], [1.0], 8),
    ],
)
def test_what_cannot_be_quantised(alpha: Any, box: Any, bits: int) -> None:
    with pytest.raises(ValueError, match=r"box|bits|matrix"):
        Witness.quantise(alpha, box, bits)
