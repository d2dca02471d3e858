"""Our passes as tasks of scikit-learn's callback protocol (scikit-learn 1.9 and later).

The task tree is fit > pass for a binary problem and fit > class > pass for several. Without
callbacks, and so with an older scikit-learn, no task is ever created.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from certsvm.fitting.sources import Source
from certsvm.problem.base import BaseProblem
from certsvm.training.settings import Callback, Observer, Progress, Result

__all__ = ["CallbackSupportMixin", "FitTasks"]

try:
    from sklearn.callback import CallbackSupportMixin
except ImportError:

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Stands in where scikit-learn has no callbacks."""


class FitTasks(Observer):
    """The tasks of one call of ``fit``.

    Parameters
    ----------
    estimator : LinearSVC
        Being fitted.
    source : Source
        The data.
    given : dict
        X, y and metadata, as callbacks may ask for them.
    """

    def __init__(self, estimator: Any, source: Source, given: dict[str, Any]) -> None:
        self._estimator, self._given = estimator, given
        self._contexts: list[Any] = []
        if not getattr(estimator, "_skl_callbacks", None):
            return
        labels, max_iter = source.labels, estimator.max_iter
        several = len(labels) > 1
        # What a callback sees of a model whose classes are still in training.
        self._classes = source.classes
        self._coef = np.zeros((len(labels), source.n_columns))
        self._intercept = np.zeros(len(labels))
        self._root = estimator._init_callback_context(
            max_subtasks=len(labels) if several else max_iter, sequential_subtasks=not several
        )
        self._root.call_on_fit_task_begin(estimator=estimator, **given)
        # Made here, in one thread; afterwards each is used by the thread of its problem only.
        self._contexts = [self._root]
        if several:
            self._contexts = [
                self._root.subcontext(f"class {label}", task_id=i, max_subtasks=max_iter)
                for i, label in enumerate(labels)
            ]
        self._begun: set[int] = set()

    def begin(self, i: int, label: Any, problem: BaseProblem) -> Sequence[Callback]:
        """Problem ``i`` is about to be trained; a callback, if anybody listens."""
        if not self._contexts:
            return ()
        context = self._contexts[i]
        if context is not self._root:
            self._begun.add(i)
            context.call_on_fit_task_begin(estimator=self._estimator, **self._given)

        def after_pass(progress: Progress) -> bool:
            def attributes() -> dict[str, Any]:
                self._coef[i], self._intercept[i] = problem.coefficients(progress.w())
                return {
                    "coef_": self._coef.copy(),
                    "intercept_": self._intercept.copy(),
                    "classes_": self._classes,
                    "n_features_in_": self._coef.shape[1],
                }

            task = context.subcontext("pass")
            task.call_on_fit_task_begin(estimator=self._estimator, **self._given)
            stop = task.call_on_fit_task_end(
                estimator=self._estimator, reconstruction_attributes=attributes, **self._given
            )
            return bool(stop)

        return [after_pass]

    def end(self, i: int, label: Any, result: Result) -> None:
        """Problem ``i`` has been trained, or was left out."""
        if self._contexts and i in self._begun:
            self._contexts[i].call_on_fit_task_end(estimator=self._estimator, **self._given)

    def end_fit(self) -> None:
        """All problems have been trained, and the estimator is fitted."""
        if self._contexts:
            names = ("coef_", "intercept_", "classes_")
            self._root.call_on_fit_task_end(
                estimator=self._estimator,
                reconstruction_attributes={name: getattr(self._estimator, name) for name in names},
                **self._given,
            )
