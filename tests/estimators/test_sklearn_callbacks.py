"""scikit-learn's callback protocol."""

from typing import Any

import numpy as np
import pytest
from sklearn.datasets import make_classification

from certsvm import LinearSVC

sklearn_callback = pytest.importorskip("sklearn.callback", reason="needs scikit-learn 1.9")

X, y = make_classification(300, 8, n_informative=6, n_classes=3, random_state=0)


class Recorder:
    """Notes every task, and looks at the model."""

    def __init__(self, stop_after: int | None = None) -> None:
        self.begun: list[tuple[str, Any]] = []
        self.ended: list[tuple[str, Any]] = []
        self.scores: list[float] = []
        self.stop_after = stop_after
        self.open = 0

    def setup(self, estimator: Any, context: Any) -> None:
        self.open += 1

    def teardown(self, estimator: Any, context: Any) -> None:
        self.open -= 1

    def on_fit_task_begin(self, estimator: Any, context: Any) -> None:
        self.begun.append((context.task_name, context.task_id))

    def on_fit_task_end(
        self, estimator: Any, context: Any, *, X: Any, y: Any, fitted_estimator: Any
    ) -> bool:
        self.ended.append((context.task_name, context.task_id))
        if context.task_name == "pass":
            self.scores.append(fitted_estimator.score(X, y))
        passes = sum(name == "pass" for name, _ in self.ended)
        return self.stop_after is not None and passes >= self.stop_after


def test_passes_of_a_binary_problem_are_tasks() -> None:
    recorder = Recorder()
    clf = LinearSVC(C=0.1, random_state=0).set_callbacks(recorder).fit(X, y == 1)
    assert recorder.begun[0] == ("fit", 0)
    assert recorder.ended[-1] == ("fit", 0)
    assert recorder.ended[:-1] == [("pass", i) for i in range(clf.n_iter_)]
    assert sorted(recorder.begun) == sorted(recorder.ended)
    assert recorder.open == 0
    assert recorder.scores[-1] == clf.score(X, y == 1)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_classes_are_tasks(n_jobs: int) -> None:
    recorder = Recorder()
    clf = LinearSVC(C=0.1, random_state=0, n_jobs=n_jobs).set_callbacks(recorder).fit(X, y)
    names = [name for name, _ in recorder.ended]
    assert {"class 0", "class 1", "class 2"} < set(names)
    assert names.count("pass") == sum(len(history) for history in clf.history_)
    assert sorted(recorder.begun) == sorted(recorder.ended)


def test_a_callback_can_stop_training() -> None:
    recorder = Recorder(stop_after=3)
    with pytest.warns(match="stopped by a callback after 3 passes"):
        clf = LinearSVC(tol=0, random_state=0).set_callbacks(recorder).fit(X, y == 1)
    assert clf.n_iter_ == 3


def test_teardown_after_an_error() -> None:
    recorder = Recorder()
    clf = LinearSVC().set_callbacks(recorder)
    with pytest.raises(ValueError, match="NaN"):
        clf.fit(np.full_like(X, np.nan), y)
    assert recorder.open == 0
