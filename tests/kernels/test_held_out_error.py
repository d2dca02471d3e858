"""The compiled counts against plain Python."""

from __future__ import annotations

import numpy as np

from certsvm.kernels.held_out_error import count_of_several, count_of_two

rng = np.random.default_rng(0)


def pieces(n: int) -> np.ndarray:
    t = np.linspace(0, 1, n + 1)
    return np.column_stack([1 - t[:-1], t[:-1], 1 - t[1:], t[1:]])


def test_two_classes() -> None:
    n, p = 200, 7
    first, last = rng.standard_normal((2, n))
    first[0] = np.nan
    norms, roundings, weights = rng.random(n), 0.01 * rng.random(n), rng.integers(0, 3, n) * 1.0
    radii = rng.random(p)
    radii[-1] = np.inf
    counts = np.zeros((2, 2, p))
    given = (first, last, norms, roundings, weights, pieces(p), radii)
    count_of_two(*given, *counts[0])
    count_of_two.py_func(*given, *counts[1])
    np.testing.assert_array_equal(counts[0], counts[1])
    assert counts[0, :, :-1].all()
    assert not counts[0, :, -1].any()
    assert (counts[0].sum(axis=0) <= weights[1:].sum()).all()


def test_several_classes() -> None:
    n, p, classes = 80, 5, 3
    first, last = 2.0 * rng.standard_normal((2, classes, n))
    first[1, 0] = np.nan
    norms, roundings = rng.random(n), 0.01 * rng.random((classes, n))
    weights, truth = np.ones(n), rng.integers(0, classes, n)
    radii = rng.random((classes, p))
    counts = np.zeros((2, 2, p))
    for count, out in ((count_of_several, counts[0]), (count_of_several.py_func, counts[1])):
        room = np.empty((2, classes))
        count(first, last, norms, roundings, truth, weights, pieces(p), radii, *room, *out)
    np.testing.assert_array_equal(counts[0], counts[1])
    assert counts[0].all()
