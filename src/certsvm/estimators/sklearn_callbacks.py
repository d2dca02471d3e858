"""Our passes as tasks of scikit-learn's callback protocol (scikit-learn 1.9 and later).

The task tree is fit > pass for a binary problem and fit > class > pass for several. With an
older scikit-learn the mixin is empty and no task is ever created.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from certsvm.fitting.fit_classes import Observer
from certsvm.fitting.sources import Source
from certsvm.problem.base import BaseProblem
from certsvm.training.result import Callback, Progress, Result

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
        self._estimator = estimator
        self._given = given
        self._root: Any = None
        self._contexts: list[Any] = []
        self._begun: set[int] = set()
        self._classes, n_problems = source.classes, len(source.labels)
        # What a callback sees of a model whose classes are still in training.
        width = source.n_columns if getattr(estimator, "_skl_callbacks", None) else 0
        self._coef = np.zeros((n_problems, width))
        self._intercept = np.zeros(n_problems)
        if not hasattr(estimator, "_init_callback_context"):
            return
        max_iter, several = estimator.max_iter, n_problems > 1
        self._root = estimator._init_callback_context(
            max_subtasks=n_problems if several else max_iter, sequential_subtasks=not several
        )
        self._root.call_on_fit_task_begin(estimator=estimator, **given)
        # Made here, in one thread; afterwards each is used by the thread of its problem only.
        self._contexts = [
            self._root.subcontext(f"class {label}", task_id=i, max_subtasks=max_iter)
            if several
            else self._root
            for i, label in enumerate(source.labels)
        ]

    def begin(self, i: int, label: Any, problem: BaseProblem) -> Sequence[Callback]:
        """Problem ``i`` is about to be trained; a callback, if anybody listens."""
        if self._root is None:
            return ()
        self._begun.add(i)
        context = self._contexts[i]
        if context is not self._root:
            context.call_on_fit_task_begin(estimator=self._estimator, **self._given)
        if not getattr(self._estimator, "_skl_callbacks", None):
            return ()

        def after_pass(progress: Progress) -> bool:
            task = context.subcontext("pass")
            task.call_on_fit_task_begin(estimator=self._estimator, **self._given)
            return bool(
                task.call_on_fit_task_end(
                    estimator=self._estimator,
                    reconstruction_attributes=lambda: self._attributes(i, problem, progress),
                    **self._given,
                )
            )

        return [after_pass]

    def _attributes(self, i: int, problem: BaseProblem, progress: Progress) -> dict[str, Any]:
        """The fitted attributes as they would be now."""
        self._coef[i], self._intercept[i] = problem.coefficients(progress.w())
        return {
            "coef_": self._coef.copy(),
            "intercept_": self._intercept.copy(),
            "classes_": self._classes,
            "n_features_in_": self._coef.shape[1],
        }

    def end(self, i: int, label: Any, result: Result) -> None:
        """Problem ``i`` has been trained."""
        if i in self._begun and self._contexts[i] is not self._root:
            self._contexts[i].call_on_fit_task_end(estimator=self._estimator, **self._given)

    def end_fit(self) -> None:
        """All problems have been trained, and the estimator is fitted."""
        if self._root is not None:
            names = ("coef_", "intercept_", "classes_")
            self._root.call_on_fit_task_end(
                estimator=self._estimator,
                reconstruction_attributes={name: getattr(self._estimator, name) for name in names},
                **self._given,
            )
