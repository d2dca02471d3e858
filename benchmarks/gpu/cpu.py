"""Many classes on a CPU: arrays, one class after the other, and tensors, all classes at once.

    python -m benchmarks.gpu.cpu

prints seconds to a proved 1 % for 100,000 dense rows of 768 columns and 100 classes, and for
scikit-learn's LinearSVC at its defaults. Rows are noise about the centre of their class, of length
one, and one label in fifty is replaced.
"""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np
import torch
from sklearn import svm

from certsvm import LinearSVC

N_ROWS, N_COLUMNS, N_CLASSES = 100_000, 768, 100


def main() -> None:
    """Print a line for each program."""
    warnings.simplefilter("ignore")
    rng = np.random.default_rng(0)
    centres = rng.standard_normal((N_CLASSES, N_COLUMNS)).astype(np.float32)
    y = rng.integers(0, N_CLASSES, N_ROWS)
    X = 0.35 * centres[y] + rng.standard_normal((N_ROWS, N_COLUMNS)).astype(np.float32)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    replaced = rng.random(N_ROWS) < 0.02
    y[replaced] = rng.integers(0, N_CLASSES, replaced.sum())
    ours: dict[str, Any] = {"tol": 0.01, "fit_intercept": False, "random_state": 0}
    programs: list[tuple[str, Any, Any]] = [
        ("tensors", LinearSVC(**ours), torch.from_numpy(X)),
        ("arrays", LinearSVC(**ours), X),
        ("arrays, two threads", LinearSVC(n_jobs=2, **ours), X),
        ("scikit-learn", svm.LinearSVC(random_state=0), X),
    ]
    for name, model, rows in programs:
        began = time.perf_counter()
        model.fit(rows, y)
        print(f"{name}: {time.perf_counter() - began:.1f} s", flush=True)


if __name__ == "__main__":
    main()
