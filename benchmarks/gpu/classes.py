"""Many classes on a GPU: the time of a certified fit, where it goes, and its memory.

    python -m benchmarks.gpu.classes [--seconds LIMIT] [--quick] [CASE ...]

prints a few lines for each case. The first fit of a case is not measured: it compiles kernels.
``--quick`` divides the numbers of rows and columns, as a smoke test that also runs on a CPU.
"""

from __future__ import annotations

import argparse
import time
import traceback
from collections import defaultdict
from collections.abc import Callable
from typing import Any, NamedTuple

import torch

from benchmarks.gpu.problems import clusters, generated
from certsvm import LinearSVC
from certsvm.torch import batch, rounds


class Case(NamedTuple):
    """What is fitted."""

    rows: int
    columns: int
    classes: int
    dtype: torch.dtype = torch.float16
    norm: float = 1.0
    C: float = 1.0
    tols: tuple[float, ...] = (1e-2, 1e-3)
    clustered: bool = True


CASES = {
    "hundred": Case(100_000, 768, 100),
    "hundred, longer": Case(100_000, 768, 100, norm=10.0),
    "thousand": Case(1_281_167, 1024, 1000),
    "thousand, longer": Case(1_281_167, 1024, 1000, norm=10.0),
    "thousand, other": Case(1_281_167, 1024, 1000, clustered=False, tols=(1e-2,)),
    "ten": Case(1_000_000, 1024, 10, torch.float32, clustered=False, tols=(1e-3,)),
    "ten, clusters": Case(1_000_000, 1024, 10, tols=(1e-3,)),
    "small": Case(581_012, 54, 2, torch.float32, clustered=False, tols=(1e-2, 1e-5)),
    "one": Case(1_000_000, 1024, 2, torch.float32, clustered=False, tols=(1e-5,)),
}


class Spans:
    """The seconds and the number of calls of some functions, each waited for."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)
        self.calls: dict[str, int] = defaultdict(int)

    def timed(self, owner: Any, name: str, label: str) -> Callable[[], None]:
        """Time the calls of a method; return what ends that."""
        plain = getattr(owner, name)

        def call(*arguments: Any, **options: Any) -> Any:
            wait()
            began = time.perf_counter()
            result = plain(*arguments, **options)
            wait()
            self.seconds[label] += time.perf_counter() - began
            self.calls[label] += 1
            return result

        setattr(owner, name, call)
        return lambda: setattr(owner, name, plain)

    def __str__(self) -> str:
        return ", ".join(f"{k} {v * 1e3:.0f} ms ({self.calls[k]})" for k, v in self.seconds.items())


def wait() -> None:
    """Wait for the device."""
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def phases(fit: Callable[[], Any], n_rows: int) -> str:
    """Where a fit spends its time, and each round: rows, classes, the median and largest gap."""
    spans, seen = Spans(), []
    gaps = rounds.Rounds._gaps

    def noted(self: Any, numbers: Any) -> Any:
        found = gaps(self, numbers)
        share = n_rows / self._rows.n_rows
        seen.append(f"{share:.0f}:{found.size}:{sorted(found)[len(found) // 2]:.0e}")
        return found

    undo = [
        spans.timed(batch, "spectrum", "spectrum"),
        spans.timed(rounds.FastRows, "__init__", "copy"),
        spans.timed(rounds.Rounds, "_evaluate", "gradients"),
        spans.timed(rounds.Rounds, "_gathered", "gathering"),
        spans.timed(rounds.Rounds, "_curved", "conjugate gradients"),
        spans.timed(rounds.Rounds, "_search", "searches"),
        spans.timed(batch.Batch, "_run_on_samples", "(samples)"),
        spans.timed(batch.Batch, "advance", "(together)"),
        spans.timed(batch, "evidence", "float64"),
    ]
    rounds.Rounds._gaps = noted  # type: ignore[method-assign]
    began = time.perf_counter()
    try:
        fit()
    finally:
        rounds.Rounds._gaps = gaps  # type: ignore[method-assign]
        for end in undo:
            end()
    return f"{time.perf_counter() - began:.2f} s: {spans}\n    rounds {' '.join(seen)}"


def measure(name: str, case: Case, device: str, repeats: int = 3) -> None:
    """Print the times of a case."""
    maker = clusters if case.clustered else generated
    X, y = maker(case.rows, case.columns, case.dtype, classes=case.classes, device=device)
    X *= case.norm
    for tol in case.tols:
        clf = LinearSVC(case.C, tol=tol, fit_intercept=False, random_state=0)
        clf.fit(X, y)
        times = []
        wait()
        if device == "cuda":
            torch.cuda.reset_peak_memory_stats()
        for _ in range(repeats):
            began = time.perf_counter()
            clf.fit(X, y)
            wait()
            times.append(time.perf_counter() - began)
        peak = torch.cuda.max_memory_allocated() / 1e9 if device == "cuda" else 0.0
        proofs = clf.certificates_ or []
        print(
            f"{name} {tuple(X.shape)} {case.classes} classes, tol {tol:g}: {min(times):.3f} s of "
            f"{[round(t, 3) for t in times]}, {sum(p.met for p in proofs)} of {len(proofs)} met, "
            f"worst {max(p.proved_gap for p in proofs):.2e}, {peak:.1f} GB, passes "
            f"{clf.n_iter_}, accuracy {clf.score(X[:20_000], y[:20_000]):.3f}",
            flush=True,
        )
        print(f"    {phases(lambda clf=clf: clf.fit(X, y), len(X))}", flush=True)  # type: ignore[misc]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu.classes", description=__doc__)
    parser.add_argument("cases", nargs="*", metavar="CASE", help=", ".join(CASES))
    parser.add_argument("--seconds", type=float, default=420.0, help="begin no case after these")
    parser.add_argument("--quick", action="store_true", help="small problems")
    arguments = parser.parse_args()
    began = time.perf_counter()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    for name in arguments.cases or CASES:
        if time.perf_counter() - began > arguments.seconds:
            print(f"{name}: no time left")
            continue
        case = CASES[name]
        if arguments.quick:
            case = case._replace(
                rows=case.rows // 200, columns=case.columns // 16,
                classes=max(2, case.classes // 20), dtype=torch.float32,
            )  # fmt: skip
        try:
            measure(name, case, device, 1 if arguments.quick else 3)
        except Exception:
            # The other cases shall be measured.
            print(f"{name}: failed\n{traceback.format_exc(limit=-6)[-1500:]}", flush=True)


if __name__ == "__main__":
    main()
