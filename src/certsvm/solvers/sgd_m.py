"""SGD-m: SGD-s in which some passes present each row several times.

In pass p, counted from 1, each row is presented ell = 5 times in a row if 0 < p mod 9 < 5, and
once otherwise. By Proposition 3 (``growing_margin.errors_among``), one inner product tells how many
of the five are margin errors, so a multiple pass costs no more than a single one. Within a pass all
rows are presented equally often: the pass counts as ell epochs in T, and Proposition 2 holds.

The paper writes "in the T-th epoch"; we read it as the T-th pass.

The estimate of J takes the loss of row k from its margin just before the first of its
presentations in a pass. A footnote of the paper speaks of the last time that a row was presented,
and of the inner product that was needed then anyway. For ell = 1 the two are the same. In a
multiple pass that inner product is the one before the first presentation, the only one computed,
so we read "the last time" as the last pass. The margin before the last presentation would follow
from it and |y_k|^2, but it includes updates by the row itself in the same pass, which the estimate
for ell = 1 never does. No bound depends on the estimate: it only decides when J is computed.

Reference: Panagiotakopoulos and Tsampouka (2013), Section 3 (SGD-m).
"""

from dataclasses import dataclass

from certsvm.solvers.sgd_s import SGDs


@dataclass(frozen=True)
class SGDm(SGDs):
    """SGD in complete passes, some of which present each row several times.

    Parameters
    ----------
    f, windows, precision, shuffled
        As for ``SGDs``.

    Examples
    --------
    >>> [SGDm().ell(p) for p in range(1, 12)]
    [5, 5, 5, 5, 1, 1, 1, 1, 1, 5, 5]
    """

    name = "sgd-m"

    def ell(self, passes: int) -> int:
        """The number of presentations of each row in a pass; passes count from 1."""
        return 5 if 0 < passes % 9 < 5 else 1
