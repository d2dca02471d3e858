"""Forged models that read a table otherwise than its owner does.

The owner knows which column has the labels, which has weights and which to leave out, and says so,
or goes by the convention. The forger trains on any columns in any roles, and claims what they like
of names. What ``verify`` confirms has to be true of the owner's reading, in rational arithmetic;
what ``evaluate`` measures has to be that of the owner's rows.
"""

import csv
import random
import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from certsvm import LinearSVC, Model, verify_model
from certsvm.files.columns import Features
from certsvm.verification.interval_arithmetic import Interval
from certsvm.verification.verify import CONFIRMED, HALF_CONFIRMED, VERDICTS, Verification
from tests.cli.running import run
from tests.faults.proofs import false_verdicts
from tests.faults.tally import REFUSED, Budget, Tally

NAMES = ("age", "b", "eyes", "id", "label", "sex", "w", "y", "eyes=1")
DOORS = ("csv", "parquet", "arrow", "frame")
WORDS = ("blue", "brown", "green")
HONEST = "honest"
Columns = dict[str, list[Any]]
Rows = tuple[Any, Features]


@dataclass
class Owned:
    """A table and what its owner says of it."""

    columns: Columns
    label: str
    weight: str | None
    ignored: list[str]
    index: str | None
    said: bool

    @property
    def features(self) -> list[str]:
        others = {self.label, self.weight, self.index, *self.ignored}
        return [name for name in self.columns if name not in others]

    def words(self, *, converted: bool = False) -> list[str]:
        """Options for a command."""
        words = ["--label", self.label] if self.said and not converted else []
        words += ["--weight", self.weight] if self.weight is not None and not converted else []
        return words + [word for name in self.ignored for word in ("--ignore", name)]


def owned(r: random.Random) -> Owned:
    n, names = r.randint(10, 18), r.sample(NAMES, r.randint(3, 6))
    columns: Columns = {}
    for name in names:
        kind = r.choice(["binary", "binary", "few", "number", "constant", "words"])
        columns[name] = [
            {"binary": r.randint(0, 1), "few": r.randint(0, 2), "number": r.randint(-8, 8) / 4,
             "constant": 1, "words": r.choice(WORDS)}[kind] for _ in range(n)
        ]  # fmt: skip
    said = r.random() < 0.5
    label = r.choice(names) if said else "label" if "label" in names else names[-1]
    # Labels follow another column, if that has numbers; more or less.
    cause = columns[r.choice([name for name in names if name != label])]
    noise = r.choice([0.0, 0.1, 0.5])
    columns[label] = [
        int(isinstance(v, (int, float)) and v > 0) if r.random() >= noise else r.randint(0, 1)
        for v in cause
    ]
    columns[label][:2] = [0, 1]
    table = Owned(columns, label, None, [], None, said)
    free = [name for name in names if name != label]
    r.shuffle(free)
    if len(free) > 2 and r.random() < 0.25:
        table.weight = free.pop()
        columns[table.weight] = [r.randint(0, 3) / 2 for _ in range(n)]
    if len(free) > 1 and r.random() < 0.3:
        table.ignored = [free.pop()]
    if len(free) > 1 and r.random() < 0.2:
        # Nobody says so: it is known by its place and its missing name.
        index = free.pop()
        table.index = ""
        table.columns = {"": columns.pop(index), **columns}
        if not said:
            table.label = "label" if "label" in columns else list(columns)[-1]
    return table


def encoded(columns: Columns, names: list[str], one_hot: dict[str, list[str]]) -> Rows:
    """The rows of some columns, and what the features are called."""
    features = Features(tuple(names), {name: tuple(one_hot[name]) for name in one_hot})
    made: list[list[float]] = []
    for name in names:
        if name in one_hot:
            made += [[float(str(v) == value) for v in columns[name]] for value in one_hot[name]]
        else:
            made.append([float(v) for v in columns[name]])
    return np.array(made).T, features


def owners_rows(table: Owned) -> Rows:
    strings = [name for name in table.features if isinstance(table.columns[name][0], str)]
    values = {name: sorted(set(table.columns[name])) for name in strings}
    return encoded(table.columns, table.features, values)


def forged(r: random.Random, table: Owned) -> tuple[str, Model] | None:
    """A model with its witness, trained on a reading of the table, and the kind of its deceit."""
    columns = table.columns
    kinds = [HONEST, "columns", "label", "roles", "weights", "one-hot", "names", "nameless"]
    kind = r.choice(kinds)
    label, weight, names = table.label, table.weight, list(table.features)
    if kind in ("columns", "roles"):
        names = r.sample([name for name in columns if name != label], r.randint(1, len(names)))
    if kind == "label":
        names = [*r.sample(names, r.randint(0, len(names) - 1)), label]
    if kind == "roles":
        label = r.choice(list(columns))
        names = [name for name in columns if name != label]
        names = r.sample(names, r.randint(max(1, len(names) - 1), len(names)))
    if kind == "weights":
        weight = r.choice([None, *(name for name in columns if name != label)])
        names = [name for name in columns if name not in (label, weight)]
    strings = [name for name in names if isinstance(columns[name][0], str)]
    one_hot = {name: sorted(set(columns[name])) for name in strings}
    if kind == "one-hot":
        one_hot |= {n: sorted({str(v) for v in columns[n]}) for n in names if r.random() < 0.5}
        one_hot = {n: r.sample(v, r.randint(1, len(v))) for n, v in one_hot.items()}
    r.shuffle(names)
    try:
        X, features = encoded(columns, names, one_hot)
        y = np.array(columns[label])
        weights = None if weight is None else np.array(columns[weight], dtype=float)
        clf = LinearSVC(
            C=r.choice([0.25, 1.0, 4.0]), loss=r.choice(["hinge", "squared_hinge"]),
            fit_intercept=r.random() < 0.5, store_dual=True, random_state=0,
        )  # fmt: skip
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = clf.fit(X, y, weights).to_model(X, y, weights)
    except ValueError:
        # One class only, or weights that are none.
        return None
    spans = {"one_hot": features.spans} if features.spans else {}
    called: list[str] | None = features.names
    if kind == "names":
        called = r.choice([
            r.sample(features.names, len(features.names)),
            [features.names[0]] * len(features.names),
            r.sample([*NAMES, "", *features.names], len(features.names)),
        ])  # fmt: skip
        spans = spans if r.random() < 0.5 else {}
    if kind == "nameless":
        called = None
    return kind, replace(model, feature_names=called, parameters={**model.parameters, **spans})


def write(table: Owned, door: str, folder: Path) -> str:
    """Write the table; the name of the file."""
    frame = pd.DataFrame(table.columns)
    if door != "parquet":
        with (folder / "t.csv").open("w", newline="") as file:
            rows = zip(*table.columns.values(), strict=True)
            csv.writer(file).writerows([list(table.columns), *rows])
        return "t.csv"
    indexed = frame if table.index is None else frame.set_index(table.index)
    indexed.to_parquet(folder / "t.parquet")
    return "t.parquet"


def contradictions(model: Model, table: Owned, verdict: str, found: Any) -> list[str]:
    """What is wrong with a verdict by the owner's reading of the table."""
    if verdict not in (CONFIRMED, HALF_CONFIRMED):
        return []
    X, features = owners_rows(table)
    coef = coefficients(model, features)
    if coef is None:
        return [f"{verdict}, but the model has {model.feature_names}, the data {features.names}"]
    weights = None if table.weight is None else np.array(table.columns[table.weight], dtype=float)
    labels = np.searchsorted(model.classes, table.columns[table.label])
    return false_verdicts(replace(model, coef=coef), X, labels, weights, found)


def coefficients(model: Model, features: Features) -> NDArray[np.float64] | None:
    """The model's weights of the owner's features; None if it is about others."""
    if model.feature_names is None:
        return model.coef if model.n_features == len(features.names) else None
    if sorted(model.feature_names) != sorted(features.names):
        return None
    return model.coef[:, [model.feature_names.index(name) for name in features.names]]


def judge(model: Model, table: Owned, door: str, folder: Path) -> tuple[str, list[str]]:
    """What a door says of a model, and what is wrong with it."""
    if door == "frame":
        X, features = owners_rows(table)
        weights = None if table.weight is None else table.columns[table.weight]
        frame = pd.DataFrame(X, columns=features.names)
        try:
            report = verify_model(model, [(frame, table.columns[table.label], weights)])
        except ValueError:
            return "refused", []
        return report.verdict, contradictions(model, table, report.verdict, list(report))
    path = write(table, door, folder)
    words = table.words()
    if door == "arrow":
        roles = [word for word in words if word not in ("--ignore", *table.ignored)]
        how = "--categorical", "--keep-order", "-q"
        if run("convert", path, "t.arrow", *roles, *how, cwd=folder).code:
            return "not converted", []
        path, words = "t.arrow", table.words(converted=True)
    model.save(folder / "model")
    ran = run("verify", "model", path, *words, "--json", cwd=folder)
    verdict, wrong = "refused", []
    if ran.code != REFUSED:
        said = ran.json
        verdict = said["verdict"]
        found = [
            Verification(
                claim, Interval(*problem["primal_interval"]),
                problem["dual_interval"] and Interval(*problem["dual_interval"]),
                problem["box_violation"], problem["class"],
            )
            for claim, problem in zip(model.certificates, said["problems"], strict=True)
        ]  # fmt: skip
        wrong = contradictions(model, table, verdict, found)
    ran = run("evaluate", "model", path, *words, "--json", cwd=folder)
    return verdict, wrong + ([] if ran.code else mismeasured(model, table, ran.json))


def mismeasured(model: Model, table: Owned, said: dict[str, Any]) -> list[str]:
    """What is wrong with an accuracy by the owner's reading of the table."""
    X, features = owners_rows(table)
    if table.weight is None:
        weights = np.ones(len(X))
    else:
        weights = np.array(table.columns[table.weight], dtype=float)
    used = said["data"]["columns"]
    read = {name.rpartition("=")[0] if name not in table.columns else name for name in used}
    if said["data"]["label"] != table.label or read != set(table.features):
        return [f"evaluate read {said['data']}, the data have {table.features}"]
    coef = coefficients(model, features)
    if coef is None:
        # Other values of the same one-hot columns.
        return []
    scores = X @ coef.T + model.intercept
    if (np.abs(scores) < 1e-12 * (1.0 + np.abs(X).sum(1, keepdims=True))).any():
        # The sign of a score that is as small as its rounding depends on the order of addition.
        return []
    right = model.labels_of(scores.ravel() if model.n_problems == 1 else scores)
    share = float(weights @ (right == np.array(table.columns[table.label])) / weights.sum())
    return [] if abs(share - said["accuracy"]) < 1e-9 else [f"accuracy {said['accuracy']}"]


def campaign(seed: int, budget: Budget, folder: Path) -> Tally:
    tally = Tally("tables")
    for k in budget.rounds():
        r = random.Random(f"{seed} {k}")
        made = None
        while made is None:
            table = owned(r)
            made = forged(r, table)
        (kind, model), door = made, r.choice(DOORS)
        verdict, wrong = judge(model, table, door, folder)
        if kind == HONEST and verdict not in (*VERDICTS[:2], "not converted"):
            wrong.append(f"an honest model is {verdict}")
        happened = f"{HONEST} {verdict}" if kind == HONEST else verdict
        text = f"number {k}, {door}: {wrong}; {table}" if wrong else None
        tally.add(kind, happened, text)
    return tally
