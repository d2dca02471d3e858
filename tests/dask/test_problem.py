"""The problem of one class on a cluster is the problem in memory."""

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from distributed import Client

from certsvm import Problem, Rows
from certsvm.certificates.dual import dual_point
from certsvm.certificates.primal import primal_bound
from certsvm.dask.cluster import ClusterProblem
from certsvm.problem.rows import Part
from certsvm.resources import Team
from tests.dask.problems import cluster_problem, cut, data


@pytest.fixture(params=["dense", "sparse"])
def both(client: Client, request: pytest.FixtureRequest) -> tuple[ClusterProblem, Problem]:
    X, y = data(300, columns=6, classes=3)
    weights = np.random.default_rng(1).integers(0, 3, 300).astype(float)
    X = sp.csr_matrix(X) if request.param == "sparse" else X
    on_cluster = cluster_problem(
        client, cut(X, 70, 200), cut(y, 70, 200), cut(weights, 70, 200), i=1,
        C=0.3, intercept_scaling=0.5, class_weight={1: 2.0},
    )  # fmt: skip
    in_memory = Problem(
        Rows(X, intercept_scaling=0.5), np.where(y == 1, 1.0, -1.0), C=0.3,
        weights=weights * np.where(y == 1, 2.0, 1.0),
    )  # fmt: skip
    return on_cluster, in_memory


def spans(part: Part, team: Team, offset: int) -> tuple[int, int]:
    return part.first + offset, part.rows.n_rows


def test_it_is_the_problem_in_memory(both: tuple[ClusterProblem, Problem]) -> None:
    ours, theirs = both
    for name in ("n_rows", "dimension", "m", "R", "weight_sum", "largest_weight", "lambda_"):
        assert getattr(ours, name) == pytest.approx(getattr(theirs, name), rel=1e-12)
    np.testing.assert_allclose(ours.weights, theirs.weights)
    w = np.random.default_rng(2).standard_normal(ours.dimension)
    assert primal_bound(ours, w).value == pytest.approx(primal_bound(theirs, w).value, rel=1e-12)
    alpha = 0.5 * theirs.C * theirs.weights
    point, expected = dual_point(ours, alpha, ""), dual_point(theirs, alpha, "")
    assert point.alpha_sum == pytest.approx(expected.alpha_sum, rel=1e-12)
    np.testing.assert_allclose(point.w, expected.w, rtol=1e-10, atol=1e-12)


def test_parts_come_in_order(both: tuple[ClusterProblem, Problem]) -> None:
    assert both[0].of_each(spans, 5) == [(5, 70), (75, 130), (205, 100)]


def test_a_sample_comes_from_all_parts(both: tuple[ClusterProblem, Problem]) -> None:
    ours, theirs = both
    sample = ours.some_rows(30)
    assert 25 <= sample.rows.n_rows <= 35
    rows = {tuple(row) for row in np.round(_dense(theirs.rows.matrix), 12)}
    assert {tuple(row) for row in np.round(_dense(sample.rows.matrix), 12)} <= rows
    assert ours.some_rows(10**9).rows.n_rows == 300


def _dense(X: Any) -> Any:
    return X.toarray() if sp.issparse(X) else np.asarray(X)
