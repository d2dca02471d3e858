"""Batches presented once, in their order."""

from __future__ import annotations

import numpy as np

from certsvm.fitting.online import OnlineModel
from certsvm.problem.memory import Problem
from certsvm.problem.rows import Rows
from certsvm.solvers.sgd_s import present_once


def test_batches_are_one_long_pass() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((60, 4)), rng.integers(0, 2, 60)
    model = OnlineModel(np.array([0, 1]), np.zeros((1, 4)), np.zeros(1), 0)
    for part in (slice(0, 25), slice(25, 60)):
        model.present(Rows(X[part]), y[part], None, None, C_total=30.0)
    whole = Problem(Rows(X), 2.0 * y - 1.0, C=0.5)
    w, t = present_once(whole, np.zeros(4), 0)
    assert model.t == t == 60
    np.testing.assert_allclose(model.coef[0], w)


def test_rows_without_weight_change_nothing() -> None:
    model = OnlineModel(np.array([0, 1]), np.ones((1, 2)), np.ones(1), 5)
    model.present(Rows(np.eye(2)), np.array([0, 1]), np.zeros(2), None, C_total=1.0)
    assert (model.t, model.coef.tolist()) == (5, [[1.0, 1.0]])


def test_weights_of_classes_are_returned_and_used() -> None:
    rows, y = Rows(np.eye(2), intercept_scaling=1.0), np.array([0, 1])
    models = [OnlineModel(np.array([0, 1]), np.zeros((1, 2)), np.zeros(1), 0) for _ in range(2)]
    factors = models[0].present(rows, y, None, {0: 2.0, 1: 3.0}, C_total=1.0)
    assert factors.tolist() == [2.0, 3.0]
    models[1].present(rows, y, np.array([2.0, 3.0]), None, C_total=1.0)
    np.testing.assert_array_equal(models[0].coef, models[1].coef)
