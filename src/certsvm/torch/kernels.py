"""Products and sums over all rows in double precision, and alpha, which certificates rest on.

A GPU reads rows far more slowly than it multiplies, so values may be widened to float64 on the way:
products of float32, float16 or bfloat16 rows are then as accurate as if the rows were float64, at
no cost. PyTorch would make a copy of the rows in float64 first, as it does on a CPU. Triton, which
comes with PyTorch for GPUs, does without.

The formulas of ``certsvm.kernels.losses`` take tensors as they take arrays.
"""

# The types of kernels' arguments are Triton's business.
# mypy: disable-error-code="no-untyped-def,untyped-decorator"

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from certsvm.certificates.dual import RowSums, sums_in_any_order
from certsvm.kernels.losses import Loss
from certsvm.problem.rows import Vector

try:
    import triton
    import triton.language as tl
except ImportError:  # On a CPU there is no Triton, and no need of it.
    triton = None

# Rows and columns that are read at a time, and threads for them in units of 32; for sums by how
# many vectors there are. Found by trying, on an H200.
_PRODUCT_TILE = 8, 128, 2
_SUM_TILES = {1: (16, 512, 4), 2: (16, 256, 4)}
# Parts that sums are made of, for each multiprocessor.
_PARTS = 8
# Bytes of rows that are converted to float64 at a time, where there is no Triton.
_CHUNK = 2**28
# Numbers that are added at a time.
_ADDED = 2048


def _has_kernels(device: torch.device) -> bool:
    return triton is not None and device.type == "cuda"


def _launch(kernel: Any, grid: tuple[int, ...], *given: Any, **options: Any) -> None:
    """Launch a kernel on the device of the first tensor."""
    with torch.cuda.device(given[0].device):
        kernel[grid](*given, **options)


def _rows_per_chunk(n_columns: int) -> int:
    return max(1, _CHUNK // max(1, 8 * n_columns))


def wide(X: Tensor) -> Iterator[tuple[slice, Tensor]]:
    """Rows in float64, and no more at a time than memory should take."""
    size = _rows_per_chunk(X.shape[1])
    for first in range(0, len(X), size):
        yield slice(first, first + size), X[first : first + size].double()


def products(X: Tensor, v: Tensor | None) -> Tensor:
    """x_k.v for all rows, of a vector in float64; without it, x_k.x_k."""
    n, d = X.shape
    out = torch.empty(n, dtype=torch.float64, device=X.device)
    if not _has_kernels(X.device):
        for part, rows in wide(X):
            out[part] = (rows * rows).sum(1) if v is None else rows @ v
        return out
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
    if not _has_kernels(X.device):
        total = torch.zeros((len(weights), d), dtype=torch.float64, device=X.device)
        for part, wide_rows in wide(X):
            total += weights[:, part] @ wide_rows
        return total
    rows, columns, warps = _SUM_TILES[len(weights)]
    parts, per_part = _cut(n, X.device, rows)
    out = torch.empty((parts, len(weights), d), dtype=torch.float64, device=X.device)
    _launch(
        _sums, (parts, triton.cdiv(d, columns)),
        X, weights.contiguous(), out, n, d, X.stride(0), per_part, VECTORS=len(weights),
        ROWS=rows, COLUMNS=columns, num_warps=warps,
    )  # fmt: skip
    return out.sum(0)


def additions(n_rows: int, n_columns: int, device: torch.device) -> int:
    """Through how many an entry of ``sums`` goes at most."""
    if not _has_kernels(device):
        chunk = _rows_per_chunk(n_columns)
        return min(n_rows, chunk) + -(-n_rows // chunk)
    return sum(_cut(n_rows, device, max(rows for rows, _, _ in _SUM_TILES.values())))


def _cut(n_rows: int, device: torch.device, rows: int) -> tuple[int, int]:
    """How many parts the rows are cut into, and how long they are: so many rows, or a multiple."""
    parts: int = _PARTS * torch.cuda.get_device_properties(device).multi_processor_count
    per_part = -(-n_rows // parts)
    return parts, -(-per_part // rows) * rows


def sum_in_parts(values: Tensor) -> Tensor:
    """Sums over the last axis, in two stages, so that a number goes through few additions."""
    whole = values.shape[-1] // _ADDED * _ADDED
    parts = values[..., :whole].unflatten(-1, (-1, _ADDED)).sum(-1)
    return parts.sum(-1) + values[..., whole:].sum(-1)


def additions_in_parts(n: int) -> int:
    """Through how many additions a number goes in ``sum_in_parts`` at most, in any order."""
    return min(n, _ADDED) + n // _ADDED + 1


def smoothed_alpha(
    loss: Any, margins: Tensor, alpha_hat: Tensor, weights: Tensor, sizes: Tensor, sigma: Any,
    C: Any, slack: Any, sides: tuple[Tensor, ...] = (),
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """The ``response`` of each row, as it is and clipped to the box; and sums over rows.

    For several problems, ``margins`` and ``weights`` have a row for each, and ``sigma``, ``C`` and
    ``slack`` are columns.

    The sums are those of the losses s_k l(margin_k); of s_k sizes_k times the steepness of the
    loss, over the rows that may have a loss, their margins being below 1 + slack; and of alpha_k,
    the ``dual_penalty`` of alpha_k, and alpha_k sizes_k. Given ``sides``, the last three are over
    the rows of each of these masks. A sum goes through no more than ``additions_in_parts``.
    """
    short = 1.0 - margins
    unclipped = loss.response(margins, alpha_hat, sigma, C, weights)
    alpha = torch.minimum(unclipped.clamp(min=0.0), loss.box_end(C, weights))
    losses, masses, penalties = short.clamp(min=0.0), weights * sizes, torch.zeros_like(alpha)
    if loss.is_smooth:
        losses, masses = losses * losses, masses * (2.0 * (short + slack))
        # Rows without weight have no alpha.
        penalties = torch.where(alpha == 0.0, penalties, alpha * (alpha / (4.0 * C * weights)))
    terms = [weights * losses, torch.where(short > -slack, masses, 0.0)]
    of_rows = [alpha, penalties, alpha * sizes]
    for side in sides:
        terms += [torch.where(side, term, 0.0) for term in of_rows]
    return unclipped, alpha, torch.stack([*map(sum_in_parts, terms if sides else terms + of_rows)])


def row_sums(loss: Loss, numbers: Any, v: Vector, additions: int, in_parts: int) -> RowSums:
    """What makes a dual point, from the last three sums of ``smoothed_alpha`` and sum alpha_k y_k.

    ``additions`` are those of an entry of the latter, ``in_parts`` those of the former.
    """
    alpha_sum, penalty, path = numbers
    of_alpha = sums_in_any_order(alpha_sum, penalty, in_parts)
    # The path was weighted by (n_k + 2) |y_k|.
    return RowSums(v, (of_alpha,), path / (v.size + 2.0), additions, loss.largest_multiple)


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
        x, weights, out, n, d, stride, per_part,
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
            at = weights + which[None, :].to(tl.int64) * n + rows[:, None]
            loaded = tl.load(at, mask=(rows < n)[:, None], other=0.0)
            total += tl.sum(values.to(tl.float64)[:, None, :] * loaded[:, :, None], axis=0)
        to = out + (part * VECTORS + which[:, None]) * d + columns[None, :]
        tl.store(to, total, mask=(columns < d)[None, :])
