"""The loosest setting of a system that is accurate enough, found with knowledge no user has."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

from benchmarks.peers.adapters import Adapter

# From this share of the time limit on, a search over numbers of passes looks ahead.
_LOOK_AHEAD = 0.1
# So many steps without a better answer end it: the passes have become six times as many by then.
_STALLED = 4


@dataclass
class Trial:
    """One fit of the search, in a form that can be stored."""

    variant: str
    setting: float
    seconds: float | None = None
    objective: float | None = None
    memory: int | None = None
    certified: bool = True
    failed: str | None = None
    exceeded: float | None = None

    def describe(self) -> dict[str, Any]:
        """For the record; what is not said is as it is by default."""
        unsaid = asdict(Trial(self.variant, self.setting))
        said = {name: value for name, value in asdict(self).items() if value != unsaid[name]}
        return {"variant": self.variant, "setting": self.setting} | said


@dataclass
class Search:
    """What the search came to: a trial that is accurate enough, or the reason why there is none."""

    found: Trial | None
    why: str = ""


def loosest(
    adapter: type[Adapter],
    target: float,
    limit: float,
    fit: Callable[[str, float, float], Trial],
    accuracy: Callable[[float], float],
) -> Search:
    """Go up the ladder of each variant until it is accurate enough; the fastest variant counts.

    Parameters
    ----------
    adapter : type of Adapter
        The system.
    target : float
        The true relative accuracy to reach.
    limit : float
        Seconds that a fit may take.
    fit : callable
        Makes the trial of a variant and a setting within a number of seconds.
    accuracy : callable
        The true relative accuracy of an objective value.
    """
    found: Trial | None = None
    nearest, trials = float("inf"), []
    for variant in adapter.variants:
        # A variant that is slower than another that got there is not worth waiting for.
        patience = limit if found is None else min(limit, 1.0 + 1.5 * _seconds(found))
        history: list[float] = []
        for trial in _ladder(adapter, variant, target, patience, fit):
            trials.append(trial)
            if trial.objective is None:
                continue
            reached = accuracy(trial.objective)
            history.append(reached)
            nearest = min(nearest, reached)
            if reached <= target and trial.certified:
                if found is None or _seconds(trial) < _seconds(found):
                    found = trial
                break
            if adapter.knob == "passes" and _hopeless(history, target, _seconds(trial) / limit):
                break
            if found is not None and _seconds(trial) > _seconds(found):
                break
    return Search(found) if found else Search(None, _why(trials, nearest))


def _ladder(
    adapter: type[Adapter],
    variant: str,
    target: float,
    limit: float,
    fit: Callable[[str, float, float], Trial],
) -> Iterator[Trial]:
    for setting in adapter.ladder(target):
        trial = fit(variant, setting, limit)
        yield trial
        if trial.objective is None:
            # Tighter settings take longer still, and what fails once fails again.
            return


def _hopeless(history: list[float], target: float, share: float) -> bool:
    """Whether more passes will not do.

    Either they have not helped lately, or the rest of the time would not be enough even if the
    distance to the optimum fell with the square of their number.
    """
    if len(history) > _STALLED and min(history[-_STALLED:]) >= min(history[:-_STALLED]):
        return True
    return share >= _LOOK_AHEAD and history[-1] * share**2 > target


def _seconds(trial: Trial) -> float:
    return float("inf") if trial.seconds is None else trial.seconds


def _why(trials: list[Trial], nearest: float) -> str:
    exceeded = [t.exceeded for t in trials if t.exceeded is not None]
    failed = [t.failed for t in trials if t.failed is not None]
    got = "" if nearest == float("inf") else f"; {nearest:.1e} at best"
    if exceeded:
        return f"not reached in {max(exceeded):g} s{got}"
    if failed:
        return f"failed: {failed[-1]}{got}"
    return f"not reached{got}"
