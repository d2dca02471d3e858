"""Rows in tensors: products, weighted sums and Gram matrices.

Products and sums, which certificates rest on, are accumulated in float64 from the stored values:
half and single precision are exact inputs. Gram matrices only determine directions. They are
computed as fast as the device can, on a GPU from values rounded to bfloat16.

Rows that do not fit into the memory of the device stay where they are, and are copied block by
block in each pass, to a GPU through pinned memory.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from certsvm.problem.rows import dimension_of
from certsvm.torch import kernels

FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
# Bytes of rows that are converted to float64 at a time.
_CHUNK = 2**28
# The least and the most bytes of a block of rows that are not on the device.
_BLOCKS = 2**24, 2**28
# Rows that are gathered at a time.
GATHERED = 2**16
# Numbers of rows that are read in the time of a wait for the device.
_SMALL = 1e8
# Norms of rows whose Gram matrix certainly fits into single precision.
_SINGLE = 1e-6, 1e6
# Bytes for temporary tensors on the host.
_HOST_MEMORY = 2**32
# The share of the free memory that rows may take, and the bytes that a row needs besides itself.
_SHARE_OF_MEMORY, _PER_ROW = 0.7, 200


class TensorRows:
    """Validated rows ``[x_k, rho]`` in tensors.

    Parameters
    ----------
    X : Tensor of shape (n_rows, n_columns)
        Rows of type float16, bfloat16, float32 or float64, used in place if on the device.
    intercept_scaling : float, default=0.0
        The augmentation rho >= 0. Zero means that there is no extra dimension.
    device : torch.device or str, default=None
        The device to compute on; None means that of X.
    memory : int, default=None
        Bytes that X may take on the device. A larger X stays where it is. None means most of the
        free memory.

    Attributes
    ----------
    n_rows, n_columns, dimension : int
        Shape of the data, and length of weight vectors.
    device : torch.device
        The device to compute on.
    X : Tensor
        The rows without the intercept's column, on the device or not.
    squared_norms : Tensor of shape (n_rows,)
        Squared norms of the augmented rows.

    Examples
    --------
    >>> rows = TensorRows(torch.tensor([[3.0, 4.0], [0.0, 1.0]]), intercept_scaling=2.0)
    >>> rows.dimension, rows.squared_norms.tolist()
    (3, [29.0, 5.0])
    >>> rows.products(torch.tensor([1.0, 1.0, 0.5], dtype=torch.float64)).tolist()
    [8.0, 2.0]
    """

    def __init__(
        self,
        X: Tensor,
        *,
        intercept_scaling: float = 0.0,
        device: torch.device | str | None = None,
        memory: int | None = None,
    ) -> None:
        if X.layout != torch.strided:
            raise ValueError(f"tensors must be dense, got layout {X.layout}")
        if X.ndim != 2:
            raise ValueError(
                f"X must have two dimensions (rows, columns), got shape {tuple(X.shape)}"
            )
        if X.dtype not in FLOATS:
            raise ValueError(f"X must be of type float16, bfloat16, float32 or float64: {X.dtype}")
        self.intercept_scaling = float(intercept_scaling)
        self.n_rows, self.n_columns = X.shape
        self.dimension = dimension_of(self.n_columns, self.intercept_scaling)
        self.device = X.device if device is None else _device(device)
        if X.stride(1) != 1:
            X = X.contiguous()
        self.X = X.detach()
        self._blocks = [slice(0, self.n_rows)]
        if X.device != self.device or memory is not None:
            self._move(memory)
        self.squared_norms = torch.empty(self.n_rows, dtype=torch.float64, device=self.device)
        for part, rows in self._read() if self._has_kernels else self.wide():
            norms = kernels.products(rows) if self._has_kernels else (rows * rows).sum(1)
            self.squared_norms[part] = norms
        self.squared_norms += self.intercept_scaling**2
        self._refuse_non_finite()

    def _move(self, memory: int | None) -> None:
        """Put the rows on the device, or cut them into blocks to be copied in each pass."""
        if memory is None:
            memory = _room_for(self.X, self.device)
        if self.X.nbytes <= memory:
            self.X = self.X.to(self.device)
            return
        size = min(_BLOCKS[1], max(_BLOCKS[0], memory // 4))
        per_block = max(1, size // max(1, self.X.element_size() * self.n_columns))
        starts = range(0, self.n_rows, per_block)
        self._blocks = [slice(first, min(first + per_block, self.n_rows)) for first in starts]

    def _read(self) -> Iterator[tuple[slice, Tensor]]:
        """All rows, block by block, on the device."""
        if self.device.type == "cuda" and not self.X.is_cuda:
            yield from zip(self._blocks, self._copied(), strict=True)
            return
        for part in self._blocks:
            yield part, self.X[part].to(self.device)

    def _copied(self) -> Iterator[Tensor]:
        """The blocks on a GPU, through pinned memory; the next is copied during work on one."""
        shape, stream = (self.largest_sample, self.n_columns), torch.cuda.Stream(self.device)
        pinned = [torch.empty(shape, dtype=self.X.dtype, pin_memory=True) for _ in range(2)]
        copied = [torch.cuda.Event() for _ in pinned]

        def copy(i: int) -> Tensor:
            # What the buffer had before has arrived.
            copied[i % 2].synchronize()
            rows = self.X[self._blocks[i]]
            buffer = pinned[i % 2][: len(rows)].copy_(rows)
            with torch.cuda.stream(stream):
                on_device = buffer.to(self.device, non_blocking=True)
                copied[i % 2].record()
            return on_device

        with ThreadPoolExecutor(1) as thread:
            following = thread.submit(copy, 0)
            for i in range(len(self._blocks)):
                rows, used_by = following.result(), torch.cuda.current_stream(self.device)
                used_by.wait_event(copied[i % 2])
                rows.record_stream(used_by)
                if i + 1 < len(self._blocks):
                    following = thread.submit(copy, i + 1)
                yield rows

    def tiles(self, size: int) -> Iterator[tuple[slice, Tensor]]:
        """All rows as they are stored, without the intercept's column, so many at a time."""
        for block, rows in self._read():
            start = block.start
            for tile in rows.split(max(1, size)):
                yield slice(start, start + len(tile)), tile
                start += len(tile)

    def wide(self, size: int = sys.maxsize) -> Iterator[tuple[slice, Tensor]]:
        """The same in float64, and no more at a time than memory should take."""
        for part, tile in self.tiles(min(self._rows_per_chunk, size)):
            yield part, tile.double()

    @property
    def _rows_per_chunk(self) -> int:
        return int(max(1, _CHUNK // max(1, 8 * self.n_columns)))

    def products(self, v: Tensor) -> Tensor:
        """v.[x_k, rho] for each row, in one pass."""
        out = torch.empty(self.n_rows, dtype=torch.float64, device=self.device)
        inner = v[: self.n_columns]
        for part, rows in self._read() if self._has_kernels else self.wide():
            out[part] = kernels.products(rows, inner) if self._has_kernels else rows @ inner
        if self.intercept_scaling > 0:
            out += self.intercept_scaling * v[-1]
        return out

    def sums(self, weights: Tensor) -> Tensor:
        """sum_k a_k [x_k, rho] for one or two vectors a of row weights, in one pass."""
        out = torch.zeros((len(weights), self.dimension), dtype=torch.float64, device=self.device)
        for part, rows in self._read() if self._has_kernels else self.wide():
            a = weights[:, part]
            out[:, : self.n_columns] += kernels.sums(rows, a) if self._has_kernels else a @ rows
        if self.intercept_scaling > 0:
            out[:, -1] = self.intercept_scaling * kernels.sum_in_parts(weights)
        return out

    @cached_property
    def additions(self) -> int:
        """The most additions that an entry of ``sums`` goes through."""
        if self._has_kernels:
            columns = kernels.additions(self.n_rows, self.device) + len(self._blocks)
        else:
            per_chunk = self._rows_per_chunk
            chunks = -(-self.n_rows // per_chunk) + len(self._blocks)
            columns = min(self.n_rows, per_chunk) + chunks
        if self.intercept_scaling == 0:
            return int(columns)
        return int(max(columns, kernels.additions_in_parts(self.n_rows)))

    @cached_property
    def _has_kernels(self) -> bool:
        return kernels.usable(self.X[:1].to(self.device))

    @property
    def largest_sample(self) -> int:
        """The most rows that may be copied to the device: those of a block."""
        return int(self._blocks[0].stop)

    def take(self, which: Tensor) -> TensorRows:
        """The rows ``which`` (ascending), copied to the device."""
        taken = object.__new__(TensorRows)
        taken.intercept_scaling, taken.device = self.intercept_scaling, self.device
        taken.n_rows, taken.n_columns, taken.dimension = len(which), self.n_columns, self.dimension
        taken.X, taken._blocks = self.gathered(which), [slice(0, len(which))]
        taken.squared_norms = self.squared_norms[which]
        return taken

    def gathered(self, which: Tensor) -> Tensor:
        """The rows ``which`` (ascending), without the intercept's column, on the device."""
        return self.X.index_select(0, which.to(self.X.device)).to(self.device)

    def gram(self, which: Tensor, weights: Tensor | None, *, exact: bool = False) -> Tensor:
        """sum_k s_k [x_k, rho][x_k, rho]' over the rows of a mask; None means weights of one.

        It is computed as fast as possible, or in float64 if it is to be ``exact``.
        """
        if self.is_small:
            scales = which.double() if weights is None else which * weights.sqrt()
            return self._gram_of(self.X, scales, exact=exact)
        positions = which.nonzero()[:, 0]
        total = torch.zeros(
            (self.dimension, self.dimension), dtype=torch.float64, device=self.device
        )
        for now in positions.split(GATHERED):
            scales = None if weights is None else weights[now].sqrt()
            total += self._gram_of(self.gathered(now), scales, exact=exact)
        return total

    def _gram_of(self, rows: Tensor, scales: Tensor | None, *, exact: bool) -> Tensor:
        """sum_k scales_k^2 [x_k, rho][x_k, rho]' of gathered rows."""
        column = torch.ones(len(rows), device=self.device) if scales is None else scales
        if exact:
            wide = rows.double() if scales is None else rows.double() * scales[:, None]
            if self.intercept_scaling > 0:
                wide = torch.cat([wide, self.intercept_scaling * column[:, None].double()], dim=1)
            return wide.T @ wide
        d, unit = self.n_columns, self._unit
        coarse = rows if unit == 1.0 else (rows.double() / unit).float()
        if scales is not None:
            coarse = coarse.float() * scales[:, None].float()
        inner = _gram(coarse)
        if unit != 1.0:
            inner *= unit**2
        if self.intercept_scaling == 0:
            return inner
        G = torch.empty((self.dimension, self.dimension), dtype=torch.float64, device=self.device)
        G[:d, :d] = inner
        column = column.float()
        border = (self.intercept_scaling * unit) * (coarse.float().T @ column).double()
        G[d, :d] = border
        G[:d, d] = border
        G[d, d] = self.intercept_scaling**2 * column.double().square().sum()
        return G

    @cached_property
    def is_small(self) -> bool:
        """Whether reading all rows takes no longer than waiting for the device."""
        return bool(self.X.is_cuda and self.X.numel() <= _SMALL)

    @cached_property
    def product_roundings(self) -> Tensor:
        """(n_k + 2) |y_k|, to which the rounding of a product with row k is proportional."""
        return (self.dimension + 2.0) * self.squared_norms.sqrt()

    @cached_property
    def longest(self) -> float:
        """The largest norm of an augmented row."""
        return math.sqrt(float(self.squared_norms.max())) if self.n_rows else 0.0

    @cached_property
    def _unit(self) -> float:
        """The unit of rows in which their squares fit into single precision."""
        largest = self.longest
        return 1.0 if _SINGLE[0] <= largest <= _SINGLE[1] or largest == 0.0 else largest

    def _refuse_non_finite(self) -> None:
        bad = ~torch.isfinite(self.squared_norms)
        if not bool(bad.any()):
            return
        k = int(bad.nonzero()[0, 0])
        row = self.X[k].double()
        wrong = (~torch.isfinite(row)).nonzero()
        if len(wrong):
            column = int(wrong[0, 0])
            what = "NaN" if bool(torch.isnan(row[column])) else "infinity"
            raise ValueError(
                f"Input X contains {what}: row {k}, column {column}. Remove such rows, or fill in "
                "the missing values."
            )
        raise ValueError(
            f"Row {k} of X has values so large that its squared norm overflows. Rescale the "
            "columns."
        )


def _gram(rows: Tensor) -> Tensor:
    """Rows' rows, in float64 but not as accurate."""
    if rows.is_cuda:
        half = rows.to(torch.bfloat16)
        return torch.mm(half.T, half, out_dtype=torch.float32).double()
    wide = rows.to(torch.float64 if rows.dtype == torch.float64 else torch.float32)
    return (wide.T @ wide).double()


def _device(device: Any) -> torch.device:
    """The device by its name; "cuda" is the current GPU."""
    named = torch.device(device)
    if named.type == "cuda":
        if not torch.cuda.is_available():
            raise ValueError(f"device={str(device)!r}: PyTorch sees no GPU here")
        if named.index is None:
            return torch.device("cuda", torch.cuda.current_device())
    return named


def free_memory(device: torch.device) -> int:
    """Bytes that tensors may take on a GPU; a fixed amount on the host."""
    if device.type != "cuda":
        return _HOST_MEMORY
    cached = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    return int(torch.cuda.mem_get_info(device)[0] + cached)


def _room_for(X: Tensor, device: torch.device) -> int:
    """Bytes that the rows may take on the device."""
    if device.type != "cuda":
        return int(X.nbytes)
    free = free_memory(device)
    square = 8 * X.shape[1] ** 2
    room: int = max(0, math.floor(_SHARE_OF_MEMORY * free) - _PER_ROW * X.shape[0] - 8 * square)
    return room
