"""Our solvers beside their originals: the page, and how passes are counted."""

from __future__ import annotations

import json

import numpy as np
import pytest

from benchmarks import originals
from benchmarks.originals import ACCURACIES, PAIRS, SETS, VALUES_OF_C, described, key, passes
from certsvm.certificates.primal import primal_bound
from certsvm.solvers import DCD, Options
from certsvm.training.loop import train
from tests.problems import noisy


def test_the_page_is_what_the_committed_results_say() -> None:
    results = json.loads(originals.RESULTS.read_text())
    assert originals.page(results) == originals.PAGE.read_text()
    cells = {(s, n, C, a) for s in PAIRS for n in SETS for C in VALUES_OF_C for a in ACCURACIES}
    for kind in ("originals", "ours"):
        assert {key(record) for record in results[kind]} == cells


def test_passes_are_counted_to_each_accuracy() -> None:
    problem = noisy(C=1.0)
    optimum = train(problem, DCD(), tol=1e-9, seed=0, max_iter=10**5).certificate.dual
    counts = passes(problem, DCD(), optimum, seed=3, most=200)
    run = DCD().start(problem, Options(np.random.default_rng(3), ACCURACIES[-1]))
    seen = []
    for _ in range(200):
        run.epoch()
        seen.append(primal_bound(problem, next(run.candidates())).value / optimum - 1)
    expected = [next(i + 1 for i, a in enumerate(seen) if a <= goal) for goal in ACCURACIES]
    assert counts == expected
    assert passes(problem, DCD(), optimum, seed=3, most=expected[0]) == [expected[0], None]


@pytest.mark.parametrize(
    ("counts", "text"),
    [
        ([None, None, None], "more than 400"),
        ([1, 2, 3, 4], "3 (1–4)"),
        ([None, 1, None], "more than 400 (1–more than 400)"),
    ],
)
def test_counts_in_words(counts: list[int | None], text: str) -> None:
    assert described(counts) == text
