"""Batches: many problems on the same rows, trained together and certified one by one.

The rounds (``rounds``) bring all problems near their optima, in low precision. J and L of each are
then computed in float64 (``evidence``). What low precision does not reach is left to ``newton``,
one problem after the other, from where it is. If there are many rows, the first rounds are on
samples of them, with C raised in proportion.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from certsvm.certificates.dual import DualPoint, RowSums, dual_bound, sums_in_any_order
from certsvm.certificates.primal import LossSums
from certsvm.certificates.rounding import Bound, product_error, rounding_slack
from certsvm.kernels.losses import Loss
from certsvm.problem.rows import Vector
from certsvm.solvers.base import Epoch, Options, Run, Start
from certsvm.solvers.schedule import FIRST_SIGMA
from certsvm.torch import kernels
from certsvm.torch.rounds import FAR, Answers, FastRows, Rounds, spectrum
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


class Evidence(NamedTuple):
    """What is proved of a problem."""

    w: Vector
    primal: Bound
    point: DualPoint

    @property
    def gap(self) -> float:
        """The relative gap, rounding allowed for."""
        low, high = dual_bound(self.point)[0].low, self.primal.high
        return high / low - 1.0 if low > 0.0 and math.isfinite(high) else math.inf


def evidence(
    rows: TensorRows, loss: Any, problems: kernels.Problems, W: Tensor, *, keep_alpha: bool = False
) -> list[Evidence]:
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
    slacks = [rounding_slack(error, largest) for error in errors]
    slack = torch.tensor(slacks, dtype=torch.float64).to(W.device)[:, None]
    C, sigma = problems.C[:, None], (problems.C * problems.sigma)[:, None]
    numbers: Any = 0.0
    kept = np.empty((len(W) if keep_alpha else 0, rows.n_rows))
    totals = torch.zeros_like(W)
    size, tiles = max(1, _TILE[rows.device.type] // len(W)), 0
    for part, tile in rows.wide(size):
        here = problems.part(part)
        positive = here.is_positive()
        signs, s = 2.0 * positive.double() - 1.0, here.row_weights(positive)
        s = s if isinstance(s, Tensor) else torch.ones_like(signs[:1])
        margins = W[:, :d] @ tile.T
        if rho > 0.0:
            margins += rho * W[:, -1:]
        _, alpha, sums = kernels.smoothed_alpha(
            loss, signs * margins, loss.smoothing_centre(C, s), s, None,
            rows.product_roundings[part], sigma, C, slack,
        )  # fmt: skip
        if keep_alpha:
            kept[:, part] = alpha.cpu().numpy()
        alpha = alpha * signs
        numbers = numbers + sums
        totals[:, :d] += alpha @ tile
        if rho > 0.0:
            totals[:, -1] += rho * alpha.sum(1)
        tiles += 1
    additions = min(size, rows.n_rows) + tiles
    in_parts = kernels.additions_in_parts(min(size, rows.n_rows)) + tiles
    proved: list[Evidence] = []
    each = (problems.C.tolist(), on_host, errors, numbers.T.tolist(), totals.cpu().numpy())
    for own_C, w, error, (value, mass, alpha_sum, penalty, path), v in zip(*each, strict=True):
        primal = LossSums((value,), (mass,), in_parts).primal(own_C, w, error)
        sums = sums_in_any_order(alpha_sum, penalty, in_parts)
        alpha_of = partial(kept.__getitem__, len(proved)) if keep_alpha else None
        # The path was weighted by (n_k + 2) |y_k|.
        path /= rows.dimension + 2.0
        row_sums = RowSums(v, (sums,), path, additions, loss.largest_multiple)
        proved.append(Evidence(w, primal, row_sums.point("multipliers", alpha_of)))
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
        self, rows: TensorRows, loss: Loss, problems: kernels.Problems,
        starts: Sequence[Start] | None = None,
    ) -> None:  # fmt: skip
        n = len(problems.C)
        self._rows, self._loss, self._problems, self._starts = rows, loss, problems, starts
        self._begun, self.epochs = False, 0
        self.evidence: list[Any] = [None] * n
        self._proved_gaps, self.left = np.full(n, math.inf), np.zeros(n, dtype=bool)

    def begin(self, options: Options, *, samples: bool) -> None:
        """Find where to begin on all rows, unless another problem has."""
        if self._begun:
            return
        self._begun, self._options, n = True, options, len(self.left)
        self._fast = rows = FastRows(self._rows)
        self._spectrum = spectrum(rows)
        W = rows.zeros(n, rows.dimension)
        self._answers = Answers(W, np.full(n, FIRST_SIGMA), np.full(n, math.inf))
        self._aims = np.full(n, max(_AIM * options.target, _FLOOR[rows.dtype]))
        if options.start is not None and self._starts is not None:
            starts = torch.as_tensor(np.array([start.w for start in self._starts]) * rows.unit)
            short = starts.norm(dim=1) < _LONGEST_START
            W[:, : starts.shape[1]] = torch.where(short[:, None], starts, 0.0).to(W)
        elif samples:
            self._run_on_samples(int(options.rng.integers(2**62)))

    def advance(self) -> None:
        """One epoch."""
        pending, target, rows = (~self.left).nonzero()[0], self._options.target, self._fast
        problems = self._problems.at(torch.as_tensor(pending, device=rows.device))
        before, aims = self._proved_gaps[pending], self._aims[pending]
        rounds = Rounds(problems, rows, self._spectrum)
        end = rounds.run(self._answers.at(pending), aims, _ROUNDS)
        W = end.W[:, : self._rows.dimension].double() / rows.unit
        problems = problems._replace(sigma=torch.as_tensor(end.sigma, device=rows.device))
        keep_alpha = self._options.keep_alpha
        proved = evidence(self._rows, self._loss, problems, W, keep_alpha=keep_alpha)
        gaps = np.array([of_problem.gap for of_problem in proved])
        # Rounding, or the rounds were too few: the next ones must bring more.
        reached, floor = end.gaps <= aims, _FLOOR[rows.dtype]
        hopeless = np.where(reached, aims <= floor, ~(gaps <= _PROGRESS * before))
        self._aims[pending] = np.where(reached, np.maximum(0.5 * aims, floor), aims)
        self._answers.put(pending, end)
        for i, of_problem in zip(pending.tolist(), proved, strict=True):
            self.evidence[i] = of_problem
        self._proved_gaps[pending] = gaps
        self.left[pending] = hopeless | (gaps > FAR) | (gaps <= target)
        self.epochs += 1

    @property
    def sigma(self) -> Vector:
        """The slopes of alpha, relative to C, that belong to the evidence."""
        return self._answers.sigma

    def _run_on_samples(self, seed: int) -> None:
        """Move to where to begin on all rows."""
        rows, n = self._fast, self._fast.n_rows
        generator = torch.Generator(device=rows.device).manual_seed(seed)
        work = max(len(self.left), 64) * rows.dimension
        goals = np.full(len(self.left), max(_SAMPLE_GAP, self._options.target))
        sizes = []
        while n * work > _WORTH_SAMPLING[rows.device.type] and (
            n // _SHARE >= _PER_COLUMN * rows.dimension
        ):
            n //= _SHARE
            sizes.append(n)
        for size in reversed(sizes):
            which = torch.randint(rows.n_rows, (size,), generator=generator, device=rows.device)
            which = which.sort().values
            sample = FastRows(self._rows.take(which), rows.unit)
            rounds = Rounds(self._problems, sample, self._spectrum, which)
            self._answers = rounds.run(self._answers, goals, _SAMPLE_ROUNDS)


class BatchRun(Run):
    """The run of one problem: with those of its batch, and at last alone, if these cannot finish.

    ``start_alone`` begins its own run at a start.
    """

    computes_primal = True

    def __init__(
        self, batch: Batch, number: int, start_alone: Callable[[Start | None], Any]
    ) -> None:
        self._batch, self._number, self._start_alone, self._seen = batch, number, start_alone, 0
        # Its own run.
        self._alone: Any = None

    @property
    def _proved(self) -> Evidence:
        evidence: Evidence = self._batch.evidence[self._number]
        return evidence

    def epoch(self) -> Epoch:
        """One epoch of all problems, or those already made; or a step alone."""
        batch = self._batch
        if self._alone is None and self._seen == batch.epochs:
            if batch.left[self._number]:
                # A w that is far off is a worse start than zero.
                far = self._proved.gap > FAR
                self._alone = self._start_alone(None if far else self.warm_start())
            else:
                batch.advance()
        if self._alone is not None:
            epoch: Epoch = self._alone.epoch()
            return replace(epoch, epochs=epoch.epochs + self._seen)
        self._seen = batch.epochs
        return Epoch(self._seen, primal_estimate=self._proved.primal.value)

    def candidates(self) -> Iterator[Vector]:
        """The best w."""
        yield self.primal()[0]

    def primal(self) -> Any:
        """The last w, and J there."""
        return self._alone.primal() if self._alone else (self._proved.w, self._proved.primal)

    def dual(self) -> Any:
        """The last alpha."""
        return self._alone.dual() if self._alone else self._proved.point

    def warm_start(self) -> Any:
        """Where the problem is."""
        if self._alone:
            return self._alone.warm_start()
        sigma = float(self._batch.sigma[self._number])
        return Start(self._proved.w, self._seen, smoothing=sigma)
