"""A model of the cost of a round, in rows, columns, workers and the network.

In a round, w goes to every worker, each group works, and the sums come back, added eight at a time
on the way. With n stored values in m rows and d columns, G groups, h = ceil(log_8 G) levels of
adding, a network that moves B bytes a second to or from one machine, and a scheduler that takes t
seconds for a task, the seconds are

    Newton    (4.5 n + 30 m + 0.1 n^2/m) 1e-9 / G + 2e-11 d^3
              + t G (1 + 1/7) + latency (2 + h) + (8 d G + 64 d^2 (h + 1)) / B
    CoCoA     (3 n + p (2 n + 15 m)) 1e-9 / G
              + 2 t G (1 + 1/14) + latency (3 + h) + (8 d G + 64 d (h + 1)) / B

with p passes over half of the rows in a round of CoCoA. The client sends w to the workers one
after the other, which is the 8 d G.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

# Typical rounds to one per cent; CoCoA's vary much more, and grow with the groups and with C.
NEWTON_ROUNDS, COCOA_ROUNDS = 20, 60
_PASSES = 5
_FAN_IN = 8


@dataclass(frozen=True)
class Network:
    """Speed of the network and the scheduler.

    ``bandwidth`` is in bytes a second, to or from one machine. ``latency`` is the time from
    submitting a task until it begins, and back. ``per_task`` is what the client and the scheduler
    spend on a task. Both are in seconds.
    """

    bandwidth: float = 1e9
    latency: float = 5e-3
    per_task: float = 4e-4


@dataclass(frozen=True)
class Shape:
    """Shape of the data, and the number of groups."""

    rows: float
    stored: float
    columns: float
    groups: int

    @property
    def levels(self) -> int:
        """Levels of adding on the workers."""
        return max(0, math.ceil(math.log(self.groups, _FAN_IN) - 1e-9)) if self.groups > 1 else 0


def newton_round(shape: Shape, network: Network) -> float:
    """Seconds of a step of the smoothed Newton method.

    Examples
    --------
    >>> shape = Shape(rows=1e9, stored=1e12, columns=1000, groups=1000)
    >>> 60.0 < newton_round(shape, Network()) < 600.0
    True
    """
    m, n, d, G = shape.rows, shape.stored, shape.columns, shape.groups
    work = (4.5 * n + 30.0 * m + 0.1 * n * n / m) * 1e-9 / G + 2e-11 * d**3
    tasks = network.per_task * G * (1.0 + 1.0 / 7.0)
    moved = 8.0 * d * G + 64.0 * d * d * (shape.levels + 1)
    return work + tasks + network.latency * (2 + shape.levels) + moved / network.bandwidth


def cocoa_round(shape: Shape, network: Network) -> float:
    """Seconds of a round of CoCoA."""
    m, n, d, G = shape.rows, shape.stored, shape.columns, shape.groups
    work = (3.0 * n + _PASSES * (2.0 * n + 15.0 * m)) * 1e-9 / G
    tasks = 2.0 * network.per_task * G * (1.0 + 1.0 / 14.0)
    moved = 8.0 * d * G + 64.0 * d * (shape.levels + 1)
    return work + tasks + network.latency * (3 + shape.levels) + moved / network.bandwidth


def newton_is_cheaper(shape: Shape) -> bool:
    """Whether the smoothed Newton method costs less: fewer rounds, but with a matrix each.

    The network is a usual one.

    Examples
    --------
    >>> newton_is_cheaper(Shape(581_012, 7e6, 54, 2)), newton_is_cheaper(Shape(2e4, 9e6, 1.4e6, 2))
    (True, False)
    """
    network = Network()
    newton = NEWTON_ROUNDS * newton_round(shape, network)
    return newton <= COCOA_ROUNDS * cocoa_round(shape, network)
