"""The algorithms of the tables, each with the parameter that ends it.

The paper runs each algorithm to a true accuracy of 0.01, with knowledge of the optimum, and tunes
the parameter that ends it for that. So each system here has a search for the loosest value that
does, and a run with that value, which is what is timed. A search makes use of what it can: the
iterates of some algorithms do not depend on when they end, so one run shows where each value
would have ended it.
"""

from __future__ import annotations

import itertools
import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from benchmarks.reference import Reference
from certsvm.certificates.primal import primal_bound
from certsvm.parallel import single_threaded_blas
from certsvm.problem.memory import Problem
from certsvm.problem.rows import Vector
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
from certsvm.training.loop import INTERRUPTED, Progress, Result, train

SEED = 0
ACCURACY = 0.01
# Above any number of passes that the time allows.
NO_LIMIT = 10**9
# Between passes at which a search looks at J: a fiftieth of those made.
_LOOK = 50
# J is looked at wherever there is a dual bound: the guess is never this far off.
_ALWAYS = 1e12
# Values of a parameter between two powers of ten.
_BETWEEN = (7.0, 5.0, 3.0, 2.0, 1.5)


@dataclass(frozen=True)
class Task:
    """A problem, its optimum, and how long a run may take."""

    problem: Problem
    optimum: Reference
    seconds: float

    def accuracy(self, w: Vector) -> float:
        """How far above the optimum J(w) is, relative to it; infinite if it is not a number."""
        if not np.isfinite(w).all():
            return math.inf
        return self.optimum.accuracy(primal_bound(self.problem, w).value)


@dataclass
class Outcome:
    """What a system came to on a task.

    Attributes
    ----------
    value : float or None
        Of the parameter.
    passes, epochs : int
        Readings of the data; T, presentations of each row.
    seconds : float
        Of the run with that value.
    accuracy : float
        The true one.
    proved : float or None
        The relative gap, for systems that prove one.
    failure : str or None
        Why there is no such run.
    """

    value: float | None = None
    passes: int = 0
    epochs: int = 0
    seconds: float = math.inf
    accuracy: float = math.inf
    proved: float | None = None
    failure: str | None = None

    def describe(self) -> dict[str, Any]:
        """For the record: numbers that JSON has."""
        return {k: v for k, v in vars(self).items() if not (v is None or v == math.inf)}


class System(ABC):
    """An algorithm in a table."""

    name: str
    parameter: str = ""
    """The parameter that ends it."""
    single: bool = False
    """Whether it is given the rows in single precision."""

    @abstractmethod
    def search(self, task: Task) -> Outcome:
        """The loosest value with which it is accurate enough, or why there is none."""

    @abstractmethod
    def run(self, task: Task, value: float | None) -> Outcome:
        """With that value."""

    def measure(self, task: Task, repeats: int) -> Outcome:
        """Search, then run; the best of the repeats, for runs that are not long."""
        with single_threaded_blas():
            found = self.search(task)
            if found.failure:
                return found
            best = self.run(task, found.value)
            for _ in range(repeats - 1):
                if best.failure or best.seconds > 0.2 * task.seconds:
                    break
                again = self.run(task, found.value)
                best = again if again.seconds < best.seconds else best
            return best


def ending(passes: int, nearest: float) -> Outcome:
    """Out of time."""
    got = f", accuracy {nearest:.1e}" if math.isfinite(nearest) else ""
    return Outcome(
        passes=passes, accuracy=nearest, failure=f"not reached in {passes:,} passes{got}"
    )


@dataclass
class Bare:
    """An algorithm by itself: passes, and a clock that stops while we look."""

    task: Task
    solver: Solver
    passes: int = 0
    seconds: float = 0.0

    def __iter__(self) -> Iterator[tuple[Run, Epoch]]:
        """Pass after pass, until it ends by itself or time is up."""
        began = time.perf_counter()
        options = Options(np.random.default_rng(SEED), ACCURACY)
        run = self.solver.start(self.task.problem, options)
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
        """Whether it has taken longer than it may."""
        return self.seconds > self.task.seconds


@dataclass
class ByPasses(System):
    """Ends after a number of passes; the last w is the answer."""

    name: str
    solver: Solver
    parameter: str = "passes"
    single: bool = False

    def search(self, task: Task) -> Outcome:
        """Look at J after the first passes, and more rarely later."""
        bare = Bare(task, self.solver)
        look, nearest = 1, math.inf
        for run, _ in bare:
            if bare.passes < look and not bare.late:
                continue
            look = bare.passes + max(1, bare.passes // _LOOK)
            w = next(run.candidates())
            if not np.isfinite(w).all():
                return Outcome(passes=bare.passes, failure="numerical failure")
            nearest = min(nearest, accuracy := task.accuracy(w))
            if accuracy <= ACCURACY:
                return Outcome(float(bare.passes))
        return ending(bare.passes, nearest)

    def run(self, task: Task, value: float | None) -> Outcome:
        """So many passes."""
        assert value is not None
        # It took no longer in the search; a busy moment is no reason to fail now.
        bare = Bare(replace(task, seconds=math.inf), self.solver)
        for run, epoch in bare:
            if bare.passes >= value:
                w = next(run.candidates())
                accuracy = task.accuracy(w)
                return Outcome(value, bare.passes, epoch.epochs, bare.seconds, accuracy)
        raise AssertionError("it ended by itself")


@dataclass
class ByGap(System):
    """SGD-s and SGD-m as published: end when J / L - 1 <= eps, computed once it may be."""

    name: str
    solver: SGDs
    parameter: str = "eps"
    single: bool = False

    def search(self, task: Task) -> Outcome:
        """One run in which J is computed after each pass shows where each eps would have ended."""
        gaps, epsilon = Gaps(self.solver.f), math.nan

        def enough(progress: Progress) -> bool:
            nonlocal epsilon
            record = progress.record
            gaps.add(record.primal, record.primal_estimate, record.dual)
            if task.optimum.accuracy(record.primal) <= ACCURACY:
                epsilon = gaps.ending_now()
            return math.isfinite(epsilon)

        always = replace(self.solver, f=_ALWAYS)
        result = self._train(task, always, 1e-9, 3.0 * task.seconds, enough)
        if math.isfinite(epsilon):
            return Outcome(epsilon)
        return ending(result.passes, task.accuracy(result.w))

    def run(self, task: Task, value: float | None) -> Outcome:
        """To that eps."""
        assert value is not None
        began = time.perf_counter()
        result = self._train(task, self.solver, value, task.seconds)
        seconds = time.perf_counter() - began
        outcome = Outcome(
            value, result.passes, result.epochs, seconds, task.accuracy(result.w),
            result.certificate.relative_gap,
        )  # fmt: skip
        if not outcome.proved or outcome.proved > value:
            return ending(result.passes, outcome.accuracy)
        return outcome

    def _train(
        self,
        task: Task,
        solver: Solver,
        eps: float,
        seconds: float,
        *callbacks: Callable[[Progress], bool],
    ) -> Result:
        return uninterrupted(
            train(
                task.problem, solver, tol=eps, max_iter=NO_LIMIT, max_time=seconds, seed=SEED,
                callbacks=callbacks,
            )
        )  # fmt: skip


class Gaps:
    """The gaps after each pass so far, and the eps with which the last one would be the end."""

    def __init__(self, f: float) -> None:
        self._f = f
        self._least = math.inf
        self._gap, self._guess = math.inf, math.inf

    def add(self, primal: float, guess: float, dual: float) -> None:
        """After the next pass."""
        self._least = min(self._least, max(self._gap, self._guess / self._f))
        self._gap = primal / dual - 1.0 if dual > 0.0 else math.inf
        self._guess = guess / dual - 1.0 if dual > 0.0 else math.inf

    def ending_now(self) -> float:
        """Two digits of eps, or NaN if an earlier pass would have been the end.

        A pass is the end if its gap is at most eps, and if the guess at it is at most f eps:
        otherwise the gap is not computed.
        """
        needed = max(self._gap, self._guess / self._f)
        if not math.isfinite(needed) or needed <= 0.0:
            return math.nan
        unit = 10.0 ** (math.floor(math.log10(needed)) - 1)
        epsilon = float(f"{math.ceil(needed / unit * (1.0 + 1e-9)) * unit:.6g}")
        return epsilon if epsilon < self._least else math.nan


@dataclass
class ByRule(System):
    """Ends by a rule of its own, with a parameter; the loosest of a ladder of values is taken."""

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
            return ending(outcome.passes, outcome.accuracy)
        for digit in _BETWEEN if power < self.powers[0] else ():
            looser = self.run(task, digit * 10.0**power)
            if not looser.failure and looser.accuracy <= ACCURACY:
                return looser
        return outcome

    def run(self, task: Task, value: float | None) -> Outcome:
        """To its own end."""
        assert value is not None
        bare = Bare(task, self.make(value))
        for run, epoch in bare:
            w = next(run.candidates()) if epoch.finished or bare.late else None
            if w is None:
                continue
            if not epoch.finished:
                return ending(bare.passes, task.accuracy(w))
            accuracy = task.accuracy(w)
            return Outcome(value, bare.passes, epoch.epochs, bare.seconds, accuracy)
        raise AssertionError("a run ends or is late")


@dataclass
class WithoutParameter(System):
    """There is nothing to look for, but kernels are compiled."""

    name: str
    solver: Solver

    def search(self, task: Task) -> Outcome:
        """A run like any other."""
        return self.run(task, None)


class ByObjective(WithoutParameter):
    """OCAS: ends when J, which it knows after each round, is at most 1.01 times the optimum."""

    def run(self, task: Task, value: float | None) -> Outcome:
        """Until J is low enough."""
        bare, J = Bare(task, self.solver), math.inf
        for run, epoch in bare:
            assert epoch.primal_estimate is not None
            J = epoch.primal_estimate
            if task.optimum.accuracy(J) <= ACCURACY:
                accuracy = task.accuracy(next(run.candidates()))
                return Outcome(None, bare.passes, epoch.epochs, bare.seconds, accuracy)
        return ending(bare.passes, task.optimum.accuracy(J))


class ByProof(WithoutParameter):
    """Ours: ends when the accuracy is proved, without knowledge of the optimum."""

    def run(self, task: Task, value: float | None) -> Outcome:
        """Until it is proved."""
        began = time.perf_counter()
        result = uninterrupted(
            train(
                task.problem, self.solver, tol=ACCURACY, max_iter=NO_LIMIT, max_time=task.seconds,
                seed=SEED,
            )
        )  # fmt: skip
        seconds = time.perf_counter() - began
        if not result.certificate.met:
            return ending(result.passes, task.accuracy(result.w))
        return Outcome(
            None, result.passes, result.epochs, seconds, task.accuracy(result.w),
            result.certificate.relative_gap,
        )  # fmt: skip


def uninterrupted(result: Result) -> Result:
    """The result; Ctrl-C, which ends training with what there is, ends the experiment."""
    if result.reason == INTERRUPTED:
        raise KeyboardInterrupt
    return result


def powers_of_ten(first: int, last: int) -> Sequence[int]:
    """Downwards, both included."""
    return range(first, last - 1, -1)


SYSTEMS: dict[str, System] = {
    system.name: system
    for system in itertools.chain[System](
        # Tables 2, 4 and 6.
        (
            ByPasses("Pegasos", Pegasos(), "t_max/m"),
            ByPasses("SGD-r", SGDr(), "t_max/m"),
            ByGap("SGD-s", SGDs(published=True)),
            ByGap("SGD-m", SGDm(published=True)),
        ),
        # Tables 3, 5 and 7. MPU's delta and delta_stop are the same.
        (
            ByRule("SVMperf", lambda eps: SVMperf(eps=eps), powers_of_ten(0, -7)),
            ByObjective("OCAS", OCAS()),
            ByRule("DCD", lambda eps: DCD(eps=eps), powers_of_ten(2, -6)),
            ByRule("MPU", lambda eps: MPU(delta=eps, delta_stop=eps), powers_of_ten(0, -3)),
        ),
        # Table 8.
        (
            ByPasses("SvmSgd, single", SvmSgd(precision="single"), single=True),
            ByPasses("SGD-QN, single", SGDQN(precision="single"), single=True),
            # What its published program does where a pass is shorter than ``skip``.
            ByPasses(
                "SGD-QN, single, never shrinking",
                SGDQN(precision="single", skip=2**40),
                single=True,
            ),
            ByGap("SGD-m, single", SGDm(published=True, precision="single"), single=True),
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
