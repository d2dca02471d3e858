"""Labelled rows on the workers of a cluster."""

from __future__ import annotations

import hashlib
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
from certsvm.dask.cocoa import Cocoa
from certsvm.dask.costs import Shape
from certsvm.dask.problem import ClusterProblem, merged
from certsvm.dask.recheck import recheck
from certsvm.fitting.class_weights import ClassWeight
from certsvm.fitting.sources import Source
from certsvm.problem.base import BaseProblem
from certsvm.solvers import Solver
from certsvm.training.loop import LOST, Result

# Classes that are trained at the same time, at most, and bytes of all their matrices.
_AT_ONCE, _MATRICES = 16, 2.0**27


class ClusterSource(Source):
    """Rows on a cluster, in blocks as they come.

    Parameters
    ----------
    cluster : Cluster
        Where the rows are, or are to be loaded.
    X, y, sample_weight
        Collections of Dask's, lists of blocks, or the path of a folder of files.
    class_weight : dict or "balanced", default=None
        Factors for the weights of each class's rows.
    intercept_scaling : float, default=0.0
        Height of the constant column behind the intercept; 0 means no intercept.
    recheck : bool, default=True
        Whether to compute each certificate once more from scratch when training has ended.

    Attributes
    ----------
    zero_based : bool or None
        Whether the text that files were made from counts columns from zero.
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
        self.zero_based = tasks.zero_based

    @property
    def shape(self) -> Shape:
        """What the model of costs needs to know."""
        threads = sum(int(worker.get("nthreads", 1)) for _, worker in self.cluster.workers())
        stored = sum(summary.n_stored for summary in self._summaries)
        groups = min(len(self._summaries), threads)
        return Shape(self.n_rows, stored, self.dimension, groups)

    def solver(self, solver: str | Solver) -> Solver:
        """The solver for a name; "auto" is what costs less."""
        if isinstance(solver, Solver):
            return make_cluster_solver(solver)
        return make_cluster_solver(solver, self.shape)

    def at_once(self, solver: Solver, n_jobs: int) -> int:
        """Several: while one waits for its round's last answer, others go on."""
        most = min(len(self.positive), _AT_ONCE)
        if isinstance(solver, Cocoa):
            return most
        return min(most, max(1, int(_MATRICES / (8 * self.dimension**2))))

    def problem(self, i: int, C: float) -> ClusterProblem:
        """The i-th problem."""
        if self.cluster.lost is not None:
            raise ClusterLostError(self.cluster.lost)
        return ClusterProblem(
            self.cluster, self._futures, self._summaries, self.classes, self.positive[i], C=C,
            intercept_scaling=self.intercept_scaling, class_factors=self.factors,
        )  # fmt: skip

    def finish(self, i: int, problem: BaseProblem, result: Result) -> Result:
        """Look at the certificate once more."""
        if not self._recheck:
            return result
        assert isinstance(problem, ClusterProblem)
        try:
            return recheck(problem, result)
        except ClusterLostError as error:
            # What training proved stands, but whoever asked for a second look must know.
            return replace(result, reason=f"{LOST}: {error}")

    @property
    def identity(self) -> str:
        """The digests of the blocks, in their order."""
        digest = hashlib.sha256(b"".join(summary.digest for summary in self._summaries))
        return f"on a cluster, {self.n_rows} rows, blocks {digest.hexdigest()[:32]}"


def _load(cluster: Cluster, tasks: Sequence[Any]) -> tuple[list[Future], list[BlockSummary]]:
    """Blocks on the workers, none of them empty, and what is known of them."""
    cluster.workers()
    futures = cluster.client.compute(list(tasks), optimize_graph=False)

    def summaries_of_all() -> Any:
        told = [cluster.task("summary", summarise, future) for future in futures]
        return cluster.results(cluster.begin(told))

    summaries = cluster.insistent(summaries_of_all, lambda: cluster.revive(futures))
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
    kinds = {isinstance(label, str) for label in labels}
    if len(kinds) > 1:
        raise ValueError("labels are text in some blocks and numbers in others")
    classes = np.array(sorted(labels))
    if set(classes.tolist()) != labels:
        raise ValueError(
            "labels of different types in different blocks cannot be told apart: convert them to "
            "one type"
        )
    check_classification_targets(classes)
    return classes
