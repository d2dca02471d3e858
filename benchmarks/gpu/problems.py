"""Dense rows of unit length on a device, with label noise.

The rows are isotropic; or, like embeddings, have a common mean and a decaying spectrum, in which
the k-th column is scaled by 1 / k; or lie in overlapping clusters, one for each class.
"""

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
    alike: bool = True,
    device: str = "cuda",
    seed: int = 0,
) -> tuple[Any, Any]:
    """X and y; ``flipped`` is the share of labels that are wrong."""
    generator = torch.Generator(device).manual_seed(seed)
    directions = torch.randn(columns, classes, generator=generator, device=device)
    lengths = torch.ones(columns, device=device)
    mean = torch.zeros(columns, device=device)
    if not alike:
        lengths /= torch.arange(1, columns + 1, device=device)
        mean = torch.randn(columns, generator=generator, device=device) * lengths
    X = torch.empty(rows, columns, device=device, dtype=dtype)
    y = torch.empty(rows, device=device, dtype=torch.long)
    for first in range(0, rows, _ROWS_AT_ONCE):
        part = slice(first, min(first + _ROWS_AT_ONCE, rows))
        block = torch.randn(part.stop - first, columns, generator=generator, device=device)
        y[part] = (block @ directions).argmax(1)
        block = block * lengths + mean
        X[part] = block / block.norm(dim=1, keepdim=True)
    wrong = torch.rand(rows, generator=generator, device=device) < flipped
    other = torch.randint(1, classes, (rows,), generator=generator, device=device)
    return X, torch.where(wrong, (y + other) % classes, y)


def clusters(
    rows: int,
    columns: int,
    dtype: torch.dtype = torch.float16,
    *,
    classes: int = 100,
    flipped: float = 0.02,
    device: str = "cuda",
    seed: int = 0,
) -> tuple[Any, Any]:
    """X and y: a cluster for each class, in up to 256 directions of decaying lengths."""
    generator = torch.Generator(device).manual_seed(seed)

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=generator, device=device)

    rank = min(256, columns)
    lengths = torch.arange(1, rank + 1, device=device) ** -0.35
    directions = torch.linalg.qr(normal(columns, rank))[0]
    centres = normal(classes, rank) * lengths
    y = torch.randint(classes, (rows,), generator=generator, device=device)
    X = torch.empty(rows, columns, device=device, dtype=dtype)
    for first in range(0, rows, _ROWS_AT_ONCE):
        part = slice(first, min(first + _ROWS_AT_ONCE, rows))
        block = centres[y[part]] + 1.1 * normal(part.stop - first, rank) * lengths
        block = block @ directions.T + 0.03 * normal(part.stop - first, columns)
        X[part] = block / block.norm(dim=1, keepdim=True)
    wrong = torch.rand(rows, generator=generator, device=device) < flipped
    other = torch.randint(classes, (rows,), generator=generator, device=device)
    return X, torch.where(wrong, other, y)
