"""The length of w without a projection, against the bounds of Section 2.

With R the length of the longest row, for all t

    |w_t| <= R / lambda    and    |w_t| <= sqrt(1 + (R^2 / lambda - 1) / t) / sqrt(lambda),

and in practice |w_t| <= 1 / sqrt(lambda), which the optimum obeys, after a pass over the data.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from certsvm.problem.problems import Problem
from certsvm.solvers.growing_margin import GrowingMargin

PASSES = 10


def measure(problem: Problem, seed: int) -> dict[str, Any]:
    """The largest ratio of |w_t| to each bound, t a power of two or complete passes."""
    rng = np.random.default_rng(seed)
    state = GrowingMargin(problem)
    m, R, lambda_ = problem.m, problem.R, problem.lambda_
    looks = sorted({2**i for i in range(m.bit_length())} | {m * p for p in range(1, PASSES + 1)})
    order = np.concatenate([rng.permutation(problem.active) for _ in range(PASSES)])
    ratios = []
    for t in looks:
        state.present(order[state.t : t])
        length = math.sqrt(state.squared_norm)
        ratios.append(
            {
                "t": t,
                "R / lambda": length * lambda_ / R,
                "proposition": length * math.sqrt(lambda_ / (1.0 + (R * R / lambda_ - 1.0) / t)),
                "radius": length * math.sqrt(lambda_),
            }
        )
    after = [ratio["radius"] for ratio in ratios if ratio["t"] >= m]
    return {
        "R / lambda": max(ratio["R / lambda"] for ratio in ratios),
        "proposition": max(ratio["proposition"] for ratio in ratios),
        "after one pass": after[0],
        "after ten passes": after[-1],
    }
