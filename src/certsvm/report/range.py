"""Reports over a range of C: of a path, and of a choice by cross-validation.

A slider goes through values of C. Charts show where it is, and figures and weights follow.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from certsvm.certificates.certificate import percent, percentage_points
from certsvm.markup.charts import Band, Chart, Line, axis_for
from certsvm.markup.html import Html, element
from certsvm.problem.rows import Vector
from certsvm.report.page import facts, page, section

_COLUMNS = "columns"
# Weights of each class, and classes whose weights are shown.
_MOST_WEIGHTS, _MOST_CLASSES = 12, 10


@dataclass(frozen=True)
class ClassWeights:
    """The largest weights of a class at many values of C.

    Attributes
    ----------
    label : str
        The class on the positive side.
    columns : list of int
        Positions of the weights, the largest first.
    values : ndarray of shape (n_Cs, n_columns)
        Their values at each C.
    """

    label: str
    columns: list[int]
    values: Vector

    @classmethod
    def largest(
        cls, labels: Sequence[str], coefs: Sequence[Vector], between: Callable[[list[Any]], Any]
    ) -> list[ClassWeights]:
        """The weights that are largest at any of the values fitted, for the first classes.

        Between two fits, no weight is larger than at both of them.

        Parameters
        ----------
        labels : sequence of str
            The class on the positive side of each problem.
        coefs : sequence of ndarray of shape (n_problems, n_features)
            Weights at the values fitted.
        between : callable
            Makes values at each C of values at those fitted.

        Returns
        -------
        weights : list of ClassWeights
            One for each class that is shown.
        """
        found = []
        for i, label in enumerate(labels[:_MOST_CLASSES]):
            size = np.max([np.abs(coef[i]) for coef in coefs], axis=0)
            top = np.argsort(-size, kind="stable")[:_MOST_WEIGHTS]
            values = np.array(between([coef[i][top] for coef in coefs]))
            found.append(cls(label, top.tolist(), values))
        return found


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
    weights : list of ClassWeights
        The largest weights of the model at each C, class by class.
    n_classes : int
        How many problems there are.
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
    weights: list[ClassWeights]
    n_classes: int
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
    low, high = points.Cs[0], points.Cs[-1]
    proved = worst_gap <= tol
    says = (
        "Every C in this range has a model within "
        if math.isfinite(worst_gap)
        else "It is not proved that every C in this range has a model near its optimum."
    )
    verdict = element(
        "p", says,
        element("strong", percent(worst_gap)) if math.isfinite(worst_gap) else None,
        " of its own optimum, proved." if math.isfinite(worst_gap) else None,
        f" {tol * 100:g} % was asked for.", class_="verdict" if proved else "verdict missed",
    )  # fmt: skip
    x = axis_for("C", points.Cs, logarithmic=True, low=low, high=high)
    pictures = [gap_chart(points, tol)]
    shown = {
        "C": [f"{C:.4g}" for C in points.Cs],
        "J": [_figure(v) for v in points.primal],
        "L": [_figure(v) for v in points.dual],
        "gap": [percent(g) if math.isfinite(g) else "not proved" for g in points.gaps],
        "model": ["fitted" if C in points.fitted else "interpolated" for C in points.Cs],
    }
    if points.errors is not None:
        y = axis_for("wrong predictions", [0.0, *points.errors], low=0.0)
        pictures.append(
            _following(x, y).svg([Line("error on the rows given", points.Cs, points.errors)])
        )
        shown["error"] = [f"{100 * error:.2f} %" for error in points.errors]
    longest = max(float(np.abs(w.values).max(initial=0.0)) for w in points.weights)
    columns = {
        **shown,
        "share": [x.share(C) for C in points.Cs],
        "weights": [column.tolist() for w in points.weights for column in w.values.T],
        "longest": longest or 1.0,
    }
    start = len(points.Cs) // 2
    bars = [(w.label, [names[j] for j in w.columns]) for w in points.weights]
    rest = points.n_classes - len(bars)
    return page(
        "Linear SVMs for every C",
        f"{points.objective}; C from {low:g} to {high:g}; {len(points.fitted)} fits",
        verdict,
        section("The gap at every C", element("div", *map(_figured, pictures), class_="pair")),
        section(
            "The model at one C, and its largest weights",
            _slider(shown, len(points.Cs), start, bars),
            element("p", f"{rest} more classes are not shown.", class_="soft") if rest else None,
        ),
        columns={_COLUMNS: columns},
    )


def gap_chart(points: PathPoints, tol: float) -> Html:
    """The gap at every C, with the fits as dots."""
    low, high = points.Cs[0], points.Cs[-1]
    gaps = [100.0 * gap for gap in points.gaps]
    largest = max([100 * tol, *(gap for gap in gaps if math.isfinite(gap))])
    chart = _following(
        axis_for("C", points.Cs, logarithmic=True, low=low, high=high),
        axis_for("gap in %, proved", [], low=0.0, high=1.1 * largest),
    )
    return chart.svg(
        [
            Line("every C", points.Cs, gaps),
            Line("asked for", [low, high], [100 * tol, 100 * tol], dashed=True),
            Line(
                "fits", points.fitted, [gaps[points.Cs.index(C)] for C in points.fitted], dots=True
            ),
        ]
    )


def choice_sections(
    curve: Any, certify: float | None, certified: bool
) -> tuple[list[Html | None], dict[str, Any]]:
    """What cross-validation found and proved, and the columns of its slider.

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
    sections : list of Html
        Parts of a page.
    columns : dict
        For ``page``.
    """
    error = float(curve.errors[int(np.searchsorted(curve.Cs, curve.C))])
    proved = curve.lower.size > 0
    if proved:
        says = f"No C in the range has an error below {100 * curve.bound:.2f} %, proved."
    else:
        says = "Nothing is proved about other values of C."
    asked = ""
    if certify is not None:
        asked = f" The choice is {'proved' if certified else 'not proved'} to be within "
        asked += f"{percentage_points(certify)} of the best."
    verdict = element(
        "p", f"C = {curve.C:.4g} has an error of ", element("strong", f"{100 * error:.2f} %"),
        f" in cross-validation. {says}{asked}",
        class_="verdict" if certified or certify is None else "verdict missed",
    )  # fmt: skip
    Cs, low, high = _samples(curve)
    x = axis_for("C", Cs, logarithmic=True, low=Cs[0], high=Cs[-1])
    top = max([*curve.errors[np.isfinite(curve.errors)].tolist(), 1e-3])
    chart = _following(
        x, axis_for("error of cross-validation", [], low=0.0, high=min(1.0, 1.5 * top))
    )
    bands = []
    if proved:
        bands = [Band("proved", curve.edges.tolist(), curve.lower.tolist(), curve.upper.tolist())]
    picture = chart.svg(
        [
            Line("fits", curve.Cs.tolist(), curve.errors.tolist(), dots=True),
            Line("choice", [curve.C], [error], dots=True),
        ],
        bands,
    )
    sections: list[Html | None] = [
        verdict,
        facts({"C": f"{curve.C:.4g}", "values of C fitted": curve.Cs.size}),
    ]
    if not proved:
        return [*sections, section("The error at the values fitted", _figured(picture))], {}
    shown = {
        "C": [f"{C:.4g}" for C in Cs],
        "lowest error": [f"{100 * v:.2f} %" for v in low],
        "highest error": [f"{100 * v:.2f} %" for v in high],
    }
    nearest = int(np.argmin(np.abs(np.log(np.array(Cs) / curve.C))))
    slider = _slider(shown, len(Cs), nearest, [])
    columns = {**shown, "share": [x.share(C) for C in Cs], "weights": [], "longest": 1.0}
    about = element(
        "p",
        "The bounds hold for every C between two neighbouring edges of the band. At a C that was "
        "fitted, its own fits prove more than the band shows.",
        class_="soft",
    )
    sections.append(section("The error at every C", _figured(picture), slider, about))
    return sections, {_COLUMNS: columns}


def _samples(curve: Any) -> tuple[list[float], list[float], list[float]]:
    """A value of C inside each piece, and the bounds there."""
    if not curve.lower.size:
        return curve.Cs.tolist(), [], []
    middles = np.sqrt(curve.edges[:-1] * curve.edges[1:]).tolist()
    return (
        [float(curve.edges[0]), *middles, float(curve.edges[-1])],
        [float(curve.lower[0]), *curve.lower.tolist(), float(curve.lower[-1])],
        [float(curve.upper[0]), *curve.upper.tolist(), float(curve.upper[-1])],
    )


def _following(x: Any, y: Any) -> Chart:
    return Chart(x, y, attributes={"data_follows": _COLUMNS})


def _figured(picture: Html) -> Html:
    return element("figure", picture)


def _slider(
    shown: dict[str, list[str]], n: int, start: int, weights: list[tuple[str, list[str]]]
) -> Html:
    """A slider, the figures where it is, and the largest weights by class and column."""
    numbers = itertools.count()
    groups = [
        element(
            "details", element("summary", f"weights for class {label}"),
            *(_bar(next(numbers), name) for name in names),
            open="" if i == 0 else None,
        )
        for i, (label, names) in enumerate(weights)
    ]  # fmt: skip
    return element(
        "div",
        element(
            "input", type="range", min=0, max=n - 1, value=start, step=1, aria_label="position on C"
        ),
        element(
            "p",
            *(
                element(
                    "span", f"{name} ", element("output", texts[start], data_column=name)
                )
                for name, texts in shown.items()
            ),
        ),
        *groups,
        class_="slider", data_columns=_COLUMNS,
    )  # fmt: skip


def _bar(number: int, name: str) -> Html:
    return element(
        "div", element("span", name, title=name), element("span", element("i")), element("b"),
        class_="bar", data_weight=number,
    )  # fmt: skip


def _figure(value: float) -> str:
    return f"{value:.6g}" if math.isfinite(value) else "unknown"
