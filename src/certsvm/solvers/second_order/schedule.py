"""The schedule of the second-order method, which all of its forms follow.

The method minimises    J(w) = 1/2 |w|^2 + C sum_k s_k max(0, 1 - w.y_k)

through a sequence of smooth problems. With a point alpha_hat in the box and sigma > 0, let

    alpha_k(w) = clip(alpha_hat_k + sigma s_k (1 - w.y_k), 0, C s_k),       feasible for any w.

grad(w) = w - sum_k alpha_k(w) y_k is the gradient of a convex, piecewise quadratic function, the
augmented Lagrangian of the dual problem. Its Hessian is I + sigma sum_{k free} s_k y_k y_k', where
the free support vectors are the rows with alpha_k strictly inside the box. A step of Newton's
method solves a system with it, and then goes to the minimum along the direction.

Since J(w) - L(alpha(w)) = |grad|^2 / 2 + what smoothing costs, a smooth problem is solved once
|grad|^2 / 2 is a small part of the gap. Then the next one begins. There are two phases:

* Smoothing: alpha_hat is the middle of the box, so that the hinge's kink is rounded off over
  C / (2 sigma) to both sides, and sigma grows. This leads near the optimum from anywhere.
* Multipliers: alpha_hat <- alpha(w), the method of multipliers. sigma need not grow without bound,
  so this goes on to high accuracy. It takes a number for each row.

If hardly any row is short of its margin, smoothing about the middle of the box makes w too long,
and each sigma undoes what the last one achieved. So if the alpha of the first smooth problem add up
to little of what the boxes hold, the multipliers begin at once, from alpha_hat = 0.

A form without multipliers stays in the first phase. sigma then grows faster after problems that
took few steps and more slowly after problems that took many. If a problem takes too many, the
method goes back to the last one that was solved and grows sigma by less; it ends when sigma can
grow no further.

Most steps are spent on coming near, and for that a part of the rows is as good as all: where there
are many more rows than columns, the method first runs on a sample (``sample``). Its w and sigma
start the run on all rows. If sigma proves too steep there, the first sigma is taken instead.

References: O. Chapelle, Training a Support Vector Machine in the Primal, Neural Computation 19
(2007), for the smoothed hinge; R. T. Rockafellar, Augmented Lagrangians and Applications of the
Proximal Point Algorithm in Convex Programming, Mathematics of Operations Research 1 (1976).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum, auto

from certsvm.certificates.best import BestValues
from certsvm.storage.fields import count, flag, maybe, number, positive
from certsvm.storage.state import State, Stateful

# sigma, relative to C: the first, and the largest.
FIRST_SIGMA, LARGEST_SIGMA = 0.45, 1e12
# Smoothing ends at this relative gap, or after so many stages.
_NEAR, _SMOOTHING_STAGES = 0.02, 3
# The classes are nearly separable if the alpha fill less than this share of the boxes.
_NEARLY_SEPARABLE = 0.02
# Growth of sigma from one smooth problem to the next, in the two phases.
_SMOOTHING_GROWTH, _MULTIPLIER_GROWTH = 4.0, 3.0
# Where free support vectors limit the growth: the least growth, and so few steps that the limit is
# waived.
_LEAST_LIMITED_GROWTH, _EASY = 1.5, 1
# Without multipliers: the limits within which growth is adapted, the numbers of steps that are few
# and many, and the growth at which the method ends.
_GROWTH_LIMITS, _FEW, _MANY, _NO_GROWTH = (2.0, 16.0), 2, 6, 1.01
# J on all rows, relative to that on the sample, from which on the sample's answer is misleading.
_MISLEADING = 1.5
# A warm start begins with this share of the sigma at which the last run ended, since the problem is
# a different one.
_WARM = 0.1


@dataclass(frozen=True)
class Rules:
    """What differs between the forms of the method.

    Attributes
    ----------
    accuracy : float
        A smooth problem is solved when |grad|^2 / 2 is at most this share of the gap.
    most_steps : int
        Steps on one smooth problem after which it is left unsolved.
    steep_steps : int
        Steps after which a smooth problem that began from a larger sigma than the first counts as
        too steep.
    multipliers : bool, default=True
        Whether there is a number for each row, hence a phase of multipliers.
    free_per_column : float, default=None
        Free support vectors for each column that a growth of sigma should leave; None means that
        growth does not depend on them.
    """

    accuracy: float
    most_steps: int
    steep_steps: int
    multipliers: bool = True
    free_per_column: float | None = None


MEMORY = Rules(accuracy=0.05, most_steps=25, steep_steps=10)
PARTS = Rules(accuracy=0.2, most_steps=30, steep_steps=12, multipliers=False)
TENSORS = Rules(accuracy=0.2, most_steps=25, steep_steps=10, free_per_column=1.5)


class Move(Enum):
    """What comes next."""

    STEP = auto()
    """A step on the same smooth problem."""
    STEEPER = auto()
    """A new problem with the same alpha_hat and a larger sigma."""
    SMOOTHER = auto()
    """A new problem with the same alpha_hat and the first sigma, from the present w."""
    MULTIPLIERS = auto()
    """A new problem with alpha_hat <- alpha(w)."""
    FROM_ZERO = auto()
    """A new problem with alpha_hat <- 0."""
    BACK = auto()
    """A new problem with a sigma near that of the last one solved, from the w that solved it."""


class Schedule(Stateful):
    """The stages of one run.

    Parameters
    ----------
    rules : Rules
        Those of the form.
    sigma : float, default=FIRST_SIGMA
        To begin with, relative to C.
    smoothing : bool, default=True
        Whether to begin with the phase of smoothing; the phase of multipliers otherwise.
    sample_primal : float, default=None
        J at the w to begin with, on the sample it was found on.

    Attributes
    ----------
    sigma : float
        Relative to C.
    smoothing : bool
        Whether this is the phase of smoothing.
    steps : int
        Steps on the present smooth problem.

    Examples
    --------
    >>> best = BestValues()
    >>> best.offer(110.0, 100.0)
    >>> schedule = Schedule(MEMORY)
    >>> schedule.judge(10.0, best), schedule.sigma
    (<Move.STEP: 1>, 0.45)
    >>> schedule.judge(0.1, best), schedule.sigma
    (<Move.STEEPER: 2>, 1.8)
    """

    STATE = State(
        sigma=positive(),
        smoothing=flag(),
        steps=count(),
        stages=count(),
        growth=number(low=1.0, high=_GROWTH_LIMITS[1]),
        solved_sigma=positive(),
        sample_primal=maybe(number(low=0.0)),
        may_be_too_steep=flag(),
    )

    def __init__(
        self,
        rules: Rules,
        *,
        sigma: float = FIRST_SIGMA,
        smoothing: bool = True,
        sample_primal: float | None = None,
    ) -> None:
        self._rules = rules
        self.sigma = sigma
        self.smoothing = smoothing
        self.steps = 0
        self._stages = 0
        self._growth = _SMOOTHING_GROWTH
        self._solved_sigma = sigma
        self._sample_primal = sample_primal
        # Without multipliers sigma grows on and on: only a sample's can be too steep to begin with.
        self._may_be_too_steep = rules.multipliers or sample_primal is not None

    @classmethod
    def warm(cls, rules: Rules, sigma: float | None, *, smoothing: bool) -> Schedule:
        """Begin at a start, given the sigma at which the run that found it ended, if known."""
        first = FIRST_SIGMA if sigma is None else max(FIRST_SIGMA, _WARM * sigma)
        return cls(rules, sigma=first, smoothing=smoothing)

    def on_all_rows(self, filled: float) -> Schedule:
        """The schedule for all rows, if this one ended on a sample with the boxes so ``filled``."""
        return Schedule(self._rules, sigma=self.sigma, smoothing=filled >= _NEARLY_SEPARABLE)

    @property
    def finished(self) -> bool:
        """Whether sigma can grow no further."""
        return self._growth < _NO_GROWTH

    def judge(
        self,
        squared_gradient: float,
        best: BestValues,
        *,
        filled: float = 1.0,
        free_per_column: float = math.inf,
    ) -> Move:
        """Decide what comes next, and set ``sigma`` and ``smoothing`` for it.

        Parameters
        ----------
        squared_gradient : float
            |grad|^2 at the present w.
        best : BestValues
            The best J and L so far.
        filled : float, default=1.0
            sum_k alpha_k / (C sum_k s_k).
        free_per_column : float, default=inf
            Free support vectors for each column.
        """
        if self._is_misled(best):
            return self._smoother()
        if 0.5 * squared_gradient <= self._rules.accuracy * best.gap:
            return self._next_problem(best, filled, free_per_column)
        if self._is_too_steep():
            return self._smoother()
        if self.steps < self._rules.most_steps:
            return Move.STEP
        if self._rules.multipliers:
            return self._next_problem(best, filled, free_per_column)
        return self._back()

    def _is_misled(self, best: BestValues) -> bool:
        """Whether the first look at all rows shows that the sample's answer is far off."""
        expected, self._sample_primal = self._sample_primal, None
        return expected is not None and best.primal > _MISLEADING * expected

    def _is_too_steep(self) -> bool:
        return (
            self.smoothing
            and self._may_be_too_steep
            and self.sigma > FIRST_SIGMA
            and self.steps >= self._rules.steep_steps
        )

    def _smoother(self) -> Move:
        self.sigma, self.steps = FIRST_SIGMA, 0
        self._may_be_too_steep = self._rules.multipliers
        return Move.SMOOTHER

    def _back(self) -> Move:
        self._growth = math.sqrt(self._growth)
        self.sigma, self.steps = self._solved_sigma * self._growth, 0
        return Move.BACK

    def _next_problem(self, best: BestValues, filled: float, free_per_column: float) -> Move:
        self._stages += 1
        from_zero = False
        if self.smoothing and self._rules.multipliers:
            from_zero = filled < _NEARLY_SEPARABLE
            near = best.relative_gap <= _NEAR or self._stages > _SMOOTHING_STAGES
            self.smoothing = not (from_zero or near)
        self._solved_sigma = self.sigma
        self.sigma = min(self.sigma * self._next_growth(free_per_column), LARGEST_SIGMA)
        self.steps = 0
        if self.smoothing:
            return Move.STEEPER
        return Move.FROM_ZERO if from_zero else Move.MULTIPLIERS

    def _next_growth(self, free_per_column: float) -> float:
        """By how much sigma grows, in view of the steps that the last problem took."""
        rules = self._rules
        if not rules.multipliers:
            least, most = _GROWTH_LIMITS
            if self.steps <= _FEW:
                self._growth = min(2.0 * self._growth, most)
            elif self.steps > _MANY:
                self._growth = min(self._growth, max(0.5 * self._growth, least))
            return self._growth
        if self.smoothing:
            return _SMOOTHING_GROWTH
        if rules.free_per_column is None or self.steps <= _EASY:
            return _MULTIPLIER_GROWTH
        # As sigma grows, free support vectors become fewer. With fewer than columns, they say too
        # little of where to go, and steps become short; unless they were few anyway.
        most = free_per_column / rules.free_per_column
        return min(max(most, _LEAST_LIMITED_GROWTH), _MULTIPLIER_GROWTH)
