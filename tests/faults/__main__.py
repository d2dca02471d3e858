"""Faults on purpose: signals, hostile files, forged proofs, and a lack of everything.

python -m tests.faults --minutes 15 --seed 0 --only files

Prints a table of what was tried and what happened. Exits with 1 if anything was wrong: a false
"confirmed", a crash, a traceback, a hang, or an output that is neither the old nor a complete one.
"""

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from tests.faults import files, processes, proofs, tables
from tests.faults.tally import Budget, Tally

# The campaigns, and the part of the time that each gets.
KINDS: dict[str, tuple[Callable[[int, Budget, Path], Tally], float]] = {
    "signals": (processes.signals, 0.35),
    "files": (files.campaign, 0.35),
    "proofs": (proofs.campaign, 0.05),
    "tables": (tables.campaign, 0.05),
    "limits": (processes.limits, 0.2),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--minutes", type=float, default=15.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", choices=KINDS, metavar="KIND", help=", ".join(KINDS))
    arguments = parser.parse_args()
    chosen = {kind: KINDS[kind] for kind in KINDS if arguments.only in (None, kind)}
    whole = sum(part for _, part in chosen.values())
    tallies = []
    with tempfile.TemporaryDirectory() as name:
        # Another user has to get in.
        os.chmod(name, 0o755)
        for kind, (campaign, part) in chosen.items():
            folder = Path(name) / kind
            folder.mkdir()
            began = time.monotonic()
            tally = campaign(arguments.seed, Budget(60 * arguments.minutes * part / whole), folder)
            tallies.append(tally)
            seconds = time.monotonic() - began
            print(f"{kind}: {tally.tried.total()} in {seconds:.0f} s", file=sys.stderr, flush=True)
            for wrong in tally.wrong[:20]:
                print(wrong, file=sys.stderr, flush=True)
    print("| kind | tried | happened |\n| --- | --- | --- |")
    for tally in tallies:
        print(tally.row())
    count = sum(tally.tried.total() for tally in tallies)
    faults = sum(len(tally.wrong) for tally in tallies)
    print(f"\n{count} tried, {faults} wrong")
    sys.exit(faults > 0)


if __name__ == "__main__":
    main()
