"""What an estimator keeps of a fit, for the next one to go on from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from certsvm.certificates.weights import dense
from certsvm.fitting.sources import Source
from certsvm.problem.rows import join
from certsvm.solvers import Start
from certsvm.training.result import Result


@dataclass(frozen=True)
class WarmState:
    """Where a fit ended, besides its weights.

    Attributes
    ----------
    C : float or None
        At which C; None after ``partial_fit``, which has none of its own.
    loss : str
        For which loss.
    penalize_intercept : bool
        Whether the penalty contained the intercept, if there was one.
    epochs : int
        How often rows were presented.
    alphas : tuple
        The dual point of each problem, or None.
    smoothings : tuple
        The slope of alpha over C with which a second-order run ended, or None.
    """

    C: float | None
    loss: str
    penalize_intercept: bool
    epochs: int
    alphas: tuple[Any, ...]
    smoothings: tuple[float | None, ...]

    @classmethod
    def of(cls, results: Sequence[Result], *, keep_alpha: bool) -> WarmState:
        """What training ended with; alpha is a number for each row."""
        ends = [r.warm_start or Start(r.w, r.epochs, r.alpha) for r in results]
        certificate = results[0].certificate
        return cls(
            C=certificate.C,
            loss=certificate.loss,
            penalize_intercept=certificate.penalize_intercept,
            epochs=max(result.epochs for result in results),
            alphas=tuple(end.alpha if keep_alpha else None for end in ends),
            smoothings=tuple(end.smoothing for end in ends),
        )

    def without_alphas(self, *, arrays: bool = True) -> WarmState:
        """Without the dual points, or without those that are not NumPy's."""
        kept = (a if isinstance(a, np.ndarray) and not arrays else None for a in self.alphas)
        return replace(self, alphas=tuple(kept))

    def weights_only(self) -> WarmState:
        """Without anything that belongs to the dual problem."""
        nothing = (None,) * len(self.alphas)
        return replace(self, C=None, alphas=nothing, smoothings=nothing)


def warm_starts(clf: Any, source: Source) -> list[Start] | None:
    """The start of each problem; None if there is no previous solution of the same shape."""
    state: WarmState | None = getattr(clf, "_warm", None)
    if not clf.warm_start or state is None or state.epochs == 0:
        return None
    if clf.coef_.shape[1] != source.n_columns or not np.array_equal(clf.classes_, source.classes):
        return None
    penalized = not clf._objective().frees(source.intercept_scaling)
    if (state.loss, state.penalize_intercept) != (clf.loss, penalized):
        # The dual variables of another problem may be infeasible in this one.
        state = state.weights_only()
    ratio = 1.0 if state.C is None else clf.C / state.C
    return [
        source.scaled_start(
            Start(
                join(coef, float(intercept), source.intercept_scaling),
                state.epochs,
                alpha,
                smoothing,
            ),
            ratio,
        )
        for coef, intercept, alpha, smoothing in zip(
            dense(clf.coef_), clf.intercept_, state.alphas, state.smoothings, strict=True
        )
    ]
