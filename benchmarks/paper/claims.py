"""What the paper says about its algorithms and tables, and what checks it."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.paper.verdicts import (
    CONFIRMED,
    NOT_CONFIRMED,
    UNCLEAR,
    Ratio,
    Results,
    Span,
    Verdict,
    epochs_of,
    every,
    exactly,
    faster,
    less,
    mean,
    median,
    most,
    ratio,
    tally,
    worst,
)

_SGD = ("SGD-r", "SGD-s", "SGD-m")
_LINEAR = ("SVMperf", "OCAS", "DCD", "MPU")
_MANY_COLUMNS = 1000
# "Almost all cases" are so many.
_ALMOST_ALL = 0.9
# A difference is "not very large" up to this factor.
_NOT_LARGE = 3.0
# Rounding of a ratio that is at most one.
_ONE = 1.0 + 1e-9


def proved_bound(key: str) -> Callable[[Results], Verdict]:
    """A bound on |w| that holds for all t."""

    def check(results: Results) -> Verdict:
        ratios = [cell[key] for cell in results.lengths]
        if not ratios:
            return Verdict(UNCLEAR, "not measured")
        word = CONFIRMED if max(ratios) <= _ONE else NOT_CONFIRMED
        text = f"at most {max(ratios):.3g} of the bound in {len(ratios)} sets and C"
        return Verdict(word, text)

    return check


def after_one_pass(results: Results) -> Verdict:
    """|w| is at most 1 / sqrt(lambda) after one pass, with every seed."""
    ratios = {(c["set"], c["C"]): c["after one pass"] for c in results.lengths}
    beyond = {key: ratio for key, ratio in ratios.items() if ratio > _ONE}
    if not ratios:
        return Verdict(UNCLEAR, "not measured")
    share = 1.0 - len(beyond) / len(ratios)
    word = CONFIRMED if share >= _ALMOST_ALL else UNCLEAR
    if share <= 2 / 3:
        word = NOT_CONFIRMED
    text = f"{len(ratios) - len(beyond)} of {len(ratios)} sets and C"
    if beyond:
        worst_at = max(beyond, key=lambda key: beyond[key])
        text += (
            f"; the largest is {beyond[worst_at]:.3g} of it ({worst_at[0]}, C = {worst_at[1]:g})"
        )
        later = [c["after ten passes"] for c in results.lengths]
        text += f"; {sum(r <= _ONE for r in later)} of {len(later)} after ten passes"
    return Verdict(word, text)


def accurate(results: Results) -> Verdict:
    """SGD-s gets to 1e-5."""
    cells = {name: results.accurate.get((name, "SGD-s")) for name in results.sets}
    measured = {name: cell for name, cell in cells.items() if cell is not None}
    reached = {name: cell for name, cell in measured.items() if "failure" not in cell}
    ends = "; ".join(f"{name} {cell['epochs']:,}" for name, cell in reached.items())
    gaps = "; ".join(
        f"{name} {cell['gap']:.1e} after {cell['epochs']:,}"
        for name, cell in measured.items()
        if name not in reached
    )
    text = f"{len(reached)} of {len(measured)} sets in the time there was"
    text += f" (T: {ends})" if ends else ""
    text += f"; the others still had a gap of: {gaps}" if gaps else ""
    # A limit on time cannot refute it.
    return Verdict(CONFIRMED if measured and len(reached) == len(measured) else UNCLEAR, text)


def more_epochs_to_a_proof(results: Results) -> Verdict:
    """SGD-m needs more epochs than SGD-s to a proved 1e-5; a run out of time counts if it tells."""
    ratios = []
    for name in results.sets:
        s, m = (results.accurate.get((name, system)) for system in ("SGD-s", "SGD-m"))
        if s is not None and m is not None:
            ratios.append(ratio(epochs_of(m), epochs_of(s)))
    known = [r for r in ratios if r is not None]
    more, total = tally(less(exactly(1.0), r) for r in known)
    return Verdict(most(more, total), f"{more} of {total} sets{_times_as_many(known)}")


def fewer_epochs(one: str, other: str) -> Callable[[Results], Verdict]:
    """T of one system is less than T of another, on the same set and at the same C."""

    def check(results: Results) -> Verdict:
        ratios = [
            ratio(results.epochs(name, C, one), results.epochs(name, C, other))
            for C in (1.0, 10.0, 0.05)
            for name in results.sets
        ]
        known = [r for r in ratios if r is not None]
        fewer, total = tally(less(r, exactly(1.0)) for r in known)
        return Verdict(most(fewer, total), f"{fewer} of {total} sets and C{_times_as_many(known)}")

    return check


def _times_as_many(ratios: list[Ratio]) -> str:
    return f", {median(ratios)} times as many in the median" if ratios else ""


def closer(results: Results) -> Verdict:
    """The true accuracy of SGD-s is closer to eps."""
    pairs = [c for C in (1.0, 10.0, 0.05) for _, c in results.all(C, "SGD-s", "SGD-m")]
    smaller = sum(s["value"] < m["value"] for s, m in pairs)
    by = [[pair[i]["value"] for pair in pairs] for i in range(2)]
    medians = [f"{statistics.median(values):.2g}" if values else "?" for values in by]
    text = (
        f"{smaller} of {len(pairs)} sets and C on which both reached it; for a true 0.01, eps "
        f"was {medians[0]} for SGD-s and {medians[1]} for SGD-m in the median"
    )
    return Verdict(most(smaller, len(pairs)), text)


def not_very_large(results: Results) -> Verdict:
    """SGD-m takes at most three times as long as the faster of DCD and MPU, and less if large."""
    ratios = {}
    for name in results.sets:
        others = [results.seconds(name, 1.0, system) for system in ("DCD", "MPU")]
        known = [s for s in others if s is not None]
        best = Span(*map(min, zip(*known, strict=True))) if known else None
        times = ratio(results.seconds(name, 1.0, "SGD-m"), best)
        if times is not None:
            ratios[name] = times
    if len(ratios) < 2:
        return Verdict(UNCLEAR, "too few sets")
    small, total = tally(less(times, exactly(_NOT_LARGE)) for times in ratios.values())
    by_size = sorted(ratios, key=lambda name: -int(results.about[name]["nonzeros"]))
    halves = by_size[: len(by_size) // 2], by_size[len(by_size) // 2 :]
    larger, smaller = (mean([ratios[name] for name in half]) for half in halves)
    text = (
        f"SGD-m takes less than {_NOT_LARGE:g} times as long as the faster of the two on "
        f"{small} of {total} sets; in the geometric mean {larger} times on the larger half of the "
        f"sets, {smaller} on the smaller"
    )
    return Verdict(worst([most(small, total), less(larger, smaller)]), text)


def pegasos_fails(results: Results) -> Verdict:
    """With the arithmetic of its program it is not finite on Covertype; with ours it is."""
    failures = {C: unfolded(results, C) for C in (1.0, 10.0)}
    at = "; ".join(f"C = {C:g}: " + (_described(steps) or "none") for C, steps in failures.items())
    text = f"with a scale that is never folded into the vector: {at}"
    if "Covertype" not in results.sets:
        return Verdict(UNCLEAR, f"{text}; Covertype was not at hand")
    return Verdict(CONFIRMED if "Covertype" in failures[1.0] else NOT_CONFIRMED, text)


def pegasos_fails_more(results: Results) -> Verdict:
    """More sets at C = 10 than at C = 1."""
    few, many = (unfolded(results, C) for C in (1.0, 10.0))
    word = CONFIRMED if len(many) > len(few) else NOT_CONFIRMED
    if not many:
        word = UNCLEAR
    return Verdict(word, f"{len(few)} sets at C = 1, {len(many)} at C = 10")


def unfolded(results: Results, C: float) -> dict[str, list[int]]:
    """The sets on which the arithmetic of Pegasos' program fails with most seeds, and the steps."""
    found = {}
    for name in results.sets:
        cell = results.cell(name, C, "Pegasos") or {}
        steps = cell.get("unfolded fails at step", [])
        failed = [step for step in steps if step is not None]
        if 2 * len(failed) > len(steps):
            found[name] = sorted(failed)
    return found


def _described(steps: dict[str, list[int]]) -> str:
    return ", ".join(f"{name} at step {s[len(s) // 2]:,}" for name, s in steps.items())


def scale_better(results: Results) -> Verdict:
    """From C = 1 to 10, the time of linear SVMs grows less than that of SGD-m, by half or more."""
    growth: dict[str, list[Ratio]] = {}
    words = []
    for name in results.sets:
        grown = {}
        for system in ("SGD-m", *_LINEAR):
            a, b = (results.seconds(name, C, system) for C in (1.0, 10.0))
            times = ratio(b, a)
            if times is not None:
                grown[system] = times
                growth.setdefault(system, []).append(times)
        if "SGD-m" in grown:
            words += [less(grown[s], grown["SGD-m"]) for s in _LINEAR if s in grown]
    fewer, total = tally(words)
    medians = {system: median(values) for system, values in growth.items()}
    linear = [value for system, value in medians.items() if system in _LINEAR]
    text = f"{fewer} of {total} comparisons; growth in the median: " + "; ".join(
        f"{system} {value} times" for system, value in medians.items()
    )
    if "SGD-m" not in medians or not linear:
        return Verdict(UNCLEAR, text)
    twice = Ratio(*(2.0 * value for value in median(linear)))
    return Verdict(worst([most(fewer, total), less(twice, medians["SGD-m"])]), text)


def spread(results: Results) -> Verdict:
    """The slowest over the fastest system grows with C, where the limit lets us tell."""
    words = []
    spreads: dict[float, list[Ratio]] = {}
    for name in results.sets:
        known = {C: _spread(results, name, C) for C in (0.05, 1.0, 10.0)}
        for C, value in known.items():
            if value is not None:
                spreads.setdefault(C, []).append(value)
        for low, high in ((0.05, 1.0), (1.0, 10.0)):
            a, b = known[low], known[high]
            if a is not None and b is not None:
                words.append(less(a, b))
    shrinks, total = tally(words)
    text = f"{shrinks} of {total} sets and pairs of C; in the median: " + "; ".join(
        f"{median(values)} at C = {C:g}" for C, values in spreads.items()
    )
    return Verdict(most(shrinks, total), text)


def _spread(results: Results, name: str, C: float) -> Ratio | None:
    """Slowest over fastest."""
    seconds = [results.seconds(name, C, system) for system in ("Pegasos", *_SGD, *_LINEAR)]
    known = [s for s in seconds if s is not None]
    if not known:
        return None
    slowest, fastest = (Span(*map(end, zip(*known, strict=True))) for end in (max, min))
    return ratio(slowest, fastest)


def slowest_and_fastest(results: Results) -> Verdict:
    """Of Table 8: SvmSgd the slowest, MPU the fastest; their ranges decide, as in a duel."""
    names = ("SvmSgd, single", "SGD-QN, single", "SGD-m, single", "MPU, single")
    slow, slow_total, fast, fast_total = 0, 0, 0, 0
    for name in results.sets:
        ranges = [results.range(name, 1.0, system) for system in names]
        known = [times for times in ranges if times is not None]
        if len(known) < len(names) or all(math.isinf(times.low) for times in known):
            continue
        fast_total += 1
        fast += all(known[3].high < times.low for times in known[:3])
        # Of several that never reached the goal, the slowest is not known.
        if math.isfinite(known[0].low) or sum(math.isinf(times.low) for times in known) == 1:
            slow_total += 1
            slow += all(times.high < known[0].low for times in known[1:])
    text = (
        f"SvmSgd the slowest on {slow} of {slow_total} sets, MPU the fastest on {fast} of "
        f"{fast_total}"
    )
    return Verdict(worst([most(slow, slow_total), most(fast, fast_total)]), text)


def more_so_with_many_columns(results: Results) -> Verdict:
    """SGD-m gains more on SGD-QN where columns are many."""
    ratios: dict[bool, list[Ratio]] = {True: [], False: []}
    for name in results.sets:
        m, qn = (results.seconds(name, 1.0, s) for s in ("SGD-m, single", "SGD-QN, single"))
        times = ratio(m, qn)
        if times is not None:
            ratios[results.about[name]["columns"] > _MANY_COLUMNS].append(times)
    if not all(ratios.values()):
        return Verdict(UNCLEAR, "too few sets with many or with few columns")
    many, few = median(ratios[True]), median(ratios[False])
    text = f"{many} of the time with many columns; {few} of the time with few columns"
    return Verdict(less(many, few), text)


def sgd_qn_on_news20(results: Results) -> Verdict:
    """It stalls above one per cent; that it runs out of time would not show it."""
    name = next((n for n in ("News20", "news20") if n in results.sets), None)
    if name is None:
        return Verdict(UNCLEAR, "News20 was not at hand")
    texts = []
    word = UNCLEAR
    for system, label in (
        ("SGD-QN, single", "as published"),
        ("SGD-QN, single, corrected", "with decay across passes"),
    ):
        cell = results.cell(name, 1.0, system)
        if cell is None:
            return Verdict(UNCLEAR, f"{system} was not run on {name}")
        how = cell.get("failure") or f"reached in {cell['passes']} passes"
        texts.append(f"{label}: {how}")
        if label == "as published":
            word = NOT_CONFIRMED if "failure" not in cell else UNCLEAR
            if cell.get("failure", "").startswith(("stalled", "numerical")):
                word = CONFIRMED
    return Verdict(word, "; ".join(texts))


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper, in our words, and what checks it."""

    where: str
    text: str
    check: Callable[[Results], Verdict]


CLAIMS = (
    Claim(
        "Section 2",
        "Without a projection, |w| <= R / lambda for all t.",
        proved_bound("R / lambda"),
    ),
    Claim(
        "Section 2",
        "|w| <= sqrt(1 + (R^2 / lambda - 1) / t) / sqrt(lambda) for all t.",
        proved_bound("proposition"),
    ),
    Claim(
        "Section 2",
        "In almost all cases |w| <= 1 / sqrt(lambda) after one pass over the data.",
        after_one_pass,
    ),
    Claim("Table 1", "SGD-s reaches a relative gap of 1e-5 at C = 0.1.", accurate),
    Claim(
        "Table 1",
        "To that gap, multiple updates take more epochs in general.",
        more_epochs_to_a_proof,
    ),
    Claim(
        "Tables 1, 2, 4, 6", "The accuracy of SGD-s is closer to eps than that of SGD-m.", closer
    ),
    Claim(
        "Tables 2, 4, 6",
        "Presenting rows in complete passes takes fewer presentations than drawing them.",
        fewer_epochs("SGD-s", "SGD-r"),
    ),
    Claim("Table 2", "SGD-r is faster than Pegasos.", faster(1.0, ("SGD-r", "Pegasos"))),
    Claim("Table 2", "SGD-s is faster than SGD-r.", faster(1.0, ("SGD-s", "SGD-r"))),
    Claim("Table 2", "SGD-m is faster than SGD-s.", faster(1.0, ("SGD-m", "SGD-s"))),
    Claim(
        "Table 2",
        "SGD-m is much faster than Pegasos.",
        faster(1.0, ("SGD-m", "Pegasos"), how="much"),
    ),
    Claim(
        "Tables 2, 3",
        "At C = 1, DCD and MPU are faster than SGD-m.",
        faster(1.0, ("DCD", "SGD-m"), ("MPU", "SGD-m")),
    ),
    Claim(
        "Tables 2, 3",
        "Their differences from SGD-m are not very large, especially on the largest sets.",
        not_very_large,
    ),
    Claim(
        "Tables 2, 3",
        "At C = 1, SGD-s and SGD-m are considerably faster than SVMperf.",
        faster(1.0, ("SGD-s", "SVMperf"), ("SGD-m", "SVMperf"), how="much"),
    ),
    Claim(
        "Tables 2, 3",
        "At C = 1, SGD-s and SGD-m are faster than OCAS.",
        faster(1.0, ("SGD-s", "OCAS"), ("SGD-m", "OCAS")),
    ),
    Claim("Table 2", "Pegasos fails on Covertype for numerical reasons.", pegasos_fails),
    Claim(
        "Tables 4, 5", "The time of linear SVMs scales much better as C increases.", scale_better
    ),
    Claim(
        "Table 5",
        "At C = 10, MPU is faster than DCD and OCAS on most sets.",
        faster(10.0, ("MPU", "DCD"), ("MPU", "OCAS")),
    ),
    Claim(
        "Tables 4, 5",
        "At C = 10, SGD-m is faster than SVMperf.",
        faster(10.0, ("SGD-m", "SVMperf")),
    ),
    Claim("Tables 4, 5", "At C = 10, OCAS is faster than SGD-m.", faster(10.0, ("OCAS", "SGD-m"))),
    Claim("Table 4", "Pegasos fails more often at C = 10.", pegasos_fails_more),
    Claim("Tables 6, 7", "As C decreases the differences among the systems shrink.", spread),
    Claim(
        "Tables 6, 7",
        "At C = 0.05, SGD-r, SGD-s and SGD-m are faster than the linear SVMs.",
        faster(0.05, *((sgd, linear) for sgd in _SGD for linear in _LINEAR)),
    ),
    Claim(
        "Tables 6, 7",
        "At C = 0.05, Pegasos is faster than SVMperf on all sets, and than OCAS on most.",
        every(
            faster(0.05, ("Pegasos", "SVMperf"), how="everywhere"),
            faster(0.05, ("Pegasos", "OCAS")),
        ),
    ),
    Claim("Table 8", "SvmSgd is the slowest and MPU the fastest.", slowest_and_fastest),
    Claim(
        "Table 8",
        "SGD-m is faster than SGD-QN, the more so on sparse data with many columns.",
        every(faster(1.0, ("SGD-m, single", "SGD-QN, single")), more_so_with_many_columns),
    ),
    Claim("Table 8", "SGD-QN does not reach the accuracy on News20.", sgd_qn_on_news20),
)
