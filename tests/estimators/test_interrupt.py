"""A real Ctrl-C: SIGINT to a real process."""

import os
import signal
import subprocess
import sys
import time

import pytest

from tests.platforms import posix

pytestmark = posix

FIT = """
import sys, warnings
import numpy as np
from certsvm import LinearSVC, verify

classes, n_jobs = {}, {}
rng = np.random.default_rng(0)
X = rng.standard_normal((20_000, 20))
y = np.argmax(X[:, :classes] + rng.standard_normal((20_000, classes)), axis=1)
LinearSVC(solver="dcd", tol=0.5, random_state=0).fit(X, y)  # compile
print("ready", flush=True)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    clf = LinearSVC(solver="dcd", tol=0, max_iter=10**9, n_jobs=n_jobs, store_dual=True).fit(X, y)
report = verify(clf, X, y)
print("interrupted" in str(caught[0].message), report.ok, report.dual_verified)
assert len(report) == (1 if classes == 2 else classes)
"""

SEARCH = """
import warnings
import numpy as np
from certsvm import LinearSVCCV

rng = np.random.default_rng(0)
X = rng.standard_normal((5_000, 20))
y = X[:, 0] + rng.standard_normal(5_000) > 0
options = dict(C_range=(1e-4, 1e-1), n_jobs={}, random_state=0)
LinearSVCCV(certify=0.4, **options).fit(X, y)  # compile

class Ready(LinearSVCCV):
    def _values(self):
        print("ready", flush=True)
        return super()._values()

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    clf = Ready(certify=1e-6, **options).fit(X, y)
print("interrupted" in str(caught[0].message), not clf.certified_, clf.score(X, y) > 0.5)
"""


@pytest.mark.parametrize(
    ("script", "seconds"),
    [
        (FIT.format(2, 1), 0.7), (FIT.format(3, 2), 0.7),
        (SEARCH.format(1), 2.0), (SEARCH.format(2), 2.0),
    ],
    ids=["one class", "threads of classes", "search", "processes of folds"],
)  # fmt: skip
def test_ctrl_c_keeps_what_is_proved(script: str, seconds: float) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        start_new_session=True,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(seconds)
        # As a terminal does: to child processes, too.
        os.killpg(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=120)
    finally:
        process.kill()
    assert process.returncode == 0, err
    assert out.split() == ["True", "True", "True"]
