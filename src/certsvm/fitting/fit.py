"""Training a model: from data, in memory or streamed, to a ``Model`` with its certificates.

This is what the command line does, and what streams are trained with. (``LinearSVC`` is the same
for scikit-learn's users.)
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from operator import index
from pathlib import Path
from typing import Any

import numpy as np
import xxhash
from numpy.typing import NDArray

from certsvm.certificates.best import BestBounds
from certsvm.certificates.certificate import Certificate
from certsvm.certificates.dual import dual_bound, dual_point
from certsvm.data.streams import BlockStream, Source
from certsvm.fitting.class_weights import (
    class_weights,
    require_two_classes,
    weights_of_rows,
)
from certsvm.fitting.one_vs_rest import OneVsRest, classes_of, positive_classes
from certsvm.models.model import Model
from certsvm.models.witness import WeightsWitness, Witness
from certsvm.problem.base import BaseProblem, SummableProblem, positive_C
from certsvm.problem.memory import Problem
from certsvm.problem.rows import Rows, Vector
from certsvm.problem.streamed import StreamedProblem
from certsvm.solvers import Auto, Newton, SmoothedNewton, Solver, make_solver
from certsvm.storage.fingerprint import Fingerprint
from certsvm.training.checkpoints import Checkpoint
from certsvm.training.history import History
from certsvm.training.loop import INTERRUPTED, Callback, Result, train

# A witness may cost this much of the gap, relative to it, where the target is not met anyway.
_WITNESS_COST = 0.05
_BITS = (8, 16, 32)


@dataclass(frozen=True)
class Data:
    """Rows in memory, with labels and weights.

    Attributes
    ----------
    X : array or sparse matrix of shape (n_rows, n_columns)
        The rows.
    y : ndarray of shape (n_rows,)
        Labels.
    weights : ndarray of shape (n_rows,), default=None
        Weights >= 0 of the rows.
    feature_names : sequence of str, default=None
        Names of the columns.
    """

    X: Any
    y: NDArray[Any]
    weights: Vector | None = None
    feature_names: Sequence[str] | None = None


@dataclass(frozen=True)
class Settings:
    """How to train.

    Attributes
    ----------
    C : float, default=1.0
        Weight of the loss against the regulariser.
    tol : float, default=0.01
        Relative accuracy to be proved.
    solver : str or Solver, default="auto"
        Which algorithm.
    intercept_scaling : float, default=0.0
        The height of the constant column behind the intercept; 0 means no intercept.
    class_weight : dict or "balanced", default=None
        Factors for the weights of each class's rows.
    max_iter : int, default=1000
        Limit on passes, for each class.
    max_time : float, default=None
        Limit in seconds, for each class.
    seed : int, default=0
        Of the random orders.
    n_jobs : int, default=1
        Threads to work with.
    witness : bool, default=False
        Whether to keep what the dual bounds can be recomputed from.
    checkpoint : path, default=None
        A folder to keep the state of training in, and to go on from.
    checkpoint_every : float, default=10.0
        Seconds between two checkpoints, at least.
    """

    C: float = 1.0
    tol: float = 0.01
    solver: str | Solver = "auto"
    intercept_scaling: float = 0.0
    class_weight: dict[Any, float] | str | None = None
    max_iter: int = 1000
    max_time: float | None = None
    seed: int = 0
    n_jobs: int = 1
    witness: bool = False
    checkpoint: str | Path | None = None
    checkpoint_every: float = 10.0

    def __post_init__(self) -> None:
        # Numbers of NumPy's would be found fault with only when the model is saved.
        for name in ("max_iter", "seed", "n_jobs"):
            object.__setattr__(self, name, index(getattr(self, name)))
        for name in ("C", "tol", "intercept_scaling", "checkpoint_every"):
            object.__setattr__(self, name, float(getattr(self, name)))
        positive_C(self.C)
        if not self.tol >= 0:
            raise ValueError(f"tol must be a number >= 0, got {self.tol!r}")
        if self.n_jobs < 1 or self.seed < 0:
            raise ValueError("n_jobs must be at least 1, and seed not negative")
        make_solver(self.solver)
        if isinstance(self.class_weight, dict):
            plain = {_plain(label): float(w) for label, w in self.class_weight.items()}
            object.__setattr__(self, "class_weight", plain)


@dataclass(frozen=True)
class Fit:
    """What training gives.

    Attributes
    ----------
    model : Model
        The model, with its certificates.
    results : list of Result
        One for each binary problem.
    """

    model: Model
    results: list[Result] = field(repr=False)

    @property
    def met(self) -> bool:
        """Whether every target is proved to be met."""
        return all(certificate.met for certificate in self.model.certificates)

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C ended it."""
        return any(result.reason == INTERRUPTED for result in self.results)


CallbackOf = Callable[[Any], Sequence[Callback]]
"""Called with the label of a class, before its training; returns callbacks for it."""


def fit(data: Data | BlockStream, settings: Settings, callbacks: CallbackOf | None = None) -> Fit:
    """Train a model.

    Parameters
    ----------
    data : Data or BlockStream
        In memory, or streamed. A stream has its own ``intercept_scaling``, which must be
        that of the settings.
    settings : Settings
        How.
    callbacks : callable, default=None
        Called with each class's label; returns callbacks for its training.

    Returns
    -------
    fit : Fit
        The model. After Ctrl-C, the best so far; classes whose training had not begun have zero
        weights and prove nothing.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> X, y = make_classification(random_state=0)
    >>> fitted = fit(Data(X, y), Settings(C=0.1))
    >>> fitted.met, fitted.model.certificates[0].relative_gap <= 0.01
    (True, True)
    """
    if not isinstance(data, Data | BlockStream):
        raise TypeError(f"data must be Data(X, y) or a BlockStream, got {type(data).__name__}")
    task = _InMemory(data, settings) if isinstance(data, Data) else _Streamed(data, settings)
    solver = make_solver(settings.solver)
    if settings.witness and not solver.certifies:
        raise ValueError(
            f"a witness needs a solver with a dual point, and {solver.name!r} has none"
        )
    stop = threading.Event()
    seeds = np.random.SeedSequence(settings.seed).spawn(len(task.labels))
    results: list[Result] = []
    proofs: list[tuple[Certificate, Any]] = []
    for i, label in enumerate(task.labels):
        problem = task.problem(i)
        if stop.is_set():
            results.append(_not_begun(problem, settings.tol, solver))
            proofs.append((results[-1].certificate, None))
            continue
        result = _trained(
            results,
            problem,
            solver,
            tol=settings.tol,
            max_iter=settings.max_iter,
            max_time=settings.max_time,
            seed=seeds[i],
            keep_alpha=keeps_alpha(settings, problem.dimension, streamed=task.streamed),
            n_jobs=settings.n_jobs,
            callbacks=[] if callbacks is None else callbacks(label),
            stop=stop,
            checkpoint=_checkpoint(settings, solver, task, i),
        )
        if result.reason == INTERRUPTED:
            stop.set()
        results.append(result)
        proofs.append(_proof(problem, result) if settings.witness else (result.certificate, None))
    return Fit(_model(task, settings, results, proofs), results)


def _trained(
    before: Sequence[Result], problem: BaseProblem, solver: Solver, **options: Any
) -> Result:
    """Train; an interrupt before anything is known of a class must not cost the others."""
    try:
        return train(problem, solver, **options)
    except KeyboardInterrupt:
        if not before:
            raise
        return _not_begun(problem, options["tol"], solver)


def fit_stream(
    source: Source,
    *,
    settings: Settings | None = None,
    callbacks: CallbackOf | None = None,
    **parameters: Any,
) -> Model:
    """Train on data that is read a block at a time, again in each pass.

    The certificate is the same as for data in memory: it comes from complete passes over all rows,
    and each pass is checked to have given the same rows. Rows should be in no particular order.

    Parameters
    ----------
    source : callable
        Begins a pass: returns an iterable of blocks ``(X, y)`` or ``(X, y, weights)``, the same
        each time. A ``certsvm.data.BlockFile`` is one; so is a function that contains ``yield``. It
        must not write into a block that it has yielded.
    settings : Settings, default=None
        How to train.
    callbacks : callable, default=None
        As for ``fit``.
    **parameters
        Instead of ``settings``: its attributes, such as ``C=10.0``.

    Returns
    -------
    model : Model
        With ``certificates``, ``predict``, ``save`` and ``to_sklearn``.

    Examples
    --------
    >>> import numpy as np
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
    if settings is not None and parameters:
        raise ValueError("give settings or parameters, not both")
    settings = settings or Settings(**parameters)
    return fit(
        BlockStream(source, intercept_scaling=settings.intercept_scaling), settings, callbacks
    ).model


class _Task(ABC):
    """Data, as far as training several classes is concerned."""

    classes: NDArray[Any]
    factors: Vector
    n_columns: int
    feature_names: Sequence[str] | None = None
    fingerprint: Fingerprint
    identity: str
    streamed: bool

    @property
    def labels(self) -> list[Any]:
        """The class on the positive side of each problem."""
        return [self.classes[i] for i in positive_classes(self.classes)]

    @abstractmethod
    def problem(self, i: int) -> BaseProblem:
        """The i-th problem."""


class _InMemory(_Task):
    def __init__(self, data: Data, settings: Settings) -> None:
        y = np.asarray(data.y)
        self.classes, y_index = classes_of(y)
        self.factors = class_weights(settings.class_weight, self.classes, y_index, data.weights)
        weights = weights_of_rows(self.factors, y_index, data.weights)
        require_two_classes(self.classes, y_index, weights)
        rows = Rows(data.X, intercept_scaling=settings.intercept_scaling)
        self.n_columns = rows.n_columns
        self.feature_names = data.feature_names
        self.fingerprint = Fingerprint.of(data.X, y)
        # Weights are not in the fingerprint.
        weighed = b"" if data.weights is None else np.asarray(data.weights, np.float64).tobytes()
        self.identity = f"{self.fingerprint}, weights {xxhash.xxh3_64_hexdigest(weighed)}"
        self.streamed = False
        self._problems = OneVsRest(rows, self.classes, y_index, weights, settings.C)

    def problem(self, i: int) -> Problem:
        return self._problems.problem(i)


class _Streamed(_Task):
    def __init__(self, stream: BlockStream, settings: Settings) -> None:
        if stream.intercept_scaling != settings.intercept_scaling:
            raise ValueError(
                f"the stream's rows have intercept_scaling {stream.intercept_scaling:g}, "
                f"the settings ask for {settings.intercept_scaling:g}"
            )
        self._stream = stream
        self._C = settings.C
        self.classes = stream.classes
        totals = np.array([survey.weight_sum for survey in stream.surveys])
        # To the weights of classes, a class is one row of all its weight.
        self.factors = class_weights(
            settings.class_weight, self.classes, np.arange(self.classes.size), totals
        )
        require_two_classes(self.classes, np.arange(self.classes.size), totals * self.factors)
        self.n_columns = stream.n_columns
        self.feature_names = getattr(getattr(stream.source, "summary", None), "feature_names", None)
        self.fingerprint = stream.fingerprint
        self.identity = f"{self.fingerprint}, blocks {stream.digest}"
        self.streamed = True

    def problem(self, i: int) -> StreamedProblem:
        positive = positive_classes(self.classes)[i]
        return StreamedProblem(self._stream, positive, C=self._C, class_factors=self.factors)


def keeps_alpha(settings: Settings, dimension: int, *, streamed: bool) -> bool:
    """Whether a number must be kept for each row, for the witness.

    Not on a stream with Newton's method, where alpha is a function of a weight vector.
    """
    solver = make_solver(settings.solver)
    if streamed and isinstance(solver, Auto):
        solver = solver.for_stream(dimension)
    return settings.witness and not (
        isinstance(solver, SmoothedNewton) or (streamed and isinstance(solver, Newton))
    )


def _checkpoint(settings: Settings, solver: Solver, task: _Task, i: int) -> Checkpoint | None:
    if settings.checkpoint is None:
        return None
    weights = settings.class_weight
    identity = {
        "data": task.identity,
        "streamed": task.streamed,
        "C": float(settings.C),
        "intercept_scaling": float(settings.intercept_scaling),
        "tol": float(settings.tol),
        "solver": solver.label,
        "class weights": repr(
            sorted(weights.items(), key=repr) if isinstance(weights, dict) else weights
        ),
        "seed": settings.seed,
        "n_jobs": settings.n_jobs,
        "witness": settings.witness,
    }
    path = Path(settings.checkpoint) / f"class-{i}.checkpoint"
    return Checkpoint(path, identity, interval=settings.checkpoint_every)


def _proof(problem: SummableProblem, result: Result) -> tuple[Certificate, Any]:
    """A certificate whose dual point can be kept, and what is to be kept.

    A coarser alpha is still feasible, but another one: the bound is computed anew from it. It takes
    as few bits as the target allows.
    """
    certificate = result.certificate
    if result.alpha is None:
        return certificate, result.response
    box = problem.C * problem.weights
    for bits in _BITS:
        witness = Witness.quantise(result.alpha[np.newaxis], box, bits)
        source = f"{certificate.bound}, kept in {bits} bits a row"
        bound, scale = dual_bound(dual_point(problem, witness.alpha(0, box), source))
        coarser = replace(
            certificate, dual=bound.value, dual_rounding=bound.rounding, bound=source, scale=scale
        )
        # Where the target is met, it must remain so.
        enough = coarser.proved_gap <= (1.0 + _WITNESS_COST) * certificate.proved_gap
        if coarser.met or (enough and not certificate.met):
            break
    return coarser, replace(witness, scale=np.array([scale if scale > 0 else 1.0]))


def _not_begun(problem: BaseProblem, tol: float, solver: Solver) -> Result:
    """What there is of a class whose turn did not come: zero, which proves nothing."""
    ledger = BestBounds(problem, tol)
    ledger.offer_zero()
    assert ledger.w is not None
    return Result(ledger.w, ledger.certificate(), History(), INTERRUPTED, 0, 0, None, solver.name)


def _plain(label: Any) -> Any:
    return label.item() if isinstance(label, np.generic) else label


def _model(
    task: _Task,
    settings: Settings,
    results: Sequence[Result],
    proofs: Sequence[tuple[Certificate, Any]],
) -> Model:
    intercept_scaling, n = settings.intercept_scaling, task.n_columns
    weights: Any = settings.class_weight
    if isinstance(weights, dict):
        # Labels need not be strings, as JSON's keys have to be.
        weights = [[label, weight] for label, weight in weights.items()]
    return Model(
        coef=np.array([result.w[:n] for result in results]),
        intercept=np.array(
            [
                result.w[n] * intercept_scaling if intercept_scaling > 0 else 0.0
                for result in results
            ]
        ),
        classes=task.classes,
        class_weight=task.factors,
        certificates=tuple(certificate for certificate, _ in proofs),
        parameters={
            "C": float(settings.C),
            "tol": float(settings.tol),
            "intercept_scaling": float(intercept_scaling),
            "solver": max((result.solver for result in results), key=len),
            "class_weight": weights,
            "seed": settings.seed,
            "max_iter": settings.max_iter,
            "passes": max(result.passes for result in results),
            "reasons": [result.reason for result in results],
        },
        feature_names=None if task.feature_names is None else tuple(task.feature_names),
        fingerprint=task.fingerprint,
        witness=_joined([witness for _, witness in proofs]),
    )


def _joined(witnesses: list[Any]) -> Witness | WeightsWitness | None:
    """The witnesses of all problems as one."""
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


__all__ = ["CallbackOf", "Data", "Fit", "Settings", "fit", "fit_stream"]
