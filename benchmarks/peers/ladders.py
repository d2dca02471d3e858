"""The settings that a peer is tried with, from loose to tight.

Steps are small: too large a step would waste a peer's time and count against it.
"""

from __future__ import annotations

import itertools


def tolerances(tightest: float = 1e-8) -> list[float]:
    """From 10 down, four steps per decade at first, three from 0.1 on.

    Examples
    --------
    >>> tolerances(0.02)
    [10.0, 5.0, 3.0, 2.0, 1.0, 0.5, 0.3, 0.2, 0.1, 0.05, 0.02]
    """
    coarse = (float(f"{share}e-{power}") for power in itertools.count(1) for share in (1, 0.5, 0.2))
    fine = [10.0, 5.0, 3.0, 2.0, 1.0, 0.5, 0.3, 0.2]
    return fine + list(itertools.takewhile(lambda step: step >= tightest, coarse))


def passes(most: int = 100_000) -> list[float]:
    """Numbers of passes over the data, each about 1.6 times the one before.

    Examples
    --------
    >>> passes(30)
    [1.0, 2.0, 3.0, 5.0, 8.0, 12.0, 20.0, 30.0]
    """
    decades = (10**power for power in itertools.count(1))
    steps = (share * decade / 10 for decade in decades for share in (12, 20, 30, 50, 80))
    return [1.0, 2.0, 3.0, 5.0, 8.0, *itertools.takewhile(lambda step: step <= most, steps)]
