"""No path reads a sparse matrix before its indices were checked, or masked or complex data."""

import io
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from certsvm import LinearSVC, Model, Problem, Rows, bound, compare, fit_path, fit_stream
from certsvm.files import save_libsvm
from certsvm.matrices import checked_csr, checked_matrix, refuse_broken
from certsvm.verification.evidence import Fingerprint
from certsvm.verification.verify import verify, verify_model

FAR = 2**31 - 1
# These are given what others have checked.
INNER = ("Fingerprint", "checked_csr")
SMALL = np.array([[1.0, 0.0, 2.0], [0.0, 3.0, 0.0], [4.0, 0.0, 5.0], [0.0, 6.0, 0.0]])
Y = np.array([1, -1, 1, -1])


def with_changed(form: str, **arrays: Any) -> Any:
    """A small matrix in a format, with an attribute's array changed at a place to a value."""
    X = sp.csr_matrix(SMALL).asformat(form)
    for name, change in arrays.items():
        array = getattr(X, name)
        if isinstance(change, tuple):
            array[change[0]] = change[1]
        else:
            setattr(X, name, change(array))
    return X


def broken() -> dict[str, Any]:
    cases: dict[str, Any] = {}
    for form in ("csr", "csc", "bsr"):
        for value in (-1, -FAR, 4, FAR):
            cases[f"{form}, index {value}"] = with_changed(form, indices=(0, value))
        for value in (-1, -FAR, 40, FAR):
            cases[f"{form}, offset {value}"] = with_changed(form, indptr=(1, value))
        cases[f"{form}, starts at -1"] = with_changed(form, indptr=(0, -1))
        cases[f"{form}, ends too late"] = with_changed(form, indptr=(-1, 10**9))
        cases[f"{form}, too few offsets"] = with_changed(form, indptr=lambda a: a[:-1])
        cases[f"{form}, too few indices"] = with_changed(form, indices=lambda a: a[:-1])
        cases[f"{form}, too few values"] = with_changed(form, data=lambda a: a[:-1])
        cases[f"{form}, real indices"] = with_changed(form, indices=lambda a: a + 0.5)
    for value in (-1, 4, FAR):
        cases[f"coo, row {value}"] = with_changed("coo", row=(0, value))
        cases[f"coo, column {value}"] = with_changed("coo", col=(0, value))
    cases["coo, too few values"] = with_changed("coo", data=lambda a: a[:-1])
    lil = sp.csr_matrix(SMALL).tolil()
    lil.rows[0] = [0, FAR]
    cases["lil, column"] = lil
    lil = sp.csr_matrix(SMALL).tolil()
    lil.data[0] = [1.0] * 100
    cases["lil, lengths"] = lil
    dia = sp.csr_matrix(SMALL).todia()
    dia.offsets = np.append(dia.offsets, 1)
    cases["dia, offsets"] = dia
    return cases


BROKEN = broken()
FITTED = LinearSVC(random_state=0, store_dual=True).fit(SMALL, Y)
MODEL = Model.from_estimator(FITTED)
# The sparse formats that a compiled function would turn into CSR are of the same shape as these.
PATHS: dict[str, Callable[[Any], object]] = {
    "Rows": Rows,
    "fit": lambda X: LinearSVC().fit(X, Y),
    "partial_fit": lambda X: LinearSVC().partial_fit(X, Y, classes=[-1, 1]),
    "predict": FITTED.predict,
    "decision_function": FITTED.decision_function,
    "score": lambda X: FITTED.score(X, Y),
    "fit_path": lambda X: fit_path(LinearSVC(), X, Y, [1.0]),
    "verify": lambda X: verify(FITTED, X, Y),
    "verify_model": lambda X: verify_model(MODEL, [(X, Y)]),
    "Model.predict": MODEL.predict,
    "Model.decision_function": MODEL.decision_function,
    "bound": lambda X: bound(FITTED, X, Y),
    "compare": lambda X: compare(X, Y, solvers=["dcd"]),
    "fit_stream": lambda X: fit_stream(lambda: [(X, Y)]),
    "Fingerprint": lambda X: Fingerprint.of(X, Y),
    "save_libsvm": lambda X: save_libsvm(io.BytesIO(), X, Y),
    "checked_matrix": checked_matrix,
    "checked_csr": checked_csr,
}


@pytest.mark.parametrize("path", PATHS)
def test_broken_matrices_are_refused_on_every_path(path: str) -> None:
    for X in BROKEN.values():
        with pytest.raises(ValueError, match=r"broken \w+ matrix"):
            PATHS[path](X)


@pytest.mark.parametrize("path", [path for path in PATHS if path not in INNER])
def test_masked_and_complex_rows_are_refused(path: str) -> None:
    with pytest.raises(ValueError, match="X has masked entries"):
        PATHS[path](np.ma.MaskedArray(SMALL, SMALL > 4))
    for rows in (SMALL + 0.5j, sp.csr_matrix(SMALL + 0.5j)):
        with pytest.raises(ValueError, match=r"must hold real numbers|Complex data not supported"):
            PATHS[path](rows)


# With labels y and weights s.
TAKE_LABELS: dict[str, Callable[[Any, Any], Any]] = {
    "fit": lambda y, s: LinearSVC().fit(SMALL, y, sample_weight=s),
    "partial_fit": lambda y, s: LinearSVC().partial_fit(SMALL, y, [-1, 1], sample_weight=s),
    "fit_path": lambda y, s: fit_path(LinearSVC(), SMALL, y, [1.0], sample_weight=s),
    "bound": lambda y, s: bound(FITTED, SMALL, y, sample_weight=s),
    "compare": lambda y, s: compare(SMALL, y, solvers="dcd", sample_weight=s),
    "Problem": lambda y, s: Problem(Rows(SMALL), y, weights=s),
}


@pytest.mark.parametrize("way", TAKE_LABELS)
def test_labels_and_weights_with_masked_entries(way: str) -> None:
    with pytest.raises(ValueError, match="has masked entries"):
        TAKE_LABELS[way](np.ma.array(Y, mask=Y > 0), np.ones(4))
    with pytest.raises(ValueError, match=r"weights? has masked entries"):
        TAKE_LABELS[way](Y, np.ma.array(np.ones(4), mask=Y > 0))


def test_a_mask_that_hides_nothing_is_no_obstacle() -> None:
    complete = np.ma.array(SMALL, mask=np.zeros(SMALL.shape, dtype=bool))
    np.testing.assert_array_equal(FITTED.predict(complete), FITTED.predict(SMALL))


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("form", ["csr", "csc", "coo", "bsr", "lil", "dok", "dia"])
def test_whole_matrices_of_all_formats_pass(path: str, form: str) -> None:
    PATHS[path](sp.csr_matrix(SMALL).asformat(form))


@given(
    # Offsets that are right as a rule, so that the indices matter.
    st.one_of(
        st.lists(st.integers(0, 4), min_size=4, max_size=4).map(sorted),
        st.lists(st.integers(-3, 6), min_size=1, max_size=5),
    ),
    st.lists(st.integers(-1, 4), min_size=3, max_size=5),
    st.integers(3, 5),
    st.integers(3, 4),
)
def test_a_matrix_passes_if_and_only_if_it_is_whole(
    indptr: list[int], indices: list[int], n_values: int, n_columns: int
) -> None:
    n_rows = 3
    X = sp.csr_matrix((n_rows, n_columns))
    X.indptr, X.indices = np.array(indptr), np.array(indices, dtype=np.int64)
    X.data = np.ones(n_values)
    whole = (
        len(indptr) == n_rows + 1
        and indptr[0] >= 0
        and indptr == sorted(indptr)
        and indptr[-1] <= min(len(indices), n_values)
        and all(0 <= j < n_columns for j in indices[indptr[0] : indptr[-1]])
    )
    if whole:
        refuse_broken(X)
    else:
        with pytest.raises(ValueError, match="broken CSR matrix"):
            refuse_broken(X)
