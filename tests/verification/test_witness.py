"""Witnesses: in the box without exception, and back from a file as they were."""

from __future__ import annotations

import tempfile
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
from certsvm.files.container import ModelFileError, read_container, write_container
from certsvm.verification.fingerprint import Fingerprint
from certsvm.verification.interval_arithmetic import RowBlock
from certsvm.verification.witness import squared_response_uncertainty
from tests.problems import Case, cases, exact, exact_dot

BITS = st.sampled_from([8, 16, 32])
sizes = st.just(0.0) | st.floats(5e-324, 1e300)
fractions = st.sampled_from([0.0, 1.0]) | st.floats(0, 1)


def fingerprint(n_rows: int, n_columns: int = 2) -> Fingerprint:
    return Fingerprint(n_rows, n_columns, 0, "0" * 64)


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


@given(BITS, st.integers(0, 2**32 - 1), st.floats(0, 1e300), st.floats(5e-324, 1.0))
def test_no_code_leaves_the_box(bits: int, code: int, box: float, scale: float) -> None:
    codes = np.array([[code % 2**bits]], dtype=f"u{bits // 8}")
    (alpha,) = Witness(codes, np.array([scale])).alpha(0, np.array([box]))
    assert 0 <= alpha <= box


@given(cases(), st.floats(0, 1e308), st.floats(-1e150, 1e150), st.data())
def test_alphas_from_weights_stay_in_the_box(
    case: Case, sigma: float, size: float, data: st.DataObject
) -> None:
    Y, weights = case.patterns(), case.row_weights()
    v = data.draw(hnp.arrays(np.float64, Y.shape[1], elements=st.floats(-1, 1))) * size
    witness = WeightsWitness(v[np.newaxis], np.array([sigma]))
    box = case.C * weights
    alpha = witness.alpha(0, box, weights, Y @ v)
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


def test_uncertain_margins_make_uncertain_alphas() -> None:
    box, margins = np.array([1.0, 1.0, 1.0, 0.0]), np.array([0.0, 1.05, 1.2, 0.0])
    weights, error = np.array([1.0, 1.0, 1.0, 0.0]), np.full(4, 0.1)
    off = squared_response_uncertainty(box, weights, 3.0, margins, error)
    # With a margin of -0.1 or 0.95, alpha is 6.6 or 0.3 instead of 6 or 0.
    assert 0.6 <= off[0] < 0.62
    assert 0.3 <= off[1] < 0.62
    assert off[2:].tolist() == [0.0, 0.0]


def test_an_alpha_beyond_the_largest_number() -> None:
    huge = np.array([1e308])
    codes = np.full((1, 1), 255, np.uint8)
    with pytest.raises(ValueError, match="beyond the largest number"):
        Witness(codes, np.array([10.0])).alpha(0, huge, "squared_hinge")
    with pytest.raises(ValueError, match="beyond the largest number"):
        WeightsWitness(np.ones((1, 1)), np.ones(1)).alpha(
            0, huge, huge, np.array([-9.0]), "squared_hinge"
        )
    for alpha, box in (([[1.0]], [0.0]), ([[np.inf]], [1.0]), ([[-1.0]], [1.0])):
        with pytest.raises(ValueError, match="leaves its box"):
            Witness.quantise(alpha, box, loss="squared_hinge")


@given(
    BITS.flatmap(
        lambda bits: hnp.arrays(f"u{bits // 8}", st.tuples(st.just(2), st.integers(0, 5)))
    ),
    hnp.arrays(np.float64, 2, elements=st.floats(5e-324, 1e300)),
)
def test_quantised_round_trip(codes: Any, scale: Any) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "witness"
        save_witness(path, Witness(codes, scale), "0" * 32)
        found, about = load_witness(path)
        assert isinstance(found, Witness)
        assert about == "0" * 32
        assert found.codes.dtype == codes.dtype
        assert np.array_equal(found.codes, codes)
        assert np.array_equal(found.scale, scale)


@pytest.mark.parametrize("dimension", [2, 3])
def test_weights_round_trip(tmp_path: Path, dimension: int) -> None:
    vectors = np.arange(2.0 * dimension).reshape(2, dimension) / 3
    save_witness(tmp_path / "w", WeightsWitness(vectors, np.array([0.1, 0.0])), "1" * 32)
    found, about = load_witness(tmp_path / "w")
    assert isinstance(found, WeightsWitness)
    assert np.array_equal(found.vectors, vectors)
    assert found.sigma.tolist() == [0.1, 0.0]
    assert about == "1" * 32


@pytest.mark.parametrize(
    ("codes", "scale"),
    [
        (np.zeros((1, 2)), np.ones(1)),
        (np.zeros((1, 2), np.int8), np.ones(1)),
        (np.zeros((1, 2), np.uint64), np.ones(1)),
        (np.zeros(2, np.uint8), np.ones(1)),
        (np.zeros((1, 2), np.uint8), np.ones(2)),
        (np.zeros((1, 2), np.uint8), np.zeros(1)),
        (np.zeros((1, 2), np.uint8), np.array([np.inf])),
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
        (np.ones((1, 2)), np.array([np.inf])),
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
        ([[-0.1]], [1.0], 8),
        ([[np.nan]], [1.0], 8),
        ([[1.0]], [np.inf], 8),
        ([[1.0]], [1.0], 12),
        ([1.0], [1.0], 8),
    ],
)
def test_what_cannot_be_quantised(alpha: Any, box: Any, bits: int) -> None:
    with pytest.raises(ValueError, match=r"box|bits|matrix"):
        Witness.quantise(alpha, box, bits)


@pytest.mark.parametrize(
    ("content", "arrays"),
    [
        ({"form": "other"}, {}),
        ({"form": ["quantised"]}, {}),
        ({"form": "weights"}, {}),
        ({}, {"scale": np.zeros(1)}),
        ({}, {"codes": np.zeros((1, 2), np.int64)}),
    ],
)
def test_right_digest_wrong_content(
    tmp_path: Path, content: dict[str, Any], arrays: dict[str, Any]
) -> None:
    path = tmp_path / "w"
    save_witness(path, Witness(np.zeros((1, 2), np.uint8), np.ones(1)), "")
    found = read_container(path, "witness")
    write_container(path, "witness", found.content | content, found.arrays | arrays)
    with pytest.raises(ModelFileError, match="holds no valid witness"):
        load_witness(path)
