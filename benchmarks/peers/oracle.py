"""The search for the loosest setting that is accurate enough, with knowledge of the optimum."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

from benchmarks.peers.adapters import Adapter

# Share of the time limit from which on a search over passes extrapolates.
_LOOK_AHEAD = 0.1
# Steps without progress that end the search; the passes have grown by a factor of six by then.
_STALLED = 4


@dataclass
class Trial:
    """One fit of the search, as it is stored."""

    variant: str
    setting: float
    seconds: float | None = None
    objective: float | None = None
    memory: int | None = None
    certified: bool = True
    failed: str | None = None
    exceeded: float | None = None

    def describe(self) -> dict[str, Any]:
        """The fields that are not at their defaults."""
        default = asdict(Trial(self.variant, self.setting))
        changed = {name: value for name, value in asdict(self).items() if value != default[name]}
        return {"variant": self.variant, "setting": self.setting} | changed


@dataclass
class Search:
    """The fastest trial that is accurate enough, or the reason why there is none."""

    best: Trial | None
    why: str = ""


def loosest(
    adapter: type[Adapter],
    target: float,
    limit: float,
    fit: Callable[[str, float, float], Trial],
    accuracy: Callable[[float], float],
    loss: str = "hinge",
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
    loss : str, default="hinge"
        The loss.
    """
    best: Trial | None = None
    nearest, trials = float("inf"), []
    for variant in adapter.variants_for(loss):
        # A variant that is slower than a successful one is not worth waiting for.
        patience = limit if best is None else min(limit, 1.0 + 1.5 * _seconds(best))
        history: list[float] = []
        for trial in _ladder(adapter, variant, target, patience, fit):
            trials.append(trial)
            if trial.objective is None:
                continue
            reached = accuracy(trial.objective)
            history.append(reached)
            nearest = min(nearest, reached)
            if reached <= target and trial.certified:
                if best is None or _seconds(trial) < _seconds(best):
                    best = trial
                break
            if adapter.knob == "passes" and _hopeless(history, target, _seconds(trial) / limit):
                break
            if best is not None and _seconds(trial) > _seconds(best):
                break
    return Search(best) if best else Search(None, _why(trials, nearest))


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
    """Whether more passes cannot reach the target.

    Either the last steps brought no progress, or the remaining time would not suffice even if the
    distance to the optimum fell with the square of the number of passes.
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
