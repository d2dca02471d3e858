"""Models for several values of C, or for every C in a range."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from os import PathLike
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from certsvm.certificates.certificate import COARSE_TOL, Certificate, percent, tidy
from certsvm.estimators.linear_svc import LinearSVC, are_right, fitted_attributes
from certsvm.files.block_sources import block_source
from certsvm.files.streams import BlockStream
from certsvm.fitting.path import PathProgress, Trace, trace_path
from certsvm.fitting.sources import Source, StreamSource
from certsvm.markup import element, table
from certsvm.matrices import dense
from certsvm.plots import draw_path, notebook_chart, plot
from certsvm.report import PageFile, path_report, write_page
from certsvm.scalars import as_float

# Values of C on the slider of a report.
_MOST_POINTS = 200


class Path(Trace, Sequence[LinearSVC]):
    """Models over a range of C, with a certificate for every C in it.

    It is a sequence of the fitted models. Between two fitted values the model is interpolated, and
    what is proved about it follows from its neighbours.

    Attributes
    ----------
    models : list of LinearSVC
        The fitted models, in the order of ``Cs``.
    C_range : tuple of float
        The lowest and the highest C asked for.
    tol : float
        The relative accuracy asked for.
    """

    def __init__(self, trace: Trace, template: LinearSVC, source: Source, Cs: list[float]) -> None:
        vars(self).update(vars(trace))
        self._template, self._source = template, source
        self.models = [self._fitted(C) for C in Cs]

    @property
    def Cs(self) -> list[float]:
        """The values of C, in the order of ``models``."""
        return [model.C for model in self.models]

    def __getitem__(self, i: Any) -> Any:
        return self.models[i]

    def __len__(self) -> int:
        return len(self.models)

    def __repr__(self) -> str:
        (low, high), gap = self.C_range, self.worst_gap
        proved = f"worst gap {percent(gap)}" if gap < math.inf else "not proved for every C"
        return f"<Path of {len(self)} fits for C from {low:g} to {high:g}, {proved}>"

    def _repr_html_(self) -> str:
        """For notebooks: what is proved, and the gap at every C."""
        chart = notebook_chart(self._draw, "gap at every C")
        rows = ([f"{knot.C:.4g}", percent(knot.gap)] for knot in self.knots)
        shown = chart or table(["C", "gap, proved"], rows)
        return element("div", element("p", repr(self)[1:-1]), shown)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the data."""
        return {**vars(self), "_source": None}

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
        self.find(C)
        if self._source is None:
            raise ValueError(
                "a path that was pickled has no data to certify a model between those fitted: fit "
                f"at C = {C:g}, or take one of {self.Cs}"
            )
        return self._fitted(C)

    def _fitted(self, C: float) -> LinearSVC:
        model: LinearSVC = clone(self._template).set_params(C=C)
        # What the template knows of the columns.
        model.__dict__.update(fitted_attributes(self._template))
        model._set_fitted(self._source, self.at(C, self._source))
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
        return plot([self._draw], path)

    def _draw(self, axis: Any) -> None:
        points = self._points()
        draw_path(axis, points["Cs"], points["gaps"], points["fitted"], self.tol)

    def report(
        self, path: str | PathLike[str] | None = None, X: Any = None, y: Any = None
    ) -> PageFile | None:
        """Write a report of the path: one HTML page with a slider over C.

        Parameters
        ----------
        path : path, default=None
            The file to write; None means a temporary one.
        X : array-like or sparse matrix of shape (n_samples, n_features), default=None
            Rows to predict with the model of every C.
        y : array-like of shape (n_samples,), default=None
            Their labels; both or none.

        Returns
        -------
        page : str or None
            Without ``path``, the path of the page. Notebooks show the page itself.
        """
        if (X is None) != (y is None):
            raise ValueError("give both X and y, or none of them")
        first = self.models[0]
        columns = [f"column {j}" for j in range(first.n_features_in_)]
        names = getattr(first, "feature_names_in_", columns)
        points = self._points(X, y) | {"names": names}
        return write_page(path, path_report(**points, tol=self.tol, worst_gap=self.worst_gap))

    def _points(self, X: Any = None, y: Any = None) -> dict[str, Any]:
        """The path at the fitted values of C and some between them."""
        fitted = [knot.C for knot in self.knots]
        between = np.geomspace(fitted[0], fitted[-1], _MOST_POINTS).clip(fitted[0], fitted[-1])
        Cs = np.unique([*fitted, *between])
        models = [self.model(C) for C in fitted]
        coefs = [dense(model.coef_) for model in models]
        errors = None
        if X is not None:
            classes = models[0].classes_
            # What is linear between two fits is, at each C, a combination of its values at all.
            shares = np.array([np.interp(Cs, fitted, unit) for unit in np.eye(len(fitted))]).T
            scores = np.array([np.asarray(model.decision_function(X)) for model in models])
            scores = np.tensordot(shares, scores, 1)
            answers = scores.argmax(axis=2) if scores.ndim == 3 else (scores > 0.0).astype(int)
            # Labels are compared, since those of other classes have no place among these.
            errors = [float(np.mean(~are_right(labels, y))) for labels in classes[answers]]
        labels = [tidy(label) for label in models[0].classes_[-len(coefs[0]) :]]
        bounds = [(c.primal, c.dual, c.proved_gap) for c in map(self._known, Cs.tolist())]
        objective = self.knots[0].results[0].certificate.objective
        primal, dual, gaps = map(list, zip(*bounds, strict=True))
        return {
            "Cs": Cs.tolist(), "primal": primal, "dual": dual, "gaps": gaps, "coefs": coefs,
            "fitted": fitted, "labels": labels, "objective": objective, "errors": errors,
        }  # fmt: skip

    def _known(self, C: float) -> Certificate:
        try:
            return self.certificate(C)
        except ValueError:
            return Certificate(math.nan, math.nan, self.tol)


def fit_path(
    estimator: LinearSVC, X: Any, y: Any = None, Cs: Sequence[float] | None = None,
    sample_weight: Any = None, *, C_range: tuple[float, float] | None = None,
    tol: float | None = None, max_fits: int = 200,
    callback: Callable[[PathProgress], Any] | None = None,
) -> Path:  # fmt: skip
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
        Relative accuracy, for every C in the range or at the values. None means 0.01 for a range,
        whatever the estimator's, and the estimator's for ``Cs``.
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
    >>> path = fit_path(LinearSVC(random_state=0), X, y, C_range=(0.01, 10.0))
    >>> path.met, path.certificate(0.345).proved_gap <= 0.01
    (True, True)
    >>> path.model(0.345).certificate_.met
    True
    >>> models = fit_path(LinearSVC(tol=0.001, random_state=0), X, y, [0.01, 0.1, 1.0])
    >>> [model.C for model in models], all(model.certificate_.met for model in models)
    ([0.01, 0.1, 1.0], True)
    """
    if not isinstance(estimator, LinearSVC):
        raise TypeError(f"fit_path takes a certsvm.LinearSVC, got {estimator!r}")
    if (Cs is None) == (C_range is None):
        raise ValueError("give either Cs, the values of C, or C_range, the lowest and the highest")
    values = None if Cs is None else checked_values(Cs)
    low_high = (min(values), max(values)) if values else checked_range(C_range)
    if tol is None:
        tol = estimator.tol if values else COARSE_TOL
    template = clone(estimator).set_params(tol=as_float(tol, "tol"))
    template._validate_params()
    if estimator.checkpoint is not None:
        raise ValueError("fit_path makes many fits, and cannot write a checkpoint of all of them")
    if max_fits < 2:
        raise ValueError(f"max_fits must be at least 2, got {max_fits!r}")
    # Made once: it holds the data, checked and where they are trained on.
    source = _source(template, X, y, sample_weight)
    settings = replace(template._settings(source), keep_alpha=bool(estimator.store_dual))
    trace = trace_path(
        source, settings, low_high, values,
        max_fits=max_fits, callback=None if values else callback,
    )  # fmt: skip
    path = Path(trace, template, source, values or trace.Cs)
    if values is None and not path.met:
        (low, high), end = path.C_range, path.proved_up_to
        as_far = f"but up to C = {end:g}" if end >= low else f"nor at C = {low:g}"
        advice = "Raise max_fits, or max_iter or max_time of the estimator, or accept a larger tol."
        advice = "It was interrupted." if path.interrupted else advice
        warnings.warn(
            f"The accuracy of {percent(path.tol)} is not proved for every C from {low:g} to "
            f"{high:g}, {as_far}, after {len(path)} fits. {advice}",
            ConvergenceWarning, stacklevel=2,
        )  # fmt: skip
    for model in path if values else ():
        model._warn_if_missed(trace.find(model.C)[0].results, settings, level=3)
    return path


def checked_values(Cs: Any, name: str = "Cs") -> list[float]:
    """Values of C as floats, or an error."""
    if not np.iterable(Cs):
        raise TypeError(f"{name} must be a sequence of numbers, got {Cs!r}")
    values = [float(C) for C in Cs]
    if not values or not all(math.isfinite(C) and C > 0 for C in values):
        raise ValueError(f"{name} must be finite numbers > 0, at least one, got {values}")
    return values


def checked_range(C_range: Any) -> tuple[float, float]:
    """The lowest and the highest C as floats, or an error."""
    low, *others = checked_values(C_range, "C_range")
    if len(others) != 1 or not low < others[0]:
        raise ValueError(f"C_range must be the lowest and the highest C, got {C_range!r}")
    return low, others[0]


def _source(template: LinearSVC, X: Any, y: Any, sample_weight: Any) -> Source:
    if type(template) is not LinearSVC or not (y is None or callable(X)):
        return template._source(X, y, sample_weight)
    if y is not None or sample_weight is not None:
        raise ValueError("a stream brings its own labels and weights: pass X alone")
    stream = BlockStream(block_source(X), intercept_scaling=template._rho())
    return StreamSource(stream, template.class_weight)
