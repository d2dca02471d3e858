"""verify() finds what is false."""

import ctypes
import platform
import sys
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import make_classification
from sklearn.pipeline import make_pipeline

from certsvm import LinearSVC, Model, fit_stream, verify, verify_model
from certsvm.files import Witness
from certsvm.fitting.fit_model import joined
from certsvm.verification.evidence import Fingerprint
from certsvm.verification.verify import VerificationReport


def data(n_classes: int = 2, seed: int = 0) -> tuple[Any, Any]:
    return make_classification(300, 12, n_informative=8, n_classes=n_classes, random_state=seed)


PARAMETERS = {
    "C": st.sampled_from([0.01, 1.0]),
    "solver": st.sampled_from(["sgd-s", "sgd-m", "newton", "working-set"]),
    "loss": st.sampled_from(["hinge", "squared_hinge"]),
    "fit_intercept": st.booleans(),
    "penalize_intercept": st.booleans(),
    "class_weight": st.sampled_from([None, "balanced", {0: 2.0, 1: 0.5}]),
}


@given(
    st.sampled_from(["dense", "csr", "csc", "float32"]), st.sampled_from([2, 4]), st.booleans(),
    st.fixed_dictionaries(PARAMETERS),
)  # fmt: skip
def test_true_certificates_are_confirmed(
    form: str, n_classes: int, weighted: bool, parameters: dict[str, Any]
) -> None:
    if parameters["solver"].startswith("sgd"):
        parameters |= {"loss": "hinge", "penalize_intercept": True}
    X, y = data(n_classes)
    X = {"csr": sp.csr_matrix, "csc": sp.csc_array, "float32": np.float32}.get(form, np.asarray)(X)
    weights = np.linspace(0, 2, len(y)) if weighted else None
    how: Any = {"tol": 0.05, "random_state": 0, "store_dual": True, "max_iter": 100}
    clf = LinearSVC(intercept_scaling=2.0, **how, **parameters)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("warnings.warn", lambda *a, **k: None)
        clf.fit(X, y, sample_weight=weights)
    report = verify(clf, X, y, sample_weight=weights)
    assert len(report) == len(clf.certificates_)
    assert report.ok, str(report)
    assert report.dual_verified
    for verification, certificate in zip(report, clf.certificates_, strict=True):
        gap = pytest.approx(certificate.relative_gap, rel=1e-6, abs=1e-12)
        assert verification.relative_gap == gap
        assert certificate.loss == clf.loss
        assert certificate.penalize_intercept == (clf.penalize_intercept or not clf.fit_intercept)


@pytest.fixture
def fitted() -> tuple[LinearSVC, Any, Any]:
    X, y = data()
    return LinearSVC(C=0.1, random_state=0, store_dual=True).fit(X, y), X, y


def test_without_alpha_the_dual_bound_is_only_claimed() -> None:
    X, y = data()
    clf = LinearSVC(C=0.1, random_state=0).fit(X, y)
    assert not hasattr(clf, "dual_coef_")
    report = verify(clf, X, y)
    assert report.ok
    assert not report.dual_verified
    assert report[0].dual is None
    assert "claimed, not verified" in str(report)


@pytest.mark.parametrize(
    "change",
    [
        lambda clf, X, y: setattr(clf, "coef_", clf.coef_ * 1.001),
        lambda clf, X, y: setattr(clf, "coef_", np.full_like(clf.coef_, np.nan)),
        lambda clf, X, y: setattr(clf, "dual_coef_", clf.dual_coef_ * 0.5),
        lambda clf, X, y: clf.dual_coef_.put(3, -1e-9),
        lambda clf, X, y: clf.dual_coef_.put(3, np.nan),
        lambda clf, X, y: clf.dual_coef_.put(3, np.nextafter(0.1, 1)),
        lambda clf, X, y: X.__imul__(1.01),
        lambda clf, X, y: y.put(5, 1 - y[5]),
    ],
)
def test_what_was_changed_is_refuted(fitted: Any, change: Any) -> None:
    clf, X, y = fitted
    assert verify(clf, X, y, sample_weight=1.0).dual_verified
    assert not verify(clf, X, y, sample_weight=1.001).ok
    change(clf, X, y)
    report = verify(clf, X, y)
    assert report.verdict == "refuted"
    assert "DOES NOT MATCH" in str(report)


def test_what_is_no_certified_model() -> None:
    with pytest.raises(ValueError, match=r"this Pipeline has no certificate .* its last step"):
        verify(make_pipeline(LinearSVC()), *data())


@pytest.mark.parametrize(
    "change",
    [
        lambda X, y: (X[:-1], y),
        lambda X, y: (X[:, :-1], y),
        lambda X, y: (X, np.where(y == 0, 7, y)),
        lambda X, y: (X[:-1], y[:-1]),
    ],
)
def test_data_that_does_not_fit(fitted: Any, change: Any) -> None:
    clf, X, y = fitted
    with pytest.raises(ValueError, match=r"rows|columns|labels|dual variables"):
        verify(clf, *change(X, y))


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda m: {"coef_": np.vstack([m.coef_] * 2), "intercept_": np.zeros(2)}, "do not belong"),
        (lambda m: {"class_weight_": np.ones(3)}, "do not belong"),
        (lambda m: {"coef_": m.coef_ + 1e6j}, "must be float64, got complex128"),
        (lambda m: {"intercept_": m.intercept_ + 1e6j}, "must be float64, got complex128"),
        (lambda m: {"coef_": m.coef_.astype(object)}, "must be float64, got object"),
    ],
    ids=["more", "factors", "complex", "complex intercept", "objects"],
)
def test_no_part_of_a_model_is_left_out(
    fitted: Any, change: Any, message: str, exact: bool
) -> None:
    clf, X, y = fitted
    vars(clf).update(change(clf))
    with pytest.raises(ValueError, match=message):
        verify(clf, X, y, exact=exact)


def test_a_model_of_several_classes_with_its_witness() -> None:
    X, y = data(4)
    clf = LinearSVC(C=0.1, random_state=0, store_dual=True).fit(X, y)
    box = np.full(len(y), 0.1)
    witness = joined([Witness.quantise(alpha, box, bits=32) for alpha in clf.dual_coef_])
    assert witness is not None
    made = Model.from_estimator(clf, Fingerprint.of(X, y))
    model = replace(made, witness=witness)

    def report(n_rows: int, *cuts: int) -> VerificationReport:
        parts = pairwise((0, *cuts, n_rows))
        return verify_model(model, [(X[a:b], y[a:b]) for a, b in parts])

    for cuts in ((), (100,), (1, 2, 299)):
        assert report(300, *cuts).same_data
        for verification, certificate in zip(report(300, *cuts), clf.certificates_, strict=True):
            assert verification.box_violation == 0.0
            assert verification.dual == pytest.approx(certificate.dual, rel=1e-6)
    with pytest.raises(ValueError, match=r"shape \(4, 300\), not of 4 certificates and 299 rows"):
        report(299)
    with pytest.raises(ValueError, match=r"shape \(4, 300\), not of 4 certificates and 301 rows"):
        verify_model(model, [(X, y), (X[:1], y[:1])])
    # The codes of one class prove nothing near it for another.
    shuffled = replace(model, witness=Witness(witness.codes[::-1], witness.scale))
    assert not verify_model(shuffled, [(X, y)]).ok


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "bsr"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int8, np.bool_])
def test_values_stored_twice_are_the_same_in_training_and_here(form: str, dtype: Any) -> None:
    """SciPy adds up in the matrix's own type, which may be too small for the sum."""
    rng = np.random.default_rng(0)
    rows, columns = np.repeat(np.arange(60), 9), rng.integers(5, size=540)
    sizes = 10.0 ** rng.integers(-3, 4, size=540)
    values = rng.normal(size=540) * sizes if dtype in (np.float32, np.float64) else sizes > 1.0
    values = np.asarray(100 * values, dtype=dtype)
    X: Any = sp.coo_matrix((values, (rows, columns)), shape=(60, 5))
    if form == "bsr":
        X = sp.bsr_matrix((values[:, None, None], columns, 9 * np.arange(61)), shape=(60, 5))
    elif form == "csr":
        X = sp.csr_matrix((values, columns, 9 * np.arange(61)), shape=(60, 5))
    elif form == "csc":
        X = sp.csr_matrix((values, columns, 9 * np.arange(61)), shape=(60, 5)).tocsc()
    assert X.nnz == 540
    y = np.arange(60) % 2
    clf = LinearSVC(C=0.01, store_dual=True, tol=0.1, random_state=0).fit(X, y)
    assert verify(clf, X, y).verdict == "confirmed"
    exact = np.zeros((60, 5))
    np.add.at(exact, (rows, columns), values.astype(np.float64))
    np.testing.assert_allclose(clf.decision_function(X), clf.decision_function(exact), 1e-9, 1e-9)


@pytest.mark.parametrize("name", ["primal", "dual_rounding", "C", "intercept_scaling", "target"])
@pytest.mark.parametrize(
    "value", [10**400, "1", None, np.ones(1)], ids=["int", "str", "None", "array"]
)
def test_a_claim_that_is_no_float64_number(fitted: Any, name: str, value: Any) -> None:
    clf, X, y = fitted
    clf.certificates_[0] = replace(clf.certificates_[0], **{name: value})
    with pytest.raises(ValueError, match=f"the {name} of a certificate is "):
        verify(clf, X, y)


def test_masked_weights(fitted: Any) -> None:
    clf, X, y = fitted
    weights = np.ma.array(np.ones(y.size), mask=y == 0)
    with pytest.raises(ValueError, match="sample_weight has masked entries"):
        verify(clf, X, y, sample_weight=weights)


@pytest.mark.skipif(platform.machine() != "x86_64" or sys.platform != "linux", reason="libm")
@pytest.mark.parametrize("mode", [0x400, 0x800, 0xC00], ids=["down", "up", "towards zero"])
def test_a_process_that_rounds_otherwise_is_refused(fitted: Any, mode: int) -> None:
    clf, X, y = fitted
    library = ctypes.CDLL("libm.so.6")
    assert library.fesetround(mode) == 0
    try:
        with pytest.raises(ValueError, match="not rounded to nearest"):
            verify(clf, X, y)
    finally:
        library.fesetround(0)
    assert verify(clf, X, y).ok


def test_the_recomputed_certificate_is_what_is_proved() -> None:
    X, y = data()
    clf = LinearSVC(C=0.1, solver="dcd", random_state=0, store_dual=True).fit(X, y)
    (found,) = verify(clf, X, y)
    claimed, recomputed = found.claimed, found.recomputed
    assert recomputed.primal == found.J.high
    assert recomputed.dual == found.L.low
    assert recomputed.primal_rounding == recomputed.dual_rounding == 0.0
    assert recomputed.gap == pytest.approx(claimed.gap, rel=1e-6)
    assert (recomputed.C, recomputed.intercept_scaling) == (0.1, 1.0)
    # No more than the allowance is tolerated.
    clf.certificates_ = [replace(claimed, dual=claimed.dual * (1 + 1e-11))]
    assert verify(clf, X, y).verdict == "refuted"
    # Without a dual point, the bound is zero.
    del clf.dual_coef_
    (found,) = verify(clf, X, y)
    assert found.recomputed.dual == 0.0


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize(("where", "scale"), [("rows", 1e6), ("rows", 1e-9), ("columns", 1e6)])
def test_rounding_refutes_no_honest_stream(loss: str, where: str, scale: float) -> None:
    for seed in range(6):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((40, 30))
        y = np.where(X[:, 0] > 0, 1, -1)
        X *= np.where(rng.random((40, 1) if where == "rows" else 30) < 0.3, scale, 1.0)
        blocks = [(X[:20] + 1.0, y[:20]), (X[20:] + 1.0, y[20:])]
        model = fit_stream(lambda blocks=blocks: iter(blocks), C=10.0**seed, loss=loss, tol=1e-6,
                           max_iter=60, witness=True)  # fmt: skip
        assert verify_model(model, blocks).verdict in ("confirmed", "undecided")
        (claimed,) = model.certificates
        lie = replace(claimed, dual=4.0 * claimed.primal + 1.0, dual_rounding=0.0)
        assert verify_model(replace(model, certificates=[lie]), blocks).verdict == "refuted"
