"""Models for several values of C."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC as OtherSVC

from certsvm import LinearSVC, Model, fit_path, verify
from certsvm.estimators.sklearn_callbacks import FitTasks

X, y = make_classification(n_samples=300, n_informative=4, n_classes=3, random_state=0)


@pytest.mark.parametrize("solver", ["auto", "dcd", "sgd-s", "ocas"])
def test_each_model_has_its_certificate(solver: str) -> None:
    estimator = LinearSVC(solver=solver, tol=0.05, random_state=0)
    models = fit_path(estimator, X, y, [1.0, 0.01, 0.1])
    assert [model.C for model in models] == [1.0, 0.01, 0.1]
    for model in models:
        assert [certificate.C for certificate in model.certificates_ or []] == [model.C] * 3
        assert verify(model, X, y).ok
        assert model.certificate_ is not None
        assert model.certificate_.met
    assert not hasattr(estimator, "coef_")


def test_it_is_a_warm_start() -> None:
    cold = LinearSVC(solver="dcd", C=0.01, tol=1e-4, random_state=0).fit(X, y)
    warm = fit_path(LinearSVC(solver="dcd", tol=1e-4, random_state=0), X, y, [0.009, 0.01])[1]
    assert warm.n_iter_ < cold.n_iter_


def test_weights_and_names() -> None:
    import pandas as pd

    weights = np.linspace(0.5, 2.0, len(y))
    frame = pd.DataFrame(X, columns=[f"x{i}" for i in range(X.shape[1])])
    for model in fit_path(LinearSVC(random_state=0), frame, y, [0.01, 0.1], weights):
        assert model.feature_names_in_.tolist() == frame.columns.tolist()
        assert verify(model, X, y, sample_weight=weights).ok
        model.predict(frame)


def test_after_an_interruption_none_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    fits = []

    def begin(self: Any, i: int, label: Any, problem: Any) -> list[Any]:
        def interrupt(progress: Any) -> None:
            fits.append(problem.C)
            if problem.C == 0.1:
                raise KeyboardInterrupt

        return [interrupt]

    monkeypatch.setattr(FitTasks, "begin", begin)
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        models = fit_path(LinearSVC(random_state=0), X, y == 1, [1.0, 0.1, 0.01])
    assert 1.0 not in fits
    assert not models[0].coef_.any()
    assert models[2].coef_.any()
    for model in models:
        assert verify(model, X, y == 1).ok


def test_an_interruption_before_a_first_pass_keeps_the_models_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def begin(self: Any, i: int, label: Any, problem: Any) -> list[Any]:
        if problem.C == 0.1:
            raise KeyboardInterrupt
        return []

    monkeypatch.setattr(FitTasks, "begin", begin)
    with pytest.warns(ConvergenceWarning, match="interrupted") as warned:
        models = fit_path(LinearSVC(random_state=0), X, y == 1, [0.01, 0.1, 1.0])
    assert {warning.filename for warning in warned} == {__file__}
    assert [bool(model.coef_.any()) for model in models] == [True, False, False]
    with pytest.raises(KeyboardInterrupt):
        fit_path(LinearSVC(random_state=0), X, y == 1, [0.1, 1.0])


@pytest.mark.parametrize("Cs", [[], [0.0], [1.0, np.nan], [-1.0], [np.inf]])
def test_values_that_make_no_sense(Cs: list[float]) -> None:
    with pytest.raises(ValueError, match="Cs must be finite numbers > 0"):
        fit_path(LinearSVC(), X, y, Cs)


def test_a_path_has_no_checkpoint(tmp_path: Path) -> None:
    X, y = make_classification(random_state=0)
    with pytest.raises(ValueError, match="fit_path"):
        fit_path(LinearSVC(random_state=0, checkpoint=tmp_path), X, y, [0.1, 1.0])


@pytest.mark.parametrize("estimator", [OtherSVC(), LinearSVC, None, make_pipeline(LinearSVC())])
def test_other_estimators_are_refused(estimator: Any) -> None:
    with pytest.raises(TypeError, match=r"takes a certsvm\.LinearSVC"):
        fit_path(estimator, X, y, [1.0])


def test_every_C_in_a_range() -> None:
    estimator = LinearSVC(random_state=0, store_dual=True, class_weight={0: 2.0})
    path = fit_path(estimator, X, y, C_range=(0.01, 10.0), tol=0.02)
    assert path.met
    assert path.worst_gap <= 0.02
    assert path.proved_up_to == 10.0
    assert path.Cs == sorted(path.Cs)
    assert [model.C for model in path] == path.Cs
    assert path.C_range == (path.Cs[0], path.Cs[-1])
    assert "worst gap" in repr(path)
    for C in np.exp(np.random.default_rng(0).uniform(np.log(0.01), np.log(10.0), 8)):
        model = path.model(C)
        certificate = path.certificate(C)
        assert model.C == certificate.C == C
        assert len(path.certificates(C)) == 3
        assert certificate.met
        assert model.certificate_ is not None
        assert model.certificate_.met
        assert model.certificate_.proved_gap <= certificate.proved_gap * (1 + 1e-9)
        # J and L of the interpolated model, recomputed from the data by other code.
        report = verify(model, X, y)
        assert report.ok
        assert report.dual_verified
        # Against the optimum, far more accurately.
        exact = LinearSVC(C=C, tol=1e-10, random_state=0, class_weight={0: 2.0}).fit(X, y)
        for claimed, best in zip(path.certificates(C), exact.certificates_ or [], strict=True):
            assert claimed.dual - claimed.dual_rounding <= best.primal + best.primal_rounding
            assert best.dual - best.dual_rounding <= claimed.primal + claimed.primal_rounding
    assert path.model(path.Cs[1]) is path.models[1]


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("penalize_intercept", [True, False])
def test_every_loss_and_a_free_intercept(loss: str, penalize_intercept: bool) -> None:
    kind: Any = {"loss": loss, "penalize_intercept": penalize_intercept, "random_state": 0}
    moved = X + 3.0
    path = fit_path(LinearSVC(**kind, store_dual=True), moved, y, C_range=(0.01, 1.0), tol=0.02)
    assert path.met
    for C in (0.0123, 0.1, 0.456):
        model, certificate = path.model(C), path.certificate(C)
        assert (certificate.loss, certificate.penalize_intercept) == (loss, penalize_intercept)
        assert model.certificate_ is not None
        assert model.certificate_.met
        assert model.certificate_.proved_gap <= certificate.proved_gap * (1 + 1e-9)
        assert verify(model, moved, y).dual_verified
        fine = LinearSVC(C=C, tol=1e-9, **kind).fit(moved, y)
        for claimed, best in zip(path.certificates(C), fine.certificates_ or [], strict=True):
            assert claimed.dual - claimed.dual_rounding <= best.primal + best.primal_rounding
            assert best.dual - best.dual_rounding <= claimed.primal + claimed.primal_rounding


def test_a_model_between_predicts_and_saves(tmp_path: Path) -> None:
    import pandas as pd

    weights = np.linspace(0.0, 2.0, len(y))
    frame = pd.DataFrame(X, columns=[f"x{i}" for i in range(X.shape[1])])
    estimator = LinearSVC(random_state=0, intercept_scaling=0.5, store_dual=True)
    path = fit_path(estimator, frame, y, sample_weight=weights, C_range=(0.01, 1.0), tol=0.05)
    model = path.model(0.0567)
    assert model.feature_names_in_.tolist() == frame.columns.tolist()
    assert model.score(frame, y) > 0.5
    assert verify(model, X, y, sample_weight=weights).ok
    Model.from_estimator(model).save(tmp_path / "between.model")
    loaded = Model.load(tmp_path / "between.model")
    assert loaded.predict(X).tolist() == model.predict(frame).tolist()
    np.testing.assert_allclose(loaded.coef, model.coef_)


def test_a_solver_without_proofs() -> None:
    with pytest.raises(ValueError, match="a solver with a dual bound, and 'pegasos' has"):
        fit_path(LinearSVC(solver="pegasos"), X, y, C_range=(0.1, 1.0))


def test_a_stream() -> None:
    def blocks() -> Any:
        for part in np.array_split(np.arange(len(y)), 4):
            yield X[part], y[part]

    path = fit_path(LinearSVC(random_state=0), blocks, C_range=(0.01, 1.0), tol=0.02)
    assert path.met
    assert verify(path.model(0.234), X, y).ok
    with pytest.raises(ValueError, match="brings its own labels"):
        fit_path(LinearSVC(), blocks, y, C_range=(0.01, 1.0))
    with pytest.raises(ValueError, match="labels and weights"):
        fit_path(LinearSVC(), blocks, sample_weight=np.ones(len(y)), C_range=(0.01, 1.0))


def test_a_missed_accuracy_is_told() -> None:
    with pytest.warns(ConvergenceWarning, match=r"not proved for every C .* nor at C = 0\.1") as w:
        path = fit_path(
            LinearSVC(solver="sgd-s", max_iter=1, random_state=0),
            X, y, C_range=(0.1, 1.0), tol=1e-6,
        )  # fmt: skip
    assert {warning.filename for warning in w} == {__file__}
    assert not path.met
    assert path.proved_up_to == 0.0
    assert not path.model(0.5).certificate_.met
    with pytest.warns(ConvergenceWarning, match=r"not proved for every C .* but up to C = 0\.1"):
        path = fit_path(LinearSVC(), X, y, C_range=(0.1, 1.0), tol=1e-6, max_fits=2)
    assert path.proved_up_to == 0.1


def test_a_pickled_path_has_no_data() -> None:
    path = pickle.loads(
        pickle.dumps(fit_path(LinearSVC(random_state=0), X, y, C_range=(0.01, 1.0)))
    )
    assert path.met
    assert path.certificate(0.1234).met
    assert path.model(path.Cs[0]).certificate_.met
    with pytest.raises(ValueError, match="not the data"):
        path.model(0.1234)


def test_progress_and_the_limit_on_fits() -> None:
    told: list[Any] = []
    with pytest.warns(ConvergenceWarning):
        path = fit_path(
            LinearSVC(random_state=0), X, y,
            C_range=(0.01, 10.0), tol=1e-5, max_fits=6, callback=told.append,
        )  # fmt: skip
    assert len(path) == len(told) == 6
    assert told[-1].n_fits == 6


@pytest.mark.parametrize(
    ("given", "match"),
    [
        ({"Cs": [-1.0]}, "finite numbers > 0"),
        ({}, "either Cs"),
        ({"Cs": [1.0], "C_range": (0.1, 1.0)}, "either Cs"),
        ({"C_range": (1.0, 0.1)}, "ascending"),
        ({"C_range": (0.0, 0.1)}, "ascending"),
        ({"C_range": (0.1, np.inf)}, "ascending"),
        ({"C_range": (0.1, 1.0), "tol": 0.0}, "tol > 0"),
        ({"C_range": (0.1, 1.0), "tol": -1.0}, "tol"),
        ({"C_range": (0.1, 1.0), "max_fits": 1}, "max_fits"),
    ],
)
def test_what_makes_no_sense(given: dict[str, Any], match: str) -> None:
    with pytest.raises(ValueError, match=match):
        fit_path(LinearSVC(), X, y, **given)


@pytest.mark.parametrize("C_range", [1.0, (1.0,), (1.0, 2.0, 3.0)])
def test_a_range_is_two_numbers(C_range: Any) -> None:
    with pytest.raises(TypeError, match="lowest and the highest"):
        fit_path(LinearSVC(), X, y, C_range=C_range)


def test_C_outside_the_range() -> None:
    path = fit_path(LinearSVC(random_state=0), X, y, C_range=(0.1, 1.0), tol=0.1)
    for ask in (path.model, path.certificate):
        with pytest.raises(ValueError, match=r"outside the path, which is from 0\.1 to 1"):
            ask(2.0)


def test_the_picture(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    path = fit_path(LinearSVC(random_state=0), X, y, C_range=(0.1, 10.0), tol=0.01)
    figure = path.plot(str(tmp_path / "path.png"))
    assert (tmp_path / "path.png").stat().st_size > 1000
    (axis,) = figure.axes
    gaps = axis.lines[0].get_ydata()
    assert max(gaps) <= 0.01
    assert list(axis.lines[1].get_xdata()) == path.Cs


def test_a_callback_that_returns_an_array_is_an_error() -> None:
    X, y = make_classification(random_state=0)
    with pytest.raises(TypeError, match="neither true nor false"):
        fit_path(
            LinearSVC(random_state=0), X, y, C_range=(0.01, 1.0),
            callback=lambda progress: np.ones(2),
        )  # fmt: skip
