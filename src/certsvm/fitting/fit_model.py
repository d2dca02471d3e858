"""From data to a ``Model``, without scikit-learn.

A model may have witnesses: dual points coarse enough to be kept, and the certificates that they
prove.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from certsvm.certificates.certificate import COARSE_TOL, Certificate
from certsvm.certificates.dual import ClassSums, Response, RowSums, dual_bound
from certsvm.files.batch import refuse_label_of_each_row, refuse_measurements
from certsvm.files.block_sources import block_source, only_block
from certsvm.files.model import Model, listed_weights
from certsvm.files.streams import BlockStream
from certsvm.fitting.fit_classes import fit_classes
from certsvm.fitting.sources import ClassWeight, MemorySource, Source, StreamSource
from certsvm.kernels.losses import HINGE, Loss, loss_named
from certsvm.problem.base import BaseProblem, Objective, PartedProblem
from certsvm.problem.problems import Problem
from certsvm.problem.rows import Part, Vector, split
from certsvm.resources import ALONE, Team
from certsvm.scalars import as_float
from certsvm.solvers import Auto, Newton, SmoothedNewton, make_solver
from certsvm.solvers.smoothed_newton import alpha_of
from certsvm.training.history import closing_records
from certsvm.training.settings import Result, Settings
from certsvm.verification.evidence import Witness

# A witness may cost this much of the gap, relative to it, where the target is not met anyway.
_WITNESS_COST = 0.05
_BITS = (8, 16, 32)


class Fit(NamedTuple):
    """What training gives.

    Attributes
    ----------
    model : Model
        The model, with its certificates.
    results : list of Result
        One for each binary problem.
    """

    model: Model
    results: list[Result]

    @property
    def met(self) -> bool:
        """Whether every target is proved to be met."""
        return all(certificate.met for certificate in self.model.certificates)


def fit_model(source: Source, settings: Settings, *, witness: bool = False) -> Fit:
    """Train a model.

    Parameters
    ----------
    source : Source
        The data.
    settings : Settings
        How.
    witness : bool, default=False
        Whether to keep what the dual bounds can be recomputed from.

    Returns
    -------
    fit : Fit
        The model. After Ctrl-C, the best so far; classes whose training had not begun have zero
        weights and prove nothing.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from certsvm.fitting.sources import MemorySource
    >>> from certsvm.problem.base import Objective
    >>> X, y = make_classification(random_state=0)
    >>> fit = fit_model(MemorySource(X, y), Settings(Objective(C=0.1)))
    >>> fit.met, fit.model.certificates[0].relative_gap <= 0.01
    (True, True)
    """
    refuse_label_of_each_row(source.n_rows, source.classes.size)
    refuse_measurements(source.classes)
    solver = source.solver(settings.solver, settings.objective)
    if witness:
        if not solver.certifies:
            raise ValueError(
                f"a witness needs a solver with a dual point, and {solver.name!r} has none"
            )
        if not issubclass(source.problem_type, PartedProblem):
            raise ValueError(f"a witness cannot be kept for {source.problem_type.where}")
        streamed = not issubclass(source.problem_type, Problem)
        if streamed and isinstance(solver, Auto):
            solver = solver.for_stream(source.n_rows, source.dimension)
        # Newton's alpha on a stream is a function of a weight vector.
        newton = isinstance(solver, SmoothedNewton) or (streamed and isinstance(solver, Newton))
        settings = replace(settings, keep_alpha=not newton)
    results = fit_classes(source, settings, finish=witnessed if witness else None)
    return Fit(model_of(source, settings, results), results)


def fit_stream(
    blocks: Any, *, label: str | None = None, weight: str | None = None, categorical: bool = False,
    C: float = 1.0, loss: str = HINGE.name, class_weight: ClassWeight = None,
    fit_intercept: bool = True, intercept_scaling: float = 1.0, penalize_intercept: bool = True,
    tol: float = COARSE_TOL, witness: bool = False, **settings: Any,
) -> Model:  # fmt: skip
    """Train on data that is read a block at a time, again in each pass.

    The certificate is the same as for data in memory: it comes from complete passes over all rows,
    and each pass is checked to have given the same rows. Rows should be in no particular order. A
    file of text or a table that is a single block, of up to 16 MB, is trained on in memory.

    Parameters
    ----------
    blocks : callable, path, list, or Arrow data
        A function that begins a pass: it returns an iterable of blocks ``(X, y)`` or ``(X, y,
        weights)``, or an Arrow stream, the same each time. A ``certsvm.files.BlockFile`` is one,
        and a ``certsvm.files.Table``; so is a function that contains ``yield``. It must not write
        into a block that it has yielded. Or the path of a file that ``certsvm convert`` made, of
        libsvm text, CSV, Parquet or embeddings; a list of blocks; or anything with
        ``__arrow_c_stream__`` that can be read again, such as a pyarrow table or a frame of polars.
    label, weight : str, default=None
        For tables and Arrow data: the columns of labels (by default "label", or the last) and of
        weights. For embeddings, ``label`` is a file .npy of labels, or their name in the file.
    categorical : bool, default=False
        For tables and Arrow data: whether columns of strings become one-hot.
    C : float, default=1.0
        Weight of the loss against the regulariser.
    loss : {"hinge", "squared_hinge"}, default="hinge"
        The loss of a row.
    class_weight : dict or "balanced", default=None
        Factors for the weights of each class's rows, as in ``LinearSVC``.
    fit_intercept : bool, default=True
        Whether to fit an intercept.
    intercept_scaling : float, default=1.0
        Height of the constant column behind the intercept; 0 means no intercept.
    penalize_intercept : bool, default=True
        Whether the regulariser contains the intercept.
    tol : float, default=0.01
        Relative accuracy to be proved. It is coarser than that of ``LinearSVC``, since each pass
        reads all data.
    witness : bool, default=False
        Whether to keep what the dual bounds can be recomputed from: one to four bytes for each row
        and class. It costs a pass or a few at the end.
    **settings
        Other attributes of ``certsvm.training.settings.Settings``, such as ``max_time=60.0``.

    Returns
    -------
    model : Model
        With ``certificates``, ``predict``, ``save`` and ``to_sklearn``.

    Examples
    --------
    >>> from certsvm import fit_stream
    >>> def blocks():
    ...     for seed in range(5):
    ...         rng = np.random.default_rng(seed)
    ...         X = rng.standard_normal((100, 3))
    ...         yield X, np.where(X[:, 0] + 0.1 * rng.standard_normal(100) > 0, "yes", "no")
    >>> model = fit_stream(blocks, C=1.0, tol=1e-3)
    >>> model.certificates[0].met, model.predict(np.array([[2.0, 0.0, 0.0]])).tolist()
    (True, ['yes'])
    """
    rho = as_float(intercept_scaling, "intercept_scaling") if fit_intercept else 0.0
    # Before the data are read for the first time.
    objective = Objective(C, loss_named(loss), penalize_intercept)
    checked = Settings(objective, tol, **settings)
    make_solver(checked.solver)
    begin = block_source(blocks, label=label, weight=weight, categorical=categorical)
    block = only_block(begin)
    source: Source
    if block is None:
        source = StreamSource(BlockStream(begin, intercept_scaling=rho), class_weight)
    else:
        source = MemorySource(
            *block, class_weight=class_weight, intercept_scaling=rho,
            feature_names=getattr(begin, "feature_names", None),
            origin=getattr(begin, "origin", {}),
        )  # fmt: skip
    return fit_model(source, checked, witness=witness).model


def model_of(source: Source, settings: Settings, results: Sequence[Result]) -> Model:
    """The model of the results of all classes."""
    objective, rho, names = settings.objective, source.intercept_scaling, source.feature_names
    coefs, intercepts = zip(*(split(result.w, rho) for result in results), strict=True)
    return Model(
        coef=np.array(coefs), intercept=np.array(intercepts), classes=source.classes,
        class_weight=source.factors,
        certificates=tuple(result.certificate for result in results),
        parameters={
            "C": objective.C, "loss": objective.loss.name,
            "penalize_intercept": objective.penalize_intercept, "tol": settings.tol,
            "intercept_scaling": float(rho),
            "solver": max((result.solver for result in results), key=len),
            "class_weight": listed_weights(source.class_weight),
            "seed": settings.seed, "max_iter": settings.max_iter,
            "passes": max(result.passes for result in results),
            "reasons": [result.reason for result in results], **source.origin,
            **({"float32": True} if source.float32 else {}),
        },
        feature_names=None if names is None else tuple(names),
        fingerprint=source.fingerprint,
        witness=joined([result.witness for result in results]),
        history=closing_records([result.history for result in results]),
    )  # fmt: skip


def witnessed(i: int, problem: BaseProblem, result: Result) -> Result:
    """The result with a witness, and the certificate that the witness proves; see ``Finish``.

    Both are in one object, so that no interrupt can fall between them.
    """
    assert isinstance(problem, PartedProblem)
    alpha = result.response if result.alpha is None else result.alpha
    if alpha is None:
        return result
    certificate, witness = proof(problem, result.certificate, alpha)
    # The vector was that of the finer dual point.
    return replace(result.certified_by(certificate, vector=None), witness=witness)


def proof(
    problem: PartedProblem, certificate: Certificate, alpha: Vector | Response
) -> tuple[Certificate, Witness]:
    """A certificate whose dual point can be kept, and the point.

    A coarser alpha is still feasible, but another one: the bound is computed anew from it, which
    balances it if the intercept is free. It takes as few bits as the target allows, and a pass for
    each number of bits that is tried. Where the target is missed, the gap may grow a little.
    """
    loss, C, largest = problem.loss, problem.C, 1.0
    if isinstance(alpha, Response):
        alpha = alpha_of(problem, alpha, ALONE)
    if loss.is_smooth:
        largest = max(problem.of_each(_largest_multiple, alpha, C)) or 1.0
    kind = ClassSums if problem.free_intercept else RowSums
    for bits in _BITS:
        codes, sums = problem.total(_quantised, kind, alpha, loss, C, bits, largest)
        source = f"{certificate.bound}, kept in {bits} bits a row"
        bound, scale = dual_bound(sums.point(source))
        coarser = replace(
            certificate, dual=bound.value, dual_rounding=bound.rounding, bound=source, scale=scale
        )
        close = coarser.proved_gap <= (1.0 + _WITNESS_COST) * certificate.proved_gap
        if coarser.met or (close and not certificate.met):
            break
    codes = np.concatenate(codes)[np.newaxis]
    return coarser, Witness(codes, np.array([largest * (scale if scale > 0 else 1.0)]))


def _quantised(
    part: Part, team: Team, kind: type[RowSums | ClassSums], alpha: Vector, loss: Loss, C: float,
    bits: int, largest: float,
) -> NDArray[np.object_]:  # fmt: skip
    """A list of the codes of a part's rows, and the sums that give L of the alpha they mean."""
    box = C * part.weights
    witness = Witness.quantise(alpha[part.span], box, bits, scale=largest)
    both = np.empty(2, dtype=object)
    both[:] = [witness.codes[0]], kind.of(part, witness.alpha(0, box), loss, C, team)
    return both


def _largest_multiple(part: Part, team: Team, alpha: Vector, C: float) -> float:
    box = C * part.weights
    return float((alpha[part.span][box > 0.0] / box[box > 0.0]).max(initial=0.0))


def joined(witnesses: Sequence[Any]) -> Witness | None:
    """The witnesses of all problems as one; None unless every problem has one."""
    if any(witness is None for witness in witnesses):
        return None
    finest = max(witnesses, key=lambda witness: witness.bits)
    levels = 2**finest.bits - 1
    # A level of fewer bits is one of more bits, too: 255 divides 65535, and that 2^32 - 1.
    codes = [
        w.codes.astype(finest.codes.dtype) * finest.codes.dtype.type(levels // (2**w.bits - 1))
        for w in witnesses
    ]
    return Witness(np.concatenate(codes), np.concatenate([w.scale for w in witnesses]))
