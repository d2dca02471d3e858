"""A problem whose rows are on the workers of a cluster."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from dask.delayed import Delayed
from distributed import Future
from numpy.typing import NDArray

from certsvm.dask.blocks import BlockSummary, part_of, signed_weights_of
from certsvm.dask.cluster import Cluster, Group, add_up
from certsvm.parallel import ALONE, Team
from certsvm.problem.base import SummableProblem
from certsvm.problem.objective import HINGE_OBJECTIVE, Objective
from certsvm.problem.part import Part
from certsvm.problem.rows import Rows, Vector, as_compiled_for
from certsvm.problem.sizes import (
    ClassSurvey,
    one_against_rest,
    require_both_classes,
    sizes_of_classes,
)

# Bytes of sampled rows that the client must be able to hold.
_LARGEST_SAMPLE = 2.0**27


class ClusterProblem(SummableProblem):
    """One class against all others, on a cluster.

    ``blocks`` are futures of ``LoadedBlock``, none of them empty. ``positive`` is the position of
    the positive class in ``classes``, which are ascending. The rows have the augmentation
    ``intercept_scaling`` already; ``class_factors`` multiply the weights of each class's rows.
    """

    where = "rows on a cluster"
    for_many_columns = "Use 'cocoa' (with penalize_intercept=True)"

    def __init__(
        self,
        cluster: Cluster,
        blocks: Sequence[Future],
        summaries: Sequence[BlockSummary],
        classes: NDArray[Any],
        positive: int,
        objective: Objective = HINGE_OBJECTIVE,
        *,
        intercept_scaling: float = 0.0,
        class_factors: Vector | None = None,
    ) -> None:
        self.cluster = cluster
        factors = np.ones(classes.size) if class_factors is None else class_factors
        surveys = merged(summaries, classes)
        sizes = sizes_of_classes(
            surveys,
            factors,
            summaries[0].n_columns,
            intercept_scaling,
            max(summary.R for summary in summaries),
        )
        super().__init__(sizes, objective)
        signed = one_against_rest(factors, positive)
        if self.free_intercept:
            require_both_classes(signed * np.array([survey.weight_sum for survey in surveys]))
        self.firsts = np.concatenate([[0], np.cumsum([s.n_rows for s in summaries])])
        self._signed = cluster.begin(
            [
                cluster.task("labels", signed_weights_of, block, summary.digest, classes, signed)
                for block, summary in zip(blocks, summaries, strict=True)
            ]
        )
        self._digests = [summary.digest for summary in summaries]
        self._bytes_per_row = 12.0 * sum(s.n_stored for s in summaries) / max(1, self.n_rows)
        self._blocks = list(blocks)
        self.n_parts = len(self._blocks)
        self._groups: list[Group] | None = None

    @cached_property
    def weights(self) -> Vector:
        """The row weights s_k, brought to the client."""
        weights: Vector = np.concatenate(self.of_each(_weights_of))
        return weights

    def some_rows(self, n_rows: int) -> Part:
        """About ``n_rows`` rows, from all blocks: one block may be unlike the others."""
        share = min(n_rows, _LARGEST_SAMPLE / self._bytes_per_row) / self.n_rows

        def attempt() -> list[Any]:
            # Without groups, which would have to wait until all blocks are loaded.
            tasks = [
                self.cluster.task("sample", _some_rows, self.inputs([i]), share)
                for i in range(self.n_parts)
            ]
            return self.cluster.results(self.cluster.begin(tasks))

        pieces = self.cluster.insistent(attempt, self.regroup)
        sparse = any(sp.issparse(X) for X, _ in pieces)
        matrices = [X for X, _ in pieces]
        X = sp.vstack(matrices, format="csr") if sparse else np.concatenate(matrices)
        return Part(
            Rows(X, intercept_scaling=self.intercept_scaling),
            np.concatenate([signed for _, signed in pieces]),
        )

    def groups(self) -> list[Group]:
        """Which thread of which worker handles which blocks; the same until ``regroup``."""
        if self._groups is None:
            self.cluster.wait(self._signed)
            self._groups = self.cluster.groups(self._blocks)
        return self._groups

    def regroup(self) -> None:
        """Forget the groups, and let tasks that Dask gave up run again."""
        self._groups = None
        self.cluster.revive([*self._blocks, *self._signed])

    def inputs(self, members: Sequence[int]) -> list[Any]:
        """Arguments for ``parts_of`` on a worker."""
        return [
            [self._blocks[i], self._signed[i], self._digests[i], int(self.firsts[i])]
            for i in members
        ]

    def total(
        self,
        task: Callable[..., Any],
        *arguments: Any,
        team: Team = ALONE,
        each: Sequence[Any] | None = None,
    ) -> Any:
        """The sum of ``task(part, ALONE, *arguments)`` over all parts, in one call to each group.

        With ``each``, a task also gets the item for its part, after ``ALONE``.
        """
        name = task.__name__.strip("_").replace("_", "-")

        def tasks(groups: list[Group], sent: list[Any]) -> list[Delayed]:
            self.cluster.count(rounds=1)
            sums = [
                self.cluster.task(
                    name, _sum_of_group, task, self.inputs(group.members),
                    None if each is None else [each[i] for i in group.members], *sent,
                    at=group.worker,
                )
                for group in groups
            ]  # fmt: skip
            return self.cluster.summed(sums, groups)

        return add_up(self._results(tasks, arguments))

    def of_each(self, task: Callable[..., Any], *arguments: Any, team: Team = ALONE) -> list[Any]:
        """``task(part, ALONE, *arguments)`` of each part, in their order."""

        def tasks(groups: list[Group], sent: list[Any]) -> list[Delayed]:
            places = {i: group.worker for group in groups for i in group.members}
            return [
                self.cluster.task(
                    "gather", _sum_of_group, task, self.inputs([i]), None, *sent, at=places[i]
                )
                for i in range(self.n_parts)
            ]

        return self._results(tasks, arguments)

    def _results(
        self, tasks: Callable[[list[Group], list[Any]], list[Delayed]], arguments: Sequence[Any]
    ) -> list[Any]:
        """The results of tasks, made for the groups and the arguments that were sent to them."""

        def attempt() -> list[Any]:
            groups = self.groups()
            sent = [self.cluster.send(argument, groups) for argument in arguments]
            return self.cluster.results(self.cluster.begin(tasks(groups, sent)), groups)

        results: list[Any] = self.cluster.insistent(attempt, self.regroup)
        return results


def merged(summaries: Sequence[BlockSummary], classes: NDArray[Any]) -> list[ClassSurvey]:
    """A survey of each class over all blocks."""
    surveys = [ClassSurvey() for _ in classes]
    for summary in summaries:
        for survey, label in zip(surveys, classes.tolist(), strict=True):
            if label in summary.classes:
                survey += summary.classes[label]
    return surveys


def parts_of(inputs: Sequence[Any]) -> list[Part]:
    """The parts of a group, on its worker; see ``ClusterProblem.inputs``."""
    return [part_of(*arguments) for arguments in inputs]


def _sum_of_group(
    task: Callable[..., Any], inputs: Sequence[Any], each: Sequence[Any] | None, *arguments: Any
) -> Any:
    parts = parts_of(inputs)
    arguments = tuple(map(as_compiled_for, arguments))
    items = [()] * len(parts) if each is None else [(as_compiled_for(item),) for item in each]
    return functools.reduce(
        operator.iadd,
        (task(part, ALONE, *item, *arguments) for part, item in zip(parts, items, strict=True)),
    )


def _weights_of(part: Part, team: Team) -> Vector:
    return part.weights


def _some_rows(inputs: Sequence[Any], share: float) -> tuple[Any, Vector]:
    """Equally spaced rows of a part."""
    (part,) = parts_of(inputs)
    n_rows = max(1, round(share * part.rows.n_rows))
    which = np.unique(np.linspace(0, part.rows.n_rows - 1, n_rows).astype(np.int64))
    return part.rows.take(which).matrix, part.signed_weights[which]
