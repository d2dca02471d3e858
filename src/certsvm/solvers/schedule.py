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
  so this reaches high accuracy. It takes a number per row.

If hardly any row is below the margin, smoothing about the middle of the box makes w too long, and
each sigma undoes the progress of the last one. So if sum_k alpha_k of the first smooth problem is
small beside C sum_k s_k, the multipliers begin at once, from alpha_hat = 0.

If the smooth problem is too steep, steps end at the next kink and are tiny. This happens if C is
large and the classes are separable, or if columns differ much in scale: then alpha is far below C,
and a slope of about C is far too steep. After a few tiny steps, or many steps far from the optimum,
the multipliers begin, from alpha_hat = 0 or from where they are, with a much smaller sigma. From
then on sigma follows the number of steps: it grows by more after a problem that took few.

A form without multipliers stays in the first phase. sigma then grows faster after problems that
took few steps and more slowly after problems that took many. If a problem takes too many, the
method goes back to the last one that was solved and grows sigma by less; it ends when sigma can
grow no further.

If the loss is smooth, as the squared hinge is, there is only one problem, J itself, with
alpha_k(w) = 2 C s_k max(0, 1 - w.y_k). Newton's method solves it in finitely many steps.

Most steps are spent far from the optimum, where a part of the rows serves as well as all: if there
are many more rows than columns, the method first runs on a sample. Its w and sigma start the run on
all rows. If that sigma is too steep, the first sigma is taken instead.

References: S. S. Keerthi and D. DeCoste, A Modified Finite Newton Method for Fast Solution of Large
Scale Linear SVMs, JMLR 6 (2005), for the squared hinge; O. Chapelle, Training a Support Vector
Machine in the Primal, Neural Computation 19 (2007), for the smoothed hinge; R. T. Rockafellar,
Augmented Lagrangians and Applications of the Proximal Point Algorithm in Convex Programming,
Mathematics of Operations Research 1 (1976).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from enum import Enum, auto

from certsvm.certificates.best import BestValues
from certsvm.certificates.rounding import Bound
from certsvm.kernels.losses import Loss

# sigma, relative to C: the first, and the largest.
FIRST_SIGMA, LARGEST_SIGMA = 0.45, 1e12
# Smoothing ends at this relative gap, or after so many stages.
NEAR, SMOOTHING_STAGES = 0.02, 3
# The classes are nearly separable if sum_k alpha_k is less than this share of C sum_k s_k.
NEARLY_SEPARABLE = 0.02
# The numbers of steps after which a smooth problem is given up, and after which one with more than
# the first sigma is too steep.
MOST_STEPS, STEEP_STEPS = 25, 10
# Growth of sigma from one smooth problem to the next, in the two phases.
SMOOTHING_GROWTH, MULTIPLIER_GROWTH = 4.0, 3.0
# If free support vectors limit the growth: the least growth, and the number of steps up to which
# there is no limit.
_LEAST_LIMITED_GROWTH, _EASY = 1.5, 1
# Without multipliers: the limits within which growth is adapted, the numbers of steps that are few
# and many, and the growth at which the method ends.
_GROWTH_LIMITS, _FEW, _MANY, _NO_GROWTH = (2.0, 16.0), 2, 6, 1.01
# A step is tiny below this length. After so many on one problem, or so many steps of any length far
# from the optimum, sigma is multiplied by the factor. Far is a larger relative gap than this.
_TINY, _MANY_TINY, _SLOW, _FAR, _FLATTER = 1e-3, 4, 15, 10.0, 1 / 30
# If sum_k alpha_k is less than this share of C sum_k s_k, few alpha_k are at the end of their box.
_FEW_AT_THE_END = 0.3
# Growth of sigma after that, up to given numbers of steps, and beyond. The least sigma.
_CAUTIOUS_GROWTH, _LEAST_SIGMA = ((3, 10.0), (8, 3.0)), 1e-30
# If there are no stages, or the gap is closed but for rounding, the method ends when the gap has
# not fallen to this share of what it was in so many steps. Far from the optimum it falls slowly,
# while rows lose their loss one by one.
_FALL, _MOST_IDLE = 0.99, 30
# The sample is misleading if J on all rows exceeds J on the sample by this factor.
_MISLEADING = 1.5
# A warm start begins with this share of the last sigma, since the problem is different, and with no
# more than a limit: with too steep a sigma, steps are short, and sigma only grows.
_WARM, _LARGEST_WARM_SIGMA = 0.1, 10.0

# A sample has this share of the rows, but at least so many per column, and in all.
_SHARE, _PER_COLUMN, _FEWEST = 1 / 12, 20, 1000
# It is worthwhile if there are so many times more rows.
_WORTHWHILE = 3
# A sample lacks the rows that matter if its share of the weight is less than this part of its share
# of the rows.
_LEAST_WEIGHT = 0.1
# The run on a sample ends at this relative gap, or after so many steps.
SAMPLE_GAP, SAMPLE_STEPS = 0.03, 30
# The share of the gap, or of the tolerance, that rounding may take.
_ROUNDING = 0.05
# The share of the tolerance that is spent on moving rows off the margin, and the largest share. The
# multiple of the margin slack that moves them off.
_LENGTHENING, _LONGEST, _BEYOND_SLACK = 0.1, 0.4, 1.5


@dataclass(frozen=True)
class Rules:
    """The parameters in which the forms of the method differ.

    Attributes
    ----------
    accuracy : float
        A smooth problem is solved when |grad|^2 / 2 is at most this share of the gap.
    multipliers : bool, default=True
        Whether there is a phase of multipliers.
    free_per_column : float, default=None
        Number of free support vectors per column that should remain when sigma grows; None does not
        limit the growth.
    stages : bool, default=True
        Whether there is more than one problem.
    """

    accuracy: float
    multipliers: bool = True
    free_per_column: float | None = None
    stages: bool = True


MEMORY = Rules(accuracy=0.05)
PARTS = Rules(accuracy=0.2, multipliers=False)
TENSORS = Rules(accuracy=0.2, free_per_column=1.5)


def rules_for(loss: Loss, rules: Rules) -> Rules:
    """The rules for a loss, given those for one that has to be smoothed."""
    return replace(rules, stages=False) if loss.is_smooth else rules


class Move(Enum):
    """The next move of the method: a step on the same smooth problem, or a new problem."""

    STEP = auto()
    # With the same alpha_hat and a larger sigma; the first sigma; or a smaller one.
    STEEPER, SMOOTHER, FLATTER = auto(), auto(), auto()
    # With alpha_hat <- alpha(w), or alpha_hat <- 0.
    MULTIPLIERS, FROM_ZERO = auto(), auto()
    # With a sigma near that of the last one solved, from the w that solved it.
    BACK = auto()


class Schedule:
    """The stages of one run.

    ``sample_primal`` is J at the initial w on the sample that gave it, if one did.

    Attributes
    ----------
    sigma : float
        The slope sigma of the current smooth problem, divided by C.
    smoothing : bool
        Whether the phase is smoothing, rather than multipliers.
    steps : int
        Number of steps on the current smooth problem.
    finished : bool
        Whether sigma can grow no further, or the gap does not shrink any more.

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

    def __init__(
        self, rules: Rules, *, sigma: float = FIRST_SIGMA, smoothing: bool = True,
        sample_primal: float | None = None,
    ) -> None:  # fmt: skip
        self._rules, self.sigma, self.smoothing = rules, sigma, smoothing
        self.steps = self._stages = 0
        self._growth, self._solved_sigma = SMOOTHING_GROWTH, sigma
        self._sample_primal = sample_primal
        # Without multipliers sigma must keep growing: only the sigma of a sample can be too steep.
        self._may_be_too_steep = rules.multipliers or sample_primal is not None
        # Tiny steps on the current problem, and whether the last step was none at all.
        self._tiny, self._stuck = 0, False
        # Whether sigma had to be made much smaller.
        self._cautious = False
        # The gap when it last fell, the number of steps since, and whether there are too many.
        self._least_gap, self._idle, self.finished = math.inf, 0, False

    @classmethod
    def warm(
        cls, rules: Rules, sigma: float | None, *, smoothing: bool, same: bool = False
    ) -> Schedule:
        """The schedule for a warm start, given the last sigma of the earlier run, if known.

        On the ``same`` problem it goes on with that sigma.
        """
        if not same:
            first = min(max(FIRST_SIGMA, _WARM * (sigma or 0.0)), _LARGEST_WARM_SIGMA)
            return cls(rules, sigma=first, smoothing=smoothing)
        first = min(max(_LEAST_SIGMA, sigma or FIRST_SIGMA), LARGEST_SIGMA)
        schedule = cls(rules, sigma=first, smoothing=smoothing)
        # It begins near the end of a smooth problem, which does not mean that it was easy.
        schedule._growth, schedule.steps = _GROWTH_LIMITS[0], _FEW
        return schedule

    def on_all_rows(self, filled: float) -> Schedule:
        """The schedule for all rows after this one on a sample; for ``filled``, see ``judge``."""
        smoothing = filled >= NEARLY_SEPARABLE and not self._cautious
        schedule = Schedule(self._rules, sigma=self.sigma, smoothing=smoothing)
        schedule._cautious = self._cautious
        return schedule

    def note_step(self, length: float) -> None:
        """Count a step of this length, relative to that of Newton's method."""
        self.steps += 1
        self._tiny += 0.0 < length < _TINY
        self._stuck = length == 0.0

    def judge(
        self, squared_gradient: float, best: BestValues, *, filled: float = 1.0,
        free_per_column: float = math.inf, closed: float = 0.0,
    ) -> Move:  # fmt: skip
        """Decide on the next move, and set ``sigma`` and ``smoothing`` for it.

        ``squared_gradient`` is |grad|^2 at the current w, ``filled`` sum_k alpha_k / (C sum_k s_k),
        ``free_per_column`` the number of free support vectors per column. A gap up to ``closed``
        is closed but for rounding.
        """
        self._idle += 1
        if best.gap < _FALL * self._least_gap:
            self._least_gap, self._idle = best.gap, 0
        may_end = best.gap <= closed or not self._rules.stages
        self.finished = may_end and self._idle >= _MOST_IDLE
        if not self._rules.stages:
            return Move.STEP
        expected, self._sample_primal = self._sample_primal, None
        if expected is not None and best.primal > _MISLEADING * expected:
            # The first J on all rows shows that the w of the sample is far off.
            return self._smoother()
        if 0.5 * squared_gradient <= self._rules.accuracy * best.gap:
            return self._next_problem(best, filled, free_per_column)
        slow = self.steps >= _SLOW and best.relative_gap > _FAR and self._rules.multipliers
        much_too_steep = self._tiny >= _MANY_TINY or slow
        much_too_steep &= self.sigma * _FLATTER >= _LEAST_SIGMA
        may_be_too_steep = self.smoothing and self._may_be_too_steep and self.sigma > FIRST_SIGMA
        if may_be_too_steep and (much_too_steep or self.steps >= STEEP_STEPS):
            return self._smoother()
        if much_too_steep:
            return self._flatter(filled)
        if self.steps < MOST_STEPS and not self._stuck:
            return Move.STEP
        if self._rules.multipliers:
            return self._next_problem(best, filled, free_per_column)
        self._growth = math.sqrt(self._growth)
        self.finished = self._growth < _NO_GROWTH
        self._begin(self._solved_sigma * self._growth)
        return Move.BACK

    def _begin(self, sigma: float) -> None:
        self.sigma, self.steps = sigma, 0
        self._tiny, self._stuck = 0, False

    def _smoother(self) -> Move:
        self._begin(FIRST_SIGMA)
        self._may_be_too_steep = self._rules.multipliers
        return Move.SMOOTHER

    def _flatter(self, filled: float) -> Move:
        self._begin(self.sigma * _FLATTER)
        self._cautious = True
        if not self.smoothing:
            return Move.FLATTER
        # Smoothing about the middle of the box with a small sigma would make w too long.
        self.smoothing = False
        return Move.FROM_ZERO if filled < _FEW_AT_THE_END else Move.MULTIPLIERS

    def _next_problem(self, best: BestValues, filled: float, free_per_column: float) -> Move:
        self._stages += 1
        from_zero = False
        if self.smoothing and self._rules.multipliers:
            from_zero = filled < NEARLY_SEPARABLE
            near = best.relative_gap <= NEAR or self._stages > SMOOTHING_STAGES
            self.smoothing = not (from_zero or near)
        self._solved_sigma = self.sigma
        self._begin(min(self.sigma * self._next_growth(free_per_column), LARGEST_SIGMA))
        if self.smoothing:
            return Move.STEEPER
        return Move.FROM_ZERO if from_zero else Move.MULTIPLIERS

    def _next_growth(self, free_per_column: float) -> float:
        """The factor by which sigma grows, given the steps that the last problem took."""
        rules = self._rules
        if not rules.multipliers:
            least, most = _GROWTH_LIMITS
            if self.steps <= _FEW:
                self._growth = min(2.0 * self._growth, most)
            elif self.steps > _MANY:
                self._growth = min(self._growth, max(0.5 * self._growth, least))
            return self._growth
        if self.smoothing:
            return SMOOTHING_GROWTH
        if self._cautious:
            return next((growth for most, growth in _CAUTIOUS_GROWTH if self.steps <= most), 1.0)
        if rules.free_per_column is None or self.steps <= _EASY:
            return MULTIPLIER_GROWTH
        # As sigma grows, there are fewer free support vectors. With fewer than columns, the Hessian
        # says too little, and steps become short.
        most = free_per_column / rules.free_per_column
        return min(max(most, _LEAST_LIMITED_GROWTH), MULTIPLIER_GROWTH)


def sample_size(m: int, columns: int, most: int | None = None) -> int | None:
    """The size of a random sample of ``m`` rows, at most ``most``; None if it is not worthwhile.

    Examples
    --------
    >>> sample_size(120_000, 10), sample_size(120_000, 1000), sample_size(2000, 10)
    (10000, 20000, None)
    """
    size = max(int(_SHARE * m), _PER_COLUMN * columns, _FEWEST)
    if most is not None:
        size = min(size, most)
    return None if _WORTHWHILE * size > m else size


def has_enough_weight(weight_share: float, size: int, m: int) -> bool:
    """Whether a sample of ``size`` of ``m`` rows, with this share of the weight, is useful.

    If a few rows have most of the weight, a sample may contain none of them.
    """
    return weight_share >= _LEAST_WEIGHT * size / m


def too_rounded(rounding: float, best: BestValues) -> bool:
    """Whether rounding is so large beside the gap that recomputing is worthwhile."""
    return rounding > _ROUNDING * best.gap


def lengthening(primal: Bound, best: BestValues, target: float, slack: float = 0.0) -> float | None:
    """A factor by which to scale w, if that may give a lower bound on J with its rounding.

    Each row on the margin may have a loss of a rounding error, times C. Scaling w by
    1 + target / 10 moves these rows off the margin, where their loss is certainly zero. If the
    margin ``slack`` is larger, so is the factor, up to a limit. This is worth trying once the
    target is met up to rounding.
    """
    if not (primal.rounding > _ROUNDING * (target * best.dual) and best.relative_gap <= target):
        return None
    needed = _BEYOND_SLACK * slack
    return 1.0 + max(_LENGTHENING * target, needed if needed <= _LONGEST * target else 0.0)
