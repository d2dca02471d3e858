"""Run benchmarks and write their tables to benchmarks/results."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from benchmarks import (
    auto,
    cluster,
    io,
    kernels,
    machine,
    master,
    optima,
    simulation,
    startup,
    streaming,
    systems,
)

BENCHMARKS = {
    "startup": startup,
    "kernels": kernels,
    "optima": optima,
    "systems": systems,
    "auto": auto,
    "master": master,
    "io": io,
    "streaming": streaming,
    "cluster": cluster,
    "simulation": simulation,
}
RESULTS = Path(__file__).parent / "results"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", help=f"which: {', '.join(BENCHMARKS)} (default: all)")
    parser.add_argument("--data", type=Path, help="folder of libsvm files, plain or .xz")
    parser.add_argument("--out", type=Path, default=RESULTS, help="where the tables go")
    arguments = parser.parse_args()
    unknown = set(arguments.names) - set(BENCHMARKS)
    if unknown:
        parser.error(f"unknown benchmark {', '.join(sorted(unknown))}")
    arguments.out.mkdir(parents=True, exist_ok=True)
    for name in arguments.names or BENCHMARKS:
        table = BENCHMARKS[name].run(arguments.data)
        text = markdown(name, BENCHMARKS[name].__doc__ or "", table)
        print(text)
        (arguments.out / f"{name}.md").write_text(text)
        results = {"machine": machine.describe(), "table": table}
        (arguments.out / f"{name}.json").write_text(json.dumps(results, indent=1) + "\n")


def markdown(name: str, about: str, table: list[dict[str, Any]]) -> str:
    """The table, with what it was measured on."""
    where = ", ".join(f"{key} {value}" for key, value in machine.describe().items())
    lines = [f"# {name}", "", about.strip(), "", f"Measured on: {where}.", ""]
    if not table:
        return "\n".join([*lines, "No data.", ""])
    columns = list(table[0])
    lines += ["| " + " | ".join(columns) + " |", "|" + " --- |" * len(columns)]
    lines += ["| " + " | ".join(str(row[c]) for c in columns) + " |" for row in table]
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    main()
