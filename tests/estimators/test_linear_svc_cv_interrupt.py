"""A real Ctrl-C during the search for C: SIGINT to a real process."""

import signal
import subprocess
import sys
import textwrap
import time

import pytest

from tests.platforms import posix

pytestmark = posix

SCRIPT = """
import warnings
import numpy as np
from certsvm import LinearSVCCV

rng = np.random.default_rng(0)
X = rng.standard_normal((5_000, 20))
y = X[:, 0] + rng.standard_normal(5_000) > 0
options = dict(C_range=(1e-4, 1e-1), n_jobs={n_jobs}, random_state=0)
LinearSVCCV(certify=0.4, **options).fit(X, y)  # compile

class Ready(LinearSVCCV):
    def _values(self):
        print("ready", flush=True)
        return super()._values()

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    clf = Ready(certify=1e-6, **options).fit(X, y)
print("interrupted" in str(caught[0].message), clf.certified_, clf.score(X, y) > 0.5)
"""


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_ctrl_c_keeps_what_is_proved(n_jobs: int) -> None:
    script = textwrap.dedent(SCRIPT).format(n_jobs=n_jobs)
    process = subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(2.0)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=120)
    finally:
        process.kill()
    assert process.returncode == 0, err
    assert out.split() == ["True", "False", "True"]
