"""A problem whose rows are on the workers of a cluster."""

from __future__ import annotations

import copy
import functools
import operator
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from dask.delayed import Delayed

from certsvm.dask.blocks import part_of
from certsvm.dask.cluster import Group
from certsvm.problem.base import (
    Objective,
    SummableProblem,
    one_against_rest,
    require_both_classes,
    sizes_of_classes,
)
from certsvm.problem.rows import Part, Rows, Vector, as_compiled_for
from certsvm.resources import ALONE, Team

if TYPE_CHECKING:
    from certsvm.dask.source import ClusterSource

# Bytes of sampled rows that the client must be able to hold.
_LARGEST_SAMPLE = 2.0**27


class ClusterProblem(SummableProblem):
    """The i-th problem of a source: one class against all others, on a cluster."""

    where = "rows on a cluster"
    for_many_columns = "Use 'cocoa' (with penalize_intercept=True)"

    def __init__(self, source: ClusterSource, i: int, objective: Objective) -> None:
        summaries, factors = source.summaries, source.factors_in(i)
        sizes = sizes_of_classes(
            source.surveys, factors, source.n_columns, source.intercept_scaling,
            R=max(summary.R for summary in summaries),
        )  # fmt: skip
        super().__init__(sizes, objective)
        signed = one_against_rest(factors, source.positive[i])
        if self.free_intercept:
            require_both_classes(signed * source.totals)
        self.cluster, self.groups, self.n_parts = source.cluster, source.groups, len(summaries)
        self.places = [group.worker for group in source.groups]
        self.firsts = np.cumsum([0, *(summary.n_rows for summary in summaries)])
        n_stored = sum(summary.n_stored for summary in summaries)
        self._bytes_per_row = 12.0 * n_stored / self.n_rows
        class_weights = dict(zip(source.classes.tolist(), signed.tolist(), strict=True))
        making = [
            self.cluster.task("part", part_of, block, summary.digest, class_weights, int(first))
            for block, summary, first in zip(source.blocks, summaries, self.firsts, strict=False)
        ]
        self._parts = self.cluster.begin(making)

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
        parts = [self._parts[i] for i in group.members]
        return self.cluster.task(name, _on_parts, function, parts, *arguments, at=group.worker)

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


def _on_parts(function: Callable[..., Any], parts: Sequence[Part], *arguments: Any) -> Any:
    # What a part computes and keeps goes with its copy, at the end of the task.
    return function(list(map(copy.copy, parts)), *map(as_compiled_for, arguments))


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
