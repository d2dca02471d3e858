"""Reports of fits, paths and choices of C: one HTML page that contains all it needs.

A fit is told with what is proved, how training went, and what the model says. On pages over a range
of C, a slider goes through its values: charts show where it is, and figures and weights follow.
"""

from __future__ import annotations

import itertools
import math
import os
import platform
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from certsvm import plots
from certsvm._version import __version__
from certsvm.certificates.certificate import (
    Certificate,
    percent,
    percentage_points,
    relative_gap,
    tidy,
)
from certsvm.files.atomic import atomic_write
from certsvm.files.model import Model
from certsvm.markup import element

_PACKAGES = ("numpy", "scipy", "numba", "scikit-learn")
# Classes whose weights are shown, their weights, and classes of a confusion matrix.
_MOST_CLASSES, _MOST_WEIGHTS, _MOST_CONFUSED = 12, 20, 12
# On a path: weights that are shown at once, and those that these are taken from.
_MOST_ON_PATH, _MOST_COLUMNS = 12, 100
_OTHER = "other labels"


def page(title: str, subtitle: str, **parts: object) -> str:
    """The whole page.

    Parameters
    ----------
    title, subtitle : str
        What it is about.
    **parts : object
        What ``static/page.html`` shows: any of ``path``, ``choice``, ``fit`` and ``slider``.

    Returns
    -------
    page : str
        A document in HTML.
    """
    try:
        import jinja2
    except ImportError as error:
        raise ImportError("reports need Jinja2: pip install 'certsvm[plot]'") from error

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("certsvm.report", "static"),
        # Labels and names come from files, and must not become markup.
        autoescape=True, trim_blocks=True, lstrip_blocks=True, finalize=_unbroken,
    )  # fmt: skip
    environment.policies["json.dumps_kwargs"] = {"allow_nan": False}
    environment.filters["percent"] = percent
    machine = {
        "system": f"{platform.system()} {platform.machine()}",
        "processors": os.cpu_count() or "unknown",
        "Python": platform.python_version(),
        "packages": ", ".join(f"{name} {version(name)}" for name in _PACKAGES),
        "certsvm": __version__,
    }
    now = f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC"
    return environment.get_template("page.html").render(
        title=title, subtitle=subtitle, version=__version__, machine=machine, now=now, **parts
    )


class PageFile(str):
    """The path of a page, which notebooks show as the page itself."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        """For notebooks: a frame, so that neither styles nor scripts reach the rest of them."""
        return element(
            "iframe", srcdoc=Path(self).read_text("utf-8"), sandbox="allow-scripts",
            title="report", style="border:0;height:40em;width:100%",
        )  # fmt: skip


def write_page(path: str | os.PathLike[str] | None, content: str) -> PageFile | None:
    """Write the page, or nothing at all; without a path, to a temporary file, which is returned."""
    to = path if path is not None else Path(tempfile.mkdtemp(prefix="certsvm-"), "report.html")
    # Names of files need not be text: what is not becomes an escape.
    with atomic_write(to) as file:
        file.write(content.encode("utf-8", "backslashreplace"))
    return PageFile(to) if path is None else None


def _unbroken(value: Any) -> Any:
    """No line ends between a number and its unit."""
    if not isinstance(value, str) or hasattr(value, "__html__"):
        return value
    return value.replace(" %", "\N{NO-BREAK SPACE}%")


class Verdict(NamedTuple):
    """What is proved: a sentence with a figure that catches the eye."""

    met: bool
    before: str
    figure: str = ""
    after: str = ""


@dataclass(frozen=True)
class Evaluation:
    """What a model answers on some rows.

    Attributes
    ----------
    n_rows : int
        How many they are.
    stability : float or None
        The share of predictions that more training could not flip, proved; None if unknown.
    confusion : dict or None
        Rows, or their weight, of each pair of a true and a predicted label; None without labels.
    top_5 : float or None
        The share of rows whose label is among the five classes of the highest scores; None if
        there are five classes or fewer, or if it is unknown.
    """

    n_rows: int
    stability: float | None
    confusion: Mapping[tuple[str, str], float] | None
    top_5: float | None = None


@dataclass(frozen=True)
class Fit:
    """What a page about a model is made of.

    Attributes
    ----------
    model : Model
        The fitted model.
    command : str
        How others can check its certificate.
    dual_kept : bool
        Whether that recomputes L, too, from a dual point that was kept.
    claimed : bool, default=False
        Whether the certificate was read from a file, which may say anything.
    evaluation : Evaluation, default=None
        What it answers on some rows.
    n_rows : int, default=None
        The number of training rows; None takes the one of the model's fingerprint.
    files : sequence of str, default=()
        The files of the model and its witness in base64, which the page then can check. Without
        them, a page about a file says that they are too large.
    """

    model: Model
    command: str
    dual_kept: bool
    claimed: bool = False
    evaluation: Evaluation | None = None
    n_rows: int | None = None
    files: Sequence[str] = ()


def fit_report(fit: Fit) -> str:
    """The page, in HTML."""
    names = ", ".join(tidy(label) for label in fit.model.classes[:6])
    more = f" and {fit.model.classes.size - 6} more" if fit.model.classes.size > 6 else ""
    subtitle = f"{fit.model.n_features:,} columns; classes {names}{more}"
    return page("Linear SVM: the fit and its proof", subtitle, fit=fit_parts(fit))


def fit_parts(fit: Fit) -> dict[str, Any]:
    """What a page has about one model."""
    model, confusion = fit.model, fit.evaluation.confusion if fit.evaluation else None
    labels = [tidy(label) for label in model.classes.tolist()]
    problems = labels[-model.n_problems :]
    gaps = [_gap_if_any(certificate) for certificate in model.certificates]
    worst = gaps.index(max(gaps)) if gaps else 0
    training = [_closing(fit, i) for i in range(model.n_problems)]
    hidden = set() if model.parameters.get("intercept_scaling") else {"penalize_intercept"}
    parameters = {k: _shown(v) for k, v in model.parameters.items() if k not in hidden}
    if not (model.class_weight == 1.0).all():
        parameters["weights of classes"] = _shown(model.class_weight.tolist())
    return {
        "about": fit,
        "problems": problems,
        "worst": worst,
        "verdict": verdict(model.certificates, claimed=fit.claimed),
        "training": training,
        # One pass is no line.
        "charts": _charts(training[worst]) if len(training[worst]["passes"]) > 1 else [],
        "answers": None if confusion is None else _answers(confusion, labels),
        "weights": _weights(model, problems),
        "parameters": parameters,
    }


def verdict(certificates: Sequence[Certificate], *, claimed: bool = False) -> Verdict:
    """The certificate as a sentence; for several classes, of the worst."""
    if not certificates:
        return Verdict(False, "Nothing is proved about this model.")
    worst = max(certificates, key=_gap_if_any)
    if not 0.0 <= worst.proved_gap < math.inf:
        return Verdict(False, str(worst))
    # In a forged file, targets differ.
    missed = [certificate for certificate in certificates if not certificate.met]
    of = "Its objective is" if len(certificates) == 1 else "The objective of every class is"
    proved = "This is proved, rounding errors included."
    if claimed:
        proved = "This is claimed by the file; run the command below to prove it."
    target = f"Target of {(missed or [worst])[0].target * 100:.6g} %"
    after = f"of the best possible value. {proved} {target} {'not met' if missed else 'met'}."
    return Verdict(not missed, f"{of} within", percent(worst.proved_gap), after)


def _gap_if_any(certificate: Certificate) -> float:
    """The proved gap; infinite for a contradiction, whose gap is negative."""
    gap = certificate.proved_gap
    return gap if gap >= 0.0 else math.inf


def _closing(fit: Fit, i: int) -> dict[str, list[float]]:
    """How J and L of one problem closed in on each other."""
    kept = np.empty((0, 4)) if fit.model.history is None else fit.model.history
    names = ("passes", "primal", "dual")
    return dict(zip(names, kept[kept[:, 0] == i, 1:].T.tolist(), strict=True))


def _charts(closing: Mapping[str, list[float]]) -> Any:
    """J and L against passes, and their gap."""
    x, primal, dual = closing["passes"], closing["primal"], closing["dual"]
    gaps = [relative_gap(J, L) for J, L in zip(primal, dual, strict=True)]
    return plots.charts(
        bounds=partial(plots.draw_bounds, xlabel="passes", x=x, primal=primal, dual=dual),
        gap=partial(plots.draw_gap, xlabel="passes", x=x, gaps=gaps),
    )


def _answers(confusion: Mapping[tuple[str, str], Any], classes: Sequence[str]) -> dict[str, Any]:
    """A confusion matrix with its sums; labels that are no class of the model share a row."""
    counts, n_true, n_predicted = Counter[tuple[str, str]](), Counter[str](), Counter[str]()
    for (label, predicted), weight in confusion.items():
        true = label if label in classes else _OTHER
        counts[true, predicted] += weight
        n_true[true] += weight
        n_predicted[predicted] += weight
    rows = [*classes, *({_OTHER} & set(n_true))]
    matrix = [(row, [counts[row, column] for column in classes]) for row in rows]
    return {
        "right": sum(counts[label, label] for label in classes),
        "total": n_true.total(),
        "by_class": [(c, counts[c, c], n_true[c], n_predicted[c]) for c in classes],
        "matrix": matrix if len(rows) <= _MOST_CONFUSED else [],
    }


def _weights(model: Model, problems: Sequence[str]) -> list[tuple[str, Any]]:
    """The largest weights of each class, with intervals that contain those of the optimum."""
    (low, high), shown = model.coef_interval(), []
    # Without names, positions, as libsvm text counts them.
    in_text = model.parameters.get("zero_based") is False
    positions = range(int(in_text), int(in_text) + model.n_features)
    names = model.feature_names or [f"{'feature' if in_text else 'column'} {j}" for j in positions]
    for i, label in enumerate(problems[:_MOST_CLASSES]):
        w = model.coef[i]
        top = np.argsort(-np.abs(w), kind="stable")[:_MOST_WEIGHTS]
        top = top[w[top] != 0.0]
        columns = (column[top].tolist() for column in (w, low[i], high[i]))
        shown.append((label, list(zip((names[j] for j in top), *columns, strict=True))))
    return shown


def _shown(value: object) -> str:
    # Of one-hot columns, the names.
    if isinstance(value, list | dict):
        return ", ".join(_shown(item) for item in value)
    return f"{value:g}" if isinstance(value, float) else str(value)


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
    coefs: list[Any]
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
    Cs, gaps = points.Cs, points.gaps
    drawn = {"gap": partial(plots.draw_path, Cs=Cs, gaps=gaps, fitted=points.fitted, tol=tol)}
    shown = {
        "C": [f"{C:.4g}" for C in Cs],
        "J": [f"{v:.6g}" if math.isfinite(v) else "unknown" for v in points.primal],
        "L": [f"{v:.6g}" if math.isfinite(v) else "unknown" for v in points.dual],
        "gap": [percent(g) if math.isfinite(g) else "not proved" for g in gaps],
        "model": ["fitted" if C in points.fitted else "interpolated" for C in Cs],
    }
    if points.errors is not None:
        drawn["error"] = partial(plots.draw_errors, Cs=Cs, errors=points.errors)
        shown["error"] = [f"{100 * error:.2f} %" for error in points.errors]
    middle = len(points.fitted) // 2
    weights = [_largest(points, i, names) for i in range(min(len(points.labels), _MOST_CLASSES))]
    at_middle = [zip(w["names"], (v[middle] for v in w["values"]), strict=True) for w in weights]
    rows = [list(itertools.islice(bars, _MOST_ON_PATH)) for bars in at_middle]
    parts = {
        "worst_gap": worst_gap, "tol": tol, "charts": plots.charts(**drawn),
        "weights": list(zip(points.labels, rows, strict=False)),
        "hidden_classes": len(points.labels) - len(weights),
    }  # fmt: skip
    return page(
        "Linear SVMs for every C",
        f"{points.objective}; C from {Cs[0]:g} to {Cs[-1]:g}; {len(points.fitted)} fits",
        path=parts,
        slider=_slider(Cs, shown, Cs.index(points.fitted[middle]), points.fitted, weights),
    )


def _largest(points: PathPoints, i: int, names: Sequence[str]) -> dict[str, Any]:
    """The columns of a class that have one of the largest weights at any fitted C.

    Between two fits, no weight is larger than at both of them.
    """
    coefs = np.array([coef[i] for coef in points.coefs])
    sizes = np.abs(coefs)
    top = np.unique(np.argsort(-sizes, axis=1, kind="stable")[:, :_MOST_ON_PATH])
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
    choice = {
        "curve": curve, "certified": certified,
        "error": float(curve.errors[int(np.searchsorted(curve.Cs, curve.C))]),
        "within": None if certify is None else percentage_points(certify),
        "charts": plots.charts(error=partial(plots.draw_curve, curve=curve)),
    }  # fmt: skip
    parts: dict[str, Any] = {"choice": choice}
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
