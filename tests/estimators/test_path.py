"""Models for several values of C."""

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC as OtherSVC

from certsvm import LinearSVC, Model, fit_path, train, verify

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
    assert path.model(path.Cs[1]) is path.models[1]
    assert max(path.plot().axes[0].lines[0].get_ydata()) <= 0.02


def test_a_model_between_predicts_and_saves(tmp_path: Path) -> None:
    import pandas as pd

    weights = np.linspace(0.0, 2.0, len(y))
    frame = pd.DataFrame(X, columns=[f"x{i}" for i in range(X.shape[1])])
    estimator = LinearSVC(random_state=0, intercept_scaling=0.5, store_dual=True)
    path = fit_path(estimator, frame, y, sample_weight=weights, C_range=(0.01, 1.0), tol=0.05)
    assert verify(path[0], X, y, sample_weight=weights).ok
    model = path.model(0.0567)
    assert model.feature_names_in_.tolist() == frame.columns.tolist()
    assert model.score(frame, y) > 0.5
    assert verify(model, X, y, sample_weight=weights).ok
    Model.from_estimator(model).save(tmp_path / "between.model")
    loaded = Model.load(tmp_path / "between.model")
    assert loaded.predict(X).tolist() == model.predict(frame).tolist()
    np.testing.assert_allclose(loaded.coef, model.coef_)


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


@pytest.mark.parametrize("in_first_pass", [False, True])
def test_an_interruption_ends_it(in_first_pass: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    begun = []

    def interrupt(progress: Any) -> None:
        raise KeyboardInterrupt

    def interrupted(problem: Any, *arguments: Any, **options: Any) -> Any:
        begun.append(problem.C)
        if problem.C == 0.1:
            if in_first_pass:
                raise KeyboardInterrupt
            options["callbacks"] = [interrupt]
        return train(problem, *arguments, **options)

    monkeypatch.setattr("certsvm.fitting.fit_classes.train", interrupted)
    with pytest.warns(ConvergenceWarning, match="interrupted") as warned:
        models = fit_path(LinearSVC(random_state=0), X, y == 1, [1.0, 0.1, 0.01])
    assert {warning.filename for warning in warned} == {__file__}
    assert begun == [0.01, 0.1]
    assert [bool(model.coef_.any()) for model in models] == [False, not in_first_pass, True]
    assert all(verify(model, X, y == 1).ok for model in models)
    if in_first_pass:
        with pytest.raises(KeyboardInterrupt):
            fit_path(LinearSVC(random_state=0, verbose=1), X, y == 1, [0.1, 1.0])


def test_a_missed_accuracy_is_told() -> None:
    with pytest.warns(ConvergenceWarning, match=r"not proved for every C .* nor at C = 0\.1") as w:
        path = fit_path(
            LinearSVC(solver="sgd-s", max_iter=1, random_state=0),
            X, y, C_range=(0.1, 1.0), tol=1e-6,
        )  # fmt: skip
    assert {warning.filename for warning in w} == {__file__}
    assert not path.met
    assert not path.model(0.5).certificate_.met
    told: list[Any] = []
    with pytest.warns(ConvergenceWarning, match=r"not proved for every C .* but up to C = 0\.1"):
        fit_path(LinearSVC(), X, y, C_range=(0.1, 1.0), tol=1e-6, max_fits=2, callback=told.append)
    assert [progress.n_fits for progress in told] == [1, 2]


def test_a_pickled_path_has_no_data() -> None:
    path = fit_path(LinearSVC(random_state=0), X, y, C_range=(0.01, 1.0))
    path = pickle.loads(pickle.dumps(path))
    assert path.met
    assert path.certificate(0.1234).met
    assert path.model(path.Cs[0]).certificate_.met
    with pytest.raises(ValueError, match="no data"):
        path.model(0.1234)
    for ask in (path.model, path.certificate):
        with pytest.raises(ValueError, match=r"outside the path, which is from 0\.01 to 1"):
            ask(2.0)


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({}, ValueError),
        ({"Cs": [1.0], "C_range": (0.1, 1.0)}, ValueError),
        *(({"Cs": Cs}, ValueError) for Cs in ([], [0.0], [1.0, np.nan], [-1.0], [np.inf])),
        *(({"C_range": ends}, ValueError) for ends in ((1.0, 0.1), (0.0, 0.1), (0.1, np.inf))),
        *(({"C_range": ends}, ValueError) for ends in ((1.0,), (1.0, 2.0, 3.0))),
        ({"C_range": 1.0}, TypeError),
        ({"C_range": (0.1, 1.0), "tol": 0.0}, ValueError),
        ({"C_range": (0.1, 1.0), "max_fits": 1}, ValueError),
        ({"C_range": (0.1, 1.0), "solver": "pegasos"}, ValueError),
        ({"Cs": [0.1, 1.0], "checkpoint": "folder"}, ValueError),
        *(({"Cs": [1.0], "estimator": e}, TypeError)
          for e in (OtherSVC(), LinearSVC, None, make_pipeline(LinearSVC()))),
    ],
)  # fmt: skip
def test_what_makes_no_sense(given: dict[str, Any], error: type[Exception]) -> None:
    own = {name: given[name] for name in ("solver", "checkpoint") if name in given}
    rest = {name: value for name, value in given.items() if name not in ("estimator", *own)}
    with pytest.raises(error):
        fit_path(given.get("estimator", LinearSVC(**own)), X, y, **rest)


def test_a_range_has_an_accuracy_of_its_own() -> None:
    X, y = make_classification(200, random_state=0)
    estimator = LinearSVC(tol=1e-6, random_state=0)
    assert fit_path(estimator, X, y, C_range=(0.1, 1.0)).certificate(0.5).target == 0.01
    (model,) = fit_path(estimator, X, y, [0.5])
    assert model.certificate_.target == 1e-6
