"""Rerun the experiments of the paper: Tables 1 to 8, certified solvers, and the length of w.

Each run is stored as soon as it is measured; a killed command resumes.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Collection
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any

from benchmarks import machine
from benchmarks.paper import page, pictures, report
from benchmarks.paper.runs import Bench, Place, sources
from benchmarks.paper.sets import GENERATED, RECIPES, Where
from benchmarks.paper.tables import TABLES, Settings
from benchmarks.store import Store

CACHE = Path(".benchmark-cache")
FULL = Settings(seconds=10.0, accurate_seconds=900.0, optimum_seconds=300.0, repeats=3, seeds=3)
QUICK = Settings(seconds=1.5, accurate_seconds=10.0, optimum_seconds=30.0, repeats=1, seeds=1)


def main(arguments: list[str] | None = None) -> None:
    parser = _parser()
    asked = parser.parse_args(arguments)
    _require_known(parser, "set", asked.sets, RECIPES)
    _require_known(parser, "table", asked.tables, TABLES)
    _require_known(parser, "system", asked.systems, {s for t in TABLES.values() for s in t.systems})
    names = asked.sets or (GENERATED if asked.quick else [*RECIPES])
    out = asked.out or (CACHE / "paper-quick" if asked.quick else page.RESULTS)
    given = {field.name: getattr(asked, field.name) for field in fields(Settings)}
    given = {name: value for name, value in given.items() if value is not None}
    settings = replace(QUICK if asked.quick else FULL, **given)
    run(asked, names, settings, out.absolute())


def _require_known(
    parser: argparse.ArgumentParser, kind: str, names: Collection[Any], known: Collection[Any]
) -> None:
    unknown = sorted(set(names) - set(known))
    if unknown:
        wrong, right = (", ".join(map(str, which)) for which in (unknown, known))
        parser.error(f"unknown {kind} {wrong}; known are {right}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.paper", description=__doc__)
    add = parser.add_argument
    add("--data", type=Path, help="folder of data files, plain or .xz")
    add("--fetch", action="store_true", help="let scikit-learn download Covertype and RCV1")
    add(
        "--table",
        dest="tables",
        nargs="+",
        type=int,
        default=[*TABLES],
        help="which (default: all)",
    )
    add("--sets", nargs="+", default=[], help=f"which: {', '.join(RECIPES)} (default: all)")
    add("--systems", nargs="+", default=[], help="which systems (default: those of the tables)")
    add("--quick", action="store_true", help="generated data only, short limits: ten minutes")
    add("--seconds", type=float, help="limit of a run")
    add("--accurate-seconds", type=float, help="the same for Table 1")
    add("--optimum-seconds", type=float, help="for the optimum of a set and a C")
    add("--repeats", type=int, help="runs of a seed of which the best counts")
    add("--seeds", type=int, help="seeds of a cell, which shows the median and the range")
    add("--jobs", type=int, help="processes that measure at the same time (default: 1)")
    add("--no-pictures", action="store_true", help="tables only")
    add("--fresh", action="store_true", help="ignore stored runs")
    add("--cache", type=Path, default=CACHE, help="folder of stored runs")
    add("--out", type=Path, help="folder for tables and pictures")
    add("--page", type=Path, help="file for the page (default: README.md beside the tables)")
    return parser


def run(asked: argparse.Namespace, names: list[str], settings: Settings, out: Path) -> None:
    """Measure all cells; the tables are written even if it is interrupted."""
    store = Store(asked.cache / "paper.json", fresh=asked.fresh)
    bench = Bench(Place(Where(asked.data, asked.fetch), asked.cache), settings, store)
    out.mkdir(parents=True, exist_ok=True)
    tables = [TABLES[number].limited_to(asked.systems) for number in asked.tables]
    try:
        for data in bench.measure(names, tables):
            picture = out / f"{data.name}.png"
            if not (asked.no_pictures or picture.exists()):
                pictures.draw(data, settings.seconds, picture)
    except KeyboardInterrupt:
        print("interrupted; finished runs are kept", file=sys.stderr)
        raise SystemExit(130) from None
    finally:
        measured = {table.number: bench.cells(table) for table in tables}
        for number, cells in measured.items():
            results = {
                "machine": machine.describe(),
                "version": sources(),
                "settings": asdict(settings),
                "sets": [a for a in bench.described if any(c["set"] == a["set"] for c in cells)],
                "cells": cells,
            }
            if cells:
                report.write(number, results, out)
        if any(measured.values()):
            written = (asked.page or out / "README.md").absolute()
            page.write(out, written)
            print(f"tables and pictures: {out}", f"page about them: {written}", sep="\n")


if __name__ == "__main__":
    main()
