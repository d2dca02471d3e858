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
from distributed import Future
from numpy.typing import NDArray

from certsvm.certificates.dual import RowSums
from certsvm.dask.blocks import BlockSummary, part_of, signed_weights_of
from certsvm.dask.cluster import Cluster, Group, add_up
from certsvm.kernels.losses import HINGE, Loss
from certsvm.parallel import ALONE, Team, single_threaded_blas
from certsvm.problem.base import SummableProblem
from certsvm.problem.part import Part
from certsvm.problem.rows import Rows, Vector, as_compiled_for
from certsvm.problem.sizes import ClassSurvey, one_against_rest, sizes_of_classes

# Bytes of rows that a client has to be able to hold.
_LARGEST_SAMPLE = 2.0**27


@dataclass
class BestStates:
    """Where the alpha behind the best dual bound is: a future for each group, and a copy.

    The copy, one array for each part, is on the client, and some rounds older.
    """

    dual: float
    groups: list[Group]
    states: list[Future]
    copy: list[Vector] | None


class ClusterProblem(SummableProblem):
    """One class against all others, on a cluster.

    Parameters
    ----------
    cluster : Cluster
        Where the blocks are.
    blocks : sequence of Future
        Of ``Block``, none of them empty.
    summaries : sequence of BlockSummary
        Of the same blocks.
    classes : ndarray
        All labels, in ascending order.
    positive : int
        The position of the positive class among them.
    C : float, default=1.0
        Weight of the loss against the regulariser.
    intercept_scaling : float, default=0.0
        The augmentation rho of the blocks' rows.
    class_factors : ndarray of shape (n_classes,), default=None
        Factors for the weights of each class's rows.
    loss : Loss, default=HINGE
        The loss of a row.
    """

    where = "rows on a cluster"

    def __init__(
        self,
        cluster: Cluster,
        blocks: Sequence[Future],
        summaries: Sequence[BlockSummary],
        classes: NDArray[Any],
        positive: int,
        *,
        C: float = 1.0,
        intercept_scaling: float = 0.0,
        class_factors: Vector | None = None,
        loss: Loss = HINGE,
    ) -> None:
        self.cluster = cluster
        factors = np.ones(classes.size) if class_factors is None else class_factors
        sizes = sizes_of_classes(
            merged(summaries, classes),
            factors,
            summaries[0].n_columns,
            intercept_scaling,
            max(summary.R for summary in summaries),
        )
        super().__init__(sizes, C, loss)
        signed = one_against_rest(factors, positive)
        self.firsts = np.concatenate([[0], np.cumsum([s.n_rows for s in summaries])])
        self.sizes = [summary.n_rows for summary in summaries]
        self._signed = cluster.begin(
            [
                cluster.task("labels", signed_weights_of, block, summary.digest, classes, signed)
                for block, summary in zip(blocks, summaries, strict=True)
            ]
        )
        self._digests = [summary.digest for summary in summaries]
        self._bytes_a_row = (
            12.0 * sum(summary.n_stored for summary in summaries) / max(1, self.n_rows)
        )
        self._blocks = list(blocks)
        self.n_parts = len(self._blocks)
        self._groups: list[Group] | None = None
        self.best_states: BestStates | None = None

    @cached_property
    def weights(self) -> Vector:
        """The row weights: a number for each row, on the client."""
        weights: Vector = np.concatenate(self.of_each(_weights_of))
        return weights

    def some_rows(self, n_rows: int) -> Part:
        """About so many rows, from all blocks: one block may be unlike the others."""
        share = min(n_rows, _LARGEST_SAMPLE / self._bytes_a_row) / self.n_rows

        def attempt() -> list[Any]:
            # Without asking first where the rows are, or waiting until they all are somewhere.
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
        """Which thread of which worker does which blocks; the same until something happens."""
        if self._groups is None:
            self.cluster.wait(self._signed)
            self._groups = self.cluster.groups(self._blocks)
        return self._groups

    def regroup(self) -> None:
        """Look again where the blocks are."""
        self._groups = None
        self.cluster.revive([*self._blocks, *self._signed])

    def inputs(self, members: Sequence[int]) -> list[Any]:
        """What ``parts_of`` makes parts of, on a worker."""
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

        With ``each``, a task also gets what there is for its part, after ``ALONE``.
        """
        name = task.__name__.strip("_").replace("_", "-")

        def attempt() -> list[Any]:
            groups = self.groups()
            sent = [self.cluster.send(argument, groups) for argument in arguments]
            tasks = [
                self.cluster.task(
                    name, _sum_of_group, task, self.inputs(group.members),
                    None if each is None else [each[i] for i in group.members], *sent,
                    at=group.worker,
                )
                for group in groups
            ]  # fmt: skip
            self.cluster.count(rounds=1)
            futures = self.cluster.begin(self.cluster.summed(tasks, groups))
            return self.cluster.results(futures, groups)

        return add_up(self.cluster.insistent(attempt, self.regroup))

    def of_each(self, task: Callable[..., Any], *arguments: Any, team: Team = ALONE) -> list[Any]:
        """``task(part, ALONE, *arguments)`` of each part, in their order."""

        def attempt() -> list[Any]:
            groups = self.groups()
            sent = [self.cluster.send(argument, groups) for argument in arguments]
            tasks = {
                i: self.cluster.task(
                    "gather", _of_part, task, self.inputs([i]), *sent, at=group.worker
                )
                for group in groups
                for i in group.members
            }
            futures = self.cluster.begin([tasks[i] for i in range(self.n_parts)])
            return self.cluster.results(futures, groups)

        results: list[Any] = self.cluster.insistent(attempt, self.regroup)
        return results


def merged(summaries: Sequence[BlockSummary], classes: NDArray[Any]) -> list[ClassSurvey]:
    """What is known of each class, over all blocks."""
    surveys = [ClassSurvey() for _ in classes]
    for summary in summaries:
        for survey, label in zip(surveys, classes.tolist(), strict=True):
            if label in summary.classes:
                survey += summary.classes[label]
    return surveys


def parts_of(inputs: Sequence[Any]) -> list[Part]:
    """The parts of a group, on its worker; see ``ClusterProblem.inputs``."""
    return [part_of(*some) for some in inputs]


def _sum_of_group(
    task: Callable[..., Any], inputs: Sequence[Any], each: Sequence[Any] | None, *arguments: Any
) -> Any:
    parts = parts_of(inputs)
    arguments = tuple(map(as_compiled_for, arguments))
    own = [()] * len(parts) if each is None else [(as_compiled_for(thing),) for thing in each]
    with single_threaded_blas():
        return functools.reduce(
            operator.iadd,
            (task(part, ALONE, *mine, *arguments) for part, mine in zip(parts, own, strict=True)),
        )


def _of_part(task: Callable[..., Any], inputs: Sequence[Any], *arguments: Any) -> Any:
    with single_threaded_blas():
        return task(parts_of(inputs)[0], ALONE, *map(as_compiled_for, arguments))


def _weights_of(part: Part, team: Team) -> Vector:
    return part.weights


def _some_rows(inputs: Sequence[Any], share: float) -> tuple[Any, Vector]:
    """Rows from all over the part."""
    part = parts_of(inputs)[0]
    n_rows = max(1, round(share * part.rows.n_rows))
    which = np.unique(np.linspace(0, part.rows.n_rows - 1, n_rows).astype(np.int64))
    return part.rows.take(which).matrix, part.signed_weights[which]


def sums_of(part: Part, team: Team, alpha: Vector, loss: Loss, C: float) -> RowSums:
    """What L needs of a part's alpha."""
    return RowSums.of(part, alpha, loss, C, team)
