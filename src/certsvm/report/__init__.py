"""Reports of fits, paths and choices of C: one HTML page that contains all it needs.

A fit is told with what is proved, how training went, and what the model says. On the page of a
path, a slider goes through the values of C: charts show where it is, figures and weights follow.
"""

from __future__ import annotations

import itertools
import math
import os
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from certsvm import plots
from certsvm._version import __version__
from certsvm.certificates import certificate as claims
from certsvm.files.atomic import atomic_write
from certsvm.files.model import Model, listing
from certsvm.markup import Html, element

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
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("certsvm.report", "static"),
        # Labels and names come from files, and must not become markup.
        autoescape=True, trim_blocks=True, lstrip_blocks=True, finalize=_unbroken,
    )  # fmt: skip
    environment.policies["json.dumps_kwargs"] = {"allow_nan": False}
    environment.filters["percent"] = claims.percent
    template = environment.get_template("page.html")
    now = f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC"
    return template.render(title=title, subtitle=subtitle, version=__version__, now=now, **parts)


def _unbroken(value: Any) -> Any:
    """No line ends between a number and its unit."""
    if not isinstance(value, str) or hasattr(value, "__html__"):
        return value
    return value.replace(" %", "\N{NO-BREAK SPACE}%")


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


class Evaluation(NamedTuple):
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


def fit_report(fit: dict[str, Any]) -> str:
    """The page about what ``fit_parts`` returns, in HTML."""
    model: Model = fit["model"]
    subtitle = f"{model.n_features:,} columns; classes {listing(model.classes.tolist())}"
    return page("Linear SVM: the fit and its proof", subtitle, fit=fit)


def fit_parts(
    model: Model, command: str, *, dual_kept: bool, claimed: bool = False,
    evaluation: Evaluation | None = None, n_rows: int | None = None, files: Sequence[str] = (),
) -> dict[str, Any]:  # fmt: skip
    """What a page has about one model.

    Parameters
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
    confusion = evaluation.confusion if evaluation else None
    labels = [claims.tidy(label) for label in model.classes.tolist()]
    problems = labels[-model.n_problems :]
    gaps = [_gap_if_any(certificate) for certificate in model.certificates]
    worst = gaps.index(max(gaps)) if gaps else 0
    history = np.empty((0, 4)) if model.history is None else model.history
    training = [history[history[:, 0] == i] for i in range(model.n_problems)]
    hidden = set() if model.parameters.get("intercept_scaling") else {"penalize_intercept"}
    parameters = {k: _shown(v) for k, v in model.parameters.items() if k not in hidden}
    if not (model.class_weight == 1.0).all():
        parameters["weights of classes"] = _shown(model.class_weight.tolist())
    return {
        "model": model, "command": command, "dual_kept": dual_kept, "claimed": claimed,
        "evaluation": evaluation, "n_rows": n_rows, "files": files, "problems": problems,
        "worst": worst, "verdict": verdict(model.certificates, claimed=claimed),
        "passes": [kept[-1, 1] if len(kept) else None for kept in training],
        "charts": _charts(training[worst]),
        "answers": None if confusion is None else _answers(confusion, labels),
        "weights": _weights(model, problems),
        "parameters": parameters,
    }  # fmt: skip


def verdict(certificates: Sequence[claims.Certificate], claimed: bool = False) -> tuple[bool, str]:
    """Whether the target is met, and the certificate as a sentence; of several, the worst."""
    if not certificates:
        return False, "Nothing is proved about this model."
    worst = max(certificates, key=_gap_if_any)
    if not 0.0 <= worst.proved_gap < math.inf:
        return False, str(worst)
    # In a forged file, targets differ.
    missed = [certificate for certificate in certificates if not certificate.met]
    of = "Its objective is" if len(certificates) == 1 else "The objective of every class is"
    proved = "This is proved, rounding errors included."
    if claimed:
        proved = "This is claimed by the file; run the command below to prove it."
    target = f"Target of {(missed or [worst])[0].target * 100:.6g} %"
    figure = element("strong", claims.percent(worst.proved_gap))
    after = f"of the best possible value. {proved} {target} {'not met' if missed else 'met'}."
    return not missed, Html(f"{of} within {figure} {after}")


def _gap_if_any(certificate: claims.Certificate) -> float:
    """The proved gap; infinite for a contradiction, whose gap is negative."""
    gap = certificate.proved_gap
    return gap if gap >= 0.0 else math.inf


def _charts(kept: Any) -> Any:
    """J and L of a problem against passes, and their gap."""
    if len(kept) < 2:
        # One pass is no line.
        return []
    passes, primal, dual = kept[:, 1:].T.tolist()
    gaps = [claims.relative_gap(J, L) for J, L in zip(primal, dual, strict=True)]
    return plots.charts(
        bounds=partial(plots.draw_bounds, xlabel="passes", x=passes, primal=primal, dual=dual),
        gap=partial(plots.draw_gap, xlabel="passes", x=passes, gaps=gaps),
    )


def confusion_sums(confusion: Mapping[tuple[str, str], Any]) -> tuple[Counter[str], ...]:
    """Rows, or their weight: by the true label, by the predicted one, and predicted right."""
    n_true, n_predicted, hits = Counter[str](), Counter[str](), Counter[str]()
    for (label, predicted), weight in confusion.items():
        n_true[label] += weight
        n_predicted[predicted] += weight
        hits[label] += weight * (label == predicted)
    return n_true, n_predicted, hits


def _answers(confusion: Mapping[tuple[str, str], Any], classes: Sequence[str]) -> dict[str, Any]:
    """A confusion matrix with its sums; labels that are no class of the model share a row."""
    counts = Counter[tuple[str, str]]()
    for (label, predicted), weight in confusion.items():
        counts[label if label in classes else _OTHER, predicted] += weight
    n_true, n_predicted, hits = confusion_sums(counts)
    rows = [*classes, *({_OTHER} & set(n_true))]
    matrix = [(row, [counts[row, column] for column in classes]) for row in rows]
    return {
        "right": sum(hits[label] for label in classes),
        "total": n_true.total(),
        "by_class": [(c, hits[c], n_true[c], n_predicted[c]) for c in classes],
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


def path_report(
    *, Cs: Sequence[float], primal: Sequence[float], dual: Sequence[float], gaps: Sequence[float],
    fitted: Sequence[float], coefs: Sequence[Any], labels: Sequence[str], objective: str,
    errors: Sequence[float] | None, names: Sequence[str], tol: float, worst_gap: float,
) -> str:  # fmt: skip
    """The page of a path, in HTML.

    Parameters
    ----------
    Cs : sequence of float
        Ascending values of C.
    primal, dual, gaps : sequence of float
        Upper and lower bounds on the objective and what they prove, of the class with the largest
        gap at each C; NaN and infinity where nothing is proved.
    fitted : sequence of float
        The values of C that were fitted.
    coefs : sequence of ndarray of shape (n_problems, n_features)
        The weights there. Between two fits, they are interpolated.
    labels : sequence of str
        The class on the positive side of each problem.
    objective : str
        What is minimised, in words.
    errors : sequence of float or None
        The share of wrong predictions on given rows at each C.
    names : sequence of str
        The columns.
    tol, worst_gap : float
        The relative accuracy asked for, and the one that is proved for every C in the range.
    """
    drawn = {"gap": partial(plots.draw_path, Cs=Cs, gaps=gaps, fitted=fitted, tol=tol)}
    shown = {
        "C": [f"{C:.4g}" for C in Cs],
        "J": [f"{v:.6g}" if math.isfinite(v) else "unknown" for v in primal],
        "L": [f"{v:.6g}" if math.isfinite(v) else "unknown" for v in dual],
        "gap": [claims.percent(g) if math.isfinite(g) else "not proved" for g in gaps],
        "model": ["fitted" if C in fitted else "interpolated" for C in Cs],
    }
    if errors is not None:
        drawn["error"] = partial(plots.draw_errors, Cs=Cs, errors=errors)
        shown["error"] = [f"{100 * error:.2f} %" for error in errors]
    numbers = range(min(len(labels), _MOST_CLASSES))
    weights = [_largest(np.array([coef[i] for coef in coefs]), names) for i in numbers]
    middle = len(fitted) // 2
    at_middle = [zip(w["names"], (v[middle] for v in w["values"]), strict=True) for w in weights]
    # The script orders them by their size where the slider is.
    rows = [list(itertools.islice(bars, _MOST_ON_PATH)) for bars in at_middle]
    places = np.log(Cs) - math.log(Cs[0])
    share = (places / (places[-1] or 1.0)).round(5).tolist()
    data = {"Cs": Cs, "share": share, "shown": shown, "fitted": fitted, "weights": weights}
    parts = {
        "worst_gap": worst_gap, "tol": tol, "charts": plots.charts(**drawn),
        "weights": list(zip(labels, rows, strict=False)),
        "hidden_classes": len(labels) - len(weights),
    }  # fmt: skip
    subtitle = f"{objective}; C from {Cs[0]:g} to {Cs[-1]:g}; {len(fitted)} fits"
    slider = {"start": Cs.index(fitted[middle]), "data": data}
    return page("Linear SVMs for every C", subtitle, path=parts, slider=slider)


def _largest(coefs: Any, names: Sequence[str]) -> dict[str, Any]:
    """The columns that have one of the largest weights at any fitted C, and the weights.

    Between two fits, no weight is larger than at both of them.
    """
    sizes = np.abs(coefs)
    top = np.unique(np.argsort(-sizes, axis=1, kind="stable")[:, :_MOST_ON_PATH])
    top = top[np.argsort(-sizes[:, top].max(axis=0), kind="stable")][:_MOST_COLUMNS]
    values = [[float(f"{v:.6g}") for v in column] for column in coefs[:, top].T.tolist()]
    return {"names": [names[j] for j in top], "values": values}


def choice_parts(curve: Any, certify: float | None, certified: bool) -> dict[str, Any]:
    """What cross-validation found and proved: ``choice`` of a page.

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
    error = float(curve.errors[int(np.searchsorted(curve.Cs, curve.C))])
    within = None if certify is None else claims.percentage_points(certify)
    charts = plots.charts(error=partial(plots.draw_curve, curve=curve))
    choice = {"curve": curve, "certified": certified, "error": error, "within": within}
    return {"choice": choice | {"charts": charts}}
