"""Certificates of fits on tensors, judged by exact arithmetic.

python -m tests.torch.exactly --count 5000 --device cuda
"""

import argparse
import multiprocessing
import time
import warnings
from collections import Counter
from dataclasses import asdict
from functools import partial
from typing import Any

import numpy as np
import torch
from sklearn.model_selection import KFold

from certsvm.fitting.fit_classes import fit_classes
from certsvm.kernels.losses import LOSSES
from certsvm.problem.base import Objective
from certsvm.problem.rows import split
from certsvm.torch import TensorSource
from certsvm.training.settings import Settings
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
    weights = rng.uniform(0.1, 2.0, n) if rng.random() < 0.3 else np.ones(n)
    loss, C = str(rng.choice(list(LOSSES))), float(10.0 ** rng.uniform(-3, 2))
    objective = Objective(C, LOSSES[loss], bool(rng.random() < 0.8))
    rho = float(rng.choice([0.0, 1.0, 0.3]))
    source = TensorSource(
        X, torch.as_tensor(y, device=device), weights, intercept_scaling=rho,
        class_weight="balanced" if rng.random() < 0.3 else None,
    )  # fmt: skip
    settings = Settings(
        objective, tol=float(10.0 ** rng.uniform(-5, -1)), solver="newton", seed=seed,
        keep_alpha=True, max_iter=100,
    )  # fmt: skip
    kind = str(rng.choice(["one C", "path", "folds"]))
    sources: list[Any] = [source]
    Cs = [C]
    if kind == "path":
        Cs = [C, 1.3 * C]
    elif kind == "folds":
        Cs = [C, 30.0 * C]
        splits = list(KFold(2, shuffle=True, random_state=0).split(y))
        splits = [split for split in splits if len(set(y[split[0]])) > 1]
        sources = [*source.folds(splits, None, Cs)]
    verdicts, met = [], 0
    for each in sources:
        start = None
        for at in Cs:
            results = fit_classes(each, settings.at(at), start=start)
            met += sum(result.certificate.met for result in results)
            verdicts += judged(each, X, y, results)
            start = [each.scaled_start(result.start, 1.3) for result in results]
    return f"{kind}, {k} classes, {dtype}, {loss}, {len(verdicts) - met} not met", verdicts


def judged(source: Any, X: torch.Tensor, y: Any, results: list[Any]) -> list[str]:
    """The verdicts on the results of one fit, over its rows of positive weight."""
    used, d = np.flatnonzero(source.row_weights > 0.0), X.shape[1]
    values = X.cpu().double().numpy()[used].tolist()
    given = source.row_weights[used].tolist()
    data = zip(y[used].tolist(), given, [[*range(d)]] * used.size, values, strict=True)
    parts = [split(result.w, source.intercept_scaling) for result in results]
    coefs = [[*coef, intercept] for coef, intercept in parts]
    alphas = [np.zeros(len(y)) if r.alpha is None else r.alpha for r in results]
    verdicts = judge(
        [asdict(result.certificate) for result in results], source.classes.tolist(),
        source.factors.tolist(), coefs, data,
        [partial(entry, alpha[used].tolist()) for alpha in alphas],
    )  # fmt: skip
    return [verdict["verdict"] for verdict in verdicts]


def entry(alpha: list[float], k: int, box: float) -> float:
    return alpha[k]


def main() -> None:
    """Count the verdicts."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1, help="processes, which share the device")
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    options = parser.parse_args()
    counts: Counter[str] = Counter()
    began, fits, bad = time.time(), 0, 0
    context = multiprocessing.get_context("spawn")
    with context.Pool(
        options.jobs, initializer=warnings.simplefilter, initargs=("ignore",)
    ) as pool:
        seeds = range(options.seed, options.seed + options.count)
        for kind, verdicts in pool.imap_unordered(partial(check, device=options.device), seeds):
            fits += 1
            counts.update(f"{kind}: {verdict}" for verdict in verdicts)
            if set(verdicts) != {"confirmed"}:
                bad += 1
                print(f"{verdicts}, {kind}", flush=True)
            if time.time() - began > options.seconds:
                break
    for key, count in sorted(counts.items()):
        print(f"{count:8d} {key}")
    total, seconds = sum(counts.values()), time.time() - began
    print(f"{fits} data sets, {total} certificates, {seconds:.0f} s on {options.device}, {bad} bad")


if __name__ == "__main__":
    main()
