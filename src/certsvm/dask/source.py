"""Labelled rows on the workers of a cluster."""

from __future__ import annotations

import operator
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets

from certsvm.dask.blocks import LoadedBlock, blocks_of_folder, cut_together, load
from certsvm.dask.cluster import AlphaOnWorkers, Cluster, ClusterLostError, ClusterProblem
from certsvm.dask.cocoa import ClusterAuto, Cocoa
from certsvm.dask.recheck import recheck
from certsvm.fitting.sources import ClassWeight, Source
from certsvm.problem.base import BaseProblem
from certsvm.problem.objective import HINGE_OBJECTIVE, Objective
from certsvm.problem.sizes import ClassSurvey
from certsvm.solvers import SmoothedNewton, Solver
from certsvm.training.result import LOST, Result
from certsvm.verification.fingerprint import Fingerprint, FingerprintBuilder, FingerprintPart

SOLVERS: dict[str, Solver] = {
    "cocoa": Cocoa(), "smoothed-newton": SmoothedNewton(), "newton": SmoothedNewton()
}  # fmt: skip
"""By name; "newton" means smoothed Newton, which keeps nothing per row."""

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
        self, cluster: Cluster, X: Any, y: Any = None, sample_weight: Any = None, *,
        class_weight: ClassWeight = None, intercept_scaling: float = 0.0, recheck: bool = True,
    ) -> None:  # fmt: skip
        self.cluster, self._recheck = cluster, recheck
        self.intercept_scaling = intercept_scaling
        if isinstance(X, str | Path):
            if y is not None or sample_weight is not None:
                raise ValueError(
                    "the files of a folder hold their labels and weights: pass y=None and "
                    "sample_weight=None"
                )
            blocks, names, self.origin = blocks_of_folder(Path(X))
        else:
            blocks, names = cut_together(X, y, sample_weight), None
        self._load(blocks)
        first = self.summaries[0]
        self.n_rows = sum(summary.n_rows for summary in self.summaries)
        self.n_columns, self.feature_names = first.n_columns, names or first.names
        surveys: dict[Any, ClassSurvey] = defaultdict(ClassSurvey)
        for summary in self.summaries:
            for label, survey in summary.classes.items():
                surveys[label] += survey
        classes = _classes(set(surveys))
        self.surveys = [surveys[label] for label in classes.tolist()]
        totals = np.array([survey.weight_sum for survey in self.surveys])
        super().__init__(classes, totals, class_weight)

    def _load(self, blocks: Sequence[Any]) -> None:
        """Let the workers check the blocks, and keep those that are not empty."""
        task = self.cluster.task
        loading = [task("load", load, b, self.intercept_scaling, i) for i, b in enumerate(blocks)]
        summing = [task("summary", operator.attrgetter("summary"), block) for block in loading]
        futures = self.cluster.begin([*loading, *summing])
        summaries = self.cluster.gathered(futures[len(blocks) :]) if futures else []
        kept = [i for i, summary in enumerate(summaries) if summary.n_rows]
        if not kept:
            raise ValueError("there are no rows in the data")
        first = summaries[kept[0]]
        for i in kept:
            other = summaries[i]
            if (other.n_columns, other.names) != (first.n_columns, first.names):
                what = "numbers of columns" if other.n_columns != first.n_columns else "columns"
                raise ValueError(
                    f"the blocks have different {what}: {first.names or first.n_columns} in block "
                    f"{kept[0] + 1}, {other.names or other.n_columns} in block {i + 1}"
                )
        self.blocks, self.summaries = [futures[i] for i in kept], [summaries[i] for i in kept]
        self.groups = self.cluster.groups(self.blocks)

    @cached_property
    def fingerprint(self) -> Fingerprint | None:
        """Of rows and labels, hashed where they are; None if the cluster is lost."""
        first, tasks = 0, []
        for block, summary in zip(self.blocks, self.summaries, strict=True):
            tasks.append(self.cluster.task("fingerprint", _fingerprint_part, block, first))
            first += summary.n_rows
        builder = FingerprintBuilder(self.n_columns)
        try:
            for part in self.cluster.results(tasks):
                builder.join(part)
        except ClusterLostError:
            return None
        return builder.finish()

    def solver(self, solver: str | Solver, objective: Objective = HINGE_OBJECTIVE) -> Solver:
        """The solver for a name; "auto" chooses by the number of columns and the intercept."""
        if solver == "auto":
            return ClusterAuto()
        if isinstance(solver, Cocoa | SmoothedNewton | ClusterAuto):
            return solver
        if isinstance(solver, Solver) or solver not in SOLVERS:
            name = repr(solver) if isinstance(solver, str) else type(solver).__name__
            raise ValueError(
                f"solver {name} does not run on a cluster: use 'auto', "
                f"{', '.join(map(repr, SOLVERS))}, or an instance of Cocoa or SmoothedNewton"
            )
        return SOLVERS[solver]

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
        return ClusterProblem(self, i, objective)

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


def _fingerprint_part(block: LoadedBlock, first: int) -> FingerprintPart:
    return FingerprintPart.of(block.rows.matrix, block.labels[block.codes], first)


def _classes(labels: set[Any]) -> NDArray[Any]:
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
