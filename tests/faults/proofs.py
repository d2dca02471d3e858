"""Forged proofs, judged by rational arithmetic."""

import random
from pathlib import Path
from typing import Any

from certsvm import Model
from certsvm.certificates.certificate import SQUARED_HINGE_NAME
from tests.faults.tally import Budget, Tally
from tests.verification.forgeries import KINDS, Case, falsehoods, judge


def false_verdicts(model: Model, X: Any, labels: Any, weights: Any, found: Any) -> list[str]:
    """What is wrong with verdicts about a model; labels are positions among its classes."""
    claims = list(model.certificates)
    claim = claims[0]
    case = Case(
        X, labels, weights, model.class_weight, claim.C, claim.intercept_scaling, model.coef,
        model.intercept, witness=model.witness, claims=claims,
        squared=claim.loss == SQUARED_HINGE_NAME, free=not claim.penalize_intercept,
    )  # fmt: skip
    return [text for i, v in enumerate(found) for text in falsehoods(case, i, v)]


def campaign(seed: int, budget: Budget, folder: Path) -> Tally:
    tally = Tally("proofs")
    kinds = list(KINDS)
    for k in budget.rounds():
        kind = kinds[k % len(kinds)]
        verdict, found = judge(KINDS[kind](random.Random(f"{seed} {k}")))
        tally.add(kind, verdict, f"number {k}: {found}" if found else None)
    return tally
