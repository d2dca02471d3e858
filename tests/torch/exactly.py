"""Certificates of fits on tensors, judged by exact arithmetic.

python -m tests.torch.exactly --count 5000 --device cuda
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections import Counter
from dataclasses import asdict
from functools import partial
from typing import Any

import numpy as np
import torch

from certsvm import LinearSVC
from certsvm.verification.exact import judge

_TYPES = torch.float16, torch.float32, torch.float64


def check(seed: int, device: str) -> tuple[str, list[str]]:
    """Fit random rows; return the kind of the problem, and the verdicts on its certificates."""
    rng = np.random.default_rng(seed)
    k = int(rng.choice([2, 3, 5, 10]))
    n, d = int(rng.integers(2 * k, 120)), int(rng.integers(1, 24))
    dtype = _TYPES[rng.integers(3)]
    centres = rng.standard_normal((k, d)) * rng.uniform(0.1, 3.0)
    y = np.r_[np.arange(k), rng.integers(k, size=n - k)]
    rows = (centres[y] + rng.standard_normal((n, d))) * 10.0 ** rng.uniform(-1.5, 1.5)
    X = torch.as_tensor(rows, device=device).to(dtype)
    weights = rng.uniform(0.1, 2.0, n) if rng.random() < 0.3 else None
    clf = LinearSVC(
        C=float(10.0 ** rng.uniform(-3, 2)), loss=str(rng.choice(["hinge", "squared_hinge"])),
        tol=float(10.0 ** rng.uniform(-5, -1)), fit_intercept=bool(rng.random() < 0.6),
        intercept_scaling=float(rng.choice([1.0, 0.3])),
        penalize_intercept=bool(rng.random() < 0.8), store_dual=True, random_state=seed,
        class_weight="balanced" if rng.random() < 0.3 else None,
    )  # fmt: skip
    clf.fit(X, torch.as_tensor(y, device=device), sample_weight=weights)

    def host(values: Any) -> Any:
        return values.cpu().numpy() if isinstance(values, torch.Tensor) else np.asarray(values)

    values = X.cpu().double().numpy().tolist()
    columns = list(range(d))
    given = np.ones(n) if weights is None else weights
    data = zip(y.tolist(), given.tolist(), [columns] * n, values, strict=True)
    coef, intercept = np.atleast_2d(host(clf.coef_)), host(clf.intercept_)
    verdicts = judge(
        [asdict(claim) for claim in clf.certificates_], list(range(k)),
        host(clf.class_weight_).tolist(),
        [[*w, b] for w, b in zip(coef.tolist(), intercept.tolist(), strict=True)], data,
        [partial(entry, alpha) for alpha in np.atleast_2d(host(clf.dual_coef_)).tolist()],
    )  # fmt: skip
    met = "met" if all(claim.met for claim in clf.certificates_) else "not met"
    return f"{k} classes, {dtype}, {clf.loss}, {met}", [v["verdict"] for v in verdicts]


def entry(alpha: list[float], k: int, box: float) -> float:
    return alpha[k]


def main() -> None:
    """Count the verdicts."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    counts: Counter[str] = Counter()
    began, fits = time.time(), 0
    for seed in range(options.seed, options.seed + options.count):
        if time.time() - began > options.seconds:
            break
        kind, verdicts = check(seed, options.device)
        fits += 1
        counts.update(f"{kind}: {verdict}" for verdict in verdicts)
        if set(verdicts) != {"confirmed"}:
            print(f"seed {seed}: {verdicts}, {kind}", flush=True)
    for key, count in sorted(counts.items()):
        print(f"{count:8d} {key}")
    total = sum(counts.values())
    print(f"{fits} fits, {total} certificates, {time.time() - began:.0f} s on {options.device}")


if __name__ == "__main__":
    main()
