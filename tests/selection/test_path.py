"""Models for several values of C."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC as OtherSVC

from certsvm import LinearSVC, fit_path, verify
from certsvm.estimators.sklearn_callbacks import FitTasks
from certsvm.fitting import sources

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


def test_data_are_checked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    plain = sources.Rows

    def counted(*given: Any, **options: Any) -> Any:
        made.append(1)
        return plain(*given, **options)

    monkeypatch.setattr(sources, "Rows", counted)
    fit_path(LinearSVC(random_state=0), sp.csr_matrix(X), y, [0.01, 0.1, 1.0])
    assert len(made) == 1


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


def test_parameters_are_checked() -> None:
    with pytest.raises(ValueError, match="tol"):
        fit_path(LinearSVC(tol=-1.0), X, y, [1.0])


def test_a_path_has_no_checkpoint(tmp_path: Path) -> None:
    X, y = make_classification(random_state=0)
    with pytest.raises(ValueError, match="fit_path"):
        fit_path(LinearSVC(random_state=0, checkpoint=tmp_path), X, y, [0.1, 1.0])


@pytest.mark.parametrize(
    ("estimator", "got"),
    [(OtherSVC(), "object of sklearn.svm"), (LinearSVC, "the class"), (None, "NoneType"),
     (make_pipeline(LinearSVC()), "Pipeline")],
)  # fmt: skip
def test_other_estimators_are_refused(estimator: Any, got: str) -> None:
    with pytest.raises(TypeError, match=rf"takes a certsvm\.LinearSVC.*{got}"):
        fit_path(estimator, X, y, [1.0])


def test_a_single_number_is_no_path() -> None:
    with pytest.raises(TypeError, match="Cs must be a sequence"):
        fit_path(LinearSVC(), X, y, 1.0)  # type: ignore[arg-type]
