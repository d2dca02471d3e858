"""Dense unit rows on a device, two classes with some labels flipped."""

from __future__ import annotations

from typing import Any

import torch

_ROWS_AT_ONCE = 250_000


def generated(
    rows: int,
    columns: int,
    dtype: torch.dtype = torch.float32,
    *,
    classes: int = 2,
    flipped: float = 0.05,
    device: str = "cuda",
    seed: int = 0,
) -> tuple[Any, Any]:
    """X and y; ``flipped`` is the share of labels that are wrong."""
    generator = torch.Generator(device).manual_seed(seed)
    directions = torch.randn(columns, classes, generator=generator, device=device)
    X = torch.empty(rows, columns, device=device, dtype=dtype)
    y = torch.empty(rows, device=device, dtype=torch.long)
    for first in range(0, rows, _ROWS_AT_ONCE):
        some = slice(first, min(first + _ROWS_AT_ONCE, rows))
        size = some.stop - first
        block = torch.randn(size, columns, generator=generator, device=device)
        block /= block.norm(dim=1, keepdim=True)
        X[some] = block
        y[some] = (block @ directions).argmax(1)
    wrong = torch.rand(rows, generator=generator, device=device) < flipped
    other = torch.randint(1, classes, (rows,), generator=generator, device=device)
    return X, torch.where(wrong, (y + other) % classes, y)
