"""Linear probes: a certified fit of all classes, beside what else is used for it.

    python -m benchmarks.gpu.probe [--rows N] [--columns N] [--classes N] [--seconds LIMIT]

prints a table. All but logistic regression minimise the sum of the classes' objectives, with the
hinge loss and no intercept; their gaps are those of the worst class, by the dual bounds of a finer
fit. L-BFGS has no stopping rule and is stopped at 1 %, measured outside of the clock.
"""

from __future__ import annotations

import argparse
import multiprocessing
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC as SklearnSVC

from benchmarks.gpu.problems import clusters
from certsvm import LinearSVC

TOL = 0.01


def objectives(X: Any, y: Any, W: Any, C: float) -> Any:
    """J of each class, in float64."""
    W = torch.as_tensor(W, device=X.device).double()
    signs = 2.0 * (y[:, None] == torch.arange(len(W), device=X.device)) - 1.0
    losses = (1.0 - signs * (X.double() @ W.T)).clamp(min=0.0).sum(0)
    return (0.5 * (W * W).sum(1) + C * losses).cpu().numpy()


def lbfgs(X: Any, y: Any, C: float, lower: Any, limit: float) -> tuple[Any, float]:
    """torch.optim.LBFGS on all classes together, until each is within the tolerance."""
    X, K = X.float(), len(lower)
    W = torch.zeros(K, X.shape[1], device=X.device, requires_grad=True)
    signs = 2.0 * (y[:, None] == torch.arange(K, device=X.device)) - 1.0
    optimiser = torch.optim.LBFGS([W], max_iter=10, history_size=50, line_search_fn="strong_wolfe")

    def closure() -> Any:
        optimiser.zero_grad()
        loss = (1.0 - signs * (X @ W.T)).clamp(min=0.0).sum() + 0.5 / C * (W * W).sum()
        (loss / len(X)).backward()
        return loss / len(X)

    seconds = 0.0
    while seconds < limit:
        seconds += clock(lambda: optimiser.step(closure))[1]
        if (objectives(X, y, W.detach(), C) / lower - 1.0).max() <= TOL:
            break
    return W.detach(), seconds


def clock(work: Callable[[], Any]) -> tuple[Any, float]:
    """The result, and the seconds that it took."""
    began = time.perf_counter()
    result = work()
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return result, time.perf_counter() - began


def fitted(connection: Any, clf: Any, X: Any, y: Any) -> None:
    """Fit in a process of its own, which may be ended."""
    warnings.simplefilter("ignore")
    began = time.perf_counter()
    clf.fit(X, y)
    connection.send((clf.coef_, time.perf_counter() - began))


def within(limit: float, clf: Any, X: Any, y: Any) -> tuple[Any, float]:
    """The weights of a classifier and the seconds of its fit; None if it takes too long."""
    ours, theirs = multiprocessing.get_context("spawn").Pipe(duplex=False)
    context = multiprocessing.get_context("spawn")
    process = context.Process(target=fitted, args=(theirs, clf, X, y))
    process.start()
    # The process has to begin and to import first.
    result = ours.recv() if ours.poll(limit + 10.0) else (None, limit)
    process.kill()
    return result


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu.probe", description=__doc__)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--columns", type=int, default=384)
    parser.add_argument("--classes", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=60.0, help="limit for each of the others")
    a = parser.parse_args()
    device, C, n_test = ("cuda" if torch.cuda.is_available() else "cpu"), 1.0, 5000
    X, y = clusters(a.rows + n_test, a.columns, classes=a.classes, device=device)
    X_test, y_test, X, y = X[:n_test], y[:n_test], X[n_test:], y[n_test:]
    on_host, labels = X.float().cpu().numpy(), y.cpu().numpy()
    fine = LinearSVC(C, tol=1e-4, fit_intercept=False, random_state=0).fit(X, y)
    lower = np.array([proof.dual for proof in fine.certificates_ or ()])

    def row(name: str, W: Any, seconds: float, *, proved: str = "", same: bool = True) -> None:
        if W is None:
            print(f"| {name} | > {seconds:.0f} | | | | |", flush=True)
            return
        gap = f"{(objectives(X, y, W, C) / lower - 1.0).max():.2%}" if same else "other objective"
        scores = X_test.double() @ torch.as_tensor(W, device=device).double().T
        right, near = (
            float((scores.topk(k).indices == y_test[:, None]).any(1).double().mean())
            for k in (1, min(5, a.classes))
        )
        told = f"{seconds:.3g} | {gap} | {proved} | {right:.1%} | {near:.1%}"
        print(f"| {name} | {told} |", flush=True)

    print(f"{a.rows} x {a.columns}, float16, {a.classes} classes, C = {C:g}\n")
    print(
        "| | seconds | worst gap | proved | accuracy | top 5 |\n| --- | --- | --- | --- | --- | ---"
    )
    for where in dict.fromkeys((device, "cpu")):
        data = X.to(where), y.to(where)
        clf = LinearSVC(C, tol=TOL, fit_intercept=False, random_state=0)
        seconds = min(clock(lambda clf=clf, data=data: clf.fit(*data))[1] for _ in range(3))  # type: ignore[misc]
        worst = max(proof.proved_gap for proof in clf.certificates_ or ())
        row(f"certsvm on {where}, tol 1 %", clf.coef_, seconds, proved=f"{worst:.2%}")
    W, seconds = lbfgs(X, y, C, lower, a.seconds)
    row(f"torch.optim.LBFGS on {device}", W, seconds)
    liblinear = SklearnSVC(loss="hinge", C=C, fit_intercept=False, random_state=0)
    row("sklearn LinearSVC", *within(a.seconds, liblinear, on_host, labels))
    logistic = LogisticRegression(C=C, fit_intercept=False, max_iter=1000)
    row("sklearn LogisticRegression", *within(a.seconds, logistic, on_host, labels), same=False)


if __name__ == "__main__":
    main()
