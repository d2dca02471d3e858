"""Rows in tensors: products, weighted sums and Gram matrices.

Products and sums, which certificates rest on, are accumulated in float64 from the stored values:
half and single precision are exact inputs. What only determines directions is computed from rows in
the type of which the device makes products fastest: in half precision on a GPU, in single precision
on a CPU.

Rows that do not fit into the memory of the device stay where they are, and are copied block by
block in each pass, to a GPU through pinned memory.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from certsvm.problem.rows import dimension_of
from certsvm.torch import kernels

FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
# The least and the most bytes of a block of rows that are not on the device.
_BLOCKS = 2**24, 2**28
# Numbers that are gathered or converted at a time.
_GATHERED = 2**26
# The share of the free memory that a copy of the rows may take.
_COPY = 0.4
# Norms of rows that fit into half precision, and whose squares fit into single precision.
_FITTING = 1e-2, 1e3
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
    unit : float
        What ``fast`` divides rows by, so that they fit into half precision.

    Examples
    --------
    >>> rows = TensorRows(torch.tensor([[3.0, 4.0], [0.0, 1.0]]), intercept_scaling=2.0)
    >>> rows.dimension, rows.squared_norms.tolist()
    (3, [29.0, 5.0])
    >>> rows.products(torch.tensor([1.0, 1.0, 0.5], dtype=torch.float64)).tolist()
    [8.0, 2.0]
    """

    def __init__(
        self, X: Tensor, *, intercept_scaling: float = 0.0,
        device: torch.device | str | None = None, memory: int | None = None,
    ) -> None:  # fmt: skip
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
        self.X = X.detach() if X.stride(1) == 1 else X.detach().contiguous()
        self._blocks = [slice(0, self.n_rows)]
        if X.device != self.device or memory is not None:
            self._move(_room_for(X, self.device) if memory is None else memory)
        self.squared_norms = self._products(None) + self.intercept_scaling**2
        self._refuse_non_finite()
        longest = self.longest
        self.unit = 1.0 if _FITTING[0] <= longest <= _FITTING[1] or longest == 0.0 else longest

    def _move(self, memory: int) -> None:
        """Put the rows on the device, or cut them into blocks to be copied in each pass."""
        if self.X.nbytes <= memory:
            self.X = self.X.to(self.device)
            return
        size = min(_BLOCKS[1], max(_BLOCKS[0], memory // 4))
        per_block = max(1, size // max(1, self.X.element_size() * self.n_columns))
        starts = range(0, self.n_rows, per_block)
        self._blocks = [slice(first, min(first + per_block, self.n_rows)) for first in starts]

    def _read(self) -> Iterator[tuple[slice, Tensor]]:
        """All rows, block by block, on the device."""
        for part in self._blocks:
            rows = self.X[part]
            if rows.device != self.device and self.device.type == "cuda":
                # The device copies a block while the host puts the next one into pinned memory,
                # which PyTorch reuses once it has been copied.
                rows = rows.pin_memory()
            yield part, rows.to(self.device, non_blocking=True)

    def tiles(self, size: int) -> Iterator[tuple[slice, Tensor]]:
        """All rows as they are stored, without the intercept's column, so many at a time."""
        for block, rows in self._read():
            start = block.start
            for tile in rows.split(max(1, size)):
                yield slice(start, start + len(tile)), tile
                start += len(tile)

    def products(self, v: Tensor) -> Tensor:
        """v.[x_k, rho] for each row, in one pass."""
        out = self._products(v[: self.n_columns])
        if self.intercept_scaling > 0:
            out += self.intercept_scaling * v[-1]
        return out

    def _products(self, v: Tensor | None) -> Tensor:
        return torch.cat([kernels.products(rows, v) for _, rows in self._read()])

    def sums(self, weights: Tensor) -> Tensor:
        """sum_k a_k [x_k, rho] for one or two vectors a of row weights, in one pass."""
        out = torch.zeros((len(weights), self.dimension), dtype=torch.float64, device=self.device)
        for part, rows in self._read():
            out[:, : self.n_columns] += kernels.sums(rows, weights[:, part])
        if self.intercept_scaling > 0:
            out[:, -1] = self.intercept_scaling * kernels.sum_in_parts(weights)
        return out

    @cached_property
    def additions(self) -> int:
        """The most additions that an entry of ``sums`` goes through."""
        columns = kernels.additions(self.largest_sample, self.n_columns, self.device)
        return max(columns + len(self._blocks), kernels.additions_in_parts(self.n_rows))

    @property
    def largest_sample(self) -> int:
        """The most rows that may be copied to the device: those of a block."""
        return int(self._blocks[0].stop)

    @property
    def at_once(self) -> int:
        """How many rows to gather or to convert at a time."""
        return max(1, _GATHERED // self.padded)

    def take(self, which: Tensor) -> TensorRows:
        """The rows ``which`` (ascending), copied to the device, with the same unit."""
        taken = TensorRows(self.gathered(which), intercept_scaling=self.intercept_scaling)
        taken.unit = self.unit
        return taken

    def gathered(self, which: Tensor) -> Tensor:
        """The rows ``which`` (ascending), without the intercept's column, on the device."""
        return self.X.index_select(0, which.to(self.X.device)).to(self.device)

    @property
    def fast_type(self) -> torch.dtype:
        """The type of which the device makes products fastest."""
        if self.device.type != "cuda":
            return torch.float32
        return torch.bfloat16 if self.X.dtype == torch.bfloat16 else torch.float16

    @property
    def padded(self) -> int:
        """The number of columns of ``fast``, the last of which may be zero."""
        # Tensor cores need aligned rows.
        return -(-self.dimension // 8) * 8 if self.device.type == "cuda" else self.dimension

    def fast(self, X: Tensor, dtype: torch.dtype | None = None) -> Tensor:
        """Stored rows X as [x_k, rho] / unit, in the fast type or another, with padding."""
        dtype = self.fast_type if dtype is None else dtype
        if self.unit == 1.0 and (X.dtype, X.shape[1]) == (dtype, self.padded):
            return X
        rows = torch.empty((len(X), self.padded), dtype=dtype, device=self.device)
        rows[:, : self.n_columns] = X if self.unit == 1.0 else X.double() / self.unit
        rows[:, self.dimension :] = 0.0
        rows[:, self.n_columns : self.dimension] = self.intercept_scaling / self.unit
        return rows

    def converted(self) -> TensorRows:
        """Rows that are as ``fast`` makes them, on the device; these, if it lacks the memory."""
        first, needed = self.X[:1], self.n_rows * self.padded * self.fast_type.itemsize
        if self.fast(first) is first or needed > _COPY * free_memory(self.device):
            return self
        X = torch.empty((self.n_rows, self.padded), dtype=self.fast_type, device=self.device)
        for part, tile in self.tiles(self.at_once):
            X[part] = self.fast(tile)
        rows = TensorRows(X)
        rows.unit = 1.0
        return rows

    def gram(self, which: Tensor, weights: Tensor, *, exact: bool = False) -> Tensor:
        """sum_k s_k [x_k, rho][x_k, rho]' over the rows of a mask.

        It is computed as fast as possible, or in float64 if it is to be ``exact``.
        """
        total = torch.zeros((self.padded, self.padded), dtype=torch.float64, device=self.device)
        # Weights of at most one fit into half precision.
        largest = weights.max()
        scales = (weights / largest).sqrt()
        for now in which.nonzero()[:, 0].split(self.at_once):
            rows = self.fast(self.gathered(now), torch.float64 if exact else None)
            total += _gram(rows * scales[now].to(rows.dtype)[:, None])
        return self.unit**2 * largest * total[: self.dimension, : self.dimension]

    @cached_property
    def product_roundings(self) -> Tensor:
        """(n_k + 2) |y_k|, to which the rounding of a product with row k is proportional."""
        return (self.dimension + 2.0) * self.squared_norms.sqrt()

    @cached_property
    def longest(self) -> float:
        """The largest norm of an augmented row."""
        return math.sqrt(float(self.squared_norms.max())) if self.n_rows else 0.0

    def _refuse_non_finite(self) -> None:
        bad = ~torch.isfinite(self.squared_norms)
        if not bool(bad.any()):
            return
        k = int(bad.nonzero()[0, 0])
        # NaN counts as the largest value.
        column = int(self.X[k].abs().argmax())
        raise ValueError(
            "Input X contains NaN, infinity, or a row so long that its squared norm overflows: in "
            f"row {k}, column {column} is {float(self.X[k, column]):g}. Remove such rows, fill in "
            "the missing values, or rescale the columns."
        )


def product(A: Tensor, B: Tensor) -> Tensor:
    """The product of matrices of low precision, in single precision."""
    if A.is_cuda and A.dtype.itemsize == 2:
        return torch.mm(A, B, out_dtype=torch.float32)
    return A @ B


def _gram(rows: Tensor) -> Tensor:
    """Rows' rows, as accurate as their type."""
    return product(rows.T, rows).double()


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
