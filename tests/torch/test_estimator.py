"""LinearSVC on tensors: where they are, in kind, and with the same certificate."""

import os
import pickle
import subprocess
import sys
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import torch
from sklearn.base import clone

import certsvm.torch.rows as rows_module
from certsvm import LinearSVC, fit_path, verify
from tests.torch.problems import DEVICE, DTYPES, agrees, data, device, host


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("classes", [2, 4])
def test_training(dtype: str, intercept: bool, classes: int) -> None:
    X, y = data(classes=classes)
    X = X.to(DTYPES[dtype])
    clf = LinearSVC(0.5, tol=1e-5, fit_intercept=intercept, random_state=0).fit(X, y)
    agrees(clf, host(X), host(y))
    assert clf.n_features_in_ == 8
    assert clf.solver_ == "newton"
    assert isinstance(clf.coef_, np.ndarray)


@pytest.mark.parametrize("class_weight", [None, "balanced", {0: 0.5, 1: 2.0, 2: 1.0}])
def test_weights(class_weight: Any) -> None:
    X, y = data(classes=3)
    weights = torch.rand(len(y), generator=torch.Generator().manual_seed(1))
    weights[:50] = 0.0
    weights = weights.to(DEVICE)
    clf = LinearSVC(1.0, tol=1e-5, class_weight=class_weight).fit(X, y, weights)
    agrees(clf, host(X), host(y), host(weights))


@pytest.mark.parametrize("dtype", DTYPES)
def test_answers_are_tensors(dtype: str) -> None:
    X, y = data()
    X = X.to(DTYPES[dtype])
    clf = LinearSVC(random_state=0).fit(X, y)
    scores, labels = clf.decision_function(X), clf.predict(X)
    wide = host(X)
    assert scores.dtype == (torch.float64 if dtype == "float64" else torch.float32)
    np.testing.assert_allclose(host(scores), clf.decision_function(wide), rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(host(labels), clf.predict(wide))
    assert labels.dtype == y.dtype
    assert clf.score(X, y) == clf.score(wide, host(y))
    weights = torch.rand(len(y), device=DEVICE)
    assert clf.score(X, y, weights) == pytest.approx(clf.score(wide, host(y), host(weights)))


@pytest.mark.parametrize("classes", [2, 3])
def test_answers_with_sparse_weights(classes: int) -> None:
    X, y = data(classes=classes)
    clf = LinearSVC(warm_start=True, random_state=0).fit(X, y)
    scores, labels = clf.decision_function(X), clf.predict(X)
    clf.sparsify()
    assert torch.equal(clf.decision_function(X), scores)
    assert torch.equal(clf.predict(X), labels)
    agrees(clf.fit(X, y), host(X), host(y))


@pytest.mark.parametrize(
    "labels",
    [
        np.array(["no", "yes"]),
        torch.tensor([False, True]),
        torch.tensor([-1.0, 1.0]),
        torch.tensor([3, 250], dtype=torch.uint8),
        [5, 7],
    ],
)
def test_labels_of_any_kind(labels: Any) -> None:
    X, y = data()
    tensors = isinstance(labels, torch.Tensor)
    given = labels.to(DEVICE)[y] if tensors else np.asarray(labels)[y.cpu().numpy()]
    clf = LinearSVC(random_state=0).fit(X, given)
    assert clf.score(X, given) > 0.8
    numbers = clf.classes_.dtype.kind != "U"
    assert isinstance(clf.predict(X), torch.Tensor if numbers else np.ndarray)


def test_data_in_memory_is_moved_to_the_device(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = data(3000)
    monkeypatch.setattr(rows_module, "_BLOCKS", (2**14, 2**28))
    for room in (10**9, X.nbytes // 3):
        monkeypatch.setattr(rows_module, "_room_for", lambda X, device, room=room: room)
        # The "device" must be another one than the data's for anything to be moved.
        if DEVICE == "cpu":
            monkeypatch.setattr(rows_module, "_device", lambda name: torch.device("cpu", 0))
        clf = LinearSVC(0.5, tol=1e-5, device=DEVICE, random_state=0)
        clf.fit(host(X), host(y))
        agrees(clf, host(X), host(y))
        assert isinstance(clf.predict(host(X)), np.ndarray)


def test_data_need_not_be_contiguous_or_writable() -> None:
    X, y = data()
    expected = LinearSVC(random_state=0).fit(X, y).coef_
    for same in (X.T.contiguous().T, torch.cat([X, X], dim=1)[:, :8], X.clone().requires_grad_()):
        np.testing.assert_allclose(LinearSVC(random_state=0).fit(same, y).coef_, expected)
    frozen = X.cpu().numpy().copy()
    frozen.flags.writeable = False
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        clf = LinearSVC(random_state=0, device=DEVICE).fit(frozen, host(y))
    np.testing.assert_allclose(clf.coef_, expected)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda X, y: (X[:, 0], y), "two dimensions"),
        (lambda X, y: (X, y[:9]), "y has shape"),
        (lambda X, y: (X, y[:, None][:, :0]), "y has shape"),
        (lambda X, y: (X, 0 * y), "only one class"),
        (lambda X, y: (X, torch.rand(len(y), device=y.device)), "Unknown label type"),
        (lambda X, y: (X, torch.where(y > 0, 1.0, torch.nan)), "not finite"),
        (lambda X, y: (X, None), "y is None"),
        (lambda X, y: (X[:0], y[:0]), "no rows"),
        (lambda X, y: (X[:, :0], y), "no columns"),
        (lambda X, y: (X.to_sparse(), y), "must be dense"),
        (lambda X, y: (X.to(torch.complex64), y), "Complex data"),
        (lambda X, y: (torch.where(X > 2, torch.nan, X), y), r"in row \d+, column \d is nan"),
        (lambda X, y: (torch.where(X > 2, torch.inf, X), y), r"in row \d+, column \d is inf"),
        (
            lambda X, y: (X.double() * 1e200, y),
            "overflows: in row 0, column",
        ),
    ],
)
def test_bad_input(change: Any, message: str) -> None:
    clf = LinearSVC().fit(*data())
    coef = clf.coef_.copy()
    with pytest.raises(ValueError, match=message):
        clf.fit(*change(*data()))
    np.testing.assert_array_equal(clf.coef_, coef)


def test_bad_weights_and_parameters() -> None:
    X, y = data()
    for weights, message in (
        (torch.full((len(y),), -1.0), "must not be negative"),
        (torch.full((len(y),), torch.nan), "must be finite"),
        (torch.ones(3), "sample_weight has shape"),
        (torch.full((len(y),), 1.0 + 1.0j), "Complex data"),
    ):
        with pytest.raises(ValueError, match=message):
            LinearSVC().fit(X, y, weights)
    with pytest.raises(ValueError, match="'sgd-s' does not run on tensors"):
        LinearSVC(solver="sgd-s").fit(X, y)
    if not torch.cuda.is_available():
        with pytest.raises(ValueError, match="PyTorch sees no GPU"):
            LinearSVC(device="cuda").fit(host(X), host(y))
    clf = LinearSVC().fit(X, y)
    with pytest.raises(ValueError, match="expecting 8 features"):
        clf.predict(X[:, :3])
    with pytest.raises(ValueError, match="contains NaN"):
        clf.predict(torch.full((2, 8), torch.nan, device=DEVICE))


def test_the_dual_point() -> None:
    X, y = data(classes=3)
    clf = LinearSVC(0.5, store_dual=True, tol=1e-4).fit(X, y)
    assert clf.dual_coef_.shape == (3, len(X))
    assert (clf.dual_coef_ >= 0).all()
    assert (clf.dual_coef_ <= 0.5).all()
    assert verify(clf, host(X), host(y)).ok


def test_warm_starts() -> None:
    X, y = data()
    clf = LinearSVC(0.5, tol=1e-6, warm_start=True, random_state=0).fit(X, y)
    cold = clf.n_iter_
    clf.fit(X, y)
    assert clf.n_iter_ < 0.5 * cold
    for C in (1.0, 0.1):
        clf.set_params(C=C).fit(X, y)
        agrees(clf, host(X), host(y))
    # From tensors to arrays and back.
    clf.fit(host(X), host(y))
    clf.fit(X, y)
    agrees(clf, host(X), host(y))


@pytest.mark.parametrize("tensors", [True, False])
@pytest.mark.parametrize("classes", [2, 3])
def test_several_C(tensors: bool, classes: int) -> None:
    X, y = data(classes=classes)
    Cs = [1.0, 0.01, 0.1]
    given = (X, y) if tensors else (host(X), host(y))
    models = fit_path(LinearSVC(tol=1e-5, random_state=0), *given, Cs)
    assert [model.C for model in models] == Cs
    for model in models:
        agrees(model, host(X), host(y))
        assert not model.warm_start
    with pytest.raises(ValueError, match="finite numbers > 0"):
        fit_path(LinearSVC(), X, y, [1.0, -1.0])


def test_copies() -> None:
    X, y = data()
    clf = LinearSVC(device=DEVICE, warm_start=True).fit(X, y)
    assert clone(clf).device == DEVICE
    loaded = pickle.loads(pickle.dumps(clf))
    assert torch.equal(loaded.predict(X), clf.predict(X))


def test_array_api_dispatch() -> None:
    """The tools of scikit-learn on tensors, in a new process, as SciPy must be configured early."""
    program = """
import sklearn, torch
from sklearn.model_selection import cross_val_score
from certsvm import LinearSVC
X = torch.randn(600, 5, generator=torch.Generator().manual_seed(0))
y = (X[:, 0] > 0).long()
with sklearn.config_context(array_api_dispatch=True):
    clf = LinearSVC(random_state=0).fit(X, y)
    assert isinstance(clf.predict(X), torch.Tensor)
    assert cross_val_score(clf, X, y, cv=3).min() > 0.9
"""
    environment = {**os.environ, "SCIPY_ARRAY_API": "1"}
    subprocess.run([sys.executable, "-c", program], check=True, timeout=120, env=environment)


def test_without_tensors_pytorch_is_not_loaded() -> None:
    program = (
        "import sys, numpy as np; from certsvm import LinearSVC;"
        "LinearSVC().fit(np.eye(4), [0, 1, 0, 1]).predict(np.eye(4));"
        "assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=120)


@pytest.mark.parametrize("moment", range(12))
def test_an_interruption_leaves_true_certificates(
    monkeypatch: pytest.MonkeyPatch, moment: int
) -> None:
    """Wherever it falls: also between w and its products, and with classes together."""
    X, y = data(400, columns=5, classes=2 + moment % 2)
    add, calls = torch.Tensor.add_, []

    def interrupted(self: Any, *given: Any, **options: Any) -> Any:
        calls.append(1)
        if len(calls) == 30 + moment:
            raise KeyboardInterrupt
        return add(self, *given, **options)

    monkeypatch.setattr(torch.Tensor, "add_", interrupted)
    try:
        models = fit_path(LinearSVC(tol=1e-6, random_state=0), X, y, [0.1, 1.0, 10.0])
    except KeyboardInterrupt:
        return  # Before there was anything to keep.
    finally:
        monkeypatch.undo()
    for model in models:
        assert verify(model, host(X), host(y)).ok


def test_scores_of_what_does_not_fit_together() -> None:
    X, y = data()
    clf = LinearSVC().fit(X, y)
    assert clf.score(X, y[:, None]) == clf.score(X, y)
    for labels, weights in ((y[:1], None), (y, torch.ones(1))):
        with pytest.raises(ValueError, match="has shape"):
            clf.score(X, labels, weights)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.uint16, torch.int8, torch.bool])
def test_labels_of_types_that_numpy_lacks(dtype: torch.dtype) -> None:
    X, y = data()
    clf = LinearSVC(random_state=0).fit(X, y.to(dtype))
    np.testing.assert_array_equal(clf.classes_.astype(int), [0, 1])


def test_what_else_a_device_is_given(capsys: pytest.CaptureFixture[str]) -> None:
    X, y = data()
    frame = pd.DataFrame(host(X), columns=list("abcdefgh"))
    clf = LinearSVC(device=DEVICE, verbose=1, random_state=0).fit(frame, host(y), 2.0)
    assert clf.feature_names_in_.tolist() == list("abcdefgh")
    assert "primal" in capsys.readouterr().err
    agrees(clf, host(X), host(y), np.full(len(y), 2.0))
    with pytest.raises(ValueError, match="sparse matrices are trained on the CPU"):
        LinearSVC(device=DEVICE).fit(sp.csr_matrix(host(X)), host(y))
    with pytest.raises(ValueError, match="must hold real numbers"):
        LinearSVC(device=DEVICE).fit(np.array([["a"], ["b"]]), [0, 1])


@pytest.mark.skipif(DEVICE == "cpu", reason="CuPy is for GPUs: CERTSVM_TEST_DEVICE=cuda")
def test_arrays_of_cupy() -> None:
    cupy = pytest.importorskip("cupy")
    X, y = data()
    rows, labels = cupy.asarray(host(X), dtype="float32"), cupy.asarray(host(y).astype(int))
    clf = LinearSVC(0.5, tol=1e-5, random_state=0).fit(rows, labels)
    agrees(clf, cupy.asnumpy(rows).astype(float), cupy.asnumpy(labels))
    assert isinstance(clf.predict(rows), cupy.ndarray)
    assert isinstance(clf.decision_function(rows), cupy.ndarray)
    assert clf.score(rows, labels) == clf.score(X, y)


def test_there_are_no_checkpoints(tmp_path: Any) -> None:
    with pytest.raises(ValueError, match="cannot go on from a checkpoint"):
        LinearSVC(checkpoint=tmp_path).fit(*data())


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_start_whose_objective_overflows_is_not_taken(n_classes: int) -> None:
    rng = np.random.default_rng(0)
    X, y = device(rng.standard_normal((200, 5))), np.arange(200) % n_classes
    clf = LinearSVC(0.1, warm_start=True, random_state=0).fit(X, y)
    for size in (1e154, 1e300):
        clf.coef_ = np.full_like(clf.coef_, size)
        with pytest.warns(UserWarning, match="so large that J overflows"):
            clf.fit(X, y)
        assert all(certificate.met for certificate in clf.certificates_)


@pytest.mark.parametrize("classes", [2, 3])
def test_every_C_in_a_range(classes: int) -> None:
    X, y = data(classes=classes)
    estimator = LinearSVC(random_state=0, store_dual=True)
    path = fit_path(estimator, X, y, C_range=(0.01, 1.0), tol=1e-3)
    assert path.met
    model = path.model(0.0789)
    assert model.certificate_ is not None
    assert model.certificate_.met
    assert verify(model, host(X), host(y)).verdict == "confirmed"
    on_host = fit_path(LinearSVC(random_state=0), host(X), host(y), C_range=(0.01, 1.0), tol=1e-3)
    certificates = zip(path.certificates(0.0789), on_host.certificates(0.0789), strict=True)
    for one, other in certificates:
        assert one.dual <= other.primal
        assert other.dual <= one.primal
