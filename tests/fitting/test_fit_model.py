"""Models from data and streams: their proofs hold, and nobody can change them unnoticed."""

import itertools
from functools import partial
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from certsvm import Model, verify_model
from certsvm.files.streams import BlockStream
from certsvm.fitting.fit_classes import fit_classes
from certsvm.fitting.fit_model import Fit, fit_model, fit_stream, witnessed
from certsvm.fitting.sources import MemorySource, Source, StreamSource
from certsvm.training.settings import INTERRUPTED, NOT_KEPT, TARGET_MET, Observer
from certsvm.verification.evidence import Witness
from certsvm.verification.verify import VerificationReport
from tests.interrupts import ctrl_c_at
from tests.settings import settings_of


def rows(
    n_classes: int = 2, labels: str = "int", form: str = "dense", n: int = 240, seed: int = 0
) -> tuple[Any, Any, Any]:
    """X, y and weights, some of which are zero."""
    rng = np.random.default_rng(seed)
    X: Any = rng.standard_normal((n, 5))
    X[:, 3] *= rng.random(n) < 0.3
    scores = X[:, :n_classes] + 0.5 * rng.standard_normal((n, n_classes))
    y: Any = scores.argmax(axis=1)
    y = {"int": y, "float": y - 0.5, "string": np.array(["b", "a", "long name"])[y]}[labels]
    weights = rng.choice([0.0, 0.5, 1.0, 2.0], n)
    dtype = np.float32 if "float32" in form else np.float64
    X = X.astype(dtype)
    return (sp.csr_matrix(X) if "csr" in form else X), y, weights


def cut(X: Any, y: Any, weights: Any, n_blocks: int) -> list[tuple[Any, Any, Any]]:
    edges = np.arange(n_blocks + 1) * len(y) // n_blocks
    return [
        (X[a:b], y[a:b], None if weights is None else weights[a:b])
        for a, b in itertools.pairwise(edges)
    ]


def fit(
    data: Any,
    observer: Observer | None = None,
    *,
    class_weight: Any = None,
    intercept_scaling: float = 0.0,
    witness: bool = False,
    **settings: Any,
) -> Fit:
    """Train on rows in memory, a tuple, or on a stream of blocks, a function."""
    source: Source
    if callable(data):
        stream = BlockStream(data, intercept_scaling=intercept_scaling)
        source = StreamSource(stream, class_weight)
    else:
        source = MemorySource(*data, class_weight=class_weight, intercept_scaling=intercept_scaling)
    observers = [observer] if observer else []
    return fit_model(source, settings_of(observers=observers, **settings), witness=witness)


def sound(report: VerificationReport) -> bool:
    return bool(report.ok and report.dual_verified and report.same_data)


SOLVERS = ["auto", "sgd-s", "sgd-m", "newton", "block-dcd", "dcd", "working-set"]
SETTINGS = {
    "intercept_scaling": st.sampled_from([0.0, 0.3, 1.0]),
    "loss": st.sampled_from(["hinge", "squared_hinge"]),
    "penalize_intercept": st.booleans(),
    "solver": st.sampled_from(SOLVERS),
    "tol": st.sampled_from([0.1, 1e-3]),
}


@given(
    n_classes=st.sampled_from([2, 3]),
    labels=st.sampled_from(["int", "float", "string"]),
    form=st.sampled_from(["dense", "csr", "dense float32", "csr float32"]),
    weighted=st.booleans(),
    class_weight=st.sampled_from([None, "balanced", "dict"]),
    streamed=st.booleans(),
    how=st.fixed_dictionaries(SETTINGS),
)
def test_proofs_are_confirmed_on_another_path(
    n_classes: int, labels: str, form: str, weighted: bool, class_weight: Any, streamed: bool,
    how: dict[str, Any],
) -> None:  # fmt: skip
    X, y, weights = rows(n_classes, labels, form)
    weights = weights if weighted else None
    if class_weight == "dict":
        class_weight = {np.unique(y)[0].item(): 2.5}
    blocks = cut(X, y, weights, 3)
    if "sgd" in how["solver"]:
        how["loss"] = "hinge"
    how["penalize_intercept"] |= how["solver"] in ("sgd-s", "sgd-m", "block-dcd")
    streamed = streamed and how["solver"] not in ("dcd", "working-set")
    data: Any = (lambda: blocks) if streamed else (X, y, weights)
    fitted = fit(data, C=0.3, class_weight=class_weight, witness=True, max_iter=60, **how)
    report = verify_model(fitted.model, blocks)
    assert len(report) == (1 if n_classes == 2 else n_classes)
    assert sound(report), str(report)
    for verification, certificate in zip(report, fitted.model.certificates, strict=True):
        assert verification.primal == pytest.approx(certificate.primal, rel=1e-10)
        assert verification.dual == pytest.approx(certificate.dual, rel=1e-10)
    assert fitted.model.classes.tolist() == np.unique(y).tolist()
    if fitted.met:
        assert max(v.relative_gap for v in report) <= how["tol"] * (1 + 1e-9)


def objective(found: Model, i: int, X: Any, y: Any, weights: Any) -> float:
    """J of a model, with NumPy."""
    certificate, w, b = found.certificates[i], found.coef[i], float(found.intercept[i])
    positive = found.classes[1 if found.classes.size == 2 else i]
    losses = np.maximum(0.0, 1.0 - np.where(y == positive, 1.0, -1.0) * (X @ w + b))
    losses = losses**2 if certificate.loss == "squared_hinge" else losses
    factors = found.class_weight[np.searchsorted(found.classes, y)]
    s = weights * (factors if found.classes.size == 2 else np.where(y == positive, factors, 1.0))
    penalty = w @ w
    if certificate.penalize_intercept and certificate.intercept_scaling > 0:
        penalty += (b / certificate.intercept_scaling) ** 2
    return float(0.5 * penalty + certificate.C * (s @ losses))


@pytest.mark.parametrize(("n_classes", "class_weight"), [(2, None), (3, "balanced")])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("penalize_intercept", [True, False])
def test_streams_agree(
    n_classes: int, class_weight: Any, loss: str, penalize_intercept: bool
) -> None:
    X, y, weights = rows(n_classes)
    how: dict[str, Any] = {"loss": loss, "penalize_intercept": penalize_intercept, "C": 0.3}
    how |= {"tol": 1e-5, "max_iter": 200, "class_weight": class_weight, "intercept_scaling": 0.7}
    one = fit((X, y, weights), **how)
    blocks = cut(X, y, weights, 4)
    other = fit_stream(lambda: blocks, **how)
    assert one.met
    assert all(certificate.met for certificate in other.certificates)
    assert one.model.fingerprint == other.fingerprint
    np.testing.assert_allclose(one.model.class_weight, other.class_weight, rtol=1e-12)
    assert other.parameters["loss"] == loss
    assert other.parameters["penalize_intercept"] == penalize_intercept
    for i, (a, b) in enumerate(zip(one.model.certificates, other.certificates, strict=True)):
        assert a.dual - a.dual_rounding <= b.primal + b.primal_rounding
        assert b.dual - b.dual_rounding <= a.primal + a.primal_rounding
        assert (b.loss, b.penalize_intercept) == (loss, penalize_intercept)
        assert objective(other, i, X, y, weights) == pytest.approx(b.primal, rel=1e-9)


@pytest.mark.parametrize("penalize", [True, False])
def test_too_many_columns_for_a_stream(penalize: bool) -> None:
    """The message says what else there is, which is the default."""
    X = sp.random(60, 5001, density=0.01, format="csr", random_state=0)
    blocks = [(X, np.arange(60) % 2)]
    how: dict[str, Any] = {"penalize_intercept": penalize, "tol": 0.5}
    message = r"Use 'block-dcd'.* raise max_size: solver=SmoothedNewton\(max_size=5002\)"
    with pytest.raises(ValueError, match=message):
        fit_stream(lambda: blocks, **how, solver="newton")
    assert fit_stream(lambda: blocks, **how).parameters["solver"] == "block-dcd"


@pytest.mark.parametrize("streamed", [False, True])
def test_an_intercept_without_penalty_needs_rows_on_both_sides(streamed: bool) -> None:
    """There are none on the side of a class without weight, whose intercept would be infinite."""
    X, y, weights = rows(3)
    blocks = cut(X, y, weights, 2)
    how: dict[str, Any] = {"class_weight": {1: 0.0}, "intercept_scaling": 1.0}
    data = (lambda: blocks) if streamed else (X, y, weights)
    assert fit(data, **how).met
    with pytest.raises(ValueError, match="on the same side"):
        fit(data, penalize_intercept=False, **how)


def test_a_witness_has_as_many_bits_as_it_needs() -> None:
    X, y, _ = rows(n=2000)
    found = []
    for tol in (0.1, 1e-14):
        fitted = fit((X, y), C=1e-3, tol=tol, witness=True, solver="newton", max_iter=100)
        assert isinstance(fitted.model.witness, Witness)
        found.append(fitted.model.witness.bits)
    assert found == [8, 16]


@pytest.mark.parametrize("solver", ["auto", "newton"])
def test_a_proof_at_high_accuracy_is_confirmed(solver: str) -> None:
    """Steep responses magnify what rounding does to the products; the bound must not mind."""
    X, y, _ = rows(n=2000)
    for scale in (1e-3, 1.0, 1e3):
        blocks = cut(X * scale, y, None, 3)
        how: dict[str, Any] = {"tol": 1e-12, "witness": True, "max_iter": 60}
        fitted = fit(partial(iter, blocks), solver=solver, **how)
        assert sound(verify_model(fitted.model, blocks))


def test_who_has_no_dual_point_has_no_witness() -> None:
    X, y, _ = rows()
    with pytest.raises(ValueError, match="a witness needs a solver with a dual point"):
        fit((X, y), solver="pegasos", witness=True)


@pytest.mark.parametrize(
    ("data", "settings", "message"),
    [
        ({"y": np.zeros(240)}, {}, "only one class"),
        ({"weights": np.zeros(240)}, {}, "no class at all"),
        ({"X": np.full((240, 5), np.nan)}, {}, "contains NaN"),
        ({"y": np.full(240, np.nan)}, {}, "class|NaN|not finite"),
        ({"weights": np.full(240, -1.0)}, {}, "class|negative"),
        ({}, {"class_weight": {7: 2.0}}, "not labels"),
        ({}, {"C": np.nan}, "C must be"),
        ({}, {"tol": -1.0}, "tol must be"),
        ({}, {"solver": "nobody"}, "nobody"),
        ({}, {"intercept_scaling": -1.0}, "intercept_scaling"),
    ],
)
def test_what_is_refused(data: dict[str, Any], settings: dict[str, Any], message: str) -> None:
    X, y, weights = rows()
    blocks = cut(**{"X": X, "y": y, "weights": weights} | data, n_blocks=2)
    with pytest.raises(ValueError, match=message):
        fit_stream(lambda: blocks, **settings)


@pytest.mark.parametrize("streamed", [False, True])
def test_an_interrupt_gives_a_model_that_is_proved(streamed: bool) -> None:
    X, y, weights = rows(3)
    blocks = cut(X, y, weights, 2)

    class Interrupting(Observer):
        def begin(self, i: int, label: Any, problem: Any) -> list[Any]:
            def interrupt(progress: Any) -> None:
                if label == 1 and progress.record.passes == 3:
                    raise KeyboardInterrupt

            return [interrupt]

    data = (lambda: blocks) if streamed else (X, y, weights)
    fitted = fit(data, Interrupting(), tol=0.0, max_iter=8, solver="sgd-s", witness=True)
    # In memory, the first class had ended.
    assert [r.reason == INTERRUPTED for r in fitted.results] == [streamed, True, True]
    assert fitted.results[1].passes == 3
    assert verify_model(fitted.model, blocks).ok


def test_measurements_are_no_labels() -> None:
    X, _, _ = rows()
    y = np.repeat(np.random.default_rng(0).standard_normal(len(X) // 2 + 1), 2)[: len(X)]
    with pytest.raises(ValueError, match="measurements, not classes"):
        fit_stream([(X, y)])
    assert fit_stream([(X, np.where(y > 0, 0.5, 1.5))]).classes.tolist() == [0.5, 1.5]


def test_a_witness_too_coarse_for_the_target(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With 32 bits, that takes a target near the limit of double precision."""
    monkeypatch.setattr("certsvm.fitting.fit_model._BITS", (8,))
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 5))
    y = X[:, 0] + rng.standard_normal(200) > 0.0
    source = MemorySource(X, y, intercept_scaling=1.0)
    kept: Any = {"keep_alpha": True, "keep_vector": True}
    settings = settings_of(solver="newton", tol=1e-8, penalize_intercept=False, **kept)
    (fine,) = fit_classes(source, settings)
    (coarse,) = fit_classes(source, settings, finish=witnessed)
    assert fine.certificate.met
    assert fine.reason == TARGET_MET
    assert not coarse.certificate.met
    assert coarse.reason == NOT_KEPT
    assert coarse.vector is None


def test_an_interrupt_never_parts_a_witness_from_its_certificate() -> None:
    """Ctrl-C at every line that runs while the witness is made."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 3))
    y = X[:, 0] + rng.standard_normal(60) > 0.0
    source, settings = MemorySource(X, y), settings_of(C=0.1, solver="dcd", seed=0)
    verdicts, pressed = list[str](), True
    making = ("needs_alpha", "witnessed", "proof", "joined")
    while pressed:
        try:
            with ctrl_c_at(len(verdicts), *making) as at:
                fit = fit_model(source, settings, witness=True)
            pressed = bool(at)
            verdicts.append(verify_model(fit.model, [(X, y)]).verdict)
        except KeyboardInterrupt:
            # Outside of the training, nothing is returned.
            verdicts.append("none")
    assert set(verdicts) == {"none", "half confirmed", "confirmed"}
