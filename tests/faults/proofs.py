"""Forged proofs, judged by rational arithmetic."""

from __future__ import annotations

import random
from pathlib import Path

from tests.faults.tally import Budget, Tally
from tests.verification.forgeries import KINDS, judge


def campaign(seed: int, budget: Budget, folder: Path) -> Tally:
    tally = Tally("proofs")
    kinds = list(KINDS)
    for k in budget.rounds():
        kind = kinds[k % len(kinds)]
        verdict, found = judge(KINDS[kind](random.Random(f"{seed} {k}")))
        tally.add(kind, verdict, f"number {k}: {found}" if found else None)
    return tally
