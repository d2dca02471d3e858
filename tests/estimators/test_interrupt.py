"""A real Ctrl-C: SIGINT to a real process."""

import signal
import subprocess
import sys
import textwrap
import time

import pytest

from tests.platforms import posix

pytestmark = posix

SCRIPT = """
import sys, warnings
import numpy as np
from certsvm import LinearSVC, verify

rng = np.random.default_rng(0)
X = rng.standard_normal((20_000, 20))
y = np.argmax(X[:, :{classes}] + rng.standard_normal((20_000, {classes})), axis=1)
LinearSVC(solver="dcd", tol=0.5, random_state=0).fit(X, y)  # compile
print("ready", flush=True)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    clf = LinearSVC(
        solver="dcd", tol=0, max_iter=10**9, random_state=0, n_jobs={n_jobs}, store_dual=True
    )
    clf.fit(X, y)
report = verify(clf, X, y)
print("interrupted" in str(caught[0].message), report.ok, report.dual_verified, len(report))
"""


@pytest.mark.parametrize(("classes", "n_jobs"), [(2, 1), (2, 2), (3, 1), (3, 2)])
def test_ctrl_c_keeps_a_certified_model(classes: int, n_jobs: int) -> None:
    script = textwrap.dedent(SCRIPT).format(classes=classes, n_jobs=n_jobs)
    process = subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(0.7)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 0, err
    assert out.split() == ["True", "True", "True", "1" if classes == 2 else "3"]
