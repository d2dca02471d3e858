"""Run benchmarks and write their tables to benchmarks/results."""

from __future__ import annotations

import argparse
from pathlib import Path

from benchmarks import (
    auto,
    cluster,
    defaults,
    io,
    kernels,
    markdown,
    master,
    optima,
    passes,
    path,
    selection,
    small,
    stability,
    startup,
    streaming,
    systems,
    threads,
)

BENCHMARKS = {
    "startup": startup,
    "kernels": kernels,
    "optima": optima,
    "path": path,
    "stability": stability,
    "systems": systems,
    "defaults": defaults,
    "small": small,
    "auto": auto,
    "threads": threads,
    "master": master,
    "selection": selection,
    "io": io,
    "streaming": streaming,
    "passes": passes,
    "cluster": cluster,
}
RESULTS = Path(__file__).parent / "results"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"{', '.join(BENCHMARKS)} (default: all)"
    )
    parser.add_argument("--data", type=Path, help="folder of libsvm files, plain or .xz")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder for the tables")
    arguments = parser.parse_args()
    unknown = set(arguments.names) - set(BENCHMARKS)
    if unknown:
        parser.error(f"unknown benchmark {', '.join(sorted(unknown))}")
    for name in arguments.names or BENCHMARKS:
        benchmark = BENCHMARKS[name]
        records = benchmark.run(arguments.data)
        print(markdown.write(arguments.out, name, benchmark.__doc__ or "", records))


if __name__ == "__main__":
    main()
