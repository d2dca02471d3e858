"""Labelled rows on the workers of a cluster."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from distributed import Future
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets

from certsvm.dask.blocks import BlockSummary, loading, summarise
from certsvm.dask.choice import make_cluster_solver
from certsvm.dask.cluster import Cluster, ClusterLostError
from certsvm.dask.cocoa import AlphaOnWorkers, Cocoa
from certsvm.dask.costs import Shape
from certsvm.dask.problem import ClusterProblem, merged
from certsvm.dask.recheck import recheck
from certsvm.fitting.sources import ClassWeight, Source
from certsvm.problem.base import BaseProblem
from certsvm.problem.objective import HINGE_OBJECTIVE, Objective
from certsvm.solvers import Solver
from certsvm.training.result import LOST, Result

# Limits for training at the same time: classes, and bytes of all their matrices.
_MOST_CLASSES, _MOST_BYTES = 16, 2.0**27


class ClusterSource(Source):
    """Rows on a cluster, in blocks as they come.

    Parameters
    ----------
    cluster : Cluster
        The cluster that holds the rows, or loads them.
    X, y, sample_weight
        Dask collections, lists of blocks, or the path of a folder of files.
    class_weight : dict or "balanced", default=None
        Factors for the weights of each class's rows.
    intercept_scaling : float, default=0.0
        Height of the constant column behind the intercept; 0 means no intercept.
    recheck : bool, default=True
        Whether to compute each certificate again from scratch when training has ended.
    """

    problem_type = ClusterProblem

    def __init__(
        self,
        cluster: Cluster,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        class_weight: ClassWeight = None,
        intercept_scaling: float = 0.0,
        recheck: bool = True,
    ) -> None:
        self.cluster, self._recheck = cluster, recheck
        self.intercept_scaling = intercept_scaling
        tasks = loading(X, y, sample_weight, intercept_scaling)
        self._futures, self._summaries = _load(cluster, tasks.tasks)
        classes = _classes(self._summaries)
        totals = [survey.weight_sum for survey in merged(self._summaries, classes)]
        super().__init__(classes, np.array(totals), class_weight)
        self.n_rows = sum(summary.n_rows for summary in self._summaries)
        self.n_columns = self._summaries[0].n_columns
        self.feature_names = tasks.feature_names or self._summaries[0].names
        self.origin = tasks.origin

    @property
    def shape(self) -> Shape:
        """The shape of the data for the cost model."""
        threads = sum(int(worker.get("nthreads", 1)) for _, worker in self.cluster.workers())
        stored = sum(summary.n_stored for summary in self._summaries)
        groups = min(len(self._summaries), threads)
        return Shape(self.n_rows, stored, self.dimension, groups)

    def solver(self, solver: str | Solver, objective: Objective = HINGE_OBJECTIVE) -> Solver:
        """The solver for a name; "auto" chooses by predicted cost."""
        free_intercept = objective.frees(self.intercept_scaling)
        shape = self.shape if solver == "auto" else None
        return make_cluster_solver(solver, shape, free_intercept=free_intercept)

    def at_once(self, solver: Solver, n_jobs: int) -> int:
        """Several: while one waits for the end of its round, others go on."""
        most = min(len(self.positive), _MOST_CLASSES)
        if isinstance(solver, Cocoa):
            return most
        return min(most, max(1, int(_MOST_BYTES / (8 * self.dimension**2))))

    def problem(self, i: int, objective: Objective) -> ClusterProblem:
        """The i-th problem."""
        if self.cluster.lost is not None:
            raise ClusterLostError(self.cluster.lost)
        return ClusterProblem(
            self.cluster, self._futures, self._summaries, self.classes, self.positive[i],
            objective, intercept_scaling=self.intercept_scaling, class_factors=self.factors_in(i),
        )  # fmt: skip

    def finish(self, i: int, problem: BaseProblem, result: Result) -> Result:
        """Check the certificate again, and release what the workers keep."""
        assert isinstance(problem, ClusterProblem)
        if self._recheck:
            try:
                result = recheck(problem, result)
            except ClusterLostError as error:
                # The certificate stands, but the user must know that it was not checked again.
                result = replace(result, reason=f"{LOST}: {error}")
        if isinstance(result.response, AlphaOnWorkers):
            result = replace(result, response=None)
        return result


def _load(cluster: Cluster, tasks: Sequence[Any]) -> tuple[list[Future], list[BlockSummary]]:
    """The blocks on the workers that are not empty, and their summaries."""
    cluster.workers()
    futures = cluster.client.compute(list(tasks), optimize_graph=False)

    def summarise_all() -> list[BlockSummary]:
        made = [cluster.task("summary", summarise, future) for future in futures]
        return cluster.results(cluster.begin(made))

    summaries = cluster.insistent(summarise_all, lambda: cluster.revive(futures))
    kept = [i for i, summary in enumerate(summaries) if summary.n_rows]
    if not kept:
        raise ValueError("there are no rows in the data")
    first = summaries[kept[0]]
    for i in kept:
        if summaries[i].n_columns != first.n_columns:
            raise ValueError(
                f"the blocks have different numbers of columns: {first.n_columns} in block "
                f"{kept[0] + 1}, {summaries[i].n_columns} in block {i + 1}"
            )
        if summaries[i].names != first.names:
            raise ValueError(
                f"the blocks have different columns: {first.names} in block {kept[0] + 1}, "
                f"{summaries[i].names} in block {i + 1}"
            )
    return [futures[i] for i in kept], [summaries[i] for i in kept]


def _classes(summaries: Sequence[BlockSummary]) -> NDArray[Any]:
    labels = {label for summary in summaries for label in summary.classes}
    if len({isinstance(label, str) for label in labels}) > 1:
        raise ValueError("labels are text in some blocks and numbers in others")
    classes = np.array(sorted(labels))
    if set(classes.tolist()) != labels:
        raise ValueError(
            "labels of different types in different blocks cannot be told apart: convert them to "
            "one type"
        )
    check_classification_targets(classes)
    return classes
