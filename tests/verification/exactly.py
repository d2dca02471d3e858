"""Certificates of training, and forgeries of them, judged by exact arithmetic.

python -m tests.verification.exactly --count 10000
"""

import argparse
import math
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import scipy.sparse as sp

from certsvm import LinearSVC, Model, fit_path, fit_stream, verify, verify_model
from certsvm.verification.verify import CONFIRMED, HALF_CONFIRMED, REFUTED, UNDECIDED

Rng = np.random.Generator
Block = tuple[Any, Any, Any]


def block(rng: Rng) -> Block:
    """Rows, labels and weights or None."""
    n, d, k = int(rng.integers(4, 40)), int(rng.integers(1, 7)), int(rng.choice([2, 2, 3]))
    X = rng.standard_normal((n, d)) * 10.0 ** rng.uniform(-2, 2)
    X = np.rint(X) if rng.random() < 0.3 else X
    X[rng.random((n, d)) < rng.choice([0.0, 0.5])] = 0.0
    X = X.astype(rng.choice(["float32", "float64"]))
    classes = np.array(["egg", "ham", "späm"] if rng.random() < 0.2 else [0, 1, 2])[:k]
    y = np.concatenate([classes, rng.choice(classes, n - k)])
    weights = rng.choice([0.1, 0.5, 1.0, 3.7], n) * rng.random() if rng.random() < 0.4 else None
    return (sp.csr_matrix(X) if rng.random() < 0.5 else X), y, weights


def objective(rng: Rng) -> dict[str, Any]:
    """Keywords of an estimator and of fit_stream."""
    return {
        "C": float(10.0 ** rng.uniform(-3, 2)),
        "loss": str(rng.choice(["hinge", "squared_hinge"])),
        "fit_intercept": bool(rng.random() < 0.7),
        "intercept_scaling": float(rng.choice([1.0, 0.3, 2.7])),
        "penalize_intercept": bool(rng.random() < 0.6),
        "class_weight": "balanced" if rng.random() < 0.3 else None,
        "tol": float(10.0 ** rng.uniform(-6, -1)),
    }


def solver(rng: Rng, about: dict[str, Any]) -> str:
    """One that minimises this objective and has a dual point."""
    free = about["fit_intercept"] and not about["penalize_intercept"]
    names = ["auto", "working-set", "newton", "smoothed-newton"]
    if not free:
        names += ["dcd"]
        names += ["sgd-s", "sgd-m", "mpu", "ocas", "svmperf"] if about["loss"] == "hinge" else []
    return str(rng.choice(names))


def stored(model: Model) -> Model:
    """The model as files keep it."""
    with TemporaryDirectory() as folder:
        model.save(Path(folder, "a.model"))
        return Model.load(Path(folder, "a.model"), witness=model.witness is not None)


def certified(seed: int) -> Iterator[tuple[str, Any, list[Block]]]:
    """What training makes, in several ways: an estimator or a model, and the data."""
    rng = np.random.default_rng(seed)
    (X, y, weights), about = block(rng), objective(rng)
    name = solver(rng, about)
    clf = LinearSVC(solver=name, store_dual=True, random_state=seed, max_iter=200, **about)
    clf.fit(X, y, sample_weight=weights)
    yield "LinearSVC", clf, [(X, y, weights)]
    yield "to_model", stored(clf.to_model(X, y, weights)), [(X, y, weights)]
    if name in ("auto", "newton", "smoothed-newton"):
        half = len(y) // 2
        parts = [
            (X[part], y[part], None if weights is None else weights[part])
            for part in (slice(0, half), slice(half, None))
        ]
        model = fit_stream(parts, solver=name, seed=seed, witness=True, **about)
        yield "fit_stream", stored(model), parts
    if rng.random() < 0.1 and len(set(y.tolist())) == 2:
        C = about.pop("C")
        clf = LinearSVC(store_dual=True, **about)
        path = fit_path(clf, X, y, C_range=(C, 30.0 * C), sample_weight=weights)
        yield "fit_path", path.model(C * 30.0 ** rng.random()), [(X, y, weights)]


def report_of(made: Any, blocks: list[Block], *, exact: bool) -> Any:
    if isinstance(made, Model):
        return verify_model(made, blocks, exact=exact)
    return verify(made, *blocks[0], exact=exact)


def claims(made: Any) -> str:
    return "certificates" if isinstance(made, Model) else "certificates_"


def forged(made: Any, changes: dict[str, float]) -> Any:
    """The same with other numbers in its first certificate."""
    first, *others = getattr(made, claims(made))
    if isinstance(made, Model):
        return replace(made, certificates=(replace(first, **changes), *others))
    other = LinearSVC(**made.get_params())
    other.__dict__.update(made.__dict__)
    other.certificates_ = [replace(first, **changes), *others]
    return other


def forgeries(
    claim: Any, J: Fraction, L: Fraction | None
) -> Iterator[tuple[dict[str, float], bool]]:
    """Claims whose bounds are just true and just false, and whether they are true."""
    for rounding in (0.0, claim.primal_rounding):
        # The least float64 that is true, and the one before.
        value = float(J - Fraction(rounding))
        while Fraction(value) + Fraction(rounding) >= J:
            value = math.nextafter(value, -math.inf)
        false = {"primal": value, "primal_rounding": rounding}
        yield false, False
        yield {**false, "primal": math.nextafter(value, math.inf)}, True
    for rounding in (0.0, claim.dual_rounding) if L is not None else ():
        assert L is not None
        value = float(L + Fraction(rounding))
        while Fraction(value) - Fraction(rounding) <= L:
            value = math.nextafter(value, math.inf)
        false = {"dual": value, "dual_rounding": rounding}
        yield false, False
        yield {**false, "dual": math.nextafter(value, -math.inf)}, True


def check(seed: int, counts: Counter[str]) -> list[str]:
    """Judge what training makes of one seed; returns what is wrong."""
    faults: list[str] = []

    def expect(truth: bool, what: str) -> None:
        if not truth:
            faults.append(f"seed {seed}, {way}: {what}")

    for way, made, blocks in certified(seed):
        report, intervals = (report_of(made, blocks, exact=exact) for exact in (True, False))
        for v, by_intervals in zip(report, intervals, strict=True):
            assert v.exact is not None
            counts[f"{way}: {v.verdict}"] += 1
            honest = HALF_CONFIRMED if v.L is None else CONFIRMED
            expect(v.verdict == honest, f"{v.verdict}, with {v.claimed!r}")
            expect(by_intervals.verdict in (honest, UNDECIDED), f"intervals: {by_intervals}")
            allowances = v.claimed.primal_rounding, v.claimed.dual_rounding
            for name, allowance in zip(("J - primal", "dual - L"), allowances, strict=True):
                if v.exact[name] is not None and allowance > 0.0:
                    share = math.ceil(1000 * v.exact[name] / Fraction(allowance))
                    key = f"{way}: per mille of the allowance, {name}"
                    counts[key] = max(counts[key], share)
            J, L = by_intervals.J, by_intervals.L
            expect(J.low <= v.exact["J"] <= J.high, f"J is not in {J}")
            if L is not None:
                expect(L.low <= v.exact["L"] <= L.high, f"L is not in {L}")
        first = report[0]
        assert first.exact is not None
        for changes, true in forgeries(first.claimed, first.exact["J"], first.exact["L"]):
            verdict = report_of(forged(made, changes), blocks, exact=True)[0].verdict
            counts[f"{way}: forged, {'true' if true else 'false'}, {verdict}"] += 1
            expect((verdict != REFUTED) == true, f"{verdict}: {changes}")
    return faults


def main() -> None:
    """Count the verdicts."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    counts: Counter[str] = Counter()
    warnings.simplefilter("ignore")
    start = time.time()
    for seed in range(options.seed, options.seed + options.count):
        for fault in check(seed, counts):
            print(fault, flush=True)
    for key, count in sorted(counts.items()):
        print(f"{count:8d} {key}")
    print(f"{options.count} seeds, {time.time() - start:.0f} s")


if __name__ == "__main__":
    main()
