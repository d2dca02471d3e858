"""The sizes of a problem, wherever its rows are stored."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from certsvm.problem.rows import Vector, dimension_of


@dataclass(frozen=True)
class Sizes:
    """The sizes of a problem; raises a ValueError if no row has a positive weight."""

    n_rows: int
    n_columns: int
    intercept_scaling: float
    """The augmentation rho >= 0; zero means that there is no intercept."""
    m: int
    """Number of rows of positive weight."""
    weight_sum: float
    smallest_weight: float
    """The smallest positive weight."""
    largest_weight: float
    R: float
    """The largest norm of an augmented row of positive weight, or an upper bound."""

    def __post_init__(self) -> None:
        if self.m == 0:
            raise ValueError("there is nothing to learn from: no row has a positive weight")

    @property
    def dimension(self) -> int:
        """Length of weight vectors: ``n_columns``, plus one if there is an intercept."""
        return dimension_of(self.n_columns, self.intercept_scaling)

    def require_representable(self, C: float) -> None:
        """Raise unless products of C and these sizes, and their squares, fit into float64."""
        S, s, lambda_ = self.largest_weight, self.smallest_weight, 1.0 / (C * self.m)
        with np.errstate(over="ignore", under="ignore"):
            large = np.float64(max(C, 1.0)) * max(S, 1.0) * max(self.R, 1.0) * self.m
            small = min(np.float64(C) * s, s, lambda_)
        if large > 1e140 or small < 1e-140 or lambda_ > 1e140:
            raise ValueError(
                f"C = {C:g}, weights from {s:g} to {S:g} and rows as long as {self.R:g} "
                "together leave the range of floating-point numbers. Rescale them "
                "(multiplying all weights and dividing C by the same number changes nothing)."
            )


@dataclass
class ClassSurvey:
    """The sizes of one class: all its rows, and its rows of positive weight."""

    n_rows: int = 0
    n_active: int = 0
    weight_sums: list[float] = field(default_factory=list)
    """The sum of the weights of each block."""
    smallest: float = np.inf
    largest: float = 0.0

    @property
    def weight_sum(self) -> float:
        """The sum of the weights; it adds one rounding to those of the blocks."""
        return math.fsum(self.weight_sums)

    def add(self, n_rows: int, weights: Vector | None) -> None:
        """Add a block of rows; None means that all weights are one."""
        active = np.ones(n_rows) if weights is None else weights[weights > 0]
        smallest, largest = float(active.min(initial=np.inf)), float(active.max(initial=0.0))
        self += ClassSurvey(n_rows, active.size, [float(active.sum())], smallest, largest)

    def __iadd__(self, other: ClassSurvey) -> ClassSurvey:
        self.n_rows += other.n_rows
        self.n_active += other.n_active
        self.weight_sums += other.weight_sums
        self.smallest = min(self.smallest, other.smallest)
        self.largest = max(self.largest, other.largest)
        return self


def sizes_of_classes(
    surveys: Sequence[ClassSurvey],
    factors: Vector,
    n_columns: int,
    intercept_scaling: float,
    R: float,
) -> Sizes:
    """The sizes of a problem from surveys of its classes and factors of their weights."""
    used = [(s, f) for s, f in zip(surveys, factors.tolist(), strict=True) if f > 0]
    return Sizes(
        n_rows=sum(s.n_rows for s in surveys),
        n_columns=n_columns,
        intercept_scaling=intercept_scaling,
        m=sum(s.n_active for s, _ in used),
        weight_sum=math.fsum(f * s.weight_sum for s, f in used),
        smallest_weight=min((f * s.smallest for s, f in used), default=math.inf),
        largest_weight=max((f * s.largest for s, f in used), default=0.0),
        R=R,
    )


def one_against_rest(factors: Vector, positive: int) -> Vector:
    """The factors, negated for all classes but the positive one."""
    signed: Vector = -factors
    signed[positive] = factors[positive]
    return signed


def require_both_classes(signed_weights: Vector) -> None:
    """Raise if the optimum has no finite intercept, without a penalty on it.

    The weights are those of rows or of whole classes, negative on the negative side.
    """
    if not (signed_weights.max() > 0.0 > signed_weights.min()):
        raise ValueError(
            "all rows of positive weight are on the same side, so that the best intercept is "
            "infinite unless it is penalised: use penalize_intercept=True, or rows of both classes"
        )
