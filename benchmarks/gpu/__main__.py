"""Embeddings on a GPU: the time of a certified fit, and of PyTorch's optimisers on the same card.

    python -m benchmarks.gpu [--out FOLDER] [--quick]

writes gpu.md and gpu.json. ``--quick`` uses small problems, as a smoke test.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import torch
from sklearn.base import clone

from benchmarks import machine
from benchmarks.gpu.optimisers import lbfgs, race, sgd
from benchmarks.gpu.problems import generated
from benchmarks.markdown import Records, measured_on, of_records
from certsvm import LinearSVC, fit_path
from certsvm.torch import TensorRows, rows, source

REPEATS = 7
# Limit in seconds for each of PyTorch's optimisers.
MAX_SECONDS = 4.0


def clock(work: Callable[[], Any], repeats: int = REPEATS) -> tuple[float, float, Any]:
    """The best and the median time of several runs, in seconds, and the last result."""
    times = []
    for _ in range(repeats):
        torch.cuda.synchronize()
        began = time.perf_counter()
        result = work()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - began)
    return min(times), sorted(times)[len(times) // 2], result


def card() -> dict[str, Any]:
    """The peak rates of the card, measured: matrix products and reading."""
    size = 8192
    a = torch.randn(size, size, device="cuda", dtype=torch.bfloat16)
    product = clock(lambda: a @ a, 10)[0]
    X = torch.randn(1_000_000, 1024, device="cuda")
    v = torch.randn(1024, device="cuda")
    reading = clock(lambda: X @ v, 10)[0]
    copying = clock(X.clone, 10)[0]
    return {
        "card": torch.cuda.get_device_name(),
        "bf16 product, TFLOP/s": round(2 * size**3 / product / 1e12),
        "reading, TB/s": round(X.nbytes / reading / 1e12, 2),
        "copying, TB/s (both ways)": round(2 * X.nbytes / copying / 1e12, 2),
        "PyTorch": torch.__version__,
    }


@contextmanager
def spans(name: str, owner: Any, method: str, calls: dict[str, list[Any]]) -> Iterator[None]:
    """Record the begin, the end and the arguments of each call of a method, on the device."""
    plain = getattr(owner, method)

    def timed(*arguments: Any, **options: Any) -> Any:
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        result = plain(*arguments, **options)
        end.record()
        calls.setdefault(name, []).append((begin, end, arguments))
        return result

    setattr(owner, method, timed)
    try:
        yield
    finally:
        setattr(owner, method, plain)


def where_the_time_goes(
    fit: Callable[[], Any], n_columns: int, rates: dict[str, Any]
) -> dict[str, Any]:
    """Milliseconds of a fit in readings and Gram matrices, and how fast these were."""
    calls: dict[str, list[Any]] = {}
    with (
        spans("products", TensorRows, "products", calls),
        spans("sums", TensorRows, "sums", calls),
        spans("gram", rows, "_gram", calls),
        spans("factor", torch.linalg, "cholesky_ex", calls),
    ):
        fit()
        torch.cuda.synchronize()
    took = {
        name: sum(begin.elapsed_time(end) for begin, end, _ in timed)
        for name, timed in calls.items()
    }
    read = sum(given[0].X.nbytes for name in ("products", "sums") for _, _, given in calls[name])
    work = sum(2.0 * given[0].shape[0] * n_columns**2 for _, _, given in calls["gram"])
    reading = took["products"] + took["sums"]
    speed, rate = read / reading / 1e9, work / took["gram"] / 1e9
    return {
        "readings, ms": round(reading, 1),
        "of the card's reading": f"{speed / rates['reading, TB/s']:.0%}",
        "Gram, ms": round(took["gram"], 1),
        "of the card's products": f"{rate / rates['bf16 product, TFLOP/s']:.0%}",
        "Cholesky, ms": round(took["factor"], 1),
    }


def certified(rates: dict[str, Any], shapes: list[tuple[int, int, torch.dtype]]) -> Records:
    """Fits with the data on the card: labels, norms and samples included."""
    table: Records = []
    for n, d, dtype in shapes:
        X, y = generated(n, d, dtype)
        LinearSVC(tol=1e-2, fit_intercept=False).fit(X[: n // 10], y[: n // 10])
        for C in (0.1, 1.0, 10.0):
            clf = LinearSVC(C, tol=1e-5, fit_intercept=False, random_state=0)
            torch.cuda.reset_peak_memory_stats()
            best, median, _ = clock(partial(clf.fit, X, y))
            peak = torch.cuda.max_memory_allocated() / 1e9
            assert clf.certificate_ is not None
            table.append(
                {
                    "rows": f"{n:,}", "columns": d, "type": str(dtype)[len("torch."):], "C": C,
                    "seconds": round(best, 4), "median": round(median, 4), "steps": clf.n_iter_,
                    "proved": f"{clf.certificate_.proved_gap:.1e}",
                    "GB, data and all": f"{X.nbytes / 1e9:.1f}, {peak:.1f}",
                    **where_the_time_goes(partial(clf.fit, X, y), d, rates),
                }
            )  # fmt: skip
            print(table[-1], flush=True)
    return table


def variations(n: int, d: int) -> Records:
    """Several C, several classes together or not, data on the host: to 1e-4."""
    table: Records = []

    def note(what: str, fit: Callable[[], Any], repeats: int = 3) -> None:
        seconds, _, model = clock(fit, repeats)
        worst = max(c.proved_gap for c in model.certificates_)
        table.append({"what": what, "seconds": round(seconds, 3), "proved": f"{worst:.1e}"})
        print(table[-1], flush=True)

    X, y = generated(n, d)
    base, on_card = LinearSVC(tol=1e-4, random_state=0), LinearSVC(tol=1e-4, device="cuda")
    Cs = [0.1, 0.3, 1.0, 3.0, 10.0]
    note("5 C, each from zero", lambda: [clone(base).set_params(C=C).fit(X, y) for C in Cs][-1])
    note("5 C by fit_path, each from the last", lambda: fit_path(base, X, y, Cs)[-1])
    array, labels = X.cpu().numpy(), y.cpu().numpy()
    note("from a NumPy array, moved to the card", lambda: on_card.fit(array, labels))
    many = generated(n, d, classes=10)
    one_by_one = mock.patch.object(source, "_FEWEST", math.inf)
    note("10 classes together", lambda: base.fit(*many))
    with one_by_one:
        note("10 classes, one after the other", lambda: base.fit(*many))
    # As if the rows did not fit on the card.
    several = [tensor.cpu().numpy() for tensor in generated(n, d, classes=4)]
    with mock.patch.object(rows, "_room_for", return_value=array.nbytes // 8):
        note("in blocks, moved in each pass", lambda: on_card.fit(array, labels), 1)
        note("the same, 4 classes together", lambda: on_card.fit(*several), 1)
        with one_by_one:
            note("the same, 4 classes, one after the other", lambda: on_card.fit(*several), 1)
    return table


def pytorch_optimisers(n: int, d: int, most: float) -> Records:
    """PyTorch's optimisers, stopped by a known optimum, against a certified fit."""
    table: Records = []
    targets = [1e-2, 1e-3, 1e-5]
    for alike in (True, False):
        X, y = generated(n, d, alike=alike)
        signs = 2.0 * y.double() - 1.0
        for run in (lbfgs, sgd(1.0)):
            # Load and compile.
            race(run, X[:1000], signs[:1000], 1.0, 1e-9, [1e-9], 0.5)
        for C in (0.1, 1.0, 10.0):
            ours: dict[float, float | None] = {}
            for target in targets:
                clf = LinearSVC(C, tol=target, fit_intercept=False, random_state=0)
                ours[target] = round(clock(partial(clf.fit, X, y), 5)[0], 3)
            reference = LinearSVC(C, tol=1e-7, fit_intercept=False, random_state=0).fit(X, y)
            assert reference.certificate_ is not None
            lower = reference.certificate_.dual
            runs = {"certsvm": ours, "L-BFGS": race(lbfgs, X, signs, C, lower, targets, most)}
            for step in (1.0, 0.1, 0.01):
                runs[f"SGD, step {step:g}"] = race(sgd(step), X, signs, C, lower, targets, most)
            for name, seconds in runs.items():
                table.append(
                    {"directions": "alike" if alike else "as of embeddings", "C": C, "system": name}
                    | {
                        f"to {t:g}, s": f"> {most:g}" if s is None else s
                        for t, s in seconds.items()
                    }
                )
                print(table[-1], flush=True)
    return table


def markdown(rates: dict[str, Any], tables: dict[str, Records]) -> str:
    """All tables, with the machine."""
    where = measured_on(machine.describe() | rates)
    lines = ["# gpu", "", (__doc__ or "").partition("\n")[0], "", f"{where}."]
    for title, table in tables.items():
        lines += ["", f"## {title}", "", *of_records(table)]
    return "\n".join([*lines, ""])


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent.parent / "results")
    parser.add_argument("--quick", action="store_true", help="small problems")
    arguments = parser.parse_args()
    if not torch.cuda.is_available():
        parser.error("PyTorch sees no GPU here")
    rates = card()
    print(rates, flush=True)
    fewer_rows, fewer_columns = (100, 8) if arguments.quick else (1, 1)
    single, half = torch.float32, torch.bfloat16
    shapes = [(1_000_000, 1024, single), (400_000, 2000, single), (10_000_000, 512, half)]
    tables = {
        "To a certified 1e-5, data on the card": certified(
            rates, [(n // fewer_rows, d // fewer_columns, dtype) for n, d, dtype in shapes]
        ),
        "1,000,000 x 1024, float32, with PyTorch's optimisers": pytorch_optimisers(
            1_000_000 // fewer_rows, 1024 // fewer_columns, MAX_SECONDS / fewer_rows
        ),
        "1,000,000 x 512, float32, to a certified 1e-4": variations(
            1_000_000 // fewer_rows, 512 // fewer_columns
        ),
    }
    arguments.out.mkdir(parents=True, exist_ok=True)
    (arguments.out / "gpu.md").write_text(markdown(rates, tables))
    results = {"machine": machine.describe() | rates, "tables": tables}
    (arguments.out / "gpu.json").write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
