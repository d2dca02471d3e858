"""SGD-m: SGD-s in which some passes present each row several times.

In pass p, counted from 1, each row is presented ell = 5 times in a row if 0 < p mod 9 < 5, and
once otherwise. Proposition 3 (``growing_margin.errors_among``) tells from one inner product how
many of the five are margin errors, so such a pass costs what a single one does and does more.
All rows of a pass are presented equally often: it counts as ell epochs in T, and Proposition 2
holds as it stands.

The paper writes "in the T-th epoch"; we read it as the T-th pass.

Reference: Panagiotakopoulos and Tsampouka (2013), Section 3 (SGD-m).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from certsvm.solvers.base import require
from certsvm.solvers.sgd_s import SGDs


@dataclass(frozen=True)
class SGDm(SGDs):
    """SGD in complete passes, some of which present each row several times.

    Parameters
    ----------
    f, T_max, published, windows, spacing, precision, shuffled
        As for ``SGDs``.
    multiplicity : int, default=5
        How often a row is presented in a multiple pass.
    period : int, default=9
        The schedule's length in passes.
    single_from : int, default=5
        Pass p is a multiple one if 0 < p mod period < single_from.

    Examples
    --------
    >>> [SGDm().ell(p) for p in range(1, 12)]
    [5, 5, 5, 5, 1, 1, 1, 1, 1, 5, 5]
    """

    name: ClassVar[str] = "sgd-m"

    multiplicity: int = 5
    period: int = 9
    single_from: int = 5

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.multiplicity > 0, self, f"multiplicity must be > 0, got {self.multiplicity}")
        require(self.period > 0, self, f"period must be > 0, got {self.period}")

    def ell(self, passes: int) -> int:
        """How often each row is presented in the given pass, counted from 1."""
        return self.multiplicity if 0 < passes % self.period < self.single_from else 1
