"""Batches: many problems on the same rows, trained together and certified one by one.

The rounds (``rounds``) bring all problems near their optima, in low precision. J and L of each are
then computed in float64 (``evidence``). What low precision does not reach is left to ``newton``,
one problem after the other, from where it is. If there are many rows, the first rounds are on
samples of them, with C raised in proportion.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from certsvm.certificates.dual import DualPoint, dual_bound
from certsvm.certificates.primal import LossSums
from certsvm.certificates.rounding import Bound, product_error, rounding_slack
from certsvm.kernels.losses import Loss
from certsvm.problem.rows import Vector
from certsvm.solvers.auto import RelayRun
from certsvm.solvers.base import Epoch, Options, Run, Start
from certsvm.solvers.schedule import FIRST_SIGMA
from certsvm.torch import kernels
from certsvm.torch.rounds import FAR, Answers, Problems, Rounds, spectrum
from certsvm.torch.rows import TensorRows

# A sample has this share of the rows, but at least so many per column. Samples pay if a round on
# all rows multiplies so many numbers: on a GPU small problems wait for the host, not for products.
_SHARE, _PER_COLUMN = 8, 16
_WORTH_SAMPLING = {"cuda": 2e10, "cpu": 5e8}
# The relative gap at which a run on a sample ends, and the most rounds there and on all rows.
_SAMPLE_GAP, _SAMPLE_ROUNDS, _ROUNDS = 0.1, 12, 30
# The part of the target that a problem is to reach before it leaves, and the least relative gap
# that low precision is trusted with.
_AIM, _FLOOR = 0.9, {torch.float32: 1e-5, torch.float16: 1e-4, torch.bfloat16: 1e-3}
# Epochs that do not reach this share of the gap before are the last.
_PROGRESS = 0.5
# A longer w to start from, in the units of the rows, would not fit into low precision.
_LONGEST_START = 1e15
# Numbers of a tile of products in float64.
_TILE = {"cuda": 2**25, "cpu": 2**19}


@dataclass
class Evidence:
    """What is proved of a problem, as a ``Run`` reports it."""

    w: Vector
    bound: Bound
    point: DualPoint
    epochs: int
    sigma: float

    @property
    def gap(self) -> float:
        """The relative gap, rounding allowed for."""
        low, high = dual_bound(self.point)[0].low, self.bound.high
        return high / low - 1.0 if low > 0.0 and math.isfinite(high) else math.inf

    def candidates(self) -> Iterator[Vector]:
        """The w."""
        yield self.w

    def primal(self) -> tuple[Vector, Bound]:
        """The w, and J there."""
        return self.w, self.bound

    def dual(self) -> DualPoint:
        """Its alpha."""
        return self.point

    def warm_start(self) -> Start:
        """Where the problem is."""
        return Start(self.w, self.epochs, smoothing=self.sigma)


def evidence(
    rows: TensorRows, loss: Any, problems: Problems, W: Tensor, epochs: int = 1, *,
    keep_alpha: bool = False,
) -> list[Evidence]:  # fmt: skip
    """J at the rows w_j of W, and the dual points alpha_j(w_j), of the problems.

    The rows are read once, in tiles. The products of a tile with all w_j are one matrix product, so
    each is a sum of as many products as w_j has entries, added in any order: the allowance is that
    of ``product_error``. An entry of sum_k alpha_jk y_jk goes through one addition for each row of
    a tile and one for each tile, at most.
    """
    d, rho = rows.n_columns, rows.intercept_scaling
    on_host = W.cpu().numpy()
    errors = [product_error(w) for w in on_host]
    largest = (rows.dimension + 2.0) * rows.longest
    slack = W.new_tensor([rounding_slack(error, largest) for error in errors])[:, None]
    C, sigma = problems.C[:, None], (problems.C * problems.sigma)[:, None]
    kept = np.empty((len(W) if keep_alpha else 0, rows.n_rows))
    numbers, totals = W.new_zeros((5, len(W))), torch.zeros_like(W)
    size, tiles = max(1, _TILE[rows.device.type] // len(W)), 0
    for part, stored in rows.tiles(size):
        tile, (signs, s) = stored.double(), problems.sides(part)
        margins = W[:, :d] @ tile.T
        if rho > 0.0:
            margins += rho * W[:, -1:]
        _, alpha, sums = kernels.smoothed_alpha(
            loss, signs * margins, loss.smoothing_centre(C, s), s, rows.product_roundings[part],
            sigma, C, slack,
        )  # fmt: skip
        if keep_alpha:
            kept[:, part] = alpha.cpu().numpy()
        alpha *= signs
        numbers += sums
        totals[:, :d] += alpha @ tile
        if rho > 0.0:
            totals[:, -1] += rho * alpha.sum(1)
        tiles += 1
    additions = min(size, rows.n_rows) + tiles
    in_parts = kernels.additions_in_parts(min(size, rows.n_rows)) + tiles
    proved: list[Evidence] = []
    each = (problems.C.tolist(), problems.sigma.tolist(), on_host, errors, numbers.T.tolist())
    for v, C_j, sigma_j, w, error, of_rows in zip(totals.cpu().numpy(), *each, strict=True):
        primal = LossSums((of_rows[0],), (of_rows[1],), in_parts).primal(C_j, w, error)
        alpha_of = partial(kept.__getitem__, len(proved)) if keep_alpha else None
        row_sums = kernels.row_sums(loss, of_rows[2:], v, additions, in_parts)
        point = row_sums.point("multipliers", alpha_of)
        proved.append(Evidence(w, primal, point, epochs, sigma_j))
    return proved


class Batch:
    """Problems that are trained together, once the first of them is.

    Each epoch ends with J and L in float64 of all problems that have not reached the target.

    Parameters
    ----------
    rows : TensorRows
        The rows.
    loss : Loss
        Their loss.
    problems : Problems
        The problems, in float64.
    starts : sequence of Start, default=None
        Where they begin; None means at zero, or at what samples give.

    Attributes
    ----------
    evidence : list of Evidence
        What is proved of each problem.
    left : ndarray of bool
        The problems that have reached the target, or that low precision brings no further.
    epochs : int
        How many epochs there were.
    """

    def __init__(
        self, rows: TensorRows, loss: Loss, problems: Problems,
        starts: Sequence[Start] | None = None,
    ) -> None:  # fmt: skip
        n = len(problems.C)
        self._rows, self._loss, self._problems, self._starts = rows, loss, problems, starts
        self._options: Options | None = None
        self.evidence: list[Any] = [None] * n
        self.epochs, self.left = 0, np.zeros(n, dtype=bool)

    def begin(self, options: Options, *, samples: bool) -> None:
        """Find where to begin on all rows, unless another problem has."""
        if self._options is not None:
            return
        self._options, rows, n = options, self._rows, len(self.left)
        self._fast = rows.converted()
        self._spectrum = spectrum(self._fast)
        W = torch.zeros((n, rows.padded), dtype=torch.float32, device=rows.device)
        # The gaps are those that are proved.
        self._answers = Answers(W, np.full(n, FIRST_SIGMA), np.full(n, math.inf))
        self._floor = _FLOOR[rows.fast_type]
        self._aims = np.full(n, max(_AIM * options.target, self._floor))
        if options.start is not None and self._starts is not None:
            starts = torch.as_tensor(np.array([start.w for start in self._starts]) * rows.unit)
            short = starts.norm(dim=1) < _LONGEST_START
            W[:, : rows.dimension] = torch.where(short[:, None], starts, 0.0).to(W)
        elif samples:
            self._run_on_samples(options)

    def advance(self) -> None:
        """One epoch."""
        assert self._options is not None
        pending, rows, self.epochs = (~self.left).nonzero()[0], self._rows, self.epochs + 1
        problems = self._problems.at(torch.as_tensor(pending, device=rows.device))
        begin, aims = self._answers.at(pending), self._aims[pending]
        in_units = problems._replace(C=problems.C * rows.unit**2)
        end = Rounds(in_units, self._fast, self._spectrum).run(begin, aims, _ROUNDS)
        W = end.W[:, : rows.dimension].double() / rows.unit
        problems = problems._replace(sigma=torch.as_tensor(end.sigma, device=rows.device))
        keep_alpha = self._options.keep_alpha
        proved = evidence(rows, self._loss, problems, W, self.epochs, keep_alpha=keep_alpha)
        gaps = np.array([of_problem.gap for of_problem in proved])
        # Rounding, or the rounds were too few: the next ones must bring more.
        reached, floor = end.gaps <= aims, self._floor
        hopeless = np.where(reached, aims <= floor, ~(gaps <= _PROGRESS * begin.gaps))
        self._aims[pending] = np.where(reached, np.maximum(0.5 * aims, floor), aims)
        self._answers.put(pending, end._replace(gaps=gaps))
        for i, of_problem in zip(pending.tolist(), proved, strict=True):
            self.evidence[i] = of_problem
        self.left[pending] = hopeless | (gaps > FAR) | (gaps <= self._options.target)

    def _run_on_samples(self, options: Options) -> None:
        """Move to where to begin on all rows."""
        rows, n_problems = self._fast, len(self.left)
        problems = self._problems._replace(C=self._problems.C * self._rows.unit**2)
        generator = torch.Generator(device=rows.device)
        generator.manual_seed(int(options.rng.integers(2**62)))
        work = max(n_problems, 64) * rows.dimension
        sizes = [rows.n_rows]
        while sizes[-1] * work > _WORTH_SAMPLING[rows.device.type] and (
            sizes[-1] // _SHARE >= _PER_COLUMN * rows.dimension
        ):
            sizes.append(sizes[-1] // _SHARE)
        goals = np.full(n_problems, max(_SAMPLE_GAP, options.target))
        for size in sizes[:0:-1]:
            which = torch.randint(rows.n_rows, (size,), generator=generator, device=rows.device)
            which = which.sort().values
            rounds = Rounds(problems, rows.take(which), self._spectrum, which)
            end = rounds.run(self._answers, goals, _SAMPLE_ROUNDS)
            self._answers = end._replace(gaps=np.full(n_problems, math.inf))


class BatchRun(RelayRun):
    """The run of one problem: with those of its batch, and at last alone, if these cannot finish.

    ``alone`` begins its own run at a start.
    """

    def __init__(self, batch: Batch, number: int, alone: Callable[[Start | None], Run]) -> None:
        self._batch, self._number, self._alone, self._seen = batch, number, alone, 0
        self._run: Any = None

    def epoch(self) -> Epoch:
        """One epoch of all problems, or those already made; or a step alone."""
        batch = self._batch
        if not isinstance(self._run, Run) and self._seen == batch.epochs:
            if batch.left[self._number]:
                # A w that is far off is a worse start than zero.
                far = self._run.gap > FAR
                self._run = self._alone(None if far else self._run.warm_start())
            else:
                batch.advance()
        if isinstance(self._run, Run):
            epoch = self._run.epoch()
            return replace(epoch, epochs=epoch.epochs + self._seen)
        self._seen, self._run = batch.epochs, batch.evidence[self._number]
        return Epoch(self._seen, primal_estimate=self._run.bound.value)
