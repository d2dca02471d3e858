"""The committed tables and pages are what the committed results say."""

import json
from pathlib import Path

import pytest

from benchmarks import markdown, originals
from benchmarks.__main__ import BENCHMARKS
from benchmarks.originals import ACCURACIES, PAIRS, SETS, VALUES_OF_C, key
from benchmarks.paper import page
from benchmarks.paper import report as paper
from benchmarks.paper.tables import TABLES
from benchmarks.peers import report

RESULTS = Path(markdown.__file__).parent / "results"


@pytest.mark.parametrize("name", [*BENCHMARKS, "growth"])
def test_committed_tables(name: str) -> None:
    results = json.loads((RESULTS / f"{name}.json").read_text())
    text = (RESULTS / f"{name}.md").read_text()
    assert f"{markdown.measured_on(results['machine'])}.\n" in text
    assert text.endswith("\n".join([*markdown.of_records(results["table"]), ""]))


def test_committed_tables_of_the_gpu() -> None:
    text = (RESULTS / "gpu.md").read_text()
    for title, table in json.loads((RESULTS / "gpu.json").read_text())["tables"].items():
        assert "\n".join([f"## {title}", "", *markdown.of_records(table)]) in text


@pytest.mark.parametrize("folder", [RESULTS, RESULTS / "high-accuracy", RESULTS / "all-peers"])
def test_committed_tables_of_peers(folder: Path) -> None:
    results = json.loads((folder / "peers.json").read_text())
    assert report.markdown(results) == (folder / "peers.md").read_text()


def test_the_page_of_originals() -> None:
    results = json.loads(originals.RESULTS.read_text())
    assert originals.page(results) == originals.PAGE.read_text()
    cells = {(s, n, C, a) for s in PAIRS for n in SETS for C in VALUES_OF_C for a in ACCURACIES}
    for kind in ("originals", "ours"):
        assert {key(record) for record in results[kind]} == cells


def test_the_page_of_the_paper() -> None:
    tables = paper.read(page.RESULTS)
    assert set(tables) == set(TABLES)
    assert page.page(tables, page.RESULTS, page.PAGE) == page.PAGE.read_text()
    for number, results in tables.items():
        text = (page.RESULTS / f"table-{number}.md").read_text()
        assert text == paper.markdown(TABLES[number], results)
