"""Our passes as tasks of scikit-learn's callback protocol (scikit-learn 1.9 and later).

The task tree is fit > pass for a binary problem and fit > class > pass for several. With an
older scikit-learn the mixin is empty and no task is ever created.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from certsvm.training.loop import Callback, Progress

__all__ = ["CallbackSupportMixin", "FitTasks"]

try:
    from sklearn.callback import CallbackSupportMixin
except ImportError:

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Stands in where scikit-learn has no callbacks."""


class FitTasks:
    """The tasks of one call of ``fit``.

    Parameters
    ----------
    estimator : LinearSVC
        Being fitted.
    labels : sequence
        The class of each binary problem.
    max_iter : int
        The largest number of passes.
    data : dict
        X, y and metadata, as callbacks may ask for them.
    """

    def __init__(
        self, estimator: Any, labels: Sequence[Any], max_iter: int, data: dict[str, Any]
    ) -> None:
        self._estimator = estimator
        self._data = data
        self._root: Any = None
        self._problems: list[Any] = []
        if not hasattr(estimator, "_init_callback_context"):
            return
        several = len(labels) > 1
        self._root = estimator._init_callback_context(
            max_subtasks=len(labels) if several else max_iter, sequential_subtasks=not several
        )
        self._root.call_on_fit_task_begin(estimator=estimator, **data)
        # Made here, in one thread; afterwards each is used by the thread of its problem only.
        self._problems = [
            self._root.subcontext(f"class {label}", task_id=i, max_subtasks=max_iter)
            if several
            else self._root
            for i, label in enumerate(labels)
        ]

    def callback(self, i: int, attributes: Callable[[Any], dict[str, Any]]) -> list[Callback]:
        """Callbacks for the training of problem ``i``: one, or none if nobody listens.

        ``attributes`` makes fitted attributes from a weight vector, for callbacks that want
        to see the model as it is.
        """
        if self._root is None or not getattr(self._estimator, "_skl_callbacks", None):
            return []
        context = self._problems[i]

        def after_pass(progress: Progress) -> bool:
            task = context.subcontext("pass")
            task.call_on_fit_task_begin(estimator=self._estimator, **self._data)
            return bool(
                task.call_on_fit_task_end(
                    estimator=self._estimator,
                    reconstruction_attributes=lambda: attributes(progress.w()),
                    **self._data,
                )
            )

        return [after_pass]

    def begin(self, i: int) -> None:
        """Problem ``i`` is about to be trained."""
        if self._problems and self._problems[i] is not self._root:
            self._problems[i].call_on_fit_task_begin(estimator=self._estimator, **self._data)

    def end(self, i: int) -> None:
        """Problem ``i`` has been trained."""
        if self._problems and self._problems[i] is not self._root:
            self._problems[i].call_on_fit_task_end(estimator=self._estimator, **self._data)

    def end_fit(self, attributes: dict[str, Any]) -> None:
        """All problems have been trained."""
        if self._root is not None:
            self._root.call_on_fit_task_end(
                estimator=self._estimator, reconstruction_attributes=attributes, **self._data
            )
