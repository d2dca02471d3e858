"""The report of a fit: what is proved, how training went, and what the model says."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from certsvm.certificates.certificate import (
    LEAST_GAP,
    Certificate,
    percent,
    relative_gap,
    tidy,
)
from certsvm.files.model import Model
from certsvm.markup.charts import Chart, Line, axis_for, bars
from certsvm.markup.html import Html, definitions, element, joined, table
from certsvm.report.page import facts, machine, page, section
from certsvm.training.history import History
from certsvm.verification.fingerprint import Fingerprint

# Weights of each class, and classes whose weights are shown.
_MOST_WEIGHTS, _MOST_CLASSES = 20, 30
# The chart of J and L shows values up to this multiple of the best L.
_HIGHEST = 2.0


@dataclass(frozen=True)
class Check:
    """How others can check the certificate.

    Attributes
    ----------
    command : str
        What to run.
    dual_kept : bool
        Whether that recomputes L, too, from a dual point that was kept.
    claimed : bool, default=False
        Whether the certificate was read from a file, which may say anything.
    """

    command: str
    dual_kept: bool
    claimed: bool = False


@dataclass(frozen=True)
class Evaluation:
    """What a model answers on some rows.

    Attributes
    ----------
    n_rows : int
        How many they are.
    stability : float or None
        The share of predictions that more training could not flip, proved; None if unknown.
    accuracy : float or None
        The share of right predictions; None without labels.
    fingerprint : Fingerprint or None
        Of rows and labels.
    """

    n_rows: int
    stability: float | None
    accuracy: float | None
    fingerprint: Fingerprint | None = None


def fit_report(
    model: Model,
    check: Check,
    *,
    evaluation: Evaluation | None = None,
    histories: Sequence[History] | None = None,
    n_rows: int | None = None,
) -> str:
    """The page.

    Parameters
    ----------
    model : Model
        The fitted model.
    check : Check
        How others can check its certificate.
    evaluation : Evaluation, default=None
        What it answers on some rows.
    histories : sequence of History, default=None
        How training went, with times, for each problem; None takes what the model keeps.
    n_rows : int, default=None
        The number of training rows; None takes the one of the model's fingerprint.

    Returns
    -------
    page : str
        In HTML.
    """
    names = ", ".join(tidy(label) for label in model.classes[:6])
    more = f" and {model.classes.size - 6} more" if model.classes.size > 6 else ""
    return page(
        "Linear SVM: the fit and its proof",
        f"{model.n_features:,} columns; classes {names}{more}",
        *fit_sections(model, check, evaluation, histories, n_rows),
    )


def fit_sections(
    model: Model,
    check: Check,
    evaluation: Evaluation | None,
    histories: Sequence[History] | None = None,
    n_rows: int | None = None,
) -> list[Html | None]:
    """The parts of a page that are about one model."""
    training = [_closing(model, histories, i) for i in range(model.n_problems)]
    return [
        verdict(model.certificates, claimed=check.claimed),
        _key_facts(model, training, evaluation),
        _training(model, training),
        _classes(model, training),
        _weights(model),
        _data(model, evaluation, n_rows),
        section("Parameters", definitions(_parameters(model))),
        section("Machine", machine()),
        _verification(check) if model.certificates else None,
    ]


@dataclass(frozen=True)
class Closing:
    """How J and L of one problem closed in on each other."""

    passes: list[float]
    primal: list[float]
    dual: list[float]
    seconds: list[float] | None = None


def _closing(model: Model, histories: Sequence[History] | None, i: int) -> Closing:
    """From the history if there is one, else from what the model keeps."""
    if histories is not None:
        history = histories[i]
        primal, dual = (bounds.tolist() for bounds in history.best_bounds())
        return Closing(history["passes"].tolist(), primal, dual, history["seconds"].tolist())
    if model.history is None:
        return Closing([], [], [])
    records = model.history[model.history[:, 0] == i]
    return Closing(*(records[:, j].tolist() for j in (1, 2, 3)))


def problem_labels(model: Model) -> list[Any]:
    """The class on the positive side of each problem."""
    classes: list[Any] = model.classes.tolist()
    return classes[1:] if len(classes) == 2 else classes


def verdict(certificates: Sequence[Certificate], *, claimed: bool = False) -> Html:
    """The certificate as a sentence; for several classes, of the worst."""
    if not certificates:
        return element("p", "Nothing is proved about this model.", class_="verdict missed")
    worst = max(certificates, key=_gap_if_any)
    if not 0.0 <= worst.proved_gap < math.inf:
        return element("p", str(worst), class_="verdict missed")
    of = "Its objective is" if len(certificates) == 1 else "The objective of every class is"
    # In a forged file, targets differ.
    missed = [certificate for certificate in certificates if not certificate.met]
    target = f"The target was {(missed or [worst])[0].target * 100:.6g} %"
    return element(
        "p", f"{of} within ", element("strong", percent(worst.proved_gap)),
        " of the best possible value. ",
        "So says the file, and verification can prove it. "
        if claimed
        else "This is proved, rounding errors included. ",
        f"{target}, and is not met." if missed else f"{target}, and is met.",
        class_="verdict missed" if missed else "verdict",
    )  # fmt: skip


def _gap_if_any(certificate: Certificate) -> float:
    """The proved gap; infinite for a contradiction, whose gap is negative."""
    gap = certificate.proved_gap
    return gap if gap >= 0.0 else math.inf


def _key_facts(model: Model, training: Sequence[Closing], evaluation: Evaluation | None) -> Html:
    shown: dict[str, object] = {}
    if model.certificates:
        worst = max(model.certificates, key=_gap_if_any)
        shown["J, an upper bound on the optimum"] = f"{worst.primal:.6g}"
        shown["L, a lower bound"] = f"{worst.dual:.6g}"
    passes = [closing.passes[-1] for closing in training if closing.passes]
    if passes:
        shown["passes over the data"] = int(max(passes))
    seconds = [closing.seconds[-1] for closing in training if closing.seconds]
    if seconds:
        shown["seconds of training"] = f"{sum(seconds):.3g}"
    if evaluation is not None:
        if evaluation.accuracy is not None:
            rows = f"{evaluation.n_rows:,} rows"
            shown[f"right predictions on {rows}"] = f"{100 * evaluation.accuracy:.2f} %"
        if evaluation.stability is not None:
            # Rounded down: it is what is proved.
            share = math.floor(1e4 * evaluation.stability) / 100
            shown["predictions that more training could not flip"] = f"{share:.2f} %"
    return joined([facts(shown), _about_stability(evaluation)])


def _about_stability(evaluation: Evaluation | None) -> Html | None:
    if evaluation is None or evaluation.stability in (None, 1.0):
        return None
    return element(
        "p",
        "A prediction is counted if every weight vector as near the optimum as the certificate "
        "proves gives the same one. With a smaller gap there are more of them: lower tol.",
        class_="soft",
    )


def _training(model: Model, training: Sequence[Closing]) -> Html | None:
    """J and L closing in on each other, of the class with the largest gap."""
    gaps = [_gap_if_any(c) for c in model.certificates]
    worst = gaps.index(max(gaps)) if gaps else 0
    # One pass is no line.
    if len(training[worst].passes) < 2:
        return None
    of = f", of class {tidy(problem_labels(model)[worst])}" if model.n_problems > 1 else ""
    return section(
        f"J and L closing in on each other{of}",
        element("div", *_closing_charts(training[worst]), class_="pair"),
        element(
            "p",
            "Up to rounding, the optimum lies between the two lines at every moment.",
            class_="soft",
        ),
    )


def _closing_charts(closing: Closing) -> list[Html]:
    """J and L against time, or against passes, and their gap."""
    primal, dual = closing.primal, closing.dual
    label, x = ("passes", closing.passes)
    if closing.seconds is not None:
        label, x = ("seconds", closing.seconds)
    gaps = [max(relative_gap(J, L), LEAST_GAP) for J, L in zip(primal, dual, strict=True)]
    span = axis_for(label, x, low=0.0)
    best, high = max(dual), max([J for J in primal if math.isfinite(J)], default=1.0)
    if best > 0.0:
        high = min(high, _HIGHEST * best)
    objective = Chart(span, axis_for("objective", [], low=0.0, high=1.05 * high))
    proved = Chart(span, axis_for("relative gap", gaps, logarithmic=True))
    return [
        element("figure", objective.svg([Line("J", x, primal), Line("L", x, dual)])),
        element("figure", proved.svg([Line("gap", x, gaps)])),
    ]


def _classes(model: Model, training: Sequence[Closing]) -> Html | None:
    if len(model.certificates) < 2:
        return None
    labels = problem_labels(model)
    rows = [
        [
            tidy(label), f"{c.primal:.6g}", f"{c.dual:.6g}", percent(c.proved_gap),
            "met" if c.met else "not met", int(closing.passes[-1]) if closing.passes else "",
        ]
        for label, c, closing in zip(labels, model.certificates, training, strict=True)
    ]  # fmt: skip
    header = ["class against the rest", "J", "L", "gap, proved", "target", "passes"]
    return section("Classes", element("div", table(header, rows), class_="scroll"))


def _weights(model: Model) -> Html:
    low, high = model.coef_interval()
    names = column_names(model)
    pictures = []
    for i, label in enumerate(problem_labels(model)[:_MOST_CLASSES]):
        w = model.coef[i]
        top = np.argsort(-np.abs(w), kind="stable")[:_MOST_WEIGHTS]
        top = top[w[top] != 0.0]
        picture = bars(
            [names[j] for j in top], w[top].tolist(), low[i][top].tolist(), high[i][top].tolist(),
            f"weight for class {tidy(label)}",
        )  # fmt: skip
        pictures.append(
            element("figure", picture)
            if model.n_problems == 1
            else element("details", element("summary", tidy(label)), picture, open=_open(i))
        )
    rest = model.n_problems - len(pictures)
    return section(
        "The largest weights",
        joined(pictures),
        element("p", f"{rest} more classes are not shown.", class_="soft") if rest > 0 else None,
        element(
            "p",
            "The black line is an interval that contains the weight at the exact optimum, proved. "
            "After a precise fit it is too short to be seen.",
            class_="soft",
        ),
    )


def column_names(model: Model) -> Sequence[str]:
    """The names of the columns, or their positions, as libsvm text counts them."""
    if model.feature_names is not None:
        return model.feature_names
    if model.parameters.get("zero_based") is False:
        return [f"feature {j + 1}" for j in range(model.n_features)]
    return [f"column {j}" for j in range(model.n_features)]


def _open(i: int) -> str | None:
    return "" if i == 0 else None


def _data(model: Model, evaluation: Evaluation | None, n_rows: int | None) -> Html:
    about: list[tuple[object, object]] = [("columns", f"{model.n_features:,}")]
    if model.fingerprint is not None:
        about.append(("training data", _described(model.fingerprint)))
    elif n_rows is not None:
        about.append(("training data", f"{n_rows:,} rows"))
    if evaluation is not None and evaluation.fingerprint is not None:
        about.append(("rows predicted", _described(evaluation.fingerprint)))
    return section("Data", definitions(about))


def _described(found: Fingerprint) -> str:
    return f"{found.n_rows:,} rows, {found.n_values:,} values, fingerprint {found.digest}"


def _parameters(model: Model) -> list[tuple[object, object]]:
    hidden = set() if model.parameters.get("intercept_scaling") else {"penalize_intercept"}
    return [(name, _shown(v)) for name, v in model.parameters.items() if name not in hidden]


def _shown(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(_shown(item) for item in value)
    return f"{value:g}" if isinstance(value, float) else str(value)


def _verification(check: Check) -> Html:
    says = "Anyone who has the data can recompute the certificate:"
    if not check.dual_kept:
        says = (
            "Anyone who has the data can recompute J. L remains a claim, since no dual point was "
            "kept: train with store_dual=True, or --witness, to let others recompute it."
        )
    return section("Verification", element("p", says), element("pre", check.command))
