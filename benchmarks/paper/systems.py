"""The algorithms of the tables, each with the parameter of its stopping rule.

The paper runs each algorithm to a true accuracy of 0.01, with knowledge of the optimum, and tunes
the stopping parameter for it. So each system here has a search for the loosest value that reaches
the accuracy, and a run with that value, which is timed. Where the iterates do not depend on the
stopping parameter, one run of the search shows where each value would have stopped it.
"""

from __future__ import annotations

import itertools
import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from benchmarks.reference import Reference
from certsvm.certificates.certificate import relative_gap
from certsvm.certificates.primal import primal_bound
from certsvm.kernels.vectors import inner
from certsvm.problem.problems import Problem
from certsvm.problem.rows import Vector
from certsvm.resources import single_threaded_blas
from certsvm.solvers import (
    DCD,
    MPU,
    OCAS,
    SGDQN,
    Auto,
    Newton,
    Pegasos,
    SGDm,
    SGDr,
    SGDs,
    Solver,
    SVMperf,
    SvmSgd,
)
from certsvm.solvers.base import Epoch, Options, Run
from certsvm.training.loop import train
from certsvm.training.settings import INTERRUPTED, Result

ACCURACY = 0.01
# Above any number of passes that the time allows.
NO_LIMIT = 10**9
# A search computes J again after a fiftieth of the passes made so far.
_LOOK = 50
# The coefficient of SGD-s and SGD-m, and one with which J is computed wherever L > 0.
F, _ALWAYS = 1.2, 1e12
# SGD-s and SGD-m with the dual points and the order of the paper.
AS_PUBLISHED: dict[str, Any] = {"windows": 0, "shuffled": False}
# A search that ends without success has stalled if its nearest J is from its first half, and there
# were so many passes.
_STALLED = 50
# Values of a parameter between two powers of ten.
_BETWEEN = (7.0, 5.0, 3.0, 2.0, 1.5)


@dataclass(frozen=True)
class Task:
    """A problem, its optimum, the time limit of a run, and the seed."""

    problem: Problem
    optimum: Reference
    seconds: float
    seed: int = 0

    def accuracy(self, w: Vector) -> float:
        """The relative distance of J(w) to the optimum; infinite if w is not finite."""
        if not np.isfinite(w).all():
            return math.inf
        return self.optimum.accuracy(primal_bound(self.problem, w).value)


@dataclass
class Outcome:
    """The result of a system on a task.

    Attributes
    ----------
    value : float or None
        Value of the stopping parameter.
    passes, epochs : int
        Passes over the data; T, the presentations of each row.
    seconds : float
        Time of the run with that value.
    start_seconds : float
        The part of it before the first pass, in which some systems search for a rate.
    accuracy : float
        True accuracy.
    proved : float or None
        Relative gap, for systems that prove one.
    failure : str or None
        Reason why there is no such run.
    """

    value: float | None = None
    passes: int = 0
    epochs: int = 0
    seconds: float = math.inf
    start_seconds: float = 0.0
    accuracy: float = math.inf
    proved: float | None = None
    failure: str | None = None

    def describe(self) -> dict[str, Any]:
        """The fields that JSON can hold."""
        return {k: v for k, v in vars(self).items() if not (v is None or v == math.inf)}


class System(ABC):
    """An algorithm in a table."""

    name: str
    parameter: str = ""
    """Name of its stopping parameter."""
    single: bool = False
    """Whether its rows are in single precision."""
    shuffled: bool = False
    """Whether its rows are shuffled beforehand, at no cost, since it never does so itself."""

    @abstractmethod
    def search(self, task: Task) -> Outcome:
        """The loosest value that reaches the accuracy, or the reason why there is none."""

    @abstractmethod
    def run(self, task: Task, value: float | None) -> Outcome:
        """Run with this value of the parameter."""

    def measure(self, task: Task, repeats: int) -> Outcome:
        """Search, then run; return the fastest of the repeats. Long runs are not repeated."""
        with single_threaded_blas():
            tuned = self.search(task)
            if tuned.failure:
                return tuned
            best = self.run(task, tuned.value)
            for _ in range(repeats - 1):
                if best.failure or best.seconds > 0.2 * task.seconds:
                    break
                again = self.run(task, tuned.value)
                best = again if again.seconds < best.seconds else best
            return best


def out_of_time(passes: int, nearest: float) -> Outcome:
    """A failure: out of time."""
    got = f", accuracy {nearest:.1e}" if math.isfinite(nearest) else ""
    return Outcome(
        passes=passes, accuracy=nearest, failure=f"not reached in {passes:,} passes{got}"
    )


@dataclass
class Bare:
    """An algorithm without the training loop; its clock stops between passes."""

    task: Task
    solver: Solver
    passes: int = 0
    seconds: float = 0.0
    start_seconds: float = 0.0

    def __iter__(self) -> Iterator[tuple[Run, Epoch]]:
        """Pass after pass, until its own stopping rule holds or time is up."""
        began = time.perf_counter()
        options = Options(np.random.default_rng(self.task.seed), ACCURACY)
        run = self.solver.start(self.task.problem, options)
        self.start_seconds = time.perf_counter() - began
        while True:
            epoch = run.epoch()
            self.passes += 1
            self.seconds += time.perf_counter() - began
            yield run, epoch
            if epoch.finished or self.seconds > self.task.seconds:
                return
            began = time.perf_counter()

    @property
    def late(self) -> bool:
        """Whether the time is up."""
        return self.seconds > self.task.seconds


def _finished(bare: Bare, epoch: Epoch, value: float | None, accuracy: float) -> Outcome:
    return Outcome(value, bare.passes, epoch.epochs, bare.seconds, bare.start_seconds, accuracy)


@dataclass
class ByPasses(System):
    """Stops after a number of passes and returns the last w."""

    name: str
    solver: Solver
    parameter: str = "passes"
    single: bool = False
    shuffled: bool = False

    def search(self, task: Task) -> Outcome:
        """Compute J after each of the first passes, and more rarely later."""
        bare = Bare(task, self.solver)
        look, nearest, when = 1, math.inf, 0
        for run, _ in bare:
            if bare.passes < look and not bare.late:
                continue
            look = bare.passes + max(1, bare.passes // _LOOK)
            w = next(run.candidates())
            if not np.isfinite(w).all():
                return Outcome(passes=bare.passes, failure="numerical failure")
            accuracy = task.accuracy(w)
            if accuracy <= ACCURACY:
                return Outcome(float(bare.passes))
            if accuracy < nearest:
                nearest, when = accuracy, bare.passes
        if max(_STALLED, 2 * when) <= bare.passes:
            stalled = f"stalled: nearest {nearest:.1e} after {when:,} of {bare.passes:,} passes"
            return Outcome(passes=bare.passes, accuracy=nearest, failure=stalled)
        return out_of_time(bare.passes, nearest)

    def run(self, task: Task, value: float | None) -> Outcome:
        """Make ``value`` passes."""
        assert value is not None
        # The search met the limit; a busy moment is no reason to fail now.
        bare = Bare(replace(task, seconds=math.inf), self.solver)
        for run, epoch in bare:
            if bare.passes >= value:
                w = next(run.candidates())
                accuracy = task.accuracy(w)
                return _finished(bare, epoch, value, accuracy)
        raise AssertionError("it stopped by itself")


class Look(NamedTuple):
    """SGD-s or SGD-m as published after a pass."""

    passes: int
    epochs: int
    guess: float
    """The estimate of J from the inner products of the pass."""
    dual: float
    """L over all passes, unscaled."""
    primal: float
    """J(w), or NaN if the guess is too far above L to compute it."""
    seconds: float


def published(
    problem: Problem, solver: SGDs, eps: float, f: float, seconds: float, seed: int
) -> Iterator[Look]:
    """SGD-s or SGD-m as published, pass after pass, until J / L - 1 <= eps or time is up.

    J and L are the values of the same w. J is computed where its estimate is within f eps of L, and
    after the last pass.
    """
    began = time.perf_counter()
    run = solver.start(problem, Options(np.random.default_rng(seed), eps))
    for passes in itertools.count(1):
        epoch = run.epoch()
        guess, dual, primal = epoch.primal_estimate, epoch.dual_estimate, math.nan
        assert guess is not None
        # In single precision, only the estimate of L costs nothing.
        dual = _dual(run) if dual is None else dual
        late = time.perf_counter() - began >= seconds
        if late or (dual > 0.0 and guess / dual - 1.0 <= f * eps):
            dual = _dual(run)
            primal = primal_bound(problem, next(run.candidates())).value
        yield Look(passes, epoch.epochs, guess, dual, primal, time.perf_counter() - began)
        if late or (dual > 0.0 and primal / dual - 1.0 <= eps):
            return


def _dual(run: Run) -> float:
    point = run.dual()
    assert point is not None
    return point.alpha_sum - 0.5 * inner(point.w, point.w)


@dataclass
class ByGap(System):
    """SGD-s and SGD-m as published: stop at J / L - 1 <= eps, checked once the estimate is low."""

    name: str
    solver: SGDs
    parameter: str = "eps"
    single: bool = False

    def search(self, task: Task) -> Outcome:
        """One run that computes J after each pass shows where each eps would have stopped."""
        gaps, seconds = Gaps(F), 3.0 * task.seconds
        for look in published(task.problem, self.solver, 1e-9, _ALWAYS, seconds, task.seed):
            gaps.add(look.primal, look.guess, look.dual)
            accuracy = task.optimum.accuracy(look.primal)
            if accuracy <= ACCURACY and math.isfinite(epsilon := gaps.stopping_now()):
                return Outcome(epsilon)
        return out_of_time(look.passes, accuracy)

    def run(self, task: Task, value: float | None) -> Outcome:
        """Run to this eps."""
        assert value is not None
        *_, look = published(task.problem, self.solver, value, F, task.seconds, task.seed)
        accuracy = task.optimum.accuracy(look.primal)
        gap = relative_gap(look.primal, look.dual)
        if gap > value:
            return out_of_time(look.passes, accuracy)
        return Outcome(value, look.passes, look.epochs, look.seconds, accuracy=accuracy, proved=gap)


class Gaps:
    """The gaps after each pass so far, and the eps that would stop at the last one."""

    def __init__(self, f: float) -> None:
        self._f = f
        self._least = math.inf
        self._gap, self._guess = math.inf, math.inf

    def add(self, primal: float, guess: float, dual: float) -> None:
        """Record a pass."""
        self._least = min(self._least, max(self._gap, self._guess / self._f))
        self._gap = primal / dual - 1.0 if dual > 0.0 else math.inf
        self._guess = guess / dual - 1.0 if dual > 0.0 else math.inf

    def stopping_now(self) -> float:
        """Two digits of eps, or NaN if it would have stopped at an earlier pass.

        A run stops at a pass if the gap is at most eps and its estimate at most f eps; otherwise
        the gap is not computed.
        """
        needed = max(self._gap, self._guess / self._f)
        if not math.isfinite(needed) or needed <= 0.0:
            return math.nan
        unit = 10.0 ** (math.floor(math.log10(needed)) - 1)
        epsilon = float(f"{math.ceil(needed / unit * (1.0 + 1e-9)) * unit:.6g}")
        return epsilon if epsilon < self._least else math.nan


@dataclass
class ByRule(System):
    """Stops by its own rule with a parameter, the loosest of a ladder of values."""

    name: str
    make: Callable[[float], Solver]
    powers: Sequence[int]
    parameter: str = "eps"
    single: bool = False

    def search(self, task: Task) -> Outcome:
        """Powers of ten downwards, then the values between the last two."""
        for power in self.powers:
            outcome = self.run(task, 10.0**power)
            if outcome.failure:
                return outcome
            if outcome.accuracy <= ACCURACY:
                break
        else:
            return out_of_time(outcome.passes, outcome.accuracy)
        for digit in _BETWEEN if power < self.powers[0] else ():
            looser = self.run(task, digit * 10.0**power)
            if not looser.failure and looser.accuracy <= ACCURACY:
                return looser
        return outcome

    def run(self, task: Task, value: float | None) -> Outcome:
        """Run until its own rule holds."""
        assert value is not None
        bare = Bare(task, self.make(value))
        for run, epoch in bare:
            w = next(run.candidates()) if epoch.finished or bare.late else None
            if w is None:
                continue
            if not epoch.finished:
                return out_of_time(bare.passes, task.accuracy(w))
            return _finished(bare, epoch, value, task.accuracy(w))
        raise AssertionError("a run stops or is late")


@dataclass
class WithoutParameter(System):
    """No stopping parameter; the search only compiles the kernels."""

    name: str
    solver: Solver

    def search(self, task: Task) -> Outcome:
        """Run once."""
        return self.run(task, None)


class ByObjective(WithoutParameter):
    """OCAS: stops when J, known after each round, is at most 1.01 times the optimum."""

    def run(self, task: Task, value: float | None) -> Outcome:
        """Run until J is low enough."""
        bare, J = Bare(task, self.solver), math.inf
        for run, epoch in bare:
            assert epoch.primal_estimate is not None
            J = epoch.primal_estimate
            if task.optimum.accuracy(J) <= ACCURACY:
                return _finished(bare, epoch, None, task.accuracy(next(run.candidates())))
        return out_of_time(bare.passes, task.optimum.accuracy(J))


class ByProof(WithoutParameter):
    """Ours: stops when the accuracy is proved, without knowledge of the optimum."""

    def run(self, task: Task, value: float | None) -> Outcome:
        """Run until the accuracy is proved."""
        outcome, met = certified(task, self.solver, ACCURACY)
        return outcome if met else out_of_time(outcome.passes, outcome.accuracy)


def certified(task: Task, solver: Solver, tol: float) -> tuple[Outcome, bool]:
    """Train until the tolerance is met or time is up; also return whether it is proved."""
    began = time.perf_counter()
    result = trained(task.problem, solver, tol, task.seconds, task.seed)
    seconds = time.perf_counter() - began
    gap, accuracy = result.certificate.relative_gap, task.accuracy(result.w)
    outcome = Outcome(None, result.passes, result.epochs, seconds, accuracy=accuracy, proved=gap)
    return outcome, result.certificate.met


def trained(problem: Problem, solver: Solver, tol: float, seconds: float, seed: int) -> Result:
    """Run the training loop. Ctrl-C, which only ends the loop, ends the experiment."""
    result = train(problem, solver, tol=tol, max_iter=NO_LIMIT, max_time=seconds, seed=seed)
    if result.reason == INTERRUPTED:
        raise KeyboardInterrupt
    return result


def powers_of_ten(first: int, last: int) -> Sequence[int]:
    """Downwards, both included."""
    return range(first, last - 1, -1)


def _in_given_order(name: str, solver: Solver) -> ByPasses:
    return ByPasses(name, solver, single=True, shuffled=True)


SYSTEMS: dict[str, System] = {
    system.name: system
    for system in itertools.chain[System](
        # Tables 2, 4 and 6. The paper ran the published program of Pegasos, which begins at t = 2.
        (
            ByPasses("Pegasos", Pegasos(first_t=2), "t_max/m"),
            ByPasses("SGD-r", SGDr(), "t_max/m"),
            ByGap("SGD-s", SGDs(**AS_PUBLISHED)),
            ByGap("SGD-m", SGDm(**AS_PUBLISHED)),
        ),
        # Tables 3, 5 and 7. MPU's delta and delta_stop are the same.
        (
            ByRule("SVMperf", lambda eps: SVMperf(eps=eps), powers_of_ten(0, -7)),
            ByObjective("OCAS", OCAS()),
            ByRule("DCD", lambda eps: DCD(eps=eps), powers_of_ten(2, -6)),
            ByRule("MPU", lambda eps: MPU(delta=eps, delta_stop=eps), powers_of_ten(0, -3)),
        ),
        # Table 8. The paper gave SvmSgd and SGD-QN shuffled rows.
        (
            _in_given_order("SvmSgd, single", SvmSgd(precision="single", shuffle=False)),
            _in_given_order(
                "SGD-QN, single",
                SGDQN(precision="single", shuffle=False, restart_decay=True, clip_decay=False),
            ),
            _in_given_order("SGD-QN, single, corrected", SGDQN(precision="single", shuffle=False)),
            ByGap("SGD-m, single", SGDm(**AS_PUBLISHED, precision="single"), single=True),
            ByRule(
                "MPU, single",
                lambda eps: MPU(delta=eps, delta_stop=eps, precision="single"),
                powers_of_ten(0, -3),
                single=True,
            ),
        ),
        # What the paper could not show.
        (
            ByProof("SGD-s, windows", SGDs()),
            ByProof("SGD-m, windows", SGDm()),
            ByProof("Newton", Newton()),
            ByProof("auto", Auto()),
        ),
    )
}
