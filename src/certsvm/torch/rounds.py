"""Many problems at once: smoothed Newton on the problems of a batch together.

Minimises    J_j(w_j) = 1/2 |w_j|^2 + C_j sum_k s_jk loss(w_j.y_jk),     j = 1 ... K,

on the same rows x_k, with y_jk = [x_k, rho] or -[x_k, rho]. Problems differ by their labels (one
class against all others), by C_j, and by the weights s_jk of the rows, which are zero for those
that a fold holds out. With the w_j as the rows of a matrix W, the products of all rows with all w_j
are one matrix product, and all sums over rows are another, which a device computes at the highest
rate it has.

The hinge is smoothed as ``solvers.schedule`` explains, about the middle of the box,
with a slope sigma of each problem's own. One round reads all rows for the gradients

    w_j - sum_k alpha_jk y_jk,   alpha_jk = C_j s_jk clip(1/2 + sigma_j (1 - w_j.y_jk), 0, 1),

and once more for a search along the directions of Newton's method: their products with the rows
give the slopes at several steps. Directions come from conjugate gradients. Their steps read the
free rows of each problem, gathered, or all rows if these are many. All problems have one
preconditioner: with sum_k x_k x_k' = U diag(lam) U', it is U (1 + C_j sigma_j p_j lam)^-1 U', where
p_j is the share of rows that are free. Once a smooth problem is about solved, its sigma grows.

All this is in low precision: in half precision on a GPU, in single precision on a CPU. A problem
that seems to be done leaves. Bounds are computed elsewhere in float64, from W and sigma alone
(``batch``).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from certsvm.problem.rows import Vector
from certsvm.resources import require_time
from certsvm.torch import kernels
from certsvm.torch.rows import TensorRows, free_memory

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
# more than this share of the free memory. On a GPU a product of matrices, which all problems share,
# costs far less than to read rows for each problem.
_WORTH_GATHERING, _GATHERED = {"cuda": 300, "cpu": 8}, 0.05
# After so many rounds, problems beyond this relative gap leave: smoothing about the middle of the
# box does not suit classes that are nearly separable, if C is large.
_PATIENCE, FAR = 12, 1.0
# The share of the free memory that a copy of the rows may take.
_COPY = 0.4
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

    def zeros(self, *shape: int) -> Tensor:
        """Zeros in single precision, whatever PyTorch's default is."""
        return torch.zeros(shape, dtype=torch.float32, device=self.device)

    def tiles(self, size: int) -> Iterator[tuple[slice, Tensor]]:
        """All rows, so many at a time."""
        if self.X is None:
            yield from self._converted(size)
            return
        for first in range(0, self.n_rows, size):
            part = slice(first, min(first + size, self.n_rows))
            yield part, self.X[part]


class Answers(NamedTuple):
    """Where each problem of a run is, in the units of ``FastRows``, and its relative gap there."""

    W: Tensor
    sigma: Vector
    gaps: Vector

    def at(self, which: NDArray[np.int64]) -> Answers:
        """Those of some problems."""
        here = torch.as_tensor(which, device=self.W.device)
        return Answers(self.W[here], self.sigma[which], self.gaps[which])

    def put(self, which: NDArray[np.int64], others: Answers) -> None:
        """Replace those of some problems."""
        self.W[torch.as_tensor(which, device=self.W.device)] = others.W
        self.sigma[which], self.gaps[which] = others.sigma, others.gaps


def spectrum(rows: FastRows) -> tuple[Tensor, Tensor]:
    """The eigenvalues of the mean of x_k x_k', and its eigenvectors, as columns."""
    total = rows.zeros(rows.dimension, rows.dimension)
    for _, tile in rows.tiles(2**17):
        total += kernels.product(tile.T, tile)
    values, vectors = torch.linalg.eigh(total / rows.n_rows)
    return values.clamp(min=0.0), vectors


class Point(NamedTuple):
    """Smooth problems at a W."""

    problems: kernels.Problems
    gradient: Tensor
    short: Tensor
    """What the margins lack to one, for each problem and row."""
    inverse: Tensor
    """The inverse eigenvalues of the preconditioner."""
    numbers: Tensor
    """For each problem: the losses, sum alpha, |w|^2, |v|^2, |gradient|^2, the expected decrease,
    the weight of the free rows."""

    def at(self, which: Tensor) -> Point:
        """Some of the problems."""
        rest = (self.gradient[which], self.short[which], self.inverse[which])
        return Point(self.problems.at(which), *rest, self.numbers[:, which])

    @property
    def curvature(self) -> Tensor:
        """The slope of alpha."""
        problems = self.problems
        return problems.C * (2.0 if problems.squared else problems.sigma)


class FreeRows(NamedTuple):
    """The free rows of each problem, padded to the same number with rows of no weight."""

    rows: Tensor
    weights: Tensor

    def curved(self, units: Tensor) -> Tensor:
        """The sum of s_k x_k (x_k.u) for each problem and its row u."""
        products = kernels.product(self.rows, units[:, :, None])[:, :, 0] * self.weights
        return kernels.product(products.to(self.rows.dtype)[:, None], self.rows)[:, 0]


class Rounds:
    """The rounds on all rows, or on a sample.

    Parameters
    ----------
    problems : Problems
        The problems on all rows, in float64.
    rows : FastRows
        The rows, or a sample of them.
    spectrum : tuple of Tensor
        Theirs, about.
    which : Tensor, default=None
        The sample, for which C is raised in proportion; None means all rows.
    """

    def __init__(
        self, problems: kernels.Problems, rows: FastRows, spectrum: tuple[Tensor, Tensor],
        which: Tensor | None = None,
    ) -> None:  # fmt: skip
        self._rows, (self._values, self._vectors) = rows, spectrum
        codes, weights, factors = problems.codes, problems.weights, problems.factors
        C = problems.C * rows.unit**2
        if which is not None:
            codes = codes[:, which]
        if weights is not None:
            # Weights of at most one fit into half precision.
            raised = largest = weights.amax(1, keepdim=True)
            if which is not None:
                total, weights = weights.sum(1, keepdim=True), weights[:, which]
                raised = raised * total / weights.sum(1, keepdim=True).clamp(min=_TINY)
            C = C * raised[problems.fold, 0]
            weights = (weights / largest.clamp(min=_TINY)).float()
        elif which is not None:
            C = C * (problems.codes.shape[1] / len(which))
        # Single precision has no more; the bounds do not depend on it.
        self._problems = problems._replace(
            codes=codes, weights=weights, C=C.clamp(max=1e30).float(),
            factors=None if factors is None else factors.float(),
        )  # fmt: skip

    def run(self, begin: Answers, tol: Vector, rounds: int) -> Answers:
        """Rounds until all problems seem to reach their relative gaps; the best point of each."""
        n, device, problems = len(begin.W), begin.W.device, self._problems
        best = Answers(begin.W.clone(), begin.sigma.copy(), np.full(n, math.inf))
        active, W, sigma, steps = np.arange(n), begin.W, begin.sigma.copy(), _FIRST_STEPS
        # What the last steps left of residuals.
        left = self._rows.zeros(n)
        for i in range(rounds):
            require_time()
            problems = problems._replace(sigma=torch.as_tensor(sigma, device=device).float())
            at = self._evaluate(problems, W)
            on_host = torch.cat([at.numbers, left.double()[None]]).cpu().numpy()
            gaps = self._gaps(on_host)
            better = (gaps < best.gaps[active]).nonzero()[0]
            best.put(active[better], Answers(W, sigma, gaps).at(better))
            stay = (best.gaps[active] > tol[active]) & np.isfinite(on_host).all(0)
            if i >= _PATIENCE:
                stay &= best.gaps[active] <= FAR
            if not stay.any():
                break
            if not stay.all():
                kept = torch.as_tensor(stay.nonzero()[0], device=device)
                active, sigma, on_host = active[stay], sigma[stay], on_host[:, stay]
                W, at = W[kept], at.at(kept)
                problems = at.problems
            steps = _adapted(steps, on_host[-1])
            direction, left = self._direction(at, steps, float(on_host[6].max()))
            W = W + self._search(W, direction, at)[:, None] * direction
            sigma = np.minimum(sigma * self._growth(on_host, tol[active]), _LARGEST_SIGMA)
        return best

    def _search(self, W: Tensor, direction: Tensor, at: Point) -> Tensor:
        """The lengths of steps, where the slopes along the directions vanish."""
        steps = torch.tensor(_STEPS, dtype=torch.float32, device=W.device)
        units, lengths = self._units(direction)
        falls = torch.zeros((len(_STEPS), len(W)), dtype=torch.float64, device=W.device)
        for part, tile in self._rows.tiles(self._tile(len(W))):
            products, short = kernels.product(units, tile.T), at.short[:, part]
            falls += kernels.falls(at.problems.part(part), products, lengths, short, steps)
        of_w, of_p = (W * direction).sum(1), (direction * direction).sum(1)
        return zeros(of_w + steps[:, None] * of_p - at.problems.C * falls, steps)

    def _units(self, D: Tensor) -> tuple[Tensor, Tensor]:
        """The rows of D in the units of their lengths, and these."""
        lengths = D.norm(dim=1).clamp(min=_TINY)
        return (D / lengths[:, None]).to(self._rows.dtype), lengths

    def _gaps(self, numbers: Vector) -> Vector:
        """The relative gaps, as far as low precision tells."""
        losses, alphas, squares, of_v = numbers[:4]
        # The penalty of the squared hinge is its loss here.
        squared = self._problems.squared
        B = of_v + 2.0 * losses * squared
        with np.errstate(divide="ignore", invalid="ignore"):
            s = np.clip(alphas / B, 0.0, np.inf if squared else 1.0)
            gaps: Vector = (0.5 * squares + losses) / (s * alphas - 0.5 * s * s * B) - 1.0
        # Rounding makes some negative.
        return np.where(gaps > -0.1, gaps, math.inf)

    def _growth(self, numbers: Vector, tol: Vector) -> Vector:
        """The factors by which sigma grows."""
        losses, alphas, squares, of_v, of_gradient, decrease = numbers[:6]
        if self._problems.squared:
            return np.ones_like(losses)
        J = 0.5 * squares + losses
        cost = J - (alphas - 0.5 * of_v) - 0.5 * of_gradient
        wanted = np.clip(cost / (_LEAST_COST * tol * J), 1.5, _GROWTH)
        solved = (decrease <= _SOLVED * cost) & (cost > _COSTLY * tol * J)
        return np.where(solved, wanted, 1.0)

    def _evaluate(self, problems: kernels.Problems, W: Tensor) -> Point:
        """One round's reading of the rows for the gradients."""
        rows, C, k = self._rows, problems.C, len(W)
        low = torch.float16 if W.is_cuda else torch.float32
        short = torch.empty((k, rows.n_rows), dtype=low, device=W.device)
        v, sums = torch.zeros_like(W), torch.zeros((3, k), dtype=torch.float64, device=W.device)
        pieces, unit = _split(W, rows.dtype)
        for part, tile in rows.tiles(self._tile(k)):
            products = kernels.product(pieces, tile.T)
            alpha, of_tile = kernels.respond(
                problems.part(part), products, unit, short[:, part], rows.dtype
            )
            v += kernels.product(alpha, tile)
            sums += of_tile
        v *= C[:, None]
        point = Point(problems, W - v, short, W, sums)
        of_free = (point.curvature * sums[2].float())[:, None] * self._values
        inverse, gradient = 1.0 / (1.0 + of_free), point.gradient
        squares = [(a * b).sum(1) for a, b in ((W, W), (v, v), (gradient, gradient))]
        expected = 0.5 * (gradient * self._precondition(gradient, inverse)).sum(1)
        numbers = torch.stack([*(C * sums[:2]), *squares, expected, sums[2]])
        return point._replace(inverse=inverse, numbers=numbers)

    def _tile(self, n_problems: int) -> int:
        # Products need aligned rows.
        return max(1, _TILE[self._rows.device.type] // n_problems // 64) * 64

    def _precondition(self, R: Tensor, inverse: Tensor) -> Tensor:
        U = self._vectors
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
        units, lengths = self._units(D)
        if free is not None:
            total = free.curved(units)
        else:
            total = torch.zeros_like(D)
            for part, tile in self._rows.tiles(self._tile(len(D))):
                products, short = kernels.product(units, tile.T), at.short[:, part]
                problems = at.problems.part(part)
                masked = kernels.masked(problems, products, short, self._rows.dtype)
                total += kernels.product(masked, tile)
        return D + (at.curvature * lengths)[:, None] * total

    def _gathered(self, at: Point, free_weight: float) -> FreeRows | None:
        """The free rows of each problem; None if that is not worthwhile, or takes much memory."""
        rows, k, device = self._rows, len(at.gradient), at.gradient.device
        row_bytes = k * rows.dimension * rows.dtype.itemsize
        worth = rows.n_rows / _WORTH_GATHERING[rows.device.type]
        room = min(_GATHERED * free_memory(rows.device) / row_bytes, worth)
        if rows.X is None or free_weight > room:
            return None
        # Some problems at a time, since PyTorch does not index more than 2^31 numbers.
        pairs = []
        for some in torch.arange(k, device=device).split(max(1, 2**28 // rows.n_rows)):
            which, found = at.problems.at(some).is_free(at.short[some]).nonzero(as_tuple=True)
            pairs.append(torch.stack([which + some[0], found]))
        which, found = torch.cat(pairs, 1)
        counts = which.bincount(minlength=k)
        most = int(counts.max())
        if most > room:
            return None
        places = torch.arange(len(which), device=device) - (counts.cumsum(0) - counts)[which]
        index = torch.zeros((k, most), dtype=torch.long, device=device)
        index[which, places] = found
        weights = rows.zeros(k, most)
        weights[which, places] = at.problems.weights_of_pairs(which, found)
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
        return W, torch.ones((), dtype=torch.float32, device=W.device)
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
