"""Models for several values of C, or for every C in a range."""

from __future__ import annotations

import itertools
import math
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from os import PathLike
from typing import Any, overload

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from certsvm.certificates.certificate import Certificate, percent, tidy
from certsvm.certificates.weights import dense
from certsvm.data.block_sources import block_source
from certsvm.data.streams import BlockStream
from certsvm.estimators.linear_svc import LinearSVC
from certsvm.estimators.reporting import are_right
from certsvm.estimators.rollback import fitted_attributes
from certsvm.fitting.path import (
    SHARE_OF_FITS,
    Trace,
    TraceProgress,
    require_proofs,
    settings_at,
    trace_range,
    trace_values,
    with_target,
)
from certsvm.fitting.sources import Source, StreamSource
from certsvm.markup.html import element
from certsvm.report.page import write_page
from certsvm.report.plots import plot_path
from certsvm.report.range import ClassWeights, PathPoints, gap_chart, path_report
from certsvm.solvers import Solver, Start
from certsvm.training.result import Result

# Values of C on the slider of a report.
_MOST_POINTS = 200


class Path(Sequence[LinearSVC]):
    """Models over a range of C, with a certificate for every C in it.

    It is a sequence of the fitted models. Between two fitted values the model is interpolated, and
    what is proved about it follows from its neighbours.

    Attributes
    ----------
    Cs : list of float
        The fitted values of C.
    models : list of LinearSVC
        The fitted models, in the order of ``Cs``.
    C_range : tuple of float
        The lowest and the highest C asked for.
    tol : float
        The relative accuracy asked for.
    """

    def __init__(
        self,
        trace: Trace,
        models: dict[float, LinearSVC],
        Cs: Sequence[float],
        template: LinearSVC,
        source: Source,
    ) -> None:
        self._trace, self._template = trace, template
        self._source: Source | None = source
        self.Cs = list(Cs)
        self.models = [models[C] for C in self.Cs]
        self.C_range, self.tol = trace.C_range, trace.tol

    @overload
    def __getitem__(self, i: int) -> LinearSVC: ...
    @overload
    def __getitem__(self, i: slice) -> list[LinearSVC]: ...
    def __getitem__(self, i: int | slice) -> LinearSVC | list[LinearSVC]:
        return self.models[i]

    def __len__(self) -> int:
        return len(self.models)

    def __iter__(self) -> Iterator[LinearSVC]:
        return iter(self.models)

    def __repr__(self) -> str:
        low, high = self.C_range
        gap = self.worst_gap
        proved = "not proved for every C" if math.isinf(gap) else f"worst gap {percent(gap)}"
        if self.tol < gap < math.inf:
            fitted = max(knot.gap for knot in self._trace.knots)
            proved = f"each within {percent(fitted)}, between them up to {percent(gap)}"
        return f"<Path of {len(self)} fits for C from {low:g} to {high:g}, {proved}>"

    def _repr_html_(self) -> str:
        """For notebooks: what is proved, and the gap at every C."""
        points = self._points(None, None)
        return element("div", element("p", repr(self)[1:-1]), gap_chart(points, self.tol))

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the data."""
        return {**vars(self), "_source": None}

    @property
    def worst_gap(self) -> float:
        """The largest relative gap of all models in the range, proved; infinite if unknown."""
        return self._trace.worst_gap

    @property
    def met(self) -> bool:
        """Whether every C in the range has a model of accuracy ``tol``, proved."""
        return self.worst_gap <= self.tol

    @property
    def proved_up_to(self) -> float:
        """Every C from the lowest to this one has a model of accuracy ``tol``, proved.

        Zero if the lowest has none.
        """
        return self._trace.proved_up_to

    def certificates(self, C: float) -> list[Certificate]:
        """What is proved about the model at C, for each problem, without reading the data.

        Parameters
        ----------
        C : float
            Between the lowest and the highest fitted value.

        Returns
        -------
        certificates : list of Certificate
            Between fitted values, ``primal`` is an upper bound on J.
        """
        return self._trace.certificates(C)

    def certificate(self, C: float) -> Certificate:
        """The certificate of the class with the largest gap; see ``certificates``."""
        return max(self.certificates(C), key=lambda certificate: certificate.proved_gap)

    def model(self, C: float) -> LinearSVC:
        """The model at C.

        Between fitted values it is interpolated: a new estimator, for whose certificate J is
        computed in one pass over the data.

        Parameters
        ----------
        C : float
            Between the lowest and the highest fitted value.

        Returns
        -------
        model : LinearSVC
            Fitted, with its certificate.
        """
        C = float(C)
        if C in self.Cs:
            return self.models[self.Cs.index(C)]
        self._trace.find(C)
        if self._source is None:
            raise ValueError(
                "a path that was pickled has its fitted models, but not the data to certify one "
                f"between them. Fit at C = {C:g}, or take one of {self.Cs}"
            )
        model: LinearSVC = clone(self._template).set_params(C=C)
        model.__dict__.update(fitted_attributes(self._template))
        model._set_fitted(self._source, self._trace.at(C, self._source))
        return model

    def plot(self, path: str | None = None) -> Any:
        """Plot the proved relative gap against C.

        Parameters
        ----------
        path : str, default=None
            File to save the plot to.

        Returns
        -------
        figure : matplotlib.figure.Figure
            The plot.
        """
        fitted = [(knot.C, knot.gap) for knot in self._trace.knots]
        Cs, gaps = [], []
        for (low, _), (high, _) in itertools.pairwise(fitted):
            for C in np.geomspace(low, high, 24):
                Cs.append(min(max(float(C), low), high))
                gaps.append(self._gap(Cs[-1]))
        return plot_path(fitted, Cs, gaps, self.tol, path)

    def report(self, path: str | PathLike[str], X: Any = None, y: Any = None) -> None:
        """Write a report of the path: one HTML page with a slider over C.

        Parameters
        ----------
        path : path
            The file to write.
        X : array-like or sparse matrix of shape (n_samples, n_features), default=None
            Rows to predict with the model of every C.
        y : array-like of shape (n_samples,), default=None
            Their labels; both or none.
        """
        if (X is None) != (y is None):
            raise ValueError("give both X and y, or none of them")
        names = getattr(self.models[0], "feature_names_in_", None)
        if names is None:
            names = [f"column {j}" for j in range(self.models[0].n_features_in_)]
        write_page(path, path_report(self._points(X, y), names, self.tol, self.worst_gap))

    def _points(self, X: Any, y: Any) -> PathPoints:
        """The path at the fitted values of C and some between them."""
        knots = self._trace.knots
        n = max(4, _MOST_POINTS // max(1, len(knots) - 1))
        places = [
            (i, share) for i in range(len(knots) - 1) for share in np.linspace(0.0, 1.0, n)[:-1]
        ] + [(len(knots) - 1, 0.0)]
        Cs, shares = [], []
        for i, share in places:
            low, high = knots[i].C, knots[min(i + 1, len(knots) - 1)].C
            C = low if share == 0.0 else min(max(low * (high / low) ** share, low), high)
            Cs.append(float(C))
            shares.append((C - low) / (high - low) if high > low else 0.0)

        def interpolated(values: list[Any]) -> list[Any]:
            """At each place, the combination of what is known at the knots around it."""
            last = len(knots) - 1
            return [
                (1.0 - t) * values[i] + t * values[min(i + 1, last)]
                for (i, _), t in zip(places, shares, strict=True)
            ]

        models = [self.model(knot.C) for knot in knots]
        coefs = [np.asarray(dense(model.coef_)) for model in models]
        labels = [tidy(label) for label in models[0].classes_[-len(coefs[0]) :]]
        certificates = [self._known(C) for C in Cs]
        errors = None
        if X is not None:
            classes = models[0].classes_
            scores = interpolated([np.asarray(model.decision_function(X)) for model in models])
            answers = [(s > 0.0).astype(int) if s.ndim == 1 else s.argmax(axis=1) for s in scores]
            # Labels are compared, since those of other classes have no place among these.
            errors = [float(np.mean(~are_right(classes[answer], y))) for answer in answers]
        return PathPoints(
            Cs=Cs,
            primal=[math.nan if c is None else c.primal for c in certificates],
            dual=[math.nan if c is None else c.dual for c in certificates],
            gaps=[math.inf if c is None else c.proved_gap for c in certificates],
            fitted=[knot.C for knot in knots],
            weights=ClassWeights.largest(labels, coefs, interpolated),
            n_classes=len(labels),
            objective=self._trace.knots[0].results[0].certificate.objective,
            errors=errors,
        )

    def _known(self, C: float) -> Certificate | None:
        try:
            return self.certificate(C)
        except ValueError:
            return None

    def _gap(self, C: float) -> float:
        certificate = self._known(C)
        return math.inf if certificate is None else certificate.proved_gap


def fit_path(
    estimator: LinearSVC,
    X: Any,
    y: Any = None,
    Cs: Sequence[float] | None = None,
    sample_weight: Any = None,
    *,
    C_range: tuple[float, float] | None = None,
    tol: float | None = None,
    max_fits: int = 200,
    callback: Callable[[TraceProgress], Any] | None = None,
) -> Path:
    """Train models for several C, or for every C in a range.

    With ``C_range``, as few C are fitted as it takes to prove that every C in the range has a model
    of relative accuracy ``tol``: between two fitted values, it is interpolated. With ``Cs``, models
    are trained at these values.

    Each fit starts from its neighbours. The data are checked, and moved to a ``device``, once.
    Ctrl-C keeps what was trained. With ``Cs``, models whose training had not begun have zero
    weights and prove nothing.

    Parameters
    ----------
    estimator : LinearSVC
        With all other parameters. It is not changed. ``max_iter`` and ``max_time`` are limits for
        each fit.
    X : array-like, sparse matrix or tensor of shape (n_samples, n_features)
        The data. Without y, what ``fit_stream`` takes, which is read anew in each pass. With a
        ``certsvm.dask.LinearSVC``, what its ``fit`` takes.
    y : array-like or tensor of shape (n_samples,), default=None
        Labels; None if X brings them.
    Cs : sequence of float, default=None
        The values of C.
    sample_weight : array-like or tensor of shape (n_samples,), default=None
        Weights >= 0 of the rows.
    C_range : tuple of float, default=None
        The lowest and the highest C, instead of ``Cs``.
    tol : float, default=None
        Relative accuracy, for every C in the range; None means the estimator's.
    max_fits : int, default=200
        Limit on the number of fits in a range.
    callback : callable, default=None
        Called after each fit in a range with an object that has ``n_fits``, ``C``,
        ``proved_up_to`` and ``worst_gap``; a true return value ends fitting.

    Returns
    -------
    path : Path
        A sequence of the fitted models, with certificates and models for every C in between.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from certsvm import LinearSVC, fit_path
    >>> X, y = make_classification(random_state=0)
    >>> path = fit_path(LinearSVC(random_state=0), X, y, C_range=(0.01, 10.0), tol=0.01)
    >>> path.met, path.certificate(0.345).proved_gap <= 0.01
    (True, True)
    >>> path.model(0.345).certificate_.met
    True
    >>> models = fit_path(LinearSVC(tol=0.001, random_state=0), X, y, [0.01, 0.1, 1.0])
    >>> [model.C for model in models], all(model.certificate_.met for model in models)
    ([0.01, 0.1, 1.0], True)
    """
    if not isinstance(estimator, LinearSVC):
        raise TypeError(
            "fit_path takes a certsvm.LinearSVC, whose other parameters hold for all C, got "
            f"{_described(estimator)}"
        )
    if (Cs is None) == (C_range is None):
        raise ValueError("give either Cs, the values of C, or C_range, the lowest and the highest")
    values = checked_values(Cs) if Cs is not None else None
    low_high = checked_range(C_range) if C_range is not None else None
    tol = estimator.tol if tol is None else tol
    template = clone(estimator).set_params(tol=tol)
    template._validate_params()
    if estimator.checkpoint is not None:
        raise ValueError("fit_path makes many fits, and cannot write a checkpoint of all of them")
    if max_fits < 2:
        raise ValueError(f"max_fits must be at least 2, got {max_fits!r}")
    # Made once: it holds the data, checked and where they are trained on.
    source = _source(template, X, y, sample_weight)
    solver = estimator._solver_for(source)
    given = {"X": X, "y": y, "metadata": {"sample_weight": sample_weight}}
    fits = _Fits(template, source, solver, given)
    keep_alpha, objective = bool(estimator.store_dual), template._objective()
    if values is not None:
        trace = trace_values(
            fits, source, values, tol, fits.stop, objective=objective, keep_alpha=keep_alpha
        )
        for C in values:
            fits.models[C]._warn_if_missed(fits.results[C], solver, stacklevel=3)
        return Path(trace, fits.models, values, template, source)
    assert low_high is not None
    require_proofs(solver, tol)
    fits.tol = SHARE_OF_FITS * tol
    trace = trace_range(
        fits, source, low_high, tol, objective=objective,
        max_fits=max_fits, keep_alpha=keep_alpha, callback=callback,
    )  # fmt: skip
    path = Path(trace, fits.models, trace.Cs, template, source)
    _warn_if_missed(path, interrupted=trace.interrupted)
    return path


class _Fits:
    """Fits at single values of C, and their models; callable."""

    def __init__(
        self, template: LinearSVC, source: Source, solver: Solver, given: dict[str, Any]
    ) -> None:
        self._template, self._source, self._solver = template, source, solver
        self._given = given
        self.tol = float(template.tol)
        # One for all: after an interruption none goes on.
        self.stop = threading.Event()
        self.models: dict[float, LinearSVC] = {}
        self.results: dict[float, list[Result]] = {}

    def __call__(self, C: float, start: Sequence[Start] | None) -> list[Result]:
        """Train all classes at C."""
        template = self._template
        model = clone(template).set_params(C=C)
        vars(model).update(fitted_attributes(template))
        settings = settings_at(C, self.tol, model._settings(self._solver), self._solver)
        results = model._fit_source(
            self._source, self._solver, self._given,
            settings=settings, start=start if self._solver.starts_warm else None, stop=self.stop,
        )  # fmt: skip
        # What was asked for is the accuracy of the path.
        results = [with_target(result, template.tol) for result in results]
        model._set_certificates(results)
        self.models[C], self.results[C] = model, results
        return results


def checked_values(Cs: Any) -> list[float]:
    """Values of C as floats, or an error."""
    if not np.iterable(Cs):
        raise TypeError(f"Cs must be a sequence of numbers, got {Cs!r}")
    values = [float(C) for C in Cs]
    if not values or not all(math.isfinite(C) and C > 0 for C in values):
        raise ValueError(f"Cs must be finite numbers > 0, at least one, got {list(Cs)!r}")
    return values


def checked_range(C_range: Any) -> tuple[float, float]:
    """The lowest and the highest C as floats, or an error."""
    ends = [float(C) for C in C_range] if np.iterable(C_range) else []
    if len(ends) != 2:
        raise TypeError(f"C_range must be the lowest and the highest C, got {C_range!r}")
    low, high = ends
    if not 0.0 < low < high < math.inf:
        raise ValueError(f"C_range must be two finite numbers > 0, ascending, got {C_range!r}")
    return low, high


def _source(template: LinearSVC, X: Any, y: Any, sample_weight: Any) -> Source:
    if type(template) is LinearSVC and y is None:
        if sample_weight is not None:
            raise ValueError("a stream brings its own weights: pass X alone")
        stream = BlockStream(block_source(X), intercept_scaling=template._rho())
        return StreamSource(stream, template.class_weight)
    if callable(X) and type(template) is LinearSVC:
        raise ValueError("a stream brings its own labels: pass X alone")
    return template._source(X, y, sample_weight)


def _warn_if_missed(path: Path, *, interrupted: bool) -> None:
    if path.met:
        return
    (low, high), end = path.C_range, path.proved_up_to
    as_far = f"but up to C = {end:g}" if end >= low else f"nor at C = {low:g}"
    advice = "Raise max_fits, or max_iter or max_time of the estimator, or accept a larger tol."
    warnings.warn(
        f"The accuracy of {percent(path.tol)} is not proved for every C from {low:g} to {high:g}, "
        f"{as_far}, after {len(path)} fits. {'It was interrupted.' if interrupted else advice}",
        ConvergenceWarning,
        stacklevel=3,
    )


def _described(estimator: Any) -> str:
    if isinstance(estimator, type):
        return f"the class {estimator.__module__}.{estimator.__qualname__}; make an object of it"
    kind = type(estimator)
    return f"an object of {kind.__module__}.{kind.__qualname__}"
