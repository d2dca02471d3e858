"""Models in liblinear's text format, read and written.

    solver_type L2R_L1LOSS_SVC_DUAL
    nr_class 2
    label 1 -1
    nr_feature 2
    bias 1
    w
    0.5
    -0.25
    0.125

``w`` has one line per column and one number per problem. With bias >= 0, its last line holds the
weights of the constant column of that height. Two classes form one problem, whose positive class is
the *first* label; labels may come in any order. If scores tie, liblinear takes the last label (of
two) or the first (of more), certsvm the smallest.

The solver tells the loss. Whether the intercept was penalised is nowhere in the file: liblinear's
option -R, of L2R_L2LOSS_SVC among others, leaves no trace. Predictions do not depend on it.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np

from certsvm.certificates.certificate import HINGE_NAME, SQUARED_HINGE_NAME
from certsvm.files.atomic import atomic_write
from certsvm.files.container import ModelFileError
from certsvm.files.model import Model, listing

_ONE_PROBLEM_PER_CLASS = "MCSVM_CS"
# Those of the problems that certsvm solves.
_LOSSES = {
    "L2R_L1LOSS_SVC_DUAL": HINGE_NAME,
    "L2R_L2LOSS_SVC_DUAL": SQUARED_HINGE_NAME,
    "L2R_L2LOSS_SVC": SQUARED_HINGE_NAME,
}
_OTHERS = {_ONE_PROBLEM_PER_CLASS, "L2R_LR", "L1R_L2LOSS_SVC", "L1R_LR", "L2R_LR_DUAL"}
# The lines before the weights, in the order in which liblinear writes them.
_FIELDS: dict[str, Callable[[str], Any]] = {
    "solver_type": str, "nr_class": int, "label": int, "nr_feature": int, "bias": float, "w": str
}  # fmt: skip


def save_liblinear(model: Model, path: str | os.PathLike[str]) -> None:
    """Write a model for liblinear, atomically.

    Weights read back exactly. The intercept is written as a weight times the bias, so its last bit
    may differ unless the bias is a power of two. The solver that is named minimises the model's
    loss. The format has no certificates, feature names or other parameters, and does not tell if
    the intercept was penalised.

    Parameters
    ----------
    model : Model
        Its classes must be integers of 32 bits (or floats or booleans equal to such), the only
        labels that liblinear knows.
    path : str or path-like
        The file to write.
    """
    labels = model.classes.tolist()
    if model.classes.dtype.kind == "U" or not all(
        abs(label) < 2**31 and label == int(label) for label in labels
    ):
        raise ValueError(f"liblinear's labels are integers of 32 bits, not {listing(labels)}")
    bias, weights = model.intercept_scaling, model.coef
    if bias == 0 and model.intercept.any():
        raise ValueError("the model has intercepts but bias 0; liblinear needs a bias > 0")
    if bias > 0:
        weights = np.column_stack([weights, model.intercept / bias])
    if len(labels) == 2:
        labels = labels[::-1]
    solver = next(name for name, loss in _LOSSES.items() if loss == model.loss)
    with atomic_write(path, "w") as file:
        file.write(
            f"solver_type {solver}\nnr_class {len(labels)}\n"
            f"label {' '.join(str(int(label)) for label in labels)}\n"
            f"nr_feature {model.n_features}\nbias {bias if bias > 0 else -1}\nw\n"
        )
        for of_column in weights.T:
            file.write(" ".join(map(repr, of_column.tolist())) + " \n")


def load_liblinear(path: str | os.PathLike[str]) -> Model:
    """Read a model that liblinear has written.

    Parameters
    ----------
    path : str or path-like
        A classifier of any of liblinear's linear solvers; not a regression or one-class model.

    Returns
    -------
    model : Model
        Without certificates: the file does not contain any.

    Raises
    ------
    ModelFileError
        The file is not a liblinear model; the message names the line.
    """
    name = os.fspath(path)
    with open(name, "rb") as file:
        text = file.read()
    if not text.isascii():
        raise ModelFileError(f"{name} is not a liblinear model: it is no plain text")
    lines = text.decode().split("\n")
    if lines.pop():
        # The last number may be cut short.
        raise ModelFileError(f"{name} is truncated: its last line has no end")
    header: list[list[Any]] = []
    weights: list[list[float]] = []
    number, numbered = 0, enumerate(lines, 1)
    try:
        for key, of_type in _FIELDS.items():
            number, line = next(numbered, (number, ""))
            first, *words = line.split() or [""]
            if first != key or (len(words) != 1 and key not in ("label", "w")):
                raise ValueError(f"here belongs {key!r} with its value, not {line[:40]!r}")
            header.append([of_type(word) for word in words])
        (solver,), (count,), labels, (n_features,), (bias,), _ = header
        if solver not in _LOSSES.keys() | _OTHERS:
            raise ValueError(f"there is no classifier {solver[:40]!r}; regressions are not read")
        if not len(labels) == len(set(labels)) == count >= 2:
            raise ValueError(f"nr_class is {count}, and the labels are {listing(labels)}")
        n_rows = n_features + (bias >= 0)
        if n_features < 0 or len(lines) - number != n_rows:
            raise ValueError(f"{len(lines) - number} lines of weights follow, not {n_rows}")
        n_problems = 1 if count == 2 and solver != _ONE_PROBLEM_PER_CLASS else count
        for number, line in numbered:  # noqa: B007
            weights.append([float(word) for word in line.split()])
            if len(weights[-1]) != n_problems:
                raise ValueError(f"there are {len(weights[-1])} numbers, not {n_problems}")
        w = np.array(weights, dtype=np.float64).reshape(n_rows, n_problems).T
        order = np.argsort(labels)
        if n_problems == 1:
            # certsvm's positive class is the larger label, liblinear's the first.
            w = w if labels[0] > labels[1] else -w
        else:
            w = w[order[1:]] - w[order[:1]] if count == 2 else w[order]
        parameters = {"solver": f"liblinear {solver}", "intercept_scaling": max(bias, 0.0)}
        return Model(
            coef=w[:, :n_features], intercept=w[:, -1] * bias if bias >= 0 else np.zeros(len(w)),
            classes=np.sort(labels), class_weight=np.ones(count),
            parameters=parameters | ({"loss": _LOSSES[solver]} if solver in _LOSSES else {}),
        )  # fmt: skip
    except ValueError as error:
        raise ModelFileError(f"{name}, line {number}: {error}") from None
