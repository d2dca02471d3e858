"""Start-up: import and first fit in a fresh process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

REPEATS = 9

FIT = """
import json, time
began = time.perf_counter()
import sklearn, sklearn.svm
imported = time.perf_counter()
import numpy as np, scipy.sparse as sp
rng = np.random.default_rng(0)
X = sp.random(2000, 500, density=0.05, format="csr", random_state=0)
y = rng.choice([-1, 1], 2000)
ready = time.perf_counter()
from certsvm import LinearSVC
LinearSVC(C=0.1, tol=0.1, random_state=0).fit(X, y)
fitted = time.perf_counter()
again = time.perf_counter()
LinearSVC(C=0.1, tol=0.1, random_state=0).fit(X, y)
print(json.dumps([imported - began, fitted - ready, time.perf_counter() - again]))
"""


def run(folder: Path | None) -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as cache:
        environment = os.environ | {"NUMBA_CACHE_DIR": cache}
        first = _fit(environment)
        later = [_fit(environment) for _ in range(REPEATS)]
    return [
        {"what": "import scikit-learn (seconds, median)", "seconds": _round(later, 0)},
        {"what": "then import certsvm and fit, compiling", "seconds": round(first[1], 2)},
        {
            "what": "then import certsvm and fit, kernels cached (median)",
            "seconds": _round(later, 1),
        },
        {"what": "the same, best of all", "seconds": round(min(t[1] for t in later), 3)},
        {"what": "the fit itself, once everything is loaded", "seconds": _round(later, 2)},
    ]


def _fit(environment: dict[str, str]) -> list[float]:
    done = subprocess.run(
        [sys.executable, "-c", FIT], env=environment, capture_output=True, text=True, check=True
    )
    times: list[float] = json.loads(done.stdout)
    return times


def _round(times: list[list[float]], i: int) -> float:
    return round(median(t[i] for t in times), 3)
