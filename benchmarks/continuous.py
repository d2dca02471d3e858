"""Five small fits beside scikit-learn's, against ratios that were recorded earlier.

``python -m benchmarks.continuous`` ends with exit code 1 if a fit has become slower than in
results/continuous.json; with ``--record``, it measures that baseline anew.

Times differ from machine to machine, and from hour to hour on a shared one. What is compared is
therefore the ratio of two times that were measured in turn in one run: our fit, and a fixed number
of iterations of scikit-learn's on the same data. The ratio is no comparison of the two libraries.
Processor time on one thread, best of all rounds.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_digits, load_iris, make_classification
from sklearn.svm import LinearSVC as Liblinear

from benchmarks import machine
from certsvm import LinearSVC, fit_path
from certsvm.demo import text_like

BASELINE = Path(__file__).parent / "results" / "continuous.json"
ROUNDS = 15
# Beyond this factor of the recorded ratio, a fit counts as slower. Noise and other processors make
# some tens of per cent.
SLOWER = 1.6

Job = Callable[[], Any]


def jobs() -> dict[str, tuple[Job, Job]]:
    """The fits: ours, and scikit-learn's on the same data."""
    iris, digits = load_iris(return_X_y=True), load_digits(return_X_y=True)
    table = make_classification(10_000, 30, flip_y=0.1, random_state=0)
    onehot = np.random.default_rng(0).random((10_000, 120)) < 0.1
    categories = onehot.astype(np.float64), table[1]
    text = text_like(n_documents=5_000, n_words=10_000, length=60)

    def fit(data: Any, **parameters: Any) -> Job:
        return lambda: LinearSVC(random_state=0, **parameters).fit(*data)

    def reference(data: Any) -> Job:
        # A fixed amount of work.
        return lambda: Liblinear(loss="hinge", tol=1e-30, max_iter=50, random_state=0).fit(*data)

    return {
        "iris, 3 classes": (fit(iris, tol=1e-4), reference(iris)),
        "digits, 10 classes": (fit(digits, tol=1e-3), reference(digits)),
        "table, 10,000 x 30, to 1e-4": (fit(table, tol=1e-4), reference(table)),
        "text, 5,000 x 10,000, to 1e-3": (fit(text, tol=1e-3), reference(text)),
        "every C in [1e-2, 1], 10,000 x 120": (
            lambda: fit_path(LinearSVC(random_state=0), *categories, C_range=(1e-2, 1.0)),
            reference(categories),
        ),
    }


def measure() -> dict[str, float]:
    """The ratio of our time to scikit-learn's for each fit."""
    warnings.simplefilter("ignore")
    ratios = {}
    for name, pair in jobs().items():
        best = [float("inf")] * 2
        for job in pair:  # compile
            job()
        for _ in range(ROUNDS):
            for i, job in enumerate(pair):
                began = time.process_time()
                job()
                best[i] = min(best[i], time.process_time() - began)
        ratios[name] = round(best[0] / best[1], 4)
    return ratios


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.continuous", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--record", action="store_true", help="write the baseline")
    parser.add_argument("--baseline", type=Path, default=BASELINE, help="file of the baseline")
    arguments = parser.parse_args()
    ratios = measure()
    if arguments.record:
        content = {"machine": machine.describe(), "ratios": ratios}
        arguments.baseline.write_text(json.dumps(content, indent=1) + "\n")
    recorded = json.loads(arguments.baseline.read_text())["ratios"]
    slower = []
    for name, ratio in ratios.items():
        factor = ratio / recorded[name]
        slower += [name] if factor > SLOWER else []
        print(f"{name}: {ratio:.3f} of scikit-learn's time, recorded {recorded[name]:.3f} "
              f"(x {factor:.2f})")  # fmt: skip
    if slower:
        sys.exit(f"slower than recorded by a factor of more than {SLOWER:g}: {', '.join(slower)}")


if __name__ == "__main__":
    main()
