"""PyTorch's optimisers on the same objective.

They cannot measure their accuracy, so they are stopped by a known lower bound on the optimum: when
J, computed in float64 outside the clock, is close enough to it, or when their time is up.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import torch


def objective(X: Any, signs: Any, w: Any, C: float) -> float:
    """J in float64."""
    loss = torch.zeros((), dtype=torch.float64, device=X.device)
    wide = w.double()
    for first in range(0, X.shape[0], 100_000):
        block = slice(first, first + 100_000)
        loss += (1.0 - signs[block] * (X[block].double() @ wide)).clamp(min=0.0).sum()
    return float(0.5 * wide @ wide + C * loss)


def lbfgs(X: Any, signs: Any, C: float) -> Iterator[Any]:
    """torch.optim.LBFGS with its line search, on the hinge loss over all rows, scaled by C m."""
    m = X.shape[0]
    w = torch.zeros(X.shape[1], device=X.device, requires_grad=True)
    optimiser = torch.optim.LBFGS([w], max_iter=5, history_size=50, line_search_fn="strong_wolfe")
    short_signs = signs.float()

    def closure() -> Any:
        optimiser.zero_grad()
        loss = (1.0 - short_signs * (X @ w)).clamp(min=0.0).mean() + 0.5 / (C * m) * (w @ w)
        loss.backward()
        return loss

    while True:
        optimiser.step(closure)
        yield w.detach()


def sgd(step: float, batch: int = 8192) -> Callable[[Any, Any, float], Iterator[Any]]:
    """torch.optim.SGD with steps ``step / (lambda t)`` and the mean of the iterates of a pass."""

    def run(X: Any, signs: Any, C: float) -> Iterator[Any]:
        m = X.shape[0]
        regularisation = 1.0 / (C * m)
        w = torch.zeros(X.shape[1], device=X.device, requires_grad=True)
        optimiser = torch.optim.SGD([w], lr=1.0, weight_decay=regularisation)
        short_signs = signs.float()
        generator = torch.Generator(X.device).manual_seed(0)
        t = 0
        while True:
            mean = torch.zeros_like(w)
            order = torch.randperm(m, generator=generator, device=X.device)
            batches = order.split(batch)
            for which in batches:
                t += 1
                # Steps as long as 1 / lambda at first would leave the range of numbers.
                optimiser.param_groups[0]["lr"] = step / (regularisation * (t + len(batches)))
                optimiser.zero_grad()
                rows = X.index_select(0, which)
                (1.0 - short_signs[which] * (rows @ w)).clamp(min=0.0).mean().backward()
                optimiser.step()
                mean += w.detach() / len(batches)
            yield mean

    return run


def race(
    run: Callable[[Any, Any, float], Iterator[Any]],
    X: Any,
    signs: Any,
    C: float,
    lower: float,
    targets: list[float],
    max_seconds: float,
) -> dict[float, float | None]:
    """Seconds to each accuracy; None if time was up."""
    reached: dict[float, float | None] = dict.fromkeys(targets)
    spent = 0.0
    iterates = run(X, signs, C)
    while spent < max_seconds:
        torch.cuda.synchronize()
        began = time.perf_counter()
        w = next(iterates)
        torch.cuda.synchronize()
        spent += time.perf_counter() - began
        accuracy = objective(X, signs, w, C) / lower - 1.0
        for target in targets:
            if reached[target] is None and accuracy <= target:
                reached[target] = round(spent, 3)
        if all(seconds is not None for seconds in reached.values()):
            break
    return reached
