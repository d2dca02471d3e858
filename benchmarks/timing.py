"""The shortest of several times."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any


def best_seconds(jobs: dict[str, Callable[[], Any]], repeats: int) -> dict[str, float]:
    """The shortest time of each job; the jobs take turns, so that noise meets all of them alike."""
    best = dict.fromkeys(jobs, float("inf"))
    for _ in range(repeats):
        for name, job in jobs.items():
            began = time.perf_counter()
            job()
            best[name] = min(best[name], time.perf_counter() - began)
    return best
