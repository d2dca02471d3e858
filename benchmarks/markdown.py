"""Tables as Markdown, with the machine that they were measured on."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from benchmarks import machine

Records = list[dict[str, Any]]


def grid(titles: Iterable[str], rows: Iterable[Iterable[str]]) -> list[str]:
    """The lines of a table.

    Examples
    --------
    >>> grid(["data", "C"], [["a9a", "1"]])
    ['| data | C |', '| --- | --- |', '| a9a | 1 |']
    """
    titles = list(titles)
    return [_row(titles), _row(["---"] * len(titles)), *map(_row, rows)]


def _row(texts: Iterable[str]) -> str:
    return "| " + " | ".join(text.replace("|", "\\|") for text in texts) + " |"


def of_records(records: Records) -> list[str]:
    """The lines of a table with a column for each key of the first record."""
    titles = list(records[0])
    return grid(titles, ([str(record[title]) for title in titles] for record in records))


def measured_on(description: dict[str, str]) -> str:
    """The machine in one phrase."""
    return "Measured on: " + ", ".join(f"{key} {value}" for key, value in description.items())


def write(folder: Path, name: str, about: str, records: Records) -> str:
    """Write ``name.md`` and ``name.json``; return the Markdown."""
    folder.mkdir(parents=True, exist_ok=True)
    description = machine.describe()
    results = {"machine": description, "table": records}
    (folder / f"{name}.json").write_text(json.dumps(results, indent=1) + "\n")
    lines = [f"# {name}", "", about.strip(), "", f"{measured_on(description)}.", ""]
    text = "\n".join([*lines, *(of_records(records) if records else ["No data."]), ""])
    (folder / f"{name}.md").write_text(text)
    return text
