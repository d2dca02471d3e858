"""J and L of many classes in float64, with their rounding."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from certsvm.certificates.dual import DualPoint, RowSums, sums_in_any_order
from certsvm.certificates.primal import LossSums
from certsvm.certificates.rounding import Bound, product_error, rounding_slack
from certsvm.problem.rows import Vector
from certsvm.torch import kernels
from certsvm.torch.problems import ClassProblems

# Numbers of a tile of products.
_TILE = {"cuda": 2**25, "cpu": 2**19}


class Evidence(NamedTuple):
    """What is proved of a class."""

    w: Vector
    primal: Bound
    point: DualPoint


def evidence(
    problems: ClassProblems, W: Tensor, sigma: Vector, *, keep_alpha: bool = False
) -> list[Evidence]:
    """J at the rows w_i of W, and the dual points alpha_i(w_i), of the problems.

    The rows are read once, in tiles. The products of a tile with all w_i are one matrix product, so
    each is a sum of as many products as w_i has entries, added in any order: the allowance is that
    of ``product_error``. An entry of sum_k alpha_ik y_ik goes through one addition for each row of
    a tile and one for each tile, at most.
    """
    rows, d, rho = problems.rows, problems.rows.n_columns, problems.rows.intercept_scaling
    C, loss, k = problems.objective.C, problems.objective.loss, len(W)
    on_host = W.cpu().numpy()
    errors = [product_error(w) for w in on_host]
    largest = (rows.dimension + 2.0) * rows.longest
    slack = _column([*(rounding_slack(error, largest) for error in errors), 0.0], W)
    # A class of nothing, for rows of classes that are not among these.
    padded = torch.cat([W, torch.zeros_like(W[:1])])
    own, factors = problems.own(np.arange(k)), problems.own_factors(np.arange(k))
    of_alpha = _column([*(C * sigma), 1.0], W)
    numbers: Any = 0.0
    kept = np.empty((k if keep_alpha else 0, rows.n_rows))
    totals = torch.zeros_like(padded)
    size, tiles = max(1, _TILE[rows.device.type] // (k + 1)), 0
    for part, tile in rows.wide(size):
        margins, index = padded[:, :d] @ tile.T, own[None, part]
        if rho > 0.0:
            margins += rho * padded[:, -1:]
        margins = margins.neg_().scatter_(0, index, -margins.gather(0, index))
        weights = None if problems.row_weights is None else problems.row_weights[part]
        s = kernels.weights_in_classes(own[part], weights, factors)
        alpha, sums = _alpha(problems, margins, s, part, of_alpha, slack)
        if keep_alpha:
            kept[:, part] = alpha[:k].cpu().numpy()
        alpha = alpha.neg_().scatter_(0, index, -alpha.gather(0, index))
        numbers = numbers + sums
        totals[:, :d] += alpha @ tile
        if rho > 0.0:
            totals[:, -1] += rho * alpha.sum(1)
        tiles += 1
    additions = min(size, rows.n_rows) + tiles
    in_parts = kernels.additions_in_parts(min(size, rows.n_rows)) + tiles
    proved: list[Evidence] = []
    columns = zip(on_host, errors, numbers.T.cpu().numpy(), totals.cpu().numpy(), strict=False)
    for w, error, (value, mass, alpha_sum, penalty, path), v in columns:
        primal = LossSums((value,), (mass,), in_parts).primal(C, w, error)
        alpha_sums = sums_in_any_order(alpha_sum, penalty, in_parts)
        most = loss.largest_multiple
        # The sum was weighted by (n_k + 2) |y_k|.
        path /= rows.dimension + 2.0
        alpha_of_class = partial(kept.__getitem__, len(proved)) if keep_alpha else None
        sums_of_rows = RowSums(v, (alpha_sums,), path, additions, most)
        point = sums_of_rows.point("multipliers", alpha_of_class)
        proved.append(Evidence(w, primal, point))
    return proved


def _alpha(
    problems: ClassProblems, margins: Tensor, s: Any, part: slice, sigma: Tensor, slack: Tensor
) -> tuple[Tensor, Tensor]:
    """Alpha at these margins, and the sums of ``kernels.smoothed_alpha``."""
    formulas: Any = problems.objective.loss
    C = problems.objective.C
    s = s if isinstance(s, Tensor) else torch.ones_like(margins[:1])
    _, alpha, sums = kernels.smoothed_alpha(
        formulas, margins, formulas.smoothing_centre(C, s), s, None,
        problems.rows.product_roundings[part], sigma, C, slack,
    )  # fmt: skip
    return alpha, sums


def _column(values: Sequence[float], like: Tensor) -> Tensor:
    return torch.tensor(values, dtype=torch.float64).to(like.device)[:, None]
