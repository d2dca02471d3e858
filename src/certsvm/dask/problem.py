"""A problem whose rows are on the workers of a cluster."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from dask.delayed import Delayed
from distributed import Future
from numpy.typing import NDArray

from certsvm.dask.blocks import BlockSummary, part_of, signed_weights_of
from certsvm.dask.cluster import Cluster, Group
from certsvm.parallel import ALONE, Team
from certsvm.problem.base import SummableProblem
from certsvm.problem.objective import Objective
from certsvm.problem.part import Part
from certsvm.problem.rows import Rows, Vector, as_compiled_for
from certsvm.problem.sizes import (
    ClassSurvey,
    Sizes,
    one_against_rest,
    require_both_classes,
    sizes_of_classes,
)

# Bytes of sampled rows that the client must be able to hold.
_LARGEST_SAMPLE = 2.0**27


@dataclass(frozen=True)
class ClusterRows:
    """Labelled rows on a cluster, in blocks that are not empty, each of them in one group."""

    cluster: Cluster
    blocks: Sequence[Future]
    summaries: Sequence[BlockSummary]
    groups: Sequence[Group]
    classes: NDArray[Any]
    """The labels, ascending."""
    intercept_scaling: float

    @cached_property
    def surveys(self) -> list[ClassSurvey]:
        """A survey of each class over all blocks."""
        surveys = {label: ClassSurvey() for label in self.classes.tolist()}
        for summary in self.summaries:
            for label, survey in summary.classes.items():
                surveys[label] += survey
        return list(surveys.values())

    @cached_property
    def totals(self) -> Vector:
        """The total weight of each class's rows."""
        return np.array([survey.weight_sum for survey in self.surveys])

    def sizes(self, class_factors: Vector) -> Sizes:
        """The sizes of a problem, given factors for the weights of each class's rows."""
        R, n_columns = max(s.R for s in self.summaries), self.summaries[0].n_columns
        return sizes_of_classes(self.surveys, class_factors, n_columns, self.intercept_scaling, R)


class ClusterProblem(SummableProblem):
    """One class against all others, on a cluster.

    ``positive`` is the position of the positive class; ``class_factors`` multiply the weights of
    each class's rows.
    """

    where = "rows on a cluster"
    for_many_columns = "Use 'cocoa' (with penalize_intercept=True)"

    def __init__(
        self, rows: ClusterRows, positive: int, objective: Objective, class_factors: Vector
    ) -> None:
        super().__init__(rows.sizes(class_factors), objective)
        signed = one_against_rest(class_factors, positive)
        if self.free_intercept:
            require_both_classes(signed * rows.totals)
        self.cluster, self.groups, self.n_parts = rows.cluster, rows.groups, len(rows.blocks)
        self.places = [group.worker for group in rows.groups]
        n_rows = [summary.n_rows for summary in rows.summaries]
        self.firsts = np.concatenate([[0], np.cumsum(n_rows)])
        n_stored = sum(summary.n_stored for summary in rows.summaries)
        self._bytes_per_row = 12.0 * n_stored / self.n_rows
        # Of each block: its rows, their signed weights, their digest, and the rows before them.
        digests, firsts = [s.digest for s in rows.summaries], self.firsts[:-1].tolist()
        weighing = [
            self.cluster.task("labels", signed_weights_of, *block, rows.classes, signed)
            for block in zip(rows.blocks, digests, strict=True)
        ]
        signed_weights = self.cluster.begin(weighing)
        self._inputs = list(zip(rows.blocks, signed_weights, digests, firsts, strict=True))

    @cached_property
    def weights(self) -> Vector:
        """The row weights s_k, brought to the client."""
        weights: Vector = np.concatenate(self.of_each(_weights_of))
        return weights

    def some_rows(self, n_rows: int) -> Part:
        """About ``n_rows`` rows, from all blocks: one block may be unlike the others."""
        share = min(n_rows, _LARGEST_SAMPLE / self._bytes_per_row) / self.n_rows
        pieces = self.of_each(_some_rows, share)
        matrices, signed = zip(*pieces, strict=True)
        sparse = any(map(sp.issparse, matrices))
        X = sp.vstack(matrices, format="csr") if sparse else np.concatenate(matrices)
        return Part(Rows(X, intercept_scaling=self.intercept_scaling), np.concatenate(signed))

    def task(
        self, name: str, group: Group, function: Callable[..., Any], *arguments: Any
    ) -> Delayed:
        """A task that calls ``function(parts, *arguments)`` with the parts of a group."""
        inputs = [self._inputs[i] for i in group.members]
        return self.cluster.task(name, _on_parts, function, inputs, *arguments, at=group.worker)

    def total(self, task: Callable[..., Any], *arguments: Any, team: Team = ALONE) -> Any:
        """The sum of ``task(part, ALONE, *arguments)`` over all parts, added up on the workers."""
        name = task.__name__.strip("_").replace("_", "-")
        return self.cluster.total(self._tasks(name, _sum, task, *arguments), self.places)

    def of_each(self, task: Callable[..., Any], *arguments: Any, team: Team = ALONE) -> list[Any]:
        """``task(part, ALONE, *arguments)`` of each part, in their order."""
        return self.in_order(self.cluster.results(self._tasks("gather", _each, task, *arguments)))

    def in_order(self, results: Sequence[Sequence[Any]]) -> list[Any]:
        """What each group has of each of its parts, in the order of all parts."""
        ordered: list[Any] = [None] * self.n_parts
        for group, of_group in zip(self.groups, results, strict=True):
            for i, result in zip(group.members, of_group, strict=True):
                ordered[i] = result
        return ordered

    def _tasks(self, name: str, function: Callable[..., Any], *arguments: Any) -> list[Delayed]:
        sent = [self.cluster.argument(argument) for argument in arguments]
        return [self.task(name, group, function, *sent) for group in self.groups]


def _on_parts(function: Callable[..., Any], inputs: Sequence[Any], *arguments: Any) -> Any:
    return function([part_of(*of_block) for of_block in inputs], *map(as_compiled_for, arguments))


def _sum(parts: Sequence[Part], task: Callable[..., Any], *arguments: Any) -> Any:
    return functools.reduce(operator.iadd, (task(part, ALONE, *arguments) for part in parts))


def _each(parts: Sequence[Part], task: Callable[..., Any], *arguments: Any) -> list[Any]:
    return [task(part, ALONE, *arguments) for part in parts]


def _weights_of(part: Part, team: Team) -> Vector:
    return part.weights


def _some_rows(part: Part, team: Team, share: float) -> tuple[Any, Vector]:
    """Equally spaced rows of a part."""
    n_rows = max(1, round(share * part.rows.n_rows))
    which = np.unique(np.linspace(0, part.rows.n_rows - 1, n_rows).astype(np.int64))
    return part.rows.take(which).matrix, part.signed_weights[which]
