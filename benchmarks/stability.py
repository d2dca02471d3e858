"""What certificates of various accuracy tell about the exact optimum, on the training rows.

C = 1, without intercept, one thread, at most 30 seconds. Stable is the share of predictions that
more training could not flip, and the same is the share that agrees with the most accurate model.
The last three columns are the numbers of rows of each ``SupportStatus``.
"""

from __future__ import annotations

import time
import warnings
from pathlib import Path
from typing import Any

from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from benchmarks.data import available
from certsvm import LinearSVC, SupportStatus

NAMES = ["a9a", "ijcnn1", "w8a", "moneyfx", "covtype", "news20", "debian"]
TOLERANCES = (1e-2, 1e-4, 1e-6, 1e-8, 1e-10)
MAX_SECONDS = 30.0


def run(folder: Path | None) -> list[dict[str, Any]]:
    warnings.simplefilter("ignore", ConvergenceWarning)
    table: list[dict[str, Any]] = []
    for name, X, y in available(folder, NAMES):
        models = []
        for tol in TOLERANCES:
            clf = LinearSVC(tol=tol, fit_intercept=False, max_time=MAX_SECONDS, random_state=0)
            clone(clf).set_params(max_iter=1).fit(X, y)  # compile
            began = time.perf_counter()
            clf.fit(X, y)
            models.append((clf, time.perf_counter() - began))
        labels = models[-1][0].predict(X)
        for tol, (clf, seconds) in zip(TOLERANCES, models, strict=True):
            began = time.perf_counter()
            stable = clf.stability(X)
            took = time.perf_counter() - began
            status = clf.support_status(X, y)
            numbers = {kind.name.lower(): int((status == kind).sum()) for kind in SupportStatus}
            assert clf.certificate_ is not None
            table.append(
                {
                    "data": name,
                    "tol": f"{tol:g}",
                    "gap": f"{clf.certificate_.proved_gap:.2g}",
                    "fit, s": f"{seconds:.2f}",
                    "stability, s": f"{took:.2f}",
                    "stable": f"{stable:.2%}",
                    "the same": f"{(clf.predict(X) == labels).mean():.2%}",
                    **numbers,
                }
            )
            print(table[-1], flush=True)
    return table
