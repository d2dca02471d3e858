"""Models: what is saved is loaded, what cannot be is refused, and predictions agree."""

import math
import os
import pickle
import shutil
import tempfile
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator
from sklearn.utils.validation import check_is_fitted

from certsvm import LinearSVC, verify, verify_model
from certsvm.certificates.certificate import Certificate
from certsvm.files import Model, Witness, witness_path
from certsvm.files.atomic import WriteError
from certsvm.files.container import ModelFileError, read_container, write_container
from certsvm.verification.evidence import Fingerprint

finite = st.floats(allow_nan=False, allow_infinity=False)
text = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=6)
labels = st.one_of(
    st.sets(st.integers(-(2**63), 2**63 - 1), min_size=2, max_size=5).map(sorted),
    st.sets(st.integers(0, 2**64 - 1), min_size=2, max_size=5).map(sorted),
    st.sets(st.floats(allow_nan=False), min_size=2, max_size=5).map(sorted),
    st.sets(text, min_size=2, max_size=5).map(sorted),
    st.just([False, True]),
)


@st.composite
def models(draw: st.DrawFn) -> Model:
    found = draw(labels)
    classes = np.array(found, dtype=object if isinstance(found[0], str) else None)
    n_problems = 1 if len(found) == 2 else len(found)
    n_columns = draw(st.integers(0, 4))
    positive = st.floats(1e-300, 1e300)
    loss = draw(st.sampled_from(["hinge", "squared_hinge"]))
    problem = {"C": draw(positive), "loss": loss, "penalize_intercept": draw(st.booleans())}
    problem["intercept_scaling"] = draw(st.just(0.0) | positive)
    certificate = st.builds(
        Certificate, primal=finite, dual=finite, target=st.floats(0), bound=text,
        scale=st.floats(0, 1 if loss == "hinge" else 1e300), primal_rounding=st.floats(0, 1e300),
        dual_rounding=st.floats(0, 1e300), **{name: st.just(problem[name]) for name in problem},
    )  # fmt: skip
    certificates = st.lists(certificate, min_size=n_problems, max_size=n_problems)
    digest = st.text("0123456789abcdef", min_size=64, max_size=64)
    size = st.integers(0, 2**40)
    names = st.lists(text, min_size=n_columns, max_size=n_columns).map(tuple)
    fingerprint = st.builds(Fingerprint, size, st.just(n_columns), size, digest)
    return Model(
        coef=draw(hnp.arrays(np.float64, (n_problems, n_columns), elements=finite)),
        intercept=draw(hnp.arrays(np.float64, n_problems, elements=finite)),
        classes=classes,
        class_weight=draw(hnp.arrays(np.float64, len(found), elements=st.floats(0, 1e300))),
        certificates=tuple(draw(st.just([]) | certificates)),
        parameters={**problem, "note": draw(text), "limit": draw(st.floats(allow_nan=False))},
        feature_names=draw(st.none() | names),
        fingerprint=draw(st.none() | fingerprint),
        certsvm_version=draw(text),
    )


def facts(model: Model) -> str:
    """All that a file has of a model; repr tells 0.0 from -0.0."""
    arrays = (model.coef, model.intercept, model.classes, model.class_weight)
    return repr((
        [(array.dtype, array.shape, array.tobytes()) for array in arrays], model.parameters,
        [asdict(certificate) for certificate in model.certificates], model.feature_names,
        model.fingerprint, model.certsvm_version,
    ))  # fmt: skip


@given(models())
def test_what_is_saved_is_loaded(model: Model) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        model.save(path)
        assert facts(Model.load(path)) == facts(model)
        assert os.listdir(folder) == ["model"]
    assert str(model)


def small(**changes: Any) -> Model:
    certificate = Certificate(1.0, 0.995, 0.01, "test", C=0.5, intercept_scaling=1.0)
    made = Model(
        coef=np.array([[1.0, -2.0]]), intercept=np.array([0.5]), classes=np.array([0, 1]),
        class_weight=np.ones(2), certificates=(certificate,),
        parameters={"C": 0.5, "intercept_scaling": 1.0, "passes": 7, "seed": 3},
        fingerprint=Fingerprint(3, 2, 4, "0" * 64),
    )  # fmt: skip
    return replace(made, **changes)


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("saved") / "model"
    small().save(path)
    return path.read_bytes()


def test_every_changed_byte_is_noticed(saved: bytes, tmp_path: Path) -> None:
    path = tmp_path / "model"
    rng = np.random.default_rng(0)
    for i in range(len(saved)):
        change = int(rng.choice([1 << int(rng.integers(8)), int(rng.integers(1, 256)), 0xFF]))
        for damaged in (saved[:i] + bytes([saved[i] ^ change]) + saved[i + 1 :], saved[:i]):
            path.write_bytes(damaged)
            with pytest.raises(ModelFileError):
                Model.load(path)


BAD_MODELS: list[Any] = [
    ({"coef": np.array([[1.0, np.nan]])}, "need coef of shape .*finite"),
    ({"class_weight": np.array([1.0, -1.0])}, "negative"),
    ({"class_weight": np.ones(3)}, "class_weight of shape"),
    ({"coef": np.ones((2, 2))}, "2 classes need coef of shape"),
    ({"coef": np.ones(2)}, "2 classes need coef of shape"),
    ({"classes": np.array([1])}, "at least two"),
    ({"classes": np.array([1, 0])}, "distinct and ascending"),
    ({"classes": np.array([0.0, np.nan])}, "distinct and ascending"),
    ({"classes": np.array(["a", "b\0"], dtype=object)}, "ends in NUL"),
    ({"certificates": small().certificates * 2}, "as many certificates or none"),
    ({"parameters": {"a": {1, 2}}}, "set"),
    ({"parameters": {"a": math.nan}}, "null"),
    ({"history": np.zeros((1, 3))}, "four columns"),
    ({"history": np.array([[0.0, 1.0, np.nan, 1.0]])}, "history"),
    ({"feature_names": ("a", 1)}, "must be strings, one for each column"),
]


@pytest.mark.parametrize(("changes", "message"), BAD_MODELS)
def test_models_that_cannot_be(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        small(**changes)


BAD_CERTIFICATES: list[Any] = [
    ("primal", math.nan), ("primal", "1"), ("dual", -math.inf), ("target", -1.0),
    ("scale", math.inf), ("primal_rounding", -1e-9), ("dual_rounding", -1e-9), ("C", 0.0),
    ("C", True), ("C", 10**400), ("intercept_scaling", None), ("loss", [1]), ("bound", 1),
    ("penalize_intercept", 1),
]  # fmt: skip


@pytest.mark.parametrize(("name", "value"), BAD_CERTIFICATES)
def test_certificates_that_cannot_be(name: str, value: Any, tmp_path: Path) -> None:
    (claim,) = small().certificates
    with pytest.raises((ValueError, OverflowError)):
        small(certificates=(replace(claim, **{name: value}),))
    if name in ("C", "loss", "intercept_scaling", "penalize_intercept"):
        with pytest.raises((ValueError, OverflowError)):
            small(certificates=(), parameters={name: value})
    if value != value:
        return
    small().save(tmp_path / "model")
    found = read_container(tmp_path / "model", "model")
    found.content["certificates"][0][name] = value
    write_container(tmp_path / "model", "model", *found)
    with pytest.raises(ModelFileError, match="holds no valid model"):
        Model.load(tmp_path / "model")


@pytest.mark.parametrize(
    ("name", "value"),
    [("C", 2.0), ("intercept_scaling", 2.0), ("loss", "squared_hinge"),
     ("penalize_intercept", False)],
)  # fmt: skip
def test_certificates_of_several_problems(name: str, value: Any) -> None:
    one = Certificate(primal=1.0, dual=0.9, target=0.2, intercept_scaling=1.0)
    certificates = (one, replace(one, primal=2.0), one)
    model = Model(np.zeros((3, 2)), np.zeros(3), np.arange(3), np.ones(3), certificates)
    with pytest.raises(ValueError, match=f"differ in {name}"):
        replace(model, certificates=(one, replace(one, **{name: value}), one))
    # What was proved counts, whatever parameters say.
    assert replace(model, parameters={name: value}).parameters[name] == getattr(one, name)


def test_silent_parameters_hide_no_problem() -> None:
    """A forged file may leave them out; what its certificates are about is printed all the same."""
    problem = {"C": 1e-9, "intercept_scaling": 0.25, "loss": "squared_hinge"}
    certificate = Certificate(1.0, 0.9, 0.2, penalize_intercept=False, **problem)
    model = Model(np.zeros((1, 2)), np.zeros(1), np.arange(2), np.ones(2), (certificate,))
    for fact in (
        "C = 1e-09",
        "intercept_scaling = 0.25",
        "squared_hinge",
        "penalize_intercept = False",
    ):
        assert fact in str(model)
    assert model.intercept_scaling == 0.25


WRONG_CONTENT: list[Any] = [
    ({"classes": ["a", 1]}, {}),
    ({"classes": "ab"}, {}),
    ({"classes": None}, {}),
    ({"feature_names": 3}, {}),
    ({"certsvm_version": 1}, {}),
    ({"parameters": []}, {}),
    ({"parameters": {"C": {}}, "certificates": []}, {}),
    ({"certificates": [1]}, {}),
    ({"certificates": [{"primal": 1.0}]}, {}),
    ({"fingerprint": {}}, {}),
    ({"witness": {}}, {}),
    ({"more": 1}, {}),
    ({"history": "x"}, {}),
    ({}, {"coef": np.full((1, 2), np.nan)}),
    ({}, {"more": np.ones(2)}),
]


@pytest.mark.parametrize(("content", "arrays"), WRONG_CONTENT)
def test_right_digest_wrong_content(tmp_path: Path, content: Any, arrays: Any) -> None:
    path = tmp_path / "model"
    small().save(path)
    found = read_container(path, "model")
    write_container(path, "model", found.content | content, found.arrays | arrays)
    with pytest.raises(ModelFileError, match="holds no valid model"):
        Model.load(path)


@pytest.fixture(scope="module", params=["two", "three", "names", "balanced"])
def fitted(request: pytest.FixtureRequest) -> tuple[LinearSVC, Any, Any]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((120, 5)) * (rng.random((120, 5)) < 0.7)
    score = X[:, 0] + 0.3 * rng.standard_normal(120)
    settings: dict[str, Any] = {}
    y: Any = (score > 0).astype(int)
    if request.param == "three":
        y = np.array(["low", "middle", "high"])[np.digitize(score, [-0.5, 0.5])]
        settings = {"fit_intercept": False, "class_weight": {"low": 2.0}}
    if request.param == "balanced":
        y, settings = score > 0.3, {"class_weight": "balanced", "intercept_scaling": 0.3}
    if request.param == "names":
        X = pd.DataFrame(X, columns=list("abcde"))
        y = pd.Series(np.where(score > 0, "yes", "no"))
    clf = LinearSVC(C=0.3, random_state=np.int64(4), **settings).fit(X, y)
    return clf, X, y


def test_a_fitted_estimator_survives_a_file(fitted: Any, tmp_path: Path) -> None:
    clf, X, y = fitted
    values = np.asarray(X)
    fingerprint = Fingerprint.of(values, y)
    path = tmp_path / "model"
    Model.from_estimator(clf, fingerprint).save(path)
    model = Model.load(path)
    assert list(model.certificates) == clf.certificates_
    assert model.fingerprint == fingerprint
    assert np.array_equal(model.class_weight, clf.class_weight_)
    assert model.parameters["C"] == 0.3
    assert model.parameters["seed"] == 4
    assert model.parameters["passes"] == clf.n_iter_
    for form in (values, sp.csr_matrix(values), sp.coo_array(values), values.tolist(), X):
        assert np.allclose(model.decision_function(form), clf.decision_function(X), rtol=1e-13)
        assert np.array_equal(model.predict(form), clf.predict(X))
    assert str(clf.certificates_[0]) in str(model)
    assert "C = 0.3" in str(model)


@pytest.mark.filterwarnings("error")  # of feature names that are missing
def test_scikit_learn_takes_it_for_its_own(fitted: Any) -> None:
    clf, X, y = fitted
    twin = Model.from_estimator(clf).to_sklearn()
    check_is_fitted(twin)
    assert np.array_equal(twin.predict(X), clf.predict(X))
    assert np.allclose(twin.decision_function(X), clf.decision_function(X), rtol=1e-13)
    again = pickle.loads(pickle.dumps(twin))
    assert np.array_equal(again.predict(X), clf.predict(X))
    calibrated = CalibratedClassifierCV(FrozenEstimator(twin)).fit(X, y)
    assert calibrated.predict_proba(X).shape == (120, len(clf.classes_))
    assert twin.score(X, y) == clf.score(X, y)
    assert twin.get_params()["loss"] == "hinge"
    assert twin.get_params()["fit_intercept"] == clf.fit_intercept
    assert twin.intercept_scaling == clf.intercept_scaling
    twin.coef_ += 1.0  # a copy of its own, that may be changed
    assert twin.n_features_in_ == 5
    assert hasattr(twin, "feature_names_in_") == hasattr(clf, "feature_names_in_")


def test_after_partial_fit_nothing_is_proved() -> None:
    clf = LinearSVC().partial_fit(np.eye(2), [0, 1], classes=[0, 1])
    model = Model.from_estimator(clf)
    assert model.certificates == ()
    assert "nothing is proved" in str(model)
    with pytest.raises(ValueError, match="not fitted"):
        Model.from_estimator(LinearSVC())


def test_the_witness_lies_beside_the_model(tmp_path: Path) -> None:
    path = tmp_path / "model"
    witness = Witness(np.array([[0, 9, 255]], dtype=np.uint8), np.array([0.5]))
    small(witness=witness).save(path)
    assert sorted(os.listdir(tmp_path)) == ["model", "model.witness"]
    assert Model.load(path).witness is None
    found = Model.load(path, witness=True).witness
    assert found is not None
    assert found.codes.tolist() == [[0, 9, 255]]
    shutil.move(witness_path(path), tmp_path / "elsewhere")
    with pytest.raises(FileNotFoundError):
        Model.load(path, witness=True)


@pytest.mark.parametrize("witnessed", [False, True])
def test_a_full_disk_leaves_the_old_model_and_its_witness(tmp_path: Path, witnessed: bool) -> None:
    resource = pytest.importorskip("resource", reason="limits of processes")
    path = tmp_path / "model"
    small(witness=Witness(np.zeros((1, 3), np.uint8), np.ones(1))).save(path)
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    # The witness has room, the model has not.
    witness = Witness(np.ones((1, 3), np.uint8), np.ones(1)) if witnessed else None
    fingerprint = Fingerprint(3, 1000, 4, "0" * 64)
    large = small(coef=np.ones((1, 1000)), fingerprint=fingerprint, witness=witness)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4000, limits[1]))
    try:
        with pytest.raises(WriteError):
            large.save(path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before


def test_a_file_that_is_no_witness_of_the_old_model_is_kept(tmp_path: Path) -> None:
    path, beside = tmp_path / "notes", tmp_path / "notes.witness"
    beside.write_text("what I saw")
    small().save(path)
    assert beside.read_text() == "what I saw"
    witness = Witness(np.zeros((1, 3), np.uint8), np.ones(1))
    # The witness of a model that lies elsewhere, and that of the same model.
    beside.unlink()
    small(coef=np.zeros((1, 2)), witness=witness).save(tmp_path / "other")
    shutil.move(witness_path(tmp_path / "other"), beside)
    small(coef=np.ones((1, 2))).save(path)
    assert beside.exists()
    small(witness=witness).save(path)
    Model.load(path).save(path)
    assert Model.load(path, witness=True).witness is not None
    small(coef=np.ones((1, 2))).save(path)
    assert not beside.exists()


def test_columns_of_frames_are_matched_by_name() -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.standard_normal((60, 3)), columns=["a", "b", "c"])
    y = (frame["a"] - 2 * frame["c"] > 0.1).astype(int).to_numpy()
    clf = LinearSVC(C=0.1, store_dual=True, random_state=0).fit(frame, y)
    model = clf.to_model(frame, y)
    other = frame[["c", "a", "b"]]
    rows = frame.to_numpy()
    frames = [other, pl.from_pandas(other), pa.Table.from_pandas(other)]
    for X in frames:
        assert (model.predict(X) == model.predict(rows)).all()
        np.testing.assert_allclose(model.decision_function(X), model.decision_function(rows))
        np.testing.assert_allclose(model.decision_interval(X), model.decision_interval(rows))
        assert model.stability(X) == model.stability(rows)
        assert (model.support_status(X, y) == model.support_status(rows, y)).all()
        assert model.stability(iter([X])) == model.stability(rows)
        assert verify_model(model, [(X, y)]).verdict == "confirmed"
        assert verify_model(model, [(X, y)]).same_data
        assert verify(clf, X, y).verdict == "confirmed"
    # Arrays are positional, and so is a model without names.
    assert (model.predict(other.to_numpy()) != model.predict(rows)).any()
    nameless = replace(model, feature_names=None)
    assert (nameless.predict(other) == model.predict(other.to_numpy())).all()


@pytest.mark.parametrize(
    ("columns", "message"),
    [(["a", "d"], "no columns 'b' and has unknown columns 'd'"), (["b", "a", "a"], "several")],
)
def test_frames_with_other_columns_are_refused(columns: list[str], message: str) -> None:
    frame = pd.DataFrame(np.eye(4), columns=["a", "b", "d", "e"])
    claims = (Certificate(4.0, 3.875, target=0.1),)
    model = Model([[2.0, -1.0]], [0.0], [0, 1], np.ones(2), claims, feature_names=("a", "b"))
    X, y = frame[columns], np.array([0, 1, 0, 1])
    for answer in (
        model.predict, model.decision_function, model.decision_interval, model.stability,
        lambda X: model.support_status(X, y), lambda X: verify_model(model, [(X, y)]),
        lambda X: model.predict(X, allow_fewer=True),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=message):
            answer(X)


def test_numbers_of_columns() -> None:
    model = small()
    for X in (np.ones((3, 1)), sp.csr_array(np.ones((3, 1)))):
        with pytest.raises(ValueError, match=r"1 columns, the model 2; .*allow_fewer"):
            model.decision_function(X)
        assert model.decision_function(X, allow_fewer=True).tolist() == [1.5] * 3
        assert model.predict(X, allow_fewer=True).tolist() == [1] * 3
    with pytest.raises(ValueError, match=r"3 columns, the model 2$"):
        model.predict(np.ones((3, 3)), allow_fewer=True)
    with pytest.raises(ValueError, match="two dimensions"):
        model.predict(np.ones(2))
    assert model.predict(np.ones((0, 2))).shape == (0,)


def test_rows_that_cannot_be_scored() -> None:
    with pytest.raises(ValueError, match="row 1 of X contains NaN"):
        small().predict([[1.0, 1.0], [np.nan, 1.0]])
    broken = sp.csr_array(np.eye(2))
    broken.indices[0] = 1_000_000_000
    with pytest.raises(ValueError, match="broken CSR matrix: it has an index of 1000000000"):
        small().predict(broken)
