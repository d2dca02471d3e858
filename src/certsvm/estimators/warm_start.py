"""What an estimator keeps of a fit, for the next one to go on from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from certsvm.certificates.weights import dense
from certsvm.fitting.sources import Source
from certsvm.problem.rows import join
from certsvm.solvers import Start
from certsvm.training.result import Result


@dataclass(frozen=True)
class WarmState:
    """What weights and certificates do not tell of where a fit ended.

    Attributes
    ----------
    epochs : int
        How often rows were presented.
    alphas : sequence
        The dual point of each problem, or None.
    smoothings : sequence
        The slope of alpha over C with which a second-order run ended, or None.
    """

    epochs: int
    alphas: Sequence[Any]
    smoothings: Sequence[float | None]

    @classmethod
    def of(cls, results: Sequence[Result], *, keep_alpha: bool) -> WarmState:
        """What training ended with; alpha is a number for each row."""
        ends = [r.warm_start or Start(r.w, r.epochs, r.alpha) for r in results]
        return cls(
            max(result.epochs for result in results),
            [end.alpha if keep_alpha else None for end in ends],
            [end.smoothing for end in ends],
        )


def warm_starts(clf: Any, source: Source) -> list[Start] | None:
    """The start of each problem; None if there is no previous solution of the same shape."""
    state: WarmState | None = getattr(clf, "_warm", None)
    if not clf.warm_start or state is None or state.epochs == 0:
        return None
    if clf.coef_.shape[1] != source.n_columns or not np.array_equal(clf.classes_, source.classes):
        return None
    # Of another problem, the dual variables may be infeasible in this one. After partial_fit there
    # are none.
    proved = clf.certificates_[0] if clf.certificates_ else None
    penalized = not clf._objective().frees(source.intercept_scaling)
    same = proved is not None and (proved.loss, proved.penalize_intercept) == (clf.loss, penalized)
    ratio = clf.C / proved.C if proved is not None and same else 1.0
    starts = []
    for i, (coef, intercept) in enumerate(zip(dense(clf.coef_), clf.intercept_, strict=True)):
        w = join(coef, float(intercept), source.intercept_scaling)
        alpha, smoothing = (state.alphas[i], state.smoothings[i]) if same else (None, None)
        starts.append(source.scaled_start(Start(w, state.epochs, alpha, smoothing), ratio))
    return starts
