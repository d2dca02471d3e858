"""Rows and problems, in memory and on streams: what is taken, copied and refused."""

import itertools
import pickle
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from certsvm.certificates.primal import primal_bound
from certsvm.files.streams import BlockStream
from certsvm.problem.base import Objective
from certsvm.problem.problems import Problem, StreamedProblem
from certsvm.problem.rows import Part, Rows
from tests.problems import Case, cases


def csr(**changes: Any) -> sp.csr_matrix:
    """A sound 3 x 4 matrix, with some of its arrays replaced behind SciPy's back."""
    values, indices, indptr = np.arange(1.0, 5.0), np.array([0, 2, 1, 3]), np.array([0, 2, 2, 4])
    X = sp.csr_matrix((values, indices, indptr), (3, 4))
    for name, value in changes.items():
        setattr(X, name, np.asarray(value))
    return X


@pytest.mark.parametrize("values", [np.float32, np.float64])
@pytest.mark.parametrize("indices", [np.int32, np.int64])
@pytest.mark.parametrize("make", [sp.csr_matrix, sp.csr_array])
def test_csr_is_used_in_place(values: Any, indices: Any, make: Any) -> None:
    X = make(csr().astype(values))
    X.indices, X.indptr = X.indices.astype(indices), X.indptr.astype(indices)
    arrays = Rows(X).arrays
    assert np.shares_memory(arrays.values, X.data)
    assert np.shares_memory(arrays.indices, X.indices)
    assert not arrays.values.flags.writeable
    assert X.data.flags.writeable


@pytest.mark.parametrize(
    "X",
    [
        np.asfortranarray([[1.0, 2.0], [3.0, 4.0]]),
        np.array([[1, 2], [3, 4]]),
        np.array([[1.0, 2.0], [3.0, 4.0]], dtype=">f8"),
        np.array([[1.0, 9.0, 2.0], [3.0, 9.0, 4.0]])[:, ::2],
        [[1, 2], [3, 4]],
        sp.csc_matrix([[1.0, 2.0], [3.0, 4.0]]),
        sp.coo_matrix([[1, 2], [3, 4]]),
    ],
    ids=["fortran", "int", "big-endian", "strided", "list", "csc", "coo-int"],
)
def test_other_forms_are_converted(X: Any) -> None:
    np.testing.assert_allclose(Rows(X).squared_norms, [5.0, 25.0])


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("values", [np.float32, np.float64])
def test_non_finite_values_are_located(bad: float, values: Any) -> None:
    word = "NaN" if np.isnan(bad) else "infinity"
    X = np.ones((5, 4), dtype=values)
    X[3, 2] = bad
    with pytest.raises(ValueError, match=f"{word}: row 3, column 2"):
        Rows(X)
    with pytest.raises(ValueError, match=f"{word}: row 3, column 2"):
        Rows(sp.csr_matrix(X))


def test_overflowing_norms_are_refused() -> None:
    with pytest.raises(ValueError, match=r"Row 1 .* overflows .*1e\+200.* Rescale"):
        Rows(np.array([[1.0], [1e200]]))


@pytest.mark.parametrize("intercept_scaling", [-1.0, np.nan, np.inf])
def test_bad_bias(intercept_scaling: float) -> None:
    with pytest.raises(ValueError, match="intercept_scaling"):
        Rows(np.eye(2), intercept_scaling=intercept_scaling)


@given(cases(), st.integers(0, 2**32 - 1))
def test_some_of_the_rows(case: Case, seed: int) -> None:
    rows = Rows(case.matrix(), intercept_scaling=case.intercept_scaling)
    which = np.random.default_rng(seed).integers(rows.n_rows, size=5)
    some = rows.take(which)
    X = case.matrix()
    fresh = Rows(X[which], intercept_scaling=case.intercept_scaling)
    assert (some.n_rows, some.n_columns, some.dimension) == (5, fresh.n_columns, fresh.dimension)
    assert some.n_stored == fresh.n_stored
    assert some.arrays.values.dtype == fresh.arrays.values.dtype
    np.testing.assert_array_equal(some.squared_norms, fresh.squared_norms)
    for k in range(5):
        for a, b in zip(some.matrix[[k]], fresh.matrix[[k]], strict=True):
            assert abs(a - b).sum() == 0.0
    assert not some.arrays.values.flags.writeable


@given(st.lists(st.lists(st.integers(0, 5), max_size=4), min_size=1, max_size=6), st.integers(0, 3))
def test_sparse_rows_of_any_order(rows: list[list[int]], before: int) -> None:
    """Also if they repeat columns, or begin inside larger arrays."""
    indices = np.array([9] * before + [j for row in rows for j in row], dtype=np.int32)
    X = sp.csr_matrix((len(rows), 6))
    X.data, X.indices = np.arange(1.0, indices.size + 1.0), indices
    X.indptr = before + np.cumsum([0, *map(len, rows)])
    dense = np.zeros(X.shape)
    for k in range(len(rows)):
        used = slice(X.indptr[k], X.indptr[k + 1])
        np.add.at(dense[k], X.indices[used], X.data[used])
    checked = Rows(X)
    np.testing.assert_array_equal(checked.matrix.toarray(), dense)
    assert checked.matrix.has_canonical_format
    np.testing.assert_allclose(checked.squared_norms, (dense**2).sum(axis=1))


@pytest.mark.parametrize("form", ["csr", "coo"])
@pytest.mark.parametrize(
    ("dtype", "first", "second"),
    [(np.int8, 100, 100), (np.bool_, True, True), (np.float32, 1e8, 3.0)],
)
def test_entries_stored_twice_are_added(form: str, dtype: Any, first: float, second: float) -> None:
    data = np.array([first, second, 1], dtype=dtype)
    if form == "csr":
        X = sp.csr_matrix((data, [0, 0, 1], [0, 2, 3]), shape=(2, 2))
    else:
        X = sp.coo_matrix((data, ([0, 0, 1], [0, 0, 1])), shape=(2, 2))
    assert Rows(X).matrix[0, 0] == float(first) + float(second)


ROWS = Rows(np.array([[3.0, 4.0], [1.0, 0.0], [0.0, 2.0]]))


def test_arrays_are_writeable_after_unpickling() -> None:
    part = Part(ROWS, np.array([2.0, 0.0, -0.5]), first=10)
    part.signed_weights.flags.writeable = False
    again = pickle.loads(pickle.dumps(part))
    assert again.signed_weights.flags.writeable
    assert not again.rows.arrays.values.flags.writeable
    assert again.signed_weights.tolist() == [2.0, 0.0, -0.5]
    assert again.span == part.span
    np.testing.assert_array_equal(again.rows.matrix, part.rows.matrix)


def test_rows_without_weight_count_as_absent() -> None:
    problem = Problem(ROWS, [1, -1, 1], C=0.5, weights=[0.0, 2.0, 3.0])
    assert problem.m == 2
    assert problem.lambda_ == 1.0
    assert problem.R == 2.0
    assert problem.active.tolist() == [1, 2]
    assert problem.signed_weights.tolist() == [0, -2, 3]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"C": 0.0}, "C must be"),
        ({"C": -1.0}, "C must be"),
        ({"C": float("nan")}, "C must be"),
        ({"C": float("inf")}, "C must be"),
        ({"C": 1e308}, "leave the range"),
        ({"C": 5e-324}, "leave the range"),
        ({"C": 1e155}, "Rescale"),
        ({"C": 1e-149, "weights": [1e-165, 1e-165, 1e-166]}, "Rescale"),
        ({"weights": [1e300, 1, 1]}, "Rescale"),
        ({"labels": [1, 0, 1]}, r"\+1 or -1, and there is 0: .* np.where\(y == positive, 1, -1\)"),
        ({"labels": [1, -1]}, r"labels must have shape \(3,\)"),
        ({"weights": [1, -1, 1]}, "not negative"),
        ({"weights": [1, float("nan"), 1]}, "finite"),
        ({"weights": [1, 1]}, r"weights must have shape \(3,\)"),
        ({"weights": [0, 0, 0]}, "no row has a positive weight"),
    ],
)
def test_what_is_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Problem(ROWS, **({"labels": [1, -1, 1]} | arguments))


@given(cases(weighted=True), st.integers(0, 9))
def test_a_sample_keeps_the_weight_of_the_loss(case: Case, seed: int) -> None:
    problem = case.problem()
    which = np.random.default_rng(seed).permutation(problem.active)[: 1 + seed % problem.m]
    sample = problem.sample(which)
    assert sample.m == which.size
    assert sample.C * sample.weight_sum == pytest.approx(problem.C * problem.weight_sum)
    np.testing.assert_array_equal(sample.signed_weights, problem.signed_weights[which])


row = st.tuples(
    st.lists(st.integers(-2, 2), min_size=2, max_size=2),
    st.integers(0, 2),
    st.sampled_from([0.0, 0.5, 1.0, 3.0]),
)


@given(
    st.lists(row, min_size=3, max_size=12),
    st.lists(st.integers(1, 11), max_size=3),
    st.integers(0, 2),
    st.booleans(),
)
def test_streams_agree_with_memory(
    data: list[Any], cuts: list[int], positive: int, weighted: bool
) -> None:
    X = np.array([x for x, _, _ in data], dtype=np.float64)
    y = np.array([label for _, label, _ in data])
    # Every class and a positive weight must occur.
    y[:3] = 0, 1, 2
    s = np.array([weight for _, _, weight in data]) if weighted else np.ones(len(y))
    s[0] = 1.0
    factors = np.array([1.0, 0.5, 2.0])
    edges = sorted({0, *(cut for cut in cuts if cut < len(y)), len(y)})
    blocks = [
        (X[a:b], y[a:b], s[a:b]) if weighted else (X[a:b], y[a:b])
        for a, b in itertools.pairwise(edges)
    ]
    stream = BlockStream(lambda: blocks, intercept_scaling=0.5)
    streamed = StreamedProblem(stream, positive, Objective(C=2.0), class_factors=factors)
    labels, weights = np.where(y == positive, 1, -1), s * factors[y]
    whole = Problem(Rows(X, intercept_scaling=0.5), labels, C=2.0, weights=weights)
    for name in ("n_rows", "m", "dimension", "C", "lambda_", "R", "largest_weight"):
        assert getattr(streamed, name) == getattr(whole, name), name
    assert streamed.weight_sum == pytest.approx(whole.weight_sum)
    np.testing.assert_array_equal(streamed.weights, whole.weights)
    parts = list(streamed.parts())
    assert [part.span for part in parts] == [slice(a, b) for a, b in itertools.pairwise(edges)]
    signed = np.concatenate([part.signed_weights for part in parts])
    np.testing.assert_array_equal(signed, whole.signed_weights)
    w = np.array([0.5, -1.0, 0.25])
    ours, theirs = primal_bound(streamed, w), primal_bound(whole, w)
    assert ours.low <= theirs.high
    assert theirs.low <= ours.high
