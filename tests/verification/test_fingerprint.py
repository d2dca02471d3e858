"""The same data have the same fingerprint, other data another."""

from __future__ import annotations

import struct
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import xxhash
from hypothesis import given
from hypothesis import strategies as st

from certsvm.verification import fingerprint as module
from certsvm.verification.fingerprint import Fingerprint, FingerprintBuilder
from tests.problems import Case, cases


def plainly(X: Any, labels: list[Any]) -> str:
    """The digest, row by row, from what the documentation says."""
    lengths, columns, values, names = b"", b"", b"", b""
    for row, label in zip(X, labels, strict=True):
        stored = [(j, float(v)) for j, v in enumerate(row) if v != 0]
        lengths += struct.pack("<q", len(stored))
        columns += b"".join(struct.pack("<q", j) for j, _ in stored)
        values += b"".join(struct.pack("<d", v) for _, v in stored)
        if isinstance(label, str):
            names += xxhash.xxh3_128(label.encode()).digest()
        else:
            names += struct.pack("<d", label)
    kind = b"s" if isinstance(labels[0], str) else b"n"
    streams = [xxhash.xxh3_128(stream).digest() for stream in (lengths, columns, values, names)]
    start = struct.pack("<qq", len(labels), len(values) // 8) + kind
    return xxhash.xxh3_128(start + b"".join(streams)).hexdigest()


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


def test_many_rows_and_long_rows_are_cut_inside() -> None:
    rng = np.random.default_rng(0)
    X = sp.random(3, 200_000, density=0.4, format="csr", random_state=rng)
    dense = X.toarray()
    assert X.nnz > 3 * module._AT_ONCE / 2
    assert Fingerprint.of(X, [0, 1, 0]) == Fingerprint.of(dense, [0, 1, 0])
    tall = sp.csr_array((150_000, 2))
    builder = FingerprintBuilder(2)
    for _ in range(3):
        builder.update(tall[:50_000], np.ones(50_000))
    assert builder.finish() == Fingerprint.of(tall, np.ones(150_000))


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
