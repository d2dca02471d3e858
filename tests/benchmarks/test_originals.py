"""Our solvers beside their originals: the page, and how passes are counted."""

from __future__ import annotations

import json

from benchmarks import originals
from benchmarks.originals import ACCURACIES, PAIRS, SETS, VALUES_OF_C, key


def test_the_page_is_what_the_committed_results_say() -> None:
    results = json.loads(originals.RESULTS.read_text())
    assert originals.page(results) == originals.PAGE.read_text()
    cells = {(s, n, C, a) for s in PAIRS for n in SETS for C in VALUES_OF_C for a in ACCURACIES}
    for kind in ("originals", "ours"):
        assert {key(record) for record in results[kind]} == cells
