"""Tables of results: the committed Markdown is what the committed JSON says."""

import json
from pathlib import Path

import pytest

from benchmarks import markdown
from benchmarks.__main__ import BENCHMARKS
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
