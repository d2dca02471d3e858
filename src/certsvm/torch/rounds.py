"""Many problems at once: smoothed Newton on the problems of a batch together.

Minimises    J_j(w_j) = 1/2 |w_j|^2 + C_j sum_k s_jk loss(w_j.y_jk),     j = 1 ... K,

on the same rows x_k, with y_jk = [x_k, rho] or -[x_k, rho]. Problems differ by their labels (one
class against all others), by C_j, and by the weights s_jk of the rows, which are zero for those
that a fold holds out. With the w_j as the rows of a matrix W, the products of all rows with all w_j
are one matrix product, and all sums over rows are another, which a device computes at the highest
rate it has.

The hinge is smoothed as ``solvers.schedule`` explains, about the middle of the box, with a slope
sigma of each problem's own. One round reads all rows for the gradients

    w_j - sum_k alpha_jk y_jk,   alpha_jk = C_j s_jk clip(1/2 + sigma_j (1 - w_j.y_jk), 0, 1).

Directions of Newton's method come from conjugate gradients, whose steps read all rows, too. All
problems have one preconditioner: with sum_k x_k x_k' = U diag(lam) U', it is
U (1 + C_j sigma_j p_j lam)^-1 U', where p_j is the share of rows that are free. The products of a
part of the rows with the directions give the slopes at several steps along them. Once a smooth
problem is about solved, its sigma grows.

All this is in low precision: in half precision on a GPU, in single precision on a CPU. A problem
that seems to be done leaves. Bounds are computed elsewhere in float64, from W and sigma alone
(``batch``).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from certsvm.problem.rows import Vector
from certsvm.resources import require_time
from certsvm.torch.rows import TensorRows, product

# Numbers of a tile of products, which shall stay in the cache.
_TILE = {"cuda": 2**23, "cpu": 2**18}
# Growth of sigma. It grows if smoothing costs more than a share of the tolerance, and the predicted
# decrease is less than a share of that cost; no more than needed for a cost of the least share.
_GROWTH, _COSTLY, _SOLVED, _LEAST_COST, _LARGEST_SIGMA = 4.0, 0.5, 0.5, 0.3, 1e5
# The steps at which slopes are taken, and of about how many rows.
_STEPS, _SEARCHED = (0.0, 0.05, 0.2, 0.5, 0.8, 1.0, 1.5, 3.0, 8.0), 2**17
# Conjugate gradients end after so many steps, or if this is left of the typical residual.
_MOST_STEPS, _LEFT = 16, 0.2
# After so many rounds, problems beyond this relative gap leave: smoothing about the middle of the
# box does not suit classes that are nearly separable, if C is large.
_PATIENCE, FAR = 12, 1.0
# Numbers of preconditioned systems below which a residual is zero.
_TINY = 1e-30
# What the second of two pieces of a number is worth.
_LOW = 2.0**-11


class Problems(NamedTuple):
    """Problems on the same rows; what differs from one to the next has an entry for each.

    Row k is on the positive side of problem j if ``codes[column[j], k] == positive[j]``. Its weight
    is ``weights[fold[j], k]`` times the first of ``factors[j]`` on the positive side, else times
    the second.

    Attributes
    ----------
    codes : Tensor of shape (n_columns, n_rows)
        The class of each row, or a row of zeros and ones for each label.
    weights : Tensor of shape (n_folds, n_rows)
        Weights of rows, zero for those that are held out.
    squared : bool
        Whether the loss is the squared hinge.
    column, positive, fold : Tensor of shape (n_problems,), int32
        As above.
    factors : Tensor of shape (n_problems, 2) or None
        As above; None if all are one.
    C, sigma : Tensor of shape (n_problems,)
        The weight of the loss, and the slope of alpha / C.
    """

    codes: Tensor
    weights: Tensor
    squared: bool
    column: Tensor
    positive: Tensor
    fold: Tensor
    factors: Tensor | None
    C: Tensor
    sigma: Tensor

    def at(self, which: Any) -> Problems:
        """Some of the problems."""
        return Problems(*self[:3], *(None if each is None else each[which] for each in self[3:]))

    def sides(self, rows: slice) -> tuple[Tensor, Tensor]:
        """The signs of some rows (columns) in each problem (rows), and their weights.

        There is one row of weights if all problems have the same.
        """
        codes, weights = self.codes[:, rows], self.weights[:, rows]
        positive = (codes[self.column] if len(codes) > 1 else codes) == self.positive[:, None]
        if len(weights) > 1:
            weights = weights[self.fold]
        if self.factors is not None:
            weights = weights * torch.where(positive, self.factors[:, :1], self.factors[:, 1:])
        one = weights.new_ones(())
        return torch.where(positive, one, -one), weights

    def response(self, short: Tensor) -> tuple[Tensor, Tensor]:
        """Alpha / C without weights before and after clipping, by what margins lack to one."""
        if self.squared:
            return 2.0 * short, 2.0 * short.clamp(min=0.0)
        unclipped = torch.addcmul(self.sigma.new_tensor(0.5), short, self.sigma[:, None])
        return unclipped, unclipped.clamp(0.0, 1.0)

    @property
    def curvature(self) -> Tensor:
        """The slope of alpha."""
        return self.C * (2.0 if self.squared else self.sigma)


class Answers(NamedTuple):
    """Where each problem of a run is, in units of the rows, and its relative gap there."""

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


def spectrum(rows: TensorRows) -> tuple[Tensor, Tensor]:
    """The eigenvalues of the mean of x_k x_k', and its eigenvectors, as columns."""
    total: Any = 0.0
    for _, tile in rows.tiles(2**17):
        fast = rows.fast(tile)
        total = total + product(fast.T, fast)
    values, vectors = torch.linalg.eigh(total / rows.n_rows)
    return values.clamp(min=0.0), vectors


class Point(NamedTuple):
    """Smooth problems at a W."""

    problems: Problems
    gradient: Tensor
    free: Tensor
    """The weights of free rows (columns) in each problem (rows), zero for others."""
    inverse: Tensor
    """The inverse eigenvalues of the preconditioner."""
    numbers: Tensor
    """For each problem: the losses, sum alpha, |w|^2, |v|^2, |gradient|^2, expected decrease."""

    def at(self, which: Tensor) -> Point:
        """Some of the problems."""
        rest = (self.gradient[which], self.free[which], self.inverse[which])
        return Point(self.problems.at(which), *rest, self.numbers[:, which])


class Rounds:
    """The rounds on all rows, or on a sample.

    Parameters
    ----------
    problems : Problems
        The problems on all rows, in float64 and in units of the rows.
    rows : TensorRows
        The rows, or a sample of them.
    spectrum : tuple of Tensor
        Theirs, about.
    which : Tensor or slice, default=slice(None)
        The sample, for which C is raised in proportion.
    """

    def __init__(
        self, problems: Problems, rows: TensorRows, spectrum: tuple[Tensor, Tensor],
        which: Tensor | slice = slice(None),
    ) -> None:  # fmt: skip
        self._rows, (self._values, self._vectors) = rows, spectrum
        weights = problems.weights[:, which]
        # Weights and factors of at most one fit into half precision.
        largest = problems.weights.amax(1, keepdim=True).clamp(min=_TINY)
        raised = largest * problems.weights.sum(1, keepdim=True)
        raised /= weights.sum(1, keepdim=True).clamp(min=_TINY)
        C, factors = problems.C * raised[problems.fold, 0], problems.factors
        if factors is not None:
            most = factors.amax(1).clamp(min=_TINY)
            C, factors = C * most, (factors / most[:, None]).float()
        # Single precision has no more; the bounds do not depend on it.
        self._problems = problems._replace(
            codes=problems.codes[:, which], weights=(weights / largest).float(), factors=factors,
            C=C.clamp(max=1e30).float(),
        )  # fmt: skip

    def run(self, begin: Answers, tol: Vector, rounds: int) -> Answers:
        """Rounds until all problems seem to reach their relative gaps; the best point of each."""
        n, device, problems = len(begin.W), begin.W.device, self._problems
        best = Answers(begin.W.clone(), begin.sigma.copy(), np.full(n, math.inf))
        active, W, sigma = np.arange(n), begin.W, begin.sigma.copy()
        for i in range(rounds):
            require_time()
            problems = problems._replace(sigma=torch.as_tensor(sigma, device=device).float())
            at = self._evaluate(problems, W)
            on_host = at.numbers.cpu().numpy()
            gaps = self._gaps(on_host)
            better = (gaps < best.gaps[active]).nonzero()[0]
            best.put(active[better], Answers(W, sigma, gaps).at(better))
            stay = (best.gaps[active] > tol[active]) & np.isfinite(on_host).all(0)
            if i >= _PATIENCE:
                stay &= best.gaps[active] <= FAR
            if not stay.any():
                break
            kept = torch.as_tensor(stay.nonzero()[0], device=device)
            active, sigma, on_host = active[stay], sigma[stay], on_host[:, stay]
            W, at = W[kept], at.at(kept)
            problems, direction = at.problems, self._direction(at)
            W = W + self._search(W, direction, at)[:, None] * direction
            sigma = np.minimum(sigma * self._growth(on_host, tol[active]), _LARGEST_SIGMA)
        return best

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
        losses, alphas, squares, of_v, of_gradient, decrease = numbers
        if self._problems.squared:
            return np.ones_like(losses)
        J = 0.5 * squares + losses
        cost = J - (alphas - 0.5 * of_v) - 0.5 * of_gradient
        wanted = np.clip(cost / (_LEAST_COST * tol * J), 1.5, _GROWTH)
        solved = (decrease <= _SOLVED * cost) & (cost > _COSTLY * tol * J)
        return np.where(solved, wanted, 1.0)

    def _evaluate(self, problems: Problems, W: Tensor) -> Point:
        """One round's reading of the rows for the gradients at W."""
        rows, C, k = self._rows, problems.C, len(W)
        free = torch.empty((k, rows.n_rows), dtype=rows.fast_type, device=W.device)
        v, sums = torch.zeros_like(W), torch.zeros((3, k), dtype=torch.float64, device=W.device)
        split = _split(W, rows.fast_type)
        for part, fast in self._tiles(k):
            signs, weights = problems.sides(part)
            short = _short(split, fast, signs)
            unclipped, alpha = problems.response(short)
            free[:, part] = torch.where(alpha == unclipped, weights, 0.0)
            losses, alpha = short.clamp_(min=0.0), alpha.mul_(weights)
            if problems.squared:
                losses.square_()
            of_tile = losses.mul_(weights).sum(1), alpha.sum(1), free[:, part].sum(1, dtype=W.dtype)
            sums += torch.stack(of_tile)
            v += product(alpha.mul_(signs).to(fast.dtype), fast)
        v *= C[:, None]
        gradient = W - v
        free_weight = (problems.curvature * sums[2].float())[:, None]
        inverse = 1.0 / (1.0 + free_weight * self._values)
        expected = 0.5 * (gradient * self._precondition(gradient, inverse)).sum(1)
        squares = [(a * b).sum(1) for a, b in ((W, W), (v, v), (gradient, gradient))]
        numbers = torch.stack([*(C * sums[:2]), *squares, expected])
        return Point(problems, gradient, free, inverse, numbers)

    def _tiles(self, k: int) -> Iterator[tuple[slice, Tensor]]:
        # Products need aligned rows.
        size = max(64, _TILE[self._rows.device.type] // k // 64 * 64)
        for part, tile in self._rows.tiles(size):
            yield part, self._rows.fast(tile)

    def _precondition(self, R: Tensor, inverse: Tensor) -> Tensor:
        U = self._vectors
        return ((R @ U) * inverse) @ U.T

    def _direction(self, at: Point) -> Tensor:
        """Newton's directions by conjugate gradients."""
        P, R = torch.zeros_like(at.gradient), -at.gradient
        D = self._precondition(R, at.inverse)
        first = square = (R * D).sum(1)
        for _ in range(_MOST_STEPS):
            Q = self._curved(D, at)
            step = (square / (D * Q).sum(1).clamp(min=_TINY))[:, None]
            P, R = P + step * D, R - step * Q
            Z = self._precondition(R, at.inverse)
            last, square = square, (R * Z).sum(1)
            if float((square / first.clamp(min=_TINY)).median()) <= _LEFT**2:
                break
            D = Z + (square / last.clamp(min=_TINY))[:, None] * D
        return P

    def _search(self, W: Tensor, D: Tensor, at: Point) -> Tensor:
        """The lengths of steps, where the slopes along the directions vanish."""
        lengths, stride = D.norm(dim=1, keepdim=True), max(1, self._rows.n_rows // _SEARCHED)
        units = (D / lengths.clamp(min=_TINY)).to(self._rows.fast_type)
        falls = D.new_zeros((len(_STEPS), len(D)), dtype=torch.float64)
        split = _split(W, self._rows.fast_type)
        for part, fast in self._tiles(max(1, len(D) // stride)):
            fast, (signs, weights) = fast[::stride], at.problems.sides(part)
            signs, weights = signs[:, ::stride], weights[:, ::stride]
            along, short = product(units, fast.T).mul_(signs), _short(split, fast, signs)
            along.mul_(lengths)
            weighted = along * weights
            for i, step in enumerate(_STEPS):
                alpha = at.problems.response(torch.add(short, along, alpha=-step))[1]
                falls[i] += alpha.mul_(weighted).sum(1)
        steps = D.new_tensor(_STEPS)
        slopes = (at.gradient * D).sum(1) + steps[:, None] * lengths[:, 0] ** 2
        slopes = slopes - at.problems.C * stride * (falls - falls[0])
        after = (slopes < 0.0).sum(0).clamp(1, len(steps) - 1)[None]
        low, high = slopes.gather(0, after - 1)[0], slopes.gather(0, after)[0]
        begin, end = steps[after[0] - 1], steps[after[0]]
        share = (-low / (high - low).clamp(min=_TINY)).clamp(0.0, 1.0).float()
        return begin + (end - begin) * share

    def _curved(self, D: Tensor, at: Point) -> Tensor:
        """The Hessians of the smooth problems times the rows of D."""
        lengths, total = D.norm(dim=1, keepdim=True).clamp(min=_TINY), torch.zeros_like(D)
        units = (D / lengths).to(self._rows.fast_type)
        for part, fast in self._tiles(len(D)):
            products = product(units, fast.T).mul_(at.free[:, part])
            total += product(products.to(fast.dtype), fast)
        return D + at.problems.curvature[:, None] * lengths * total


def _short(split: tuple[Tensor, float], rows: Tensor, signs: Tensor) -> Tensor:
    """What the margins of rows lack to one, given W in pieces."""
    pieces, unit = split
    products, k = product(pieces, rows.T), len(signs)
    if len(products) > k:
        products = products[:k].add_(products[k:], alpha=_LOW)
    return torch.addcmul(signs.new_ones(()), products, signs, value=-unit)


def _split(W: Tensor, dtype: torch.dtype) -> tuple[Tensor, float]:
    """W in one or two pieces of a type, one above the other, and the unit of both."""
    if dtype == torch.float32:
        return W, 1.0
    unit = float(W.abs().max().clamp(min=_TINY))
    high = (W / unit).to(dtype)
    low = ((W / unit - high.float()) / _LOW).to(dtype)
    return torch.cat([high, low]), unit
