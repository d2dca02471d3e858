"""Witnesses: dual points coarse enough to be kept, and the certificates that they prove."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from certsvm.certificates.certificate import Certificate
from certsvm.certificates.dual import dual_bound, dual_point
from certsvm.fitting.sources import Source
from certsvm.problem.base import BaseProblem, SummableProblem
from certsvm.problem.memory import Problem
from certsvm.problem.objective import Objective
from certsvm.problem.rows import Vector
from certsvm.solvers import Auto, Newton, SmoothedNewton, Solver
from certsvm.training.result import Result
from certsvm.verification.witness import WeightsWitness, Witness

# A witness may cost this much of the gap, relative to it, where the target is not met anyway.
_WITNESS_COST = 0.05
_BITS = (8, 16, 32)


def witnessed(i: int, problem: BaseProblem, result: Result) -> Result:
    """The result with a witness, and the certificate that the witness proves; see ``Finish``.

    Both are in one object, so that no interrupt can fall between them.
    """
    if result.alpha is None:
        return replace(result, witness=result.response)
    assert isinstance(problem, SummableProblem)
    certificate, witness = proof(problem, result.certificate, result.alpha)
    # The vector was that of the finer dual point.
    return replace(result.certified_by(certificate, vector=None), witness=witness)


def needs_alpha(solver: Solver, source: Source, objective: Objective) -> bool:
    """Whether a witness takes a number for each row.

    It does not with Newton's method on a stream, where alpha is a function of a weight vector.
    """
    streamed = not issubclass(source.problem_type, Problem)
    if streamed and isinstance(solver, Auto):
        free_intercept = objective.frees(source.intercept_scaling)
        solver = solver.for_stream(source.dimension, objective.loss, free_intercept=free_intercept)
    return not (isinstance(solver, SmoothedNewton) or (streamed and isinstance(solver, Newton)))


def proof(
    problem: SummableProblem, certificate: Certificate, alpha: Vector
) -> tuple[Certificate, Witness]:
    """A certificate whose dual point can be kept, and the point.

    A coarser alpha is still feasible, but another one: the bound is computed anew from it, which
    balances it if the intercept is free. It takes as few bits as the target allows.
    """
    box, loss = problem.C * problem.weights, problem.loss.name
    for bits in _BITS:
        witness = Witness.quantise(alpha[np.newaxis], box, bits, loss=loss)
        source = f"{certificate.bound}, kept in {bits} bits a row"
        bound, scale = dual_bound(dual_point(problem, witness.alpha(0, box, loss), source))
        coarser = replace(
            certificate, dual=bound.value, dual_rounding=bound.rounding, bound=source, scale=scale
        )
        # Where the target is met, it must remain so.
        enough = coarser.proved_gap <= (1.0 + _WITNESS_COST) * certificate.proved_gap
        if coarser.met or (enough and not certificate.met):
            break
    return coarser, replace(witness, scale=witness.scale * (scale if scale > 0 else 1.0))


def joined(witnesses: Sequence[Any]) -> Witness | WeightsWitness | None:
    """The witnesses of all problems as one; None unless every problem has one."""
    if any(witness is None for witness in witnesses):
        return None
    if not isinstance(witnesses[0], Witness):
        vectors = np.array([response.w for response in witnesses])
        return WeightsWitness(vectors, np.array([response.sigma for response in witnesses]))
    finest = max(witnesses, key=lambda witness: witness.bits)
    levels = 2**finest.bits - 1
    # A level of fewer bits is one of more bits, too: 255 divides 65535, and that 2^32 - 1.
    codes = [
        w.codes.astype(finest.codes.dtype) * finest.codes.dtype.type(levels // (2**w.bits - 1))
        for w in witnesses
    ]
    return Witness(np.concatenate(codes), np.concatenate([w.scale for w in witnesses]))
