"""Arrays of other libraries, with scikit-learn's ``array_api_dispatch``.

SciPy must be configured before it is imported, so this takes processes of their own.
"""

import os
import subprocess
import sys

import pytest
import scipy

pytestmark = pytest.mark.skipif(
    tuple(map(int, scipy.__version__.split(".")[:2])) < (1, 14),
    reason="scikit-learn's array_api_dispatch needs SciPy 1.14",
)


def test_arrays_on_the_host_are_taken_as_numpys() -> None:
    program = """
import array_api_strict as xp
import numpy as np
import sklearn
from sklearn.datasets import make_classification
from certsvm import LinearSVC

X, y = make_classification(n_samples=200, random_state=0)
w = np.random.default_rng(0).random(200)
for dtype in ("float32", "float64"):
    ours = X.astype(dtype)
    theirs, labels, weights = xp.asarray(ours), xp.asarray(y), xp.asarray(w)
    one = LinearSVC(random_state=0).fit(ours, y, w)
    stream = LinearSVC().partial_fit(ours, y, [0, 1], w)
    with sklearn.config_context(array_api_dispatch=True):
        other = LinearSVC(random_state=0).fit(theirs, labels, weights)
        np.testing.assert_array_equal(other.coef_, one.coef_)
        np.testing.assert_array_equal(other.decision_function(theirs), one.decision_function(ours))
        np.testing.assert_array_equal(other.predict(theirs), one.predict(ours))
        assert other.score(theirs, labels, weights) == one.score(ours, y, w)
        other = LinearSVC().partial_fit(theirs, labels, [0, 1], weights)
        np.testing.assert_array_equal(other.coef_, stream.coef_)
        assert other.score(ours, y) == stream.score(ours, y)
"""
    environment = {**os.environ, "SCIPY_ARRAY_API": "1"}
    subprocess.run([sys.executable, "-c", program], check=True, timeout=300, env=environment)
