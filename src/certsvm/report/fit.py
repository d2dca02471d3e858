"""The report of a fit: what is proved, how training went, and what the model says."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from certsvm.certificates.certificate import Certificate, percent, relative_gap, tidy
from certsvm.files.model import Model
from certsvm.plots import charts, draw_bounds, draw_gap
from certsvm.report.page import MOST_CLASSES, Verdict, page
from certsvm.training.history import History
from certsvm.verification.fingerprint import Fingerprint

# Weights of each class, and classes of a confusion matrix.
_MOST_WEIGHTS, _MOST_CONFUSED = 20, 12
_OTHER = "other labels"


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
    fingerprint : Fingerprint or None
        Of rows and labels.
    """

    n_rows: int
    stability: float | None
    confusion: Mapping[tuple[str, str], float] | None
    fingerprint: Fingerprint | None = None


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
    histories : sequence of History, default=None
        How training went, with times, for each problem; None takes what the model keeps.
    n_rows : int, default=None
        The number of training rows; None takes the one of the model's fingerprint.
    files : sequence of str, default=()
        The files of the model and its witness in base64, which the page then can check.
    too_large : bool, default=False
        Whether they were left out for their size.
    """

    model: Model
    command: str
    dual_kept: bool
    claimed: bool = False
    evaluation: Evaluation | None = None
    histories: Sequence[History] | None = None
    n_rows: int | None = None
    files: Sequence[str] = ()
    too_large: bool = False


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
        "parameters": {k: _shown(v) for k, v in model.parameters.items() if k not in hidden},
    }


def problem_of(model: Model) -> str:
    """What the certificates of a model are about, in words: whoever wrote it has chosen this."""
    problem = model.certificates[0].problem
    if (model.class_weight == 1.0).all():
        return problem
    return f"{problem}, weights of classes {', '.join(f'{w:g}' for w in model.class_weight)}"


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
    """How J and L of one problem closed in on each other: as trained, or as the model tells."""
    if fit.histories is not None:
        history = fit.histories[i]
        bounds = zip(("primal", "dual"), history.best_bounds(), strict=True)
        columns = {name: history[name] for name in ("passes", "seconds")} | dict(bounds)
    else:
        kept = np.empty((0, 4)) if fit.model.history is None else fit.model.history
        columns = dict(zip(("passes", "primal", "dual"), kept[kept[:, 0] == i, 1:].T, strict=True))
    return {name: column.tolist() for name, column in columns.items()}


def _charts(closing: Mapping[str, list[float]]) -> Any:
    """J and L against time, or against passes, and their gap."""
    label = "seconds" if "seconds" in closing else "passes"
    x, primal, dual = closing[label], closing["primal"], closing["dual"]
    gaps = [relative_gap(J, L) for J, L in zip(primal, dual, strict=True)]
    return charts(
        bounds=partial(draw_bounds, xlabel=label, x=x, primal=primal, dual=dual),
        gap=partial(draw_gap, xlabel=label, x=x, gaps=gaps),
    )


def _answers(confusion: Mapping[tuple[str, str], float], classes: Sequence[str]) -> dict[str, Any]:
    """A confusion matrix with its sums; labels that are no class of the model share a row."""
    known = set(classes)
    counts: dict[tuple[str, str], float] = defaultdict(float)
    n_true: dict[str, float] = defaultdict(float)
    n_predicted: dict[str, float] = defaultdict(float)
    for (label, predicted), weight in confusion.items():
        true = label if label in known else _OTHER
        counts[true, predicted] += weight
        n_true[true] += weight
        n_predicted[predicted] += weight
    rows = [*classes, *({_OTHER} & set(n_true))]
    return {
        "right": sum(counts[label, label] for label in classes),
        "total": sum(n_true.values()),
        "by_class": [(c, counts[c, c], n_true[c], n_predicted[c]) for c in classes],
        "matrix": [(row, [counts[row, column] for column in classes]) for row in rows]
        if len(rows) <= _MOST_CONFUSED
        else [],
    }


def _weights(model: Model, problems: Sequence[str]) -> list[tuple[str, Any]]:
    """The largest weights of each class, with intervals that contain those of the optimum."""
    (low, high), names = model.coef_interval(), column_names(model)
    shown = []
    for i, label in enumerate(problems[:MOST_CLASSES]):
        w = model.coef[i]
        top = np.argsort(-np.abs(w), kind="stable")[:_MOST_WEIGHTS]
        top = top[w[top] != 0.0]
        columns = (column[top].tolist() for column in (w, low[i], high[i]))
        shown.append((label, list(zip((names[j] for j in top), *columns, strict=True))))
    return shown


def column_names(model: Model) -> Sequence[str]:
    """The names of the columns, or their positions, as libsvm text counts them."""
    if model.feature_names is not None:
        return model.feature_names
    if model.parameters.get("zero_based") is False:
        return [f"feature {j + 1}" for j in range(model.n_features)]
    return [f"column {j}" for j in range(model.n_features)]


def _shown(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(_shown(item) for item in value)
    return f"{value:g}" if isinstance(value, float) else str(value)
