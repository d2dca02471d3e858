"""Reports over a range of C: of a path, and of a choice by cross-validation.

A slider goes through values of C. Charts show where it is, and figures and weights follow.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from certsvm.certificates.certificate import percent, percentage_points
from certsvm.plots import charts, draw_curve, draw_errors, draw_path
from certsvm.problem.rows import Vector
from certsvm.report.page import MOST_CLASSES, page

# Weights of each class that are shown at once, and those that these are taken from.
_MOST_WEIGHTS, _MOST_COLUMNS = 12, 100


@dataclass(frozen=True)
class PathPoints:
    """A path at many values of C.

    Attributes
    ----------
    Cs : list of float
        Ascending.
    primal, dual, gaps : list of float
        Upper and lower bounds on the objective and what they prove, of the class with the largest
        gap at each C; NaN and infinity where nothing is proved.
    fitted : list of float
        The values of C that were fitted.
    coefs : list of ndarray of shape (n_problems, n_features)
        The weights there. Between two fits, they are interpolated.
    labels : list of str
        The class on the positive side of each problem.
    objective : str
        What is minimised, in words.
    errors : list of float or None
        The share of wrong predictions on given rows at each C.
    """

    Cs: list[float]
    primal: list[float]
    dual: list[float]
    gaps: list[float]
    fitted: list[float]
    coefs: list[Vector]
    labels: list[str]
    objective: str
    errors: list[float] | None = None


def path_report(points: PathPoints, names: Sequence[str], tol: float, worst_gap: float) -> str:
    """The page of a path.

    Parameters
    ----------
    points : PathPoints
        The path.
    names : sequence of str
        The columns.
    tol, worst_gap : float
        The relative accuracy asked for, and the one that is proved for every C in the range.

    Returns
    -------
    page : str
        In HTML.
    """
    Cs = points.Cs
    drawn = {"gap": partial(draw_path, Cs=Cs, gaps=points.gaps, fitted=points.fitted, tol=tol)}
    shown = {
        "C": [f"{C:.4g}" for C in Cs],
        "J": [_figure(v) for v in points.primal],
        "L": [_figure(v) for v in points.dual],
        "gap": [percent(g) if math.isfinite(g) else "not proved" for g in points.gaps],
        "model": ["fitted" if C in points.fitted else "interpolated" for C in Cs],
    }
    if points.errors is not None:
        drawn["error"] = partial(draw_errors, Cs=Cs, errors=points.errors)
        shown["error"] = [f"{100 * error:.2f} %" for error in points.errors]
    middle = len(points.fitted) // 2
    weights = [_largest(points, i, names) for i in range(min(len(points.labels), MOST_CLASSES))]
    at_middle = [zip(w["names"], (v[middle] for v in w["values"]), strict=True) for w in weights]
    rows = [list(itertools.islice(bars, _MOST_WEIGHTS)) for bars in at_middle]
    return page(
        "Linear SVMs for every C",
        f"{points.objective}; C from {Cs[0]:g} to {Cs[-1]:g}; {len(points.fitted)} fits",
        path={
            "worst_gap": worst_gap,
            "tol": tol,
            "charts": charts(**drawn),
            "weights": list(zip(points.labels, rows, strict=False)),
            "hidden_classes": len(points.labels) - len(weights),
        },
        slider=_slider(Cs, shown, Cs.index(points.fitted[middle]), points.fitted, weights),
    )  # fmt: skip


def _largest(points: PathPoints, i: int, names: Sequence[str]) -> dict[str, Any]:
    """The columns of a class that have one of the largest weights at any fitted C.

    Between two fits, no weight is larger than at both of them.
    """
    coefs = np.array([coef[i] for coef in points.coefs])
    sizes = np.abs(coefs)
    top = np.unique(np.argsort(-sizes, axis=1, kind="stable")[:, :_MOST_WEIGHTS])
    top = top[np.argsort(-sizes[:, top].max(axis=0), kind="stable")][:_MOST_COLUMNS]
    # As the page is written: ordered for the C it begins with.
    top = top[np.argsort(-sizes[len(coefs) // 2, top], kind="stable")]
    values = [[float(f"{v:.6g}") for v in column] for column in coefs[:, top].T.tolist()]
    return {"names": [names[j] for j in top], "values": values}


def _slider(
    Cs: Sequence[float], shown: dict[str, list[str]], start: int,
    fitted: Sequence[float] = (), weights: Sequence[dict[str, Any]] = (),
) -> dict[str, Any]:  # fmt: skip
    """A position for each C, what is shown there, and the weights at fits to interpolate."""
    places = np.log(Cs) - math.log(Cs[0])
    share = (places / (places[-1] or 1.0)).round(5).tolist()
    data = {"Cs": Cs, "share": share, "shown": shown, "fitted": fitted, "weights": weights}
    return {"start": start, "data": data}


def choice_parts(curve: Any, certify: float | None, certified: bool) -> dict[str, Any]:
    """What cross-validation found and proved: ``choice`` and ``slider`` of a page.

    Parameters
    ----------
    curve : Curve
        Errors against C, with bounds.
    certify : float or None
        How near the best the choice was to be proved.
    certified : bool
        Whether it is.

    Returns
    -------
    parts : dict
        For ``page``.
    """
    parts: dict[str, Any] = {
        "choice": {
            "curve": curve,
            "error": float(curve.errors[int(np.searchsorted(curve.Cs, curve.C))]),
            "within": None if certify is None else percentage_points(certify),
            "certified": certified,
            "charts": charts(error=partial(draw_curve, curve=curve)),
        }
    }
    if curve.lower.size:
        # A value of C inside each piece, and both ends.
        middles = np.sqrt(curve.edges[:-1] * curve.edges[1:])
        Cs = np.concatenate([curve.edges[:1], middles, curve.edges[-1:]])
        nearest = int(np.argmin(np.abs(np.log(Cs / curve.C))))
        shown = {"C": [f"{C:.4g}" for C in Cs.tolist()]}
        # Rounded outwards: they are proved.
        low, high = np.floor(1e4 * curve.lower), np.ceil(1e4 * curve.upper)
        for name, bound in (("lowest error", low), ("highest error", high)):
            shown[name] = [f"{v / 100:.2f} %" for v in (bound[0], *bound, bound[-1])]
        parts["slider"] = _slider(Cs.tolist(), shown, nearest)
    return parts


def _figure(value: float) -> str:
    return f"{value:.6g}" if math.isfinite(value) else "unknown"
