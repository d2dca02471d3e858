"""Rows that are surely right or surely wrong: for every C in a piece of a chord."""

import numpy as np
from numpy.typing import NDArray

from certsvm.kernels.jit import kernel, reordering_kernel
from certsvm.kernels.rows import Vector


@reordering_kernel
def count_of_two(
    first: Vector, last: Vector, norms: Vector, roundings: Vector, weights: Vector,
    shares: NDArray[np.float64], radii: Vector, right: Vector, wrong: Vector,
) -> None:  # fmt: skip
    """Add the weights of the rows that are surely right, and surely wrong, on each piece.

    The products are multiplied with the row's label, +1 or -1. On piece p, the centre's product
    with row i is between its values at the two ends, which are mixed from ``first[i]`` and
    ``last[i]`` by ``shares[p]``. The optimum's differs by at most norms[i] radii[p] + roundings[i].
    Comparisons fail for NaN, so that such a row counts as neither.
    """
    for p in range(right.size):
        s_a, t_a, s_b, t_b = shares[p, 0], shares[p, 1], shares[p, 2], shares[p, 3]
        radius = radii[p]
        sure_right, sure_wrong = 0.0, 0.0
        for i in range(first.size):
            a = s_a * first[i] + t_a * last[i]
            b = s_b * first[i] + t_b * last[i]
            half = norms[i] * radius + roundings[i]
            sure_right += weights[i] if min(a, b) > half else 0.0
            sure_wrong += weights[i] if max(a, b) < -half else 0.0
        right[p] += sure_right
        wrong[p] += sure_wrong


@kernel
def count_of_several(
    first: NDArray[np.float64], last: NDArray[np.float64], norms: Vector,
    roundings: NDArray[np.float64], truth: NDArray[np.int64], weights: Vector,
    shares: NDArray[np.float64], radii: NDArray[np.float64], lows: Vector, highs: Vector,
    right: Vector, wrong: Vector,
) -> None:  # fmt: skip
    """The same for several classes, each with a score; the largest wins.

    The products are those of class j, ``first[j]`` and ``last[j]``, without labels; ``truth`` is
    the row's class. ``lows`` and ``highs`` have room for a number per class.
    """
    n_classes, n_rows = first.shape
    for p in range(right.size):
        for i in range(n_rows):
            for j in range(n_classes):
                a = shares[p, 0] * first[j, i] + shares[p, 1] * last[j, i]
                b = shares[p, 2] * first[j, i] + shares[p, 3] * last[j, i]
                half = norms[i] * radii[j, p] + roundings[j, i]
                lows[j] = min(a, b) - half
                highs[j] = max(a, b) + half
            k = truth[i]
            is_right, is_wrong = True, False
            for j in range(n_classes):
                if j != k:
                    is_right = is_right and lows[k] > highs[j]
                    is_wrong = is_wrong or lows[j] > highs[k]
            if is_right:
                right[p] += weights[i]
            elif is_wrong:
                wrong[p] += weights[i]
