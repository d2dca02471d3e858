"""What the second-order method does with all rows, in double precision and in one go.

A GPU reads rows far more slowly than it multiplies, so values may be widened to float64 on the way:
products of float32, float16 or bfloat16 rows are then as accurate as if the rows were float64, at
no cost. PyTorch would make a copy of the rows in float64 first. Triton, which comes with PyTorch
for GPUs, does without; and it does in one launch what takes PyTorch a dozen, where a launch takes
longer than the work. Each of these functions has its equal in plain PyTorch, which defines what it
computes: in ``rows``, and ``smoothed_alpha`` and ``clipped_sums`` here.
"""

# The types of kernels' arguments are Triton's business.
# mypy: disable-error-code="no-untyped-def,untyped-decorator"

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

try:
    import triton
    import triton.language as tl
except ImportError:  # On a CPU there is no Triton, and no need of it.
    triton = None

# Rows and columns that are read at a time, and threads for them in units of 32; for sums, by how
# many vectors there are at most. Found by trying, on an H200.
_PRODUCT_TILE = 8, 128, 2
_SUM_TILES = {1: (16, 512, 4), 8: (16, 64, 4)}
MOST_SUMS = max(_SUM_TILES)
_WARPS = 4
# Parts that sums are made of, for each multiprocessor.
_PARTS = 8
# Rows at a time of what is done row by row.
_ROWS = 2048


def usable(tensor: Tensor) -> bool:
    """Whether there are kernels for where this is."""
    return triton is not None and tensor.is_cuda and tensor.stride(-1) == 1


def products(X: Tensor, v: Tensor) -> Tensor:
    """x_k.v for all rows, of a vector in float64."""
    n, d = X.shape
    out = torch.empty(n, dtype=torch.float64, device=X.device)
    rows, columns, warps = _PRODUCT_TILE
    with torch.cuda.device(X.device):
        _products[(triton.cdiv(n, rows),)](
            X, v.contiguous(), out, n, d, X.stride(0), ROWS=rows, COLUMNS=columns, num_warps=warps
        )
    return out


def squared_norms(X: Tensor) -> Tensor:
    """x_k.x_k for all rows, in float64."""
    n, d = X.shape
    out = torch.empty(n, dtype=torch.float64, device=X.device)
    rows, columns, warps = _PRODUCT_TILE
    with torch.cuda.device(X.device):
        _squared_norms[(triton.cdiv(n, rows),)](
            X, out, n, d, X.stride(0), ROWS=rows, COLUMNS=columns, num_warps=warps
        )
    return out


def sums(X: Tensor, weights: Tensor) -> Tensor:
    """sum_k a_k x_k, for each of up to ``MOST_SUMS`` weights a of the rows, in float64."""
    n, d = X.shape
    count = len(weights)
    most = min(size for size in _SUM_TILES if size >= count)
    rows, columns, warps = _SUM_TILES[most]
    parts, per_part = _cut(n, X.device, rows)
    out = torch.empty((parts, count, d), dtype=torch.float64, device=X.device)
    with torch.cuda.device(X.device):
        _sums[(parts, triton.cdiv(d, columns))](
            X, weights.contiguous(), out, n, d, X.stride(0), per_part, count, VECTORS=most,
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


def smoothed_alpha(
    margins: Tensor,
    alpha_hat: Tensor,
    weights: Tensor | None,
    sizes: Tensor,
    sigma: float,
    C: float,
    slack: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """alpha_hat_k + sigma s_k (1 - margin_k), as it is and clipped to the box; and four sums.

    These are the losses s_k max(0, 1 - margin_k); s_k sizes_k of the rows that may have a loss,
    their margins being below 1 + slack; alpha_k; and alpha_k sizes_k.
    """
    if not usable(margins):
        short = 1.0 - margins
        s = (
            torch.ones((), dtype=margins.dtype, device=margins.device)
            if weights is None
            else weights
        )
        unclipped = alpha_hat + sigma * s * short
        alpha = torch.minimum(unclipped.clamp(min=0.0), C * s)
        near = torch.where(short > -slack, s * sizes, 0.0)
        losses = s * short.clamp(min=0.0)
        numbers = torch.stack([losses.sum(), near.sum(), alpha.sum(), alpha @ sizes])
        return unclipped, alpha, numbers
    n = margins.numel()
    margins, alpha_hat, sizes = (t.contiguous() for t in (margins, alpha_hat, sizes))
    weights = None if weights is None else weights.contiguous()
    unclipped, alpha = torch.empty_like(margins), torch.empty_like(margins)
    parts = triton.cdiv(n, _ROWS)
    out = torch.empty((parts, 4), dtype=torch.float64, device=margins.device)
    with torch.cuda.device(margins.device):
        _smoothed_alpha[(parts,)](
            margins, alpha_hat, margins if weights is None else weights, sizes, unclipped, alpha,
            out, _doubles(margins, sigma, C, slack), n, WEIGHTED=weights is not None, ROWS=_ROWS,
            num_warps=_WARPS,
        )  # fmt: skip
    return unclipped, alpha, out.sum(0)


def clipped_sums(
    unclipped: Tensor,
    along: Tensor,
    weights: Tensor | None,
    sigma: float,
    C: float,
    steps: Tensor,
) -> Tensor:
    """sum_k clip(unclipped_k - t sigma s_k along_k, 0, C s_k) along_k, for each t of ``steps``."""
    if not usable(unclipped):
        box = C if weights is None else C * weights
        change = sigma * (along if weights is None else weights * along)
        return torch.stack(
            [_clipped(unclipped - step * change, box) @ along for step in steps.tolist()]
        )
    n = unclipped.numel()
    unclipped, along = unclipped.contiguous(), along.contiguous()
    weights = None if weights is None else weights.contiguous()
    parts = triton.cdiv(n, _ROWS)
    out = torch.empty((parts, len(steps)), dtype=torch.float64, device=unclipped.device)
    with torch.cuda.device(unclipped.device):
        _clipped_sums[(parts,)](
            unclipped, along, unclipped if weights is None else weights, steps, out,
            _doubles(unclipped, sigma, C), n, len(steps), WEIGHTED=weights is not None, ROWS=_ROWS,
            num_warps=_WARPS,
        )  # fmt: skip
    return out.sum(0)


def _doubles(like: Tensor, *numbers: float) -> Tensor:
    """Numbers for a kernel. As arguments, Triton would take them for single precision."""
    return torch.tensor(numbers, dtype=torch.float64).to(like.device, non_blocking=True)


def _clipped(values: Tensor, box: Any) -> Tensor:
    if isinstance(box, Tensor):
        return torch.minimum(values.clamp_(min=0.0), box)
    return values.clamp_(0.0, box)


if triton is not None:

    @triton.jit
    def _products(x, v, out, n, d, stride, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
        rows = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
        # Added up across columns only in the end: that takes threads that wait for each other.
        total = tl.zeros((ROWS, COLUMNS), dtype=tl.float64)
        for first in range(0, d, COLUMNS):
            columns = first + tl.arange(0, COLUMNS)
            inside = (rows < n)[:, None] & (columns < d)[None, :]
            values = tl.load(x + rows[:, None] * stride + columns[None, :], mask=inside, other=0.0)
            entries = tl.load(v + columns, mask=columns < d, other=0.0)
            total += values.to(tl.float64) * entries[None, :]
        tl.store(out + rows, tl.sum(total, axis=1), mask=rows < n)

    @triton.jit
    def _squared_norms(x, out, n, d, stride, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
        rows = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
        total = tl.zeros((ROWS, COLUMNS), dtype=tl.float64)
        for first in range(0, d, COLUMNS):
            columns = first + tl.arange(0, COLUMNS)
            inside = (rows < n)[:, None] & (columns < d)[None, :]
            values = tl.load(x + rows[:, None] * stride + columns[None, :], mask=inside, other=0.0)
            wide = values.to(tl.float64)
            total += wide * wide
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
        margins, alpha_hat, weights, sizes, unclipped, alpha, out, numbers, n,
        WEIGHTED: tl.constexpr, ROWS: tl.constexpr,
    ):  # fmt: skip
        part = tl.program_id(0)
        rows = part.to(tl.int64) * ROWS + tl.arange(0, ROWS)
        inside = rows < n
        sigma, C, slack = tl.load(numbers), tl.load(numbers + 1), tl.load(numbers + 2)
        # Beyond the end: no loss, and an alpha of zero.
        short = 1.0 - tl.load(margins + rows, mask=inside, other=3.0)
        s = tl.where(inside, 1.0, 0.0).to(tl.float64)
        if WEIGHTED:
            s = tl.load(weights + rows, mask=inside, other=0.0)
        size = tl.load(sizes + rows, mask=inside, other=0.0)
        value = tl.load(alpha_hat + rows, mask=inside, other=0.0) + sigma * s * short
        zero = tl.zeros((ROWS,), dtype=tl.float64)
        # Comparisons, since maximum and minimum turn NaN into a number here.
        clipped = tl.where(value < zero, zero, tl.where(value > C * s, C * s, value))
        tl.store(unclipped + rows, value, mask=inside)
        tl.store(alpha + rows, clipped, mask=inside)
        tl.store(out + part * 4, tl.sum(s * tl.where(short < zero, zero, short), axis=0))
        tl.store(out + part * 4 + 1, tl.sum(tl.where(short > -slack, s * size, zero), axis=0))
        tl.store(out + part * 4 + 2, tl.sum(clipped, axis=0))
        tl.store(out + part * 4 + 3, tl.sum(clipped * size, axis=0))

    @triton.jit
    def _clipped_sums(
        unclipped, along, weights, steps, out, numbers, n, n_steps,
        WEIGHTED: tl.constexpr, ROWS: tl.constexpr,
    ):  # fmt: skip
        part = tl.program_id(0)
        rows = part.to(tl.int64) * ROWS + tl.arange(0, ROWS)
        inside = rows < n
        sigma, C = tl.load(numbers), tl.load(numbers + 1)
        begin = tl.load(unclipped + rows, mask=inside, other=0.0)
        z = tl.load(along + rows, mask=inside, other=0.0)
        s = tl.where(inside, 1.0, 0.0).to(tl.float64)
        if WEIGHTED:
            s = tl.load(weights + rows, mask=inside, other=0.0)
        change, box = sigma * s * z, C * s
        zero = tl.zeros((ROWS,), dtype=tl.float64)
        for i in range(n_steps):
            value = begin - tl.load(steps + i) * change
            clipped = tl.where(value < zero, zero, tl.where(value > box, box, value))
            tl.store(out + part * n_steps + i, tl.sum(clipped * z, axis=0))
