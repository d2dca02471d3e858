"""What the second-order method does with all rows, in double precision and in one go.

A GPU reads rows far more slowly than it multiplies, so values may be widened to float64 on the way:
products of float32, float16 or bfloat16 rows are then as accurate as if the rows were float64, at
no cost. PyTorch would make a copy of the rows in float64 first. Triton, which comes with PyTorch
for GPUs, does without; and it does in one launch what takes PyTorch a dozen, where a launch takes
longer than the work. Each of these functions has its equal in plain PyTorch, which defines what it
computes: in ``rows``, and ``smoothed_alpha`` and ``clipped_sums`` here. There, the formulas of
``certsvm.kernels.losses`` take tensors as they take arrays.
"""

# The types of kernels' arguments are Triton's business.
# mypy: disable-error-code="no-untyped-def,untyped-decorator"

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from certsvm.kernels.losses import Loss

try:
    import triton
    import triton.language as tl
except ImportError:  # On a CPU there is no Triton, and no need of it.
    triton = None

# Rows and columns that are read at a time, and threads for them in units of 32; for sums by how
# many vectors there are. Found by trying, on an H200.
_PRODUCT_TILE = 8, 128, 2
_SUM_TILES = {1: (16, 512, 4), 2: (16, 256, 4)}
_WARPS = 4
# Parts that sums are made of, for each multiprocessor.
_PARTS = 8
# What the second of two pieces of a number is worth.
LOW = 2.0**-11
# Rows at a time of what is done row by row, and numbers that are added at a time.
_ROWS = 2048


def usable(tensor: Tensor) -> bool:
    """Whether there are kernels for where this is."""
    return triton is not None and tensor.is_cuda and tensor.stride(-1) == 1


def _launch(kernel: Any, grid: tuple[int, ...], *given: Any, **options: Any) -> None:
    """Launch a kernel on the device of the first tensor."""
    with torch.cuda.device(given[0].device):
        kernel[grid](*given, **options)


def products(X: Tensor, v: Tensor | None = None) -> Tensor:
    """x_k.v for all rows, of a vector in float64; without it, x_k.x_k."""
    n, d = X.shape
    out = torch.empty(n, dtype=torch.float64, device=X.device)
    rows, columns, warps = _PRODUCT_TILE
    _launch(
        _products, (triton.cdiv(n, rows),),
        X, X if v is None else v.contiguous(), out, n, d, X.stride(0), SQUARES=v is None,
        ROWS=rows, COLUMNS=columns, num_warps=warps,
    )  # fmt: skip
    return out


def sums(X: Tensor, weights: Tensor) -> Tensor:
    """sum_k a_k x_k, for one or two vectors a of weights of the rows, in float64."""
    n, d = X.shape
    count = len(weights)
    rows, columns, warps = _SUM_TILES[count]
    parts, per_part = _cut(n, X.device, rows)
    out = torch.empty((parts, count, d), dtype=torch.float64, device=X.device)
    _launch(
        _sums, (parts, triton.cdiv(d, columns)),
        X, weights.contiguous(), out, n, d, X.stride(0), per_part, count, VECTORS=count,
        ROWS=rows, COLUMNS=columns, num_warps=warps,
    )  # fmt: skip
    return out.sum(0)


def additions(n_rows: int, device: torch.device) -> int:
    """Through how many an entry of ``sums`` goes at most."""
    parts, per_part = _cut(n_rows, device, max(rows for rows, _, _ in _SUM_TILES.values()))
    return parts + per_part


def _cut(n_rows: int, device: torch.device, rows: int) -> tuple[int, int]:
    """How many parts the rows are cut into, and how long they are: so many rows, or a multiple."""
    processors: int = torch.cuda.get_device_properties(device).multi_processor_count
    parts = _PARTS * processors
    per_part = -(-n_rows // parts)
    return parts, -(-per_part // rows) * rows


def sum_in_parts(values: Tensor) -> Tensor:
    """Sums over the last axis, in two stages, so that a number goes through few additions."""
    whole = values.shape[-1] // _ROWS * _ROWS
    parts = values[..., :whole].unflatten(-1, (-1, _ROWS)).sum(-1)
    return parts.sum(-1) + values[..., whole:].sum(-1)


def additions_in_parts(n: int) -> int:
    """Through how many additions a number goes in ``sum_in_parts`` at most, in any order."""
    return min(n, _ROWS) + n // _ROWS + 1


def smoothed_alpha(
    loss: Loss,
    margins: Tensor,
    alpha_hat: Tensor,
    weights: Tensor | None,
    signs: Tensor | None,
    sizes: Tensor,
    sigma: Any,
    C: float,
    slack: Any,
) -> tuple[Tensor, Tensor, Tensor]:
    """The ``response`` of each row, as it is and clipped to the box; and sums over rows.

    For several problems, ``margins`` has a row for each, ``sigma`` and ``slack`` are columns, and
    ``weights`` may be a matrix, too.

    These are the losses s_k l(margin_k); s_k sizes_k times the steepness of the loss, of the rows
    that may have a loss, their margins being below 1 + slack; alpha_k; the ``dual_penalty`` of
    alpha_k; and alpha_k sizes_k. Given ``signs``, the last three are those of the rows of sign +1,
    and again three of the others. A sum goes through no more than ``additions_in_parts``.
    """
    if margins.ndim == 2 or not usable(margins):
        formulas: Any = loss
        short = 1.0 - margins
        s = torch.ones_like(margins[:1]) if weights is None else weights
        unclipped = formulas.response(margins, alpha_hat, sigma, C, s)
        alpha = torch.minimum(unclipped.clamp(min=0.0), formulas.box_end(C, s))
        losses, masses, penalties = short.clamp(min=0.0), s * sizes, torch.zeros_like(alpha)
        if loss.is_smooth:
            losses, masses = losses * losses, masses * (2.0 * (short + slack))
            # Rows without weight have no alpha.
            penalties = torch.where(alpha == 0.0, penalties, alpha * (alpha / (4.0 * C * s)))
        terms = [s * losses, torch.where(short > -slack, masses, 0.0)]
        of_rows = torch.stack([alpha, penalties, alpha * sizes])
        if signs is None:
            terms.extend(of_rows)
        else:
            terms.extend(torch.where(signs > 0, of_rows, 0.0))
            terms.extend(torch.where(signs > 0, 0.0, of_rows))
        return unclipped, alpha, sum_in_parts(torch.stack(terms))
    n, sides = margins.numel(), 1 if signs is None else 2
    margins, alpha_hat, sizes = (t.contiguous() for t in (margins, alpha_hat, sizes))
    weights = None if weights is None else weights.contiguous()
    unclipped, alpha = torch.empty_like(margins), torch.empty_like(margins)
    parts = triton.cdiv(n, _ROWS)
    out = torch.empty((parts, 2 + 3 * sides), dtype=torch.float64, device=margins.device)
    _launch(
        _smoothed_alpha, (parts,),
        margins, alpha_hat, margins if weights is None else weights,
        margins if signs is None else signs.contiguous(), sizes, unclipped, alpha, out,
        _doubles(margins, *_line(loss, sigma, C), slack), n, SQUARED=loss.is_smooth,
        WEIGHTED=weights is not None, SIDES=sides, ROWS=_ROWS, num_warps=_WARPS,
    )  # fmt: skip
    return unclipped, alpha, out.sum(0)


def product(A: Tensor, B: Tensor) -> Tensor:
    """The product of matrices of low precision, or of pairs of them, in single precision."""
    if A.is_cuda and A.dtype != torch.float32:
        return (torch.mm if A.ndim == 2 else torch.bmm)(A, B, out_dtype=torch.float32)
    return A @ B


class Problems(NamedTuple):
    """Problems on the same rows; what differs from one to the next has an entry for each.

    Row k is on the positive side of problem j if ``codes[column[j], k] == positive[j]``. Its weight
    is ``weights[fold[j], k]`` times the first of ``factors[j]`` on the positive side, else times
    the second.

    Attributes
    ----------
    codes : Tensor of shape (n_columns, n_rows)
        The class of each row, or a row of zeros and ones for each label.
    column, positive : Tensor of shape (n_problems,), int32
        As above.
    C, sigma : Tensor of shape (n_problems,)
        The weight of the loss, and the slope of alpha / C.
    squared : bool
        Whether the loss is the squared hinge.
    weights : Tensor of shape (n_folds, n_rows) or None
        Weights of rows, zero for those that are held out; None if all are one.
    fold : Tensor of shape (n_problems,), int32
        As above.
    factors : Tensor of shape (n_problems, 2) or None
        As above; None if all are one.
    """

    codes: Tensor
    column: Tensor
    positive: Tensor
    C: Tensor
    sigma: Tensor
    squared: bool
    weights: Tensor | None
    fold: Tensor
    factors: Tensor | None

    def part(self, rows: slice) -> Problems:
        """On some of the rows."""
        weights = None if self.weights is None else self.weights[:, rows]
        return self._replace(codes=self.codes[:, rows], weights=weights)

    def at(self, which: Any) -> Problems:
        """Some of the problems."""
        each = ("column", "positive", "C", "sigma", "fold")
        factors = None if self.factors is None else self.factors[which]
        return self._replace(factors=factors, **{name: getattr(self, name)[which] for name in each})

    def is_positive(self) -> Tensor:
        """Which rows (columns) are on the positive side of which problem (rows)."""
        codes = self.codes if len(self.codes) == 1 else self.codes[self.column]
        return codes == self.positive[:, None]

    def row_weights(self, positive: Tensor) -> Any:
        """The weight of each row (columns) in each problem (rows); 1 if all are one."""
        s: Any = 1.0
        if self.weights is not None:
            s = self.weights if len(self.weights) == 1 else self.weights[self.fold]
        if self.factors is not None:
            s = s * torch.where(positive, self.factors[:, :1], self.factors[:, 1:])
        return s

    def weights_of_pairs(self, which: Tensor, rows: Tensor) -> Tensor:
        """The weights of pairs of problem and row."""
        s = torch.ones(len(rows), dtype=torch.float32, device=rows.device)
        if self.weights is not None:
            s = self.weights[self.fold[which], rows]
        if self.factors is not None:
            positive = self.codes[self.column[which], rows] == self.positive[which]
            s = s * torch.where(positive, *self.factors[which].T)
        return s

    def alpha(self, short: Tensor) -> Tensor:
        """Alpha / C without weights, where the margins are ``short`` of one."""
        if self.squared:
            return 2.0 * short.clamp(min=0.0)
        return (short * self.sigma[:, None]).add_(0.5).clamp_(0.0, 1.0)

    def is_free(self, short: Tensor) -> Tensor:
        """Which rows are free."""
        if self.squared:
            return short > 0.0
        return short.abs() < (0.5 / self.sigma)[:, None]


def respond(
    problems: Problems, products: Tensor, unit: Tensor, short: Tensor, dtype: torch.dtype
) -> tuple[Tensor, Tensor]:
    """Alpha of many problems from products with rows, in low precision; and sums over rows.

    ``products`` has a row for each problem; it may have another for the second piece of each w, of
    which ``LOW`` is the unit. They are in terms of ``unit``. What margins lack to one is written to
    ``short``. The results are alpha / C times the label, in the given type, and for each problem
    the losses, the sum of alpha / C and the weight of the free rows.
    """
    k, n = len(problems.sigma), products.shape[1]
    if not usable(products):
        values = products[:k]
        if len(products) > k:
            values = values + LOW * products[k:]
        positive = problems.is_positive()
        signs, s = 2.0 * positive - 1.0, problems.row_weights(positive)
        lack = 1.0 - signs * (values * unit)
        short.copy_(lack)
        losses, alpha = lack.clamp(min=0.0), problems.alpha(lack) * s
        if problems.squared:
            losses *= losses
        weight = (problems.is_free(lack) * s).sum(1)
        sums = torch.stack([(losses * s).sum(1), alpha.sum(1), weight])
        return (signs * alpha).to(dtype), sums.double()
    signed = torch.empty((k, n), dtype=dtype, device=products.device)
    parts = triton.cdiv(n, _ROWS)
    out = torch.empty((parts, 3, k), dtype=torch.float32, device=products.device)
    _launch(
        _respond, (k, parts),
        *_given(problems, products), products, unit, short, short.stride(0), signed, out, n, k,
        PIECES=len(products) // k, **_kind(problems),
    )  # fmt: skip
    return signed, out.sum(0, dtype=torch.float64)


def masked(problems: Problems, products: Tensor, short: Tensor, dtype: torch.dtype) -> Tensor:
    """Products of many problems with rows, times the weights of the free ones; zero for others."""
    if not usable(products):
        s = problems.row_weights(problems.is_positive())
        return (products * (problems.is_free(short) * s)).to(dtype)
    k, n = products.shape
    out = torch.empty((k, n), dtype=dtype, device=products.device)
    _launch(
        _masked, (k, triton.cdiv(n, _ROWS)),
        *_given(problems, products), products, short, short.stride(0), out, n,
        **_kind(problems),
    )  # fmt: skip
    return out


def falls(
    problems: Problems, products: Tensor, units: Tensor, short: Tensor, steps: Tensor
) -> Tensor:
    """Sums over rows of alpha / C times the margin along a direction, for some steps along it.

    ``products`` are those of the directions, in terms of ``units``. The result has a row for each
    step and a column for each problem.
    """
    k, n = products.shape
    if not usable(products):
        positive = problems.is_positive()
        along = (2.0 * positive - 1.0) * (products * units[:, None])
        weighted = along * problems.row_weights(positive)
        sums = [(problems.alpha(short - t * along) * weighted).sum(1) for t in steps]
        return torch.stack(sums).double()
    parts = triton.cdiv(n, _ROWS)
    out = torch.empty((parts, len(steps), k), dtype=torch.float32, device=products.device)
    _launch(
        _falls, (k, parts),
        *_given(problems, products), products, units, short, short.stride(0), steps, out, n, k,
        len(steps), **_kind(problems),
    )  # fmt: skip
    return out.sum(0, dtype=torch.float64)


def _given(problems: Problems, like: Tensor) -> tuple[Any, ...]:
    """What kernels take of problems; anything for what is not used."""
    codes, weights = problems.codes, like if problems.weights is None else problems.weights
    factors = like if problems.factors is None else problems.factors
    sides = (codes, codes.stride(0), problems.column, problems.positive)
    return problems.sigma, sides, (weights, weights.stride(0), problems.fold, factors)


def _kind(problems: Problems) -> dict[str, Any]:
    return {
        "SQUARED": problems.squared, "WEIGHTED": problems.weights is not None,
        "FACTORS": problems.factors is not None, "ROWS": _ROWS, "num_warps": _WARPS,
    }  # fmt: skip


def clipped_sums(
    loss: Loss,
    unclipped: Tensor,
    along: Tensor,
    weights: Tensor | None,
    sigma: float,
    C: float,
    steps: Tensor,
) -> Tensor:
    """sum_k alpha_k along_k after each of the ``steps`` t along a direction.

    alpha_k is unclipped_k - t slope s_k along_k, clipped to the box, with the ``response_slope``.
    """
    if not usable(unclipped):
        formulas: Any = loss
        s: Any = 1.0 if weights is None else weights
        box, change = formulas.box_end(C, s), loss.response_slope(sigma, C) * (s * along)
        return torch.stack(
            [_clipped(unclipped - step * change, box) @ along for step in steps.tolist()]
        )
    n = unclipped.numel()
    unclipped, along = unclipped.contiguous(), along.contiguous()
    weights = None if weights is None else weights.contiguous()
    parts = triton.cdiv(n, _ROWS)
    out = torch.empty((parts, len(steps)), dtype=torch.float64, device=unclipped.device)
    _launch(
        _clipped_sums, (parts,),
        unclipped, along, unclipped if weights is None else weights, steps, out,
        _doubles(unclipped, *_line(loss, sigma, C)), n, len(steps),
        WEIGHTED=weights is not None, ROWS=_ROWS, num_warps=_WARPS,
    )  # fmt: skip
    return out.sum(0)


def _line(loss: Loss, sigma: float, C: float) -> tuple[float, float, float]:
    """Slope, C and e: alpha is a line of that slope per weight, clipped to 0 and C s_k + e.

    C s_k + e is the end of the box, since e is zero or infinite.
    """
    return loss.response_slope(sigma, C), C, loss.box_end(C, 0.0)


def _doubles(like: Tensor, *numbers: float) -> Tensor:
    """Numbers for a kernel. As arguments, Triton would take them for single precision."""
    return torch.tensor(numbers, dtype=torch.float64).to(like.device, non_blocking=True)


def _clipped(values: Tensor, box: Any) -> Tensor:
    if isinstance(box, Tensor):
        return torch.minimum(values.clamp_(min=0.0), box)
    return values.clamp_(0.0, box)


if triton is not None:

    @triton.jit
    def _products(
        x, v, out, n, d, stride,
        SQUARES: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
    ):  # fmt: skip
        rows = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
        # Added up across columns only in the end: that takes threads that wait for each other.
        total = tl.zeros((ROWS, COLUMNS), dtype=tl.float64)
        for first in range(0, d, COLUMNS):
            columns = first + tl.arange(0, COLUMNS)
            inside = (rows < n)[:, None] & (columns < d)[None, :]
            values = tl.load(x + rows[:, None] * stride + columns[None, :], mask=inside, other=0.0)
            wide = values.to(tl.float64)
            if SQUARES:
                total += wide * wide
            else:
                total += wide * tl.load(v + columns, mask=columns < d, other=0.0)[None, :]
        tl.store(out + rows, tl.sum(total, axis=1), mask=rows < n)

    @triton.jit
    def _sums(
        x, weights, out, n, d, stride, per_part, count,
        VECTORS: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
    ):  # fmt: skip
        part = tl.program_id(0).to(tl.int64)
        columns = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
        which = tl.arange(0, VECTORS)
        total = tl.zeros((VECTORS, COLUMNS), dtype=tl.float64)
        for first in range(0, per_part, ROWS):
            rows = part * per_part + first + tl.arange(0, ROWS)
            inside = (rows < n)[:, None] & (columns < d)[None, :]
            values = tl.load(x + rows[:, None] * stride + columns[None, :], mask=inside, other=0.0)
            known = (rows < n)[:, None] & (which < count)[None, :]
            at = weights + which[None, :].to(tl.int64) * n + rows[:, None]
            loaded = tl.load(at, mask=known, other=0.0)
            total += tl.sum(values.to(tl.float64)[:, None, :] * loaded[:, :, None], axis=0)
        to = out + (part * count + which[:, None]) * d + columns[None, :]
        tl.store(to, total, mask=(which < count)[:, None] & (columns < d)[None, :])

    @triton.jit
    def _smoothed_alpha(
        margins, alpha_hat, weights, signs, sizes, unclipped, alpha, out, numbers, n,
        SQUARED: tl.constexpr, WEIGHTED: tl.constexpr, SIDES: tl.constexpr, ROWS: tl.constexpr,
    ):  # fmt: skip
        part = tl.program_id(0)
        rows = part.to(tl.int64) * ROWS + tl.arange(0, ROWS)
        inside = rows < n
        slope, C, end = tl.load(numbers), tl.load(numbers + 1), tl.load(numbers + 2)
        slack = tl.load(numbers + 3)
        # Beyond the end: no loss, and an alpha of zero.
        short = 1.0 - tl.load(margins + rows, mask=inside, other=3.0)
        s = tl.where(inside, 1.0, 0.0).to(tl.float64)
        if WEIGHTED:
            s = tl.load(weights + rows, mask=inside, other=0.0)
        size = tl.load(sizes + rows, mask=inside, other=0.0)
        value = slope * s * short
        if not SQUARED:
            value += tl.load(alpha_hat + rows, mask=inside, other=0.0)
        zero = tl.zeros((ROWS,), dtype=tl.float64)
        # Comparisons, since maximum and minimum turn NaN into a number here.
        box = C * s + end
        clipped = tl.where(value < zero, zero, tl.where(value > box, box, value))
        tl.store(unclipped + rows, value, mask=inside)
        tl.store(alpha + rows, clipped, mask=inside)
        loss = tl.where(short < zero, zero, short)
        mass = s * size
        penalty = zero
        if SQUARED:
            loss = loss * loss
            mass = mass * (2.0 * (short + slack))
            penalty = tl.where(clipped == zero, zero, clipped * (clipped / (4.0 * C * s)))
        to = out + part * (2 + 3 * SIDES)
        tl.store(to, tl.sum(s * loss, axis=0))
        tl.store(to + 1, tl.sum(tl.where(short > -slack, mass, zero), axis=0))
        for side in tl.static_range(SIDES):
            of_side = inside
            if SIDES == 2:
                sign = tl.load(signs + rows, mask=inside, other=0.0)
                of_side = sign * (1 - 2 * side) > 0.0
            tl.store(to + 2 + 3 * side, tl.sum(tl.where(of_side, clipped, zero), axis=0))
            tl.store(to + 3 + 3 * side, tl.sum(tl.where(of_side, penalty, zero), axis=0))
            tl.store(to + 4 + 3 * side, tl.sum(tl.where(of_side, clipped * size, zero), axis=0))

    @triton.jit
    def _clipped_sums(
        unclipped, along, weights, steps, out, numbers, n, n_steps,
        WEIGHTED: tl.constexpr, ROWS: tl.constexpr,
    ):  # fmt: skip
        part = tl.program_id(0)
        rows = part.to(tl.int64) * ROWS + tl.arange(0, ROWS)
        inside = rows < n
        slope, C, end = tl.load(numbers), tl.load(numbers + 1), tl.load(numbers + 2)
        begin = tl.load(unclipped + rows, mask=inside, other=0.0)
        z = tl.load(along + rows, mask=inside, other=0.0)
        s = tl.where(inside, 1.0, 0.0).to(tl.float64)
        if WEIGHTED:
            s = tl.load(weights + rows, mask=inside, other=0.0)
        change, box = slope * s * z, C * s + end
        zero = tl.zeros((ROWS,), dtype=tl.float64)
        for i in range(n_steps):
            value = begin - tl.load(steps + i) * change
            clipped = tl.where(value < zero, zero, tl.where(value > box, box, value))
            tl.store(out + part * n_steps + i, tl.sum(clipped * z, axis=0))

    @triton.jit
    def _alpha(short, sigma, SQUARED: tl.constexpr):
        zero = tl.zeros_like(short)
        if SQUARED:
            return tl.where(short > zero, 2.0 * short, zero)
        value = 0.5 + sigma * short
        return tl.where(value < zero, zero, tl.where(value > zero + 1.0, zero + 1.0, value))

    @triton.jit
    def _free(short, sigma, SQUARED: tl.constexpr):
        if SQUARED:
            return short > 0.0
        return tl.abs(short) * sigma < 0.5

    @triton.jit
    def _weight(
        sides, of_rows, i, rows, inside,
        WEIGHTED: tl.constexpr, FACTORS: tl.constexpr, ROWS: tl.constexpr,
    ):  # fmt: skip
        codes, codes_stride, column, positive = sides
        weights, weights_stride, fold, factors = of_rows
        of_column = codes + tl.load(column + i).to(tl.int64) * codes_stride
        mine = tl.load(of_column + rows, mask=inside, other=-1) == tl.load(positive + i)
        s = tl.where(inside, tl.full((ROWS,), 1.0, tl.float32), 0.0)
        if WEIGHTED:
            of_fold = weights + tl.load(fold + i).to(tl.int64) * weights_stride
            s = tl.load(of_fold + rows, mask=inside, other=0.0)
        if FACTORS:
            s *= tl.where(mine, tl.load(factors + 2 * i), tl.load(factors + 2 * i + 1))
        return mine, s

    @triton.jit
    def _respond(
        sigma, sides, of_rows, products, unit, short, stride, signed, out, n, k,
        PIECES: tl.constexpr, SQUARED: tl.constexpr, WEIGHTED: tl.constexpr,
        FACTORS: tl.constexpr, ROWS: tl.constexpr,
    ):  # fmt: skip
        i, part = tl.program_id(0).to(tl.int64), tl.program_id(1).to(tl.int64)
        rows = part * ROWS + tl.arange(0, ROWS)
        inside = rows < n
        mine, s = _weight(sides, of_rows, i, rows, inside, WEIGHTED, FACTORS, ROWS)
        slope = tl.load(sigma + i)
        value = tl.load(products + i * n + rows, mask=inside, other=0.0)
        if PIECES == 2:
            low = tl.load(products + (i + k) * n + rows, mask=inside, other=0.0)
            # LOW.
            value += low * 0.00048828125
        value *= tl.load(unit)
        lack = tl.where(mine, 1.0 - value, 1.0 + value)
        tl.store(short + i * stride + rows, lack, mask=inside)
        loss = tl.where(lack > 0.0, lack, 0.0)
        if SQUARED:
            loss *= loss
        alpha = s * _alpha(lack, slope, SQUARED)
        to = signed + i * n + rows
        tl.store(to, tl.where(mine, alpha, -alpha), mask=inside)
        first = out + part * 3 * k + i
        tl.store(first, tl.sum(s * loss, axis=0))
        tl.store(first + k, tl.sum(alpha, axis=0))
        tl.store(first + 2 * k, tl.sum(tl.where(_free(lack, slope, SQUARED), s, 0.0), axis=0))

    @triton.jit
    def _masked(
        sigma, sides, of_rows, products, short, stride, out, n,
        SQUARED: tl.constexpr, WEIGHTED: tl.constexpr, FACTORS: tl.constexpr, ROWS: tl.constexpr,
    ):  # fmt: skip
        i, part = tl.program_id(0).to(tl.int64), tl.program_id(1).to(tl.int64)
        rows = part * ROWS + tl.arange(0, ROWS)
        inside = rows < n
        _, s = _weight(sides, of_rows, i, rows, inside, WEIGHTED, FACTORS, ROWS)
        lack = tl.load(short + i * stride + rows, mask=inside, other=0.0).to(tl.float32)
        value = tl.load(products + i * n + rows, mask=inside, other=0.0)
        free = _free(lack, tl.load(sigma + i), SQUARED)
        tl.store(out + i * n + rows, tl.where(free, s * value, 0.0), mask=inside)

    @triton.jit
    def _falls(
        sigma, sides, of_rows, products, units, short, stride, steps, out, n, k, n_steps,
        SQUARED: tl.constexpr, WEIGHTED: tl.constexpr, FACTORS: tl.constexpr, ROWS: tl.constexpr,
    ):  # fmt: skip
        i, part = tl.program_id(0).to(tl.int64), tl.program_id(1).to(tl.int64)
        rows = part * ROWS + tl.arange(0, ROWS)
        inside = rows < n
        mine, s = _weight(sides, of_rows, i, rows, inside, WEIGHTED, FACTORS, ROWS)
        slope = tl.load(sigma + i)
        lack = tl.load(short + i * stride + rows, mask=inside, other=0.0).to(tl.float32)
        value = tl.load(products + i * n + rows, mask=inside, other=0.0) * tl.load(units + i)
        along = tl.where(mine, value, -value)
        for j in range(n_steps):
            alpha = _alpha(lack - tl.load(steps + j) * along, slope, SQUARED)
            tl.store(out + (part * n_steps + j) * k + i, tl.sum(s * along * alpha, axis=0))
