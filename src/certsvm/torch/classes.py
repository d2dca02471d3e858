"""Many classes at once: smoothed Newton on the problems of all classes together.

Minimises    J_i(w_i) = 1/2 |w_i|^2 + C sum_k s_ik loss(w_i.y_ik),     i = 1 ... K,

where y_ik = [x_k, rho] if row k is of class i, and -[x_k, rho] if not. With the w_i as the rows of
a matrix W, the products of all rows with all w_i are one matrix product, and all sums over rows are
another, which a device computes at the highest rate it has.

The hinge is smoothed as ``solvers.schedule`` explains, about the middle of the box,
with a slope sigma of each class's own. One round reads all rows for the gradients

    w_i - sum_k alpha_ik y_ik,     alpha_ik = C s_ik clip(1/2 + sigma_i (1 - w_i.y_ik), 0, 1),

and once more for a search along the directions of Newton's method: their products with the rows
give the slopes at several steps. Directions come from conjugate gradients. Their steps read the
free rows of each class, gathered, or all rows if these are many. All classes have one
preconditioner: with sum_k x_k x_k' = U diag(lam) U', it is U (1 + C sigma_i p_i lam)^-1 U', where
p_i is the share of rows that are free. Once a class's smooth problem is about solved, its sigma
grows.

All this is in low precision: in half precision on a GPU, in single precision on a CPU. A class that
seems to be done leaves, and J and L are computed in float64, from W and sigma alone (``bounds``).
What low precision does not reach is left to ``newton``, one class after the other, from where the
class is.

If there are many rows, the first rounds are on samples of them, with C raised in proportion.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from certsvm.certificates.dual import DualPoint, dual_bound
from certsvm.certificates.rounding import Bound
from certsvm.problem.rows import Vector
from certsvm.resources import require_time
from certsvm.solvers.base import Epoch, Options, Run, Start
from certsvm.solvers.schedule import FIRST_SIGMA
from certsvm.torch import kernels
from certsvm.torch.bounds import Evidence, evidence
from certsvm.torch.newton import Descent, TensorNewton
from certsvm.torch.problems import ClassProblems, TensorProblem
from certsvm.torch.rows import TensorRows, free_memory

# A sample has this share of the rows, but at least so many per column. Samples pay if a round on
# all rows multiplies so many numbers: on a GPU small problems wait for the host, not for products.
_SHARE, _PER_COLUMN = 8, 16
_WORTH_SAMPLING = {"cuda": 2e10, "cpu": 5e8}
# The relative gap at which a run on a sample ends, and the most rounds there and on all rows.
_SAMPLE_GAP, _SAMPLE_ROUNDS, _ROUNDS = 0.1, 12, 30
# Numbers of a tile of products, which shall stay in the cache.
_TILE = {"cuda": 2**23, "cpu": 2**18}
# Growth of sigma. It grows if smoothing costs more than a share of the tolerance, and the predicted
# decrease is less than a share of that cost; no more than needed for a cost of the least share.
_GROWTH, _COSTLY, _SOLVED, _LEAST_COST, _LARGEST_SIGMA = 4.0, 0.5, 0.5, 0.3, 1e5
# The steps at which slopes are taken.
_STEPS = (0.0, 0.02, 0.06, 0.15, 0.3, 0.5, 0.7, 0.85, 1.0, 1.25, 1.7, 2.5, 4.0, 8.0)
# Steps of conjugate gradients: the first and the largest number, the largest if each is a pass over
# all rows, and the reductions of the residual beyond which the number changes.
_FIRST_STEPS, _MOST_STEPS, _MOST_PASSES, _ENOUGH, _TOO_LITTLE = 1, 48, 8, 0.02, 0.2
# Free rows are gathered if there are so many times more rows, and if copies of all of them take no
# more than this share of the free memory.
_WORTH_GATHERING, _GATHERED = 8, 0.05
# The part of the target that a class is to reach before it leaves, and the least relative gap that
# low precision is trusted with.
_AIM, _FLOOR = 0.9, {torch.float32: 1e-5, torch.float16: 1e-4, torch.bfloat16: 1e-3}
# The share of the free memory that a copy of the rows may take, and that a byte for each row and
# class may.
_COPY, MASKS = 0.4, 0.1
# Epochs that do not reach this share of the gap before are the last.
_PROGRESS = 0.5
# Numbers of preconditioned systems below which a residual is zero.
_TINY = 1e-30


class FastRows:
    """The rows [x_k, rho] / unit in the type of which the device makes products fastest.

    Parameters
    ----------
    rows : TensorRows
        The rows.
    unit : float, default=None
        The unit; None means one, or what makes the longest row fit into half precision.

    Attributes
    ----------
    dimension : int
        The number of columns, padded with zeros where that makes products faster.
    """

    def __init__(self, rows: TensorRows, unit: float | None = None) -> None:
        X, self.n_rows, self.device = rows.X, rows.n_rows, rows.device
        self.dtype, self.dimension = torch.float32, rows.dimension
        if self.device.type == "cuda":
            self.dtype = torch.bfloat16 if X.dtype == torch.bfloat16 else torch.float16
            self.dimension = -(-rows.dimension // 8) * 8
        fits = 1e-2 <= rows.longest <= 1e3 or rows.longest == 0.0
        self.unit = (1.0 if fits else rows.longest) if unit is None else unit
        self._rows = rows
        self.X: Tensor | None = None
        as_stored = (X.device, X.dtype, X.shape[1]) == (self.device, self.dtype, self.dimension)
        if as_stored and self.unit == 1.0 and X.stride(0) * X.element_size() % 16 == 0:
            self.X = X
        elif self.n_rows * self.dimension * self.dtype.itemsize <= _COPY * free_memory(self.device):
            copy = torch.empty((self.n_rows, self.dimension), dtype=self.dtype, device=self.device)
            for part, tile in self._converted(2**28 // max(1, 8 * self.dimension)):
                copy[part] = tile
            self.X = copy

    def _converted(self, size: int) -> Iterator[tuple[slice, Tensor]]:
        d, rho = self._rows.n_columns, self._rows.intercept_scaling
        for part, rows in self._rows.tiles(size):
            tile = torch.zeros((len(rows), self.dimension), dtype=self.dtype, device=self.device)
            tile[:, :d] = rows if self.unit == 1.0 else rows.double() / self.unit
            if rho > 0.0:
                tile[:, d] = rho / self.unit
            yield part, tile

    def tiles(self, size: int) -> Iterator[tuple[slice, Tensor]]:
        """All rows, so many at a time."""
        if self.X is None:
            yield from self._converted(size)
            return
        for first in range(0, self.n_rows, size):
            part = slice(first, min(first + size, self.n_rows))
            yield part, self.X[part]

    def gram(self) -> Tensor:
        """The sum of x_k x_k' over all rows, in single precision."""
        total = torch.zeros(
            (self.dimension, self.dimension), dtype=torch.float32, device=self.device
        )
        for _, tile in self.tiles(2**17):
            total += kernels.product(tile.T, tile)
        return total


class Answers(NamedTuple):
    """Where each class of a run is, in the units of ``FastRows``, and its relative gap there."""

    W: Tensor
    sigma: Vector
    gaps: Vector

    def put(self, which: NDArray[np.int64], W: Tensor, sigma: Vector, gaps: Vector) -> None:
        """Replace those of the classes ``which``."""
        self.W[torch.as_tensor(which, device=self.W.device)] = W
        self.sigma[which], self.gaps[which] = sigma, gaps


class Spectrum(NamedTuple):
    """The eigenvectors of the mean of x_k x_k', as columns, and its eigenvalues."""

    vectors: Tensor
    values: Tensor

    @classmethod
    def of(cls, rows: FastRows) -> Spectrum:
        """That of the rows."""
        values, vectors = torch.linalg.eigh(rows.gram() / rows.n_rows)
        return cls(vectors, values.clamp(min=0.0))


class Point(NamedTuple):
    """The smooth problems of some classes at a W."""

    gradient: Tensor
    classes: kernels.Classes
    """These classes, and one more for rows of others."""
    short: Tensor
    """What the margins lack to one, for each of them and each row."""
    curvature: Tensor
    """The slope of alpha."""
    inverse: Tensor
    """The inverse eigenvalues of the preconditioner."""
    numbers: Tensor
    """For each class: the losses, sum alpha, |w|^2, |v|^2, |gradient|^2, the expected decrease, the
    weight of the free rows."""


class FreeRows(NamedTuple):
    """The free rows of each class, padded to the same number with rows of no weight."""

    rows: Tensor
    weights: Tensor

    def curved(self, units: Tensor) -> Tensor:
        """The sum of s_k x_k (x_k.u) for each class and its row u."""
        products = kernels.product(self.rows, units[:, :, None])[:, :, 0] * self.weights
        return kernels.product(products.to(self.rows.dtype)[:, None], self.rows)[:, 0]


class Rounds:
    """The rounds on all rows, or on a sample.

    Parameters
    ----------
    problems : ClassProblems
        Labels, weights, C and the loss.
    rows : FastRows
        The rows.
    spectrum : Spectrum
        Theirs, about.
    which : Tensor, default=None
        The sample; None means all rows.
    """

    def __init__(
        self, problems: ClassProblems, rows: FastRows, spectrum: Spectrum,
        which: Tensor | None = None,
    ) -> None:  # fmt: skip
        self._problems, self._rows, self._spectrum, self._which = problems, rows, spectrum, which
        self._squared = problems.objective.loss.is_smooth
        # In the units of the rows.
        self._C = problems.objective.C * rows.unit**2
        self._weights = problems.row_weights
        if self._weights is not None:
            total, largest = float(self._weights.sum()), float(self._weights.max())
            if which is not None:
                self._weights = self._weights[which]
                self._C *= total / float(self._weights.sum())
            # Weights of at most one fit into half precision.
            self._C *= largest
            self._weights = (self._weights / largest).float()
        elif which is not None:
            self._C *= problems.rows.n_rows / len(which)
        # Single precision has no more; the evidence does not depend on it.
        self._C = min(self._C, 1e30)

    def run(self, begin: Answers, tol: Vector, rounds: int) -> Answers:
        """Rounds until all classes seem to reach their relative gaps; the best point of each."""
        n, device = len(begin.W), begin.W.device
        best = Answers(begin.W.clone(), begin.sigma.copy(), np.full(n, math.inf))
        active, W, sigma, steps = np.arange(n), begin.W, begin.sigma.copy(), _FIRST_STEPS
        # What the last steps left of residuals.
        left = torch.zeros(n, device=device)
        for _ in range(rounds):
            require_time()
            at = self._evaluate(W, sigma, active)
            on_host = torch.cat([at.numbers, left.double()[None]]).cpu().numpy()
            gaps = self._gaps(on_host)
            better = gaps < best.gaps[active]
            where = torch.as_tensor(better.nonzero()[0], device=device)
            best.put(active[better], W[where], sigma[better], gaps[better])
            stay = (best.gaps[active] > tol[active]) & np.isfinite(on_host).all(0)
            if not stay.any():
                break
            if not stay.all():
                kept = torch.as_tensor(stay.nonzero()[0], device=device)
                active, sigma, on_host = active[stay], sigma[stay], on_host[:, stay]
                W, at = W[kept], self._without(at, kept, active)
            steps = _adapted(steps, on_host[-1])
            direction, left = self._direction(at, steps, float(on_host[6].max()))
            W = W + self._search(W, direction, at)[:, None] * direction
            sigma = np.minimum(sigma * self._growth(on_host, tol[active]), _LARGEST_SIGMA)
        return best

    def _search(self, W: Tensor, direction: Tensor, at: Point) -> Tensor:
        """The lengths of steps, where the slopes along the directions vanish."""
        k, steps = len(W), torch.tensor(_STEPS, device=W.device)
        units, lengths = self._units(direction)
        falls = torch.zeros((len(_STEPS), k + 1), dtype=torch.float64, device=W.device)
        for part, tile in self._rows.tiles(self._tile(k)):
            products, short = kernels.product(units, tile.T), at.short[:, part]
            falls += kernels.falls(at.classes.part(part), products, lengths, short, steps)
        of_w, of_p = (W * direction).sum(1), (direction * direction).sum(1)
        return zeros(of_w + steps[:, None] * of_p - self._C * falls[:, :k], steps)

    def _units(self, D: Tensor) -> tuple[Tensor, Tensor]:
        """The rows of D and one of zeros, in the units of their lengths, and these."""
        D = torch.cat([D, torch.zeros_like(D[:1])])
        lengths = D.norm(dim=1).clamp(min=_TINY)
        return (D / lengths[:, None]).to(self._rows.dtype), lengths

    def _gaps(self, numbers: Vector) -> Vector:
        """The relative gaps, as far as low precision tells."""
        losses, alphas, squares, of_v = numbers[:4]
        # The penalty of the squared hinge is its loss here.
        B = of_v + 2.0 * losses * self._squared
        with np.errstate(divide="ignore", invalid="ignore"):
            s = np.clip(alphas / B, 0.0, np.inf if self._squared else 1.0)
            gaps: Vector = (0.5 * squares + losses) / (s * alphas - 0.5 * s * s * B) - 1.0
        # Rounding makes some negative.
        return np.where(gaps > -0.1, gaps, math.inf)

    def _growth(self, numbers: Vector, tol: Vector) -> Vector:
        """The factors by which sigma grows."""
        losses, alphas, squares, of_v, of_gradient, decrease = numbers[:6]
        if self._squared:
            return np.ones_like(losses)
        J = 0.5 * squares + losses
        cost = J - (alphas - 0.5 * of_v) - 0.5 * of_gradient
        wanted = np.clip(cost / (_LEAST_COST * tol * J), 1.5, _GROWTH)
        solved = (decrease <= _SOLVED * cost) & (cost > _COSTLY * tol * J)
        return np.where(solved, wanted, 1.0)

    def _evaluate(self, W: Tensor, sigma: Vector, active: NDArray[np.int64]) -> Point:
        """One round's reading of the rows for the gradients."""
        rows, k, device = self._rows, len(active), W.device
        classes = self._classes(active, torch.as_tensor(sigma, device=device).float())
        # One more class of nothing, for rows of classes that are not active.
        padded = torch.cat([W, torch.zeros_like(W[:1])])
        low = torch.float16 if device.type == "cuda" else torch.float32
        short = torch.empty((k + 1, rows.n_rows), dtype=low, device=device)
        v = torch.zeros_like(padded)
        sums = torch.zeros((3, k + 1), dtype=torch.float64, device=device)
        pieces, unit = _split(padded, rows.dtype)
        for part, tile in rows.tiles(self._tile(k)):
            products = kernels.product(pieces, tile.T)
            alpha, of_tile = kernels.respond(
                classes.part(part), products, unit, short[:, part], rows.dtype
            )
            v += kernels.product(alpha, tile)
            sums += of_tile
        v, (losses, alphas, weight) = self._C * v[:k], sums[:, :k]
        gradient = W - v
        curvature = torch.full_like(classes.sigma[:k], 2.0 * self._C)
        if not self._squared:
            curvature = self._C * classes.sigma[:k]
        of_free = (curvature * weight.float())[:, None] * self._spectrum.values
        inverse = 1.0 / (1.0 + of_free)
        squares = [(a * b).sum(1) for a, b in ((W, W), (v, v), (gradient, gradient))]
        expected = 0.5 * (gradient * self._precondition(gradient, inverse)).sum(1)
        numbers = torch.stack([self._C * losses, self._C * alphas, *squares, expected, weight])
        return Point(gradient, classes, short, curvature, inverse, numbers)

    def _classes(self, active: NDArray[np.int64], sigma: Tensor) -> kernels.Classes:
        own, factors = self._problems.own(active), self._problems.own_factors(active)
        own = own if self._which is None else own[self._which]
        sigma = torch.cat([sigma, torch.ones_like(sigma[:1])])
        factors = None if factors is None else factors.float()
        return kernels.Classes(own.int(), sigma, self._weights, factors, self._squared)

    def _tile(self, n_classes: int) -> int:
        # Products need aligned rows.
        return max(1, _TILE[self._rows.device.type] // (n_classes + 1) // 64) * 64

    def _without(self, at: Point, kept: Tensor, active: NDArray[np.int64]) -> Point:
        """The point for fewer classes."""
        with_last = torch.cat([kept, torch.full_like(kept[:1], len(at.gradient))])
        return Point(
            at.gradient[kept], self._classes(active, at.classes.sigma[kept]), at.short[with_last],
            at.curvature[kept], at.inverse[kept], at.numbers[:, kept],
        )  # fmt: skip

    def _precondition(self, R: Tensor, inverse: Tensor) -> Tensor:
        U = self._spectrum.vectors
        return ((R @ U) * inverse) @ U.T

    def _direction(self, at: Point, steps: int, free_weight: float) -> tuple[Tensor, Tensor]:
        """Newton's directions by conjugate gradients, and what is left of the residuals."""
        free = self._gathered(at, free_weight)
        if free is None:
            steps = min(steps, _MOST_PASSES)
        P, R = torch.zeros_like(at.gradient), -at.gradient
        Z = self._precondition(R, at.inverse)
        D, square = Z, (R * Z).sum(1)
        first = square
        for i in range(steps):
            Q = self._curved(D, at, free)
            step = (square / (D * Q).sum(1).clamp(min=_TINY))[:, None]
            P, R = P + step * D, R - step * Q
            Z = self._precondition(R, at.inverse)
            last, square = square, (R * Z).sum(1)
            if i + 1 < steps:
                D = Z + (square / last.clamp(min=_TINY))[:, None] * D
        return P, (square / first.clamp(min=_TINY)).clamp(min=0.0).sqrt()

    def _curved(self, D: Tensor, at: Point, free: FreeRows | None) -> Tensor:
        """The Hessians of the smooth problems times the rows of D."""
        rows, k = self._rows, len(D)
        units, lengths = self._units(D)
        scales = (at.curvature * lengths[:k])[:, None]
        if free is not None:
            return D + scales * free.curved(units[:k])
        total = torch.zeros((k + 1, D.shape[1]), device=D.device)
        for part, tile in rows.tiles(self._tile(k)):
            products, short = kernels.product(units, tile.T), at.short[:, part]
            masked = kernels.masked(at.classes.part(part), products, short, rows.dtype)
            total += kernels.product(masked, tile)
        return D + scales * total[:k]

    def _gathered(self, at: Point, free_weight: float) -> FreeRows | None:
        """The free rows of each class; None if that is not worthwhile, or takes much memory."""
        rows, classes, k = self._rows, at.classes, len(at.gradient)
        row_bytes = k * rows.dimension * rows.dtype.itemsize
        room = min(_GATHERED * free_memory(rows.device) / row_bytes, rows.n_rows / _WORTH_GATHERING)
        if rows.X is None or free_weight > room:
            return None
        # Some classes at a time, since PyTorch does not index more than 2^31 numbers.
        found, at_once = [], max(1, 2**28 // rows.n_rows)
        for first in range(0, k, at_once):
            which, positions = classes.free(at.short, slice(first, min(first + at_once, k)))
            found.append(torch.stack([which + first, positions]))
        which, positions = torch.cat(found, 1)
        counts = which.bincount(minlength=k)
        most = int(counts.max())
        if most > room:
            return None
        places = torch.arange(len(which), device=which.device) - (counts.cumsum(0) - counts)[which]
        index = torch.zeros((k, most), dtype=torch.long, device=which.device)
        index[which, places] = positions
        weights = torch.zeros((k, most), device=which.device)
        weights[which, places] = classes.weights_of(which, positions)
        return FreeRows(rows.X[index], weights)


def _adapted(steps: int, left: Vector) -> int:
    """The steps of conjugate gradients, after some have left this of residuals."""
    typical = float(np.median(left))
    if typical > _TOO_LITTLE:
        return min(2 * steps, _MOST_STEPS)
    return max(steps // 2, 1) if 0.0 < typical < _ENOUGH else steps


def _split(W: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """W in one or two pieces of a type, one above the other, and the unit of both."""
    if dtype == torch.float32:
        return W, torch.ones((), device=W.device)
    unit = W.abs().max().clamp(min=_TINY)
    high = (W / unit).to(dtype)
    low = ((W / unit - high.float()) / kernels.LOW).to(dtype)
    return torch.cat([high, low]), unit


def zeros(slopes: Tensor, steps: Tensor) -> Tensor:
    """Where rising slopes, given at these steps, vanish; zero where they do not."""
    after = (slopes < 0.0).sum(0).clamp(1, len(steps) - 1)[None]
    low, high = slopes.gather(0, after - 1)[0], slopes.gather(0, after)[0]
    begin, end = steps[after[0] - 1], steps[after[0]]
    return (begin + (end - begin) * (-low / (high - low).clamp(min=_TINY)).clamp(0.0, 1.0)).float()


class ClassGroup:
    """Classes that are trained together, once the first of them is.

    Each epoch ends with J and L in float64 of all classes that have not reached the target.

    Parameters
    ----------
    problems : ClassProblems
        Their problems.
    first : int
        Position of the first of them among all problems of the source.

    Attributes
    ----------
    numbers : range
        Their positions.
    evidence : list of Evidence
        What is proved of each class.
    left : ndarray of bool
        The classes that have reached the target, or that low precision brings no further.
    epochs : int
        How many epochs there were.
    """

    def __init__(self, problems: ClassProblems, first: int) -> None:
        n = len(problems.positive)
        self._problems, self.numbers = problems, range(first, first + n)
        self._begun, self.epochs = False, 0
        self.evidence: list[Any] = [None] * n
        self._proved_gaps, self.left = np.full(n, math.inf), np.zeros(n, dtype=bool)

    def start(self, problem: TensorProblem, solver: TensorNewton, options: Options) -> Run:
        """Begin the run of one of the problems."""
        if not self._begun:
            self._begun, self._options = True, options
            self._rows = FastRows(self._problems.rows)
            self._spectrum = Spectrum.of(self._rows)
            n = len(self.numbers)
            W = torch.zeros((n, self._rows.dimension), device=self._rows.device)
            self._answers = Answers(W, np.full(n, FIRST_SIGMA), np.full(n, math.inf))
            self._aims = np.full(n, max(_AIM * options.target, _FLOOR[self._rows.dtype]))
            if solver.samples:
                self._answers = self._from_samples(int(options.rng.integers(2**62)))
        return ClassRun(self, problem, solver, options)

    def advance(self) -> None:
        """One epoch."""
        pending, target = (~self.left).nonzero()[0], self._options.target
        problems = replace(
            self._problems,
            positive=self._problems.positive[pending], factors=self._problems.factors[pending],
        )  # fmt: skip
        W, sigma, gaps = self._answers
        which = torch.as_tensor(pending, device=W.device)
        rounds = Rounds(problems, self._rows, self._spectrum)
        begin = Answers(W[which], sigma[pending], gaps[pending])
        end = rounds.run(begin, self._aims[pending], _ROUNDS)
        W = end.W[:, : problems.rows.dimension].double() / self._rows.unit
        proved = evidence(problems, W, end.sigma, keep_alpha=self._options.keep_alpha)
        gaps = np.array([_proved_gap(of_class) for of_class in proved])
        aims, before = self._aims[pending], self._proved_gaps[pending]
        # Rounding, or the rounds were too few: the next ones must bring more.
        reached, floor = end.gaps <= aims, _FLOOR[self._rows.dtype]
        hopeless = np.where(reached, aims <= floor, ~(gaps <= _PROGRESS * before))
        self._aims[pending] = np.where(reached, np.maximum(0.5 * aims, floor), aims)
        self._answers.put(pending, end.W, end.sigma, end.gaps)
        for i, of_class in zip(pending.tolist(), proved, strict=True):
            self.evidence[i] = of_class
        self._proved_gaps[pending] = gaps
        self.left[pending] = hopeless | (gaps <= target)
        self.epochs += 1

    @property
    def sigma(self) -> Vector:
        """The slopes of alpha, relative to C, that belong to the evidence."""
        return self._answers.sigma

    def _from_samples(self, seed: int) -> Answers:
        """Where to begin on all rows."""
        rows, answers = self._rows, self._answers
        generator = torch.Generator(device=rows.device).manual_seed(seed)
        worthwhile = _WORTH_SAMPLING[rows.device.type] / (max(len(answers.W), 64) * rows.dimension)
        sizes, n = [], rows.n_rows
        while n > worthwhile and n // _SHARE >= _PER_COLUMN * rows.dimension:
            n //= _SHARE
            sizes.append(n)
        for size in reversed(sizes):
            which = torch.randint(rows.n_rows, (size,), generator=generator, device=rows.device)
            which = which.sort().values
            taken = FastRows(self._problems.rows.take(which), rows.unit)
            sample = Rounds(self._problems, taken, self._spectrum, which)
            goals = np.full(len(answers.W), max(_SAMPLE_GAP, self._options.target))
            answers = sample.run(answers, goals, _SAMPLE_ROUNDS)
        return answers


def _proved_gap(proved: Evidence) -> float:
    """The relative gap, rounding allowed for."""
    low, high = dual_bound(proved.point)[0].low, proved.primal.high
    return high / low - 1.0 if low > 0.0 and math.isfinite(high) else math.inf


class ClassRun(Run):
    """The run of one class, with those of others, and at last alone if they cannot finish it."""

    computes_primal = True

    def __init__(
        self, group: ClassGroup, problem: TensorProblem, solver: TensorNewton, options: Options
    ) -> None:
        self._group, self._problem, self._solver, self._options = group, problem, solver, options
        self._number, self._seen = group.numbers.index(problem.number), 0
        self._alone: Descent | None = None

    def epoch(self) -> Epoch:
        """One epoch of all classes, or those already made; or a step alone."""
        group, i = self._group, self._number
        if self._alone is None and self._seen == group.epochs:
            if group.left[i]:
                start = Start(group.evidence[i].w, smoothing=float(group.sigma[i]))
                self._alone = self._solver.alone(self._problem, replace(self._options, start=start))
            else:
                group.advance()
        if self._alone is not None:
            epoch = self._alone.epoch()
            return replace(epoch, epochs=epoch.epochs + self._seen)
        self._seen = group.epochs
        return Epoch(self._seen, primal_estimate=group.evidence[i].primal.value)

    def candidates(self) -> Iterator[Vector]:
        """The best w."""
        yield self.primal()[0]

    def primal(self) -> tuple[Vector, Bound]:
        """The last w, and J there."""
        if self._alone is not None:
            return self._alone.primal()
        proved: Evidence = self._group.evidence[self._number]
        return proved.w, proved.primal

    def dual(self) -> DualPoint:
        """The last alpha."""
        if self._alone is not None:
            return self._alone.dual()
        proved: Evidence = self._group.evidence[self._number]
        return proved.point

    def warm_start(self) -> Start:
        """Where the class is."""
        if self._alone is not None:
            return self._alone.warm_start()
        sigma = float(self._group.sigma[self._number])
        return Start(self.primal()[0], self._seen, smoothing=sigma)
