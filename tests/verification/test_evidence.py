"""Fingerprints: as documented, however rows are stored. Witnesses: quantised, and in the box."""

import struct
from dataclasses import replace
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from certsvm.files import Witness, load_witness, save_witness
from certsvm.verification.evidence import Fingerprint, FingerprintBuilder
from tests.problems import Case, cases


def plainly(X: Any, labels: list[Any]) -> str:
    """The digest, row by row, from what the documentation says."""
    rows, n_values = [], 0
    for row, label in zip(X, labels, strict=True):
        stored = [(j, float(v)) for j, v in enumerate(row) if v != 0]
        text = isinstance(label, str)
        name = sha256(label.encode()).digest() if text else struct.pack("<d", label)
        entries = b"".join(struct.pack("<qd", j, v) for j, v in stored)
        rows.append(struct.pack("<q", len(stored)) + name + entries)
        n_values += len(stored)
    groups = [sha256(b"".join(rows[i : i + 4096])).digest() for i in range(0, len(rows), 4096)]
    kind = b"s" if isinstance(labels[0], str) else b"n"
    counts = struct.pack("<qq", len(rows), n_values)
    return sha256(counts + kind + b"".join(groups)).hexdigest()


@given(cases())
def test_it_is_as_documented_however_stored(case: Case) -> None:
    X = case.matrix()
    dense = X.toarray() if sp.issparse(X) else X
    found = Fingerprint.of(X, case.labels)
    assert found.digest == plainly(dense, case.labels.tolist())
    assert (found.n_rows, found.n_columns) == dense.shape
    assert found.n_values == np.count_nonzero(dense)
    for other in (dense.astype(np.float64), np.asfortranarray(dense), sp.coo_array(dense),
                  sp.csc_matrix(dense), dense.tolist()):  # fmt: skip
        assert Fingerprint.of(other, case.labels.astype(int)) == found


@given(cases(), st.lists(st.integers(0, 10), max_size=3), st.randoms(use_true_random=False))
def test_it_does_not_depend_on_order_zeros_or_blocks(case: Case, cuts: list[int], rng: Any) -> None:
    X = case.matrix()
    dense = X.toarray() if sp.issparse(X) else X
    n_rows, n_columns = dense.shape
    whole = Fingerprint.of(X, case.labels)
    data, indices, indptr = [], [], [0]
    for row in dense:
        order = rng.sample(range(n_columns), n_columns)
        stored = [j for j in order if row[j] != 0 or rng.random() < 0.5]
        data += [-0.0 if row[j] == 0 else row[j] for j in stored]
        indices += stored
        indptr.append(len(indices))
    messy = sp.csr_matrix((data, indices, indptr), shape=dense.shape)
    assert Fingerprint.of(messy, case.labels) == whole
    assert messy.indices.tolist() == indices
    builder = FingerprintBuilder(n_columns)
    edges = sorted({0, n_rows, *(min(cut, n_rows) for cut in cuts)})
    for first, last in pairwise(edges):
        block = messy if rng.random() < 0.5 else sp.csr_array(dense)
        builder.update(block[first:last], case.labels[first:last])
    assert builder.finish() == whole


@given(cases(), st.data())
def test_a_change_changes_it(case: Case, data: st.DataObject) -> None:
    X = case.X.astype(np.float64)
    before = Fingerprint.of(X, case.labels)
    changed, labels = X.copy(), case.labels.copy()
    i = data.draw(st.integers(0, len(X) - 1))
    j = data.draw(st.integers(0, X.shape[1] - 1))
    changed[i, j] = np.nextafter(changed[i, j], np.inf)
    labels[i] = -labels[i]
    assert Fingerprint.of(changed, case.labels) != before
    assert Fingerprint.of(X, labels) != before
    assert Fingerprint.of(np.column_stack([np.zeros(len(X)), X]), case.labels) != before
    longer = Fingerprint.of(np.column_stack([X, np.zeros(len(X))]), case.labels)
    assert longer != before
    assert longer.digest == before.digest


@pytest.mark.parametrize("labels", [[1, -1], ["ham", "späm"]])
def test_groups_of_rows_in_blocks(labels: list[Any]) -> None:
    rng = np.random.default_rng(0)
    X = sp.random(10_000, 30, density=0.3, format="csr", random_state=rng)
    y = rng.choice(labels, 10_000)
    whole = Fingerprint.of(X, y)
    assert whole == Fingerprint.of(X.toarray(), y)
    assert whole.digest == plainly(X.toarray(), y.tolist())
    edges = [0, 0, 1, 4000, 4095, 4096, 8192, 8200, 8300, 10_000]
    blocks = FingerprintBuilder(30)
    for first, last in pairwise(edges):
        blocks.update(X[first:last], y[first:last])
    assert blocks.finish() == whole


def test_long_rows() -> None:
    X = sp.random(3, 200_000, density=0.4, format="csr", random_state=np.random.default_rng(0))
    assert Fingerprint.of(X, [0, 1, 0]) == Fingerprint.of(X.toarray(), [0, 1, 0])


def test_what_is_stored_twice_is_added() -> None:
    twice = sp.csr_array((np.array([1.0, 2.0, 0.5]), np.array([1, 1, 0]), np.array([0, 3])))
    assert Fingerprint.of(twice, [1]) == Fingerprint.of(np.array([[0.5, 3.0]]), [1])
    assert twice.nnz == 3


def test_labels() -> None:
    X = np.eye(2)
    number = Fingerprint.of(X, [0, 1])
    for same in ([0.0, 1.0], [False, True], [-0.0, 1.0], np.array([0, 1], dtype=object)):
        assert Fingerprint.of(X, same) == number
    text = Fingerprint.of(X, ["0", "1"])
    assert text != number
    assert Fingerprint.of(X, np.array(["0", "1"], dtype=object)) == text
    assert text.digest == plainly(X, ["0", "1"])
    assert Fingerprint.of(X, [0, 2]) != number


def test_kinds_of_labels_do_not_mix_and_columns_have_a_limit() -> None:
    builder = FingerprintBuilder(2)
    builder.update(np.eye(2), [1, 2])
    with pytest.raises(ValueError, match="numbers and others strings"):
        builder.update(np.eye(2), ["1", "2"])
    with pytest.raises(ValueError, match="3 columns, more than the 2"):
        builder.update(np.eye(3), [1, 2, 3])
    builder.update(np.eye(1), [1])
    assert builder.finish() == Fingerprint.of(np.array([[1, 0], [0, 1], [1, 0]]), [1, 2, 1])


BITS = st.sampled_from([8, 16, 32])
sizes = st.just(0.0) | st.floats(5e-324, 1e300)
fractions = st.sampled_from([0.0, 1.0]) | st.floats(0, 1)


@given(st.lists(st.tuples(sizes, fractions), max_size=8), BITS, st.floats(5e-324, 1.0))
def test_quantised_alphas(entries: list[tuple[float, float]], bits: int, scale: float) -> None:
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
def test_quantised_alphas_without_an_end(entries: list[tuple[float, float]], bits: int) -> None:
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
