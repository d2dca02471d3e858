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

import math
import os
import re

import numpy as np
from numpy.typing import NDArray

from certsvm.certificates.certificate import HINGE, SQUARED_HINGE
from certsvm.files.atomic import atomic_write
from certsvm.files.container import ModelFileError
from certsvm.files.model import Model

_LINES_AT_ONCE = 8192
_ONE_PROBLEM_PER_CLASS = "MCSVM_CS"
# Those of the problems that certsvm solves.
_LOSSES = {
    "L2R_L1LOSS_SVC_DUAL": HINGE,
    "L2R_L2LOSS_SVC_DUAL": SQUARED_HINGE,
    "L2R_L2LOSS_SVC": SQUARED_HINGE,
}
_CLASSIFIERS = {
    *_LOSSES,
    _ONE_PROBLEM_PER_CLASS,
    "L2R_LR",
    "L1R_L2LOSS_SVC",
    "L1R_LR",
    "L2R_LR_DUAL",
}
_OTHERS = {"L2R_L2LOSS_SVR", "L2R_L2LOSS_SVR_DUAL", "L2R_L1LOSS_SVR_DUAL", "ONECLASS_SVM"}


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
    labels = _integers(model)
    bias = model.intercept_scaling
    if bias == 0 and model.intercept.any():
        raise ValueError("the model has intercepts but bias 0; liblinear needs a bias > 0")
    weights = model.coef
    if bias > 0:
        weights = np.column_stack([weights, model.intercept / bias])
    if len(labels) == 2:
        labels = labels[::-1]
    solver = next(name for name, loss in _LOSSES.items() if loss == model.loss)
    header = (
        f"solver_type {solver}\nnr_class {len(labels)}\nlabel {' '.join(map(str, labels))}\n"
        f"nr_feature {model.n_features}\nbias {bias if bias > 0 else -1}\nw\n"
    )
    with atomic_write(path, "w") as file:
        file.write(header)
        for start in range(0, weights.shape[1], _LINES_AT_ONCE):
            lines = weights[:, start : start + _LINES_AT_ONCE].T.tolist()
            file.write("".join(" ".join(map(repr, line)) + " \n" for line in lines))


def _integers(model: Model) -> list[int]:
    if model.classes.dtype.kind == "U":
        raise ValueError(
            f"liblinear's labels are integers, the model's strings ({model.classes[0]!r}, ...)"
        )
    labels = model.classes.tolist()
    if not all(label == int(label) and abs(label) < 2**31 for label in labels):
        raise ValueError(f"liblinear's labels are integers of 32 bits, the model's are {labels}")
    return [int(label) for label in labels]


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
    return _Reader(os.fspath(path)).model()


class _Reader:
    """Reads one file; errors name the current line."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._line = 0
        self._first = 0
        self._fields: dict[str, tuple[int, list[str]]] = {}
        with open(name, "rb") as file:
            data = file.read()
        try:
            text = data.decode("ascii")
        except UnicodeDecodeError:
            raise ModelFileError(f"{name} is not a liblinear model: it is no plain text") from None
        if text and not text.endswith("\n"):
            # The last number may be cut short.
            raise ModelFileError(f"{name} is truncated: its last line has no end")
        self._lines = [line.rstrip("\r") for line in text.split("\n")[:-1]]

    def model(self) -> Model:
        self._read_header()
        solver = self._solver()
        labels = self._labels()
        n_features = self._integer("nr_feature", 0)
        bias = self._to_float(self._one_word("bias"))
        n_problems = 1 if len(labels) == 2 and solver != _ONE_PROBLEM_PER_CLASS else len(labels)
        weights = self._weights(n_features + (bias >= 0), n_problems)
        if len(labels) == 2:
            # certsvm's positive class is the larger label, liblinear's the first.
            difference = weights[0] if n_problems == 1 else weights[0] - weights[1]
            weights = (difference if labels[0] > labels[1] else -difference)[np.newaxis]
        else:
            weights = weights[np.argsort(labels)]
        intercept = weights[:, -1] * bias if bias >= 0 else np.zeros(len(weights))
        try:
            return Model(
                coef=weights[:, :n_features],
                intercept=intercept,
                classes=np.array(sorted(labels), dtype=np.int64),
                class_weight=np.ones(len(labels)),
                parameters={
                    "solver": f"liblinear {solver}", "intercept_scaling": max(bias, 0.0),
                    **({"loss": _LOSSES[solver]} if solver in _LOSSES else {}),
                },
            )  # fmt: skip
        except ValueError as error:
            raise ModelFileError(f"{self._name} holds no valid model: {error}") from error

    def _read_header(self) -> None:
        """Collect the lines before ``w`` by their first word, with their numbers."""
        known = {"solver_type", "nr_class", "label", "nr_feature", "bias", "rho"}
        for text in self._lines:
            self._line += 1
            words = text.split() or [""]
            if words == ["w"]:
                self._first = self._line
                return
            if words[0] not in known:
                raise self._error(f"{words[0][:40]!r} does not belong into a liblinear model")
            if words[0] in self._fields:
                raise self._error(f"{words[0]!r} occurs twice")
            self._fields[words[0]] = self._line, words[1:]
        raise self._error("the file ends before its weights, which follow a line 'w'")

    def _solver(self) -> str:
        solver = self._one_word("solver_type")
        if solver in _OTHERS:
            raise self._error(f"{solver} is a regression or one-class model, not a classifier")
        if solver not in _CLASSIFIERS:
            raise self._error(f"there is no solver_type {solver[:40]!r}")
        return solver

    def _labels(self) -> list[int]:
        count = self._integer("nr_class", 2)
        labels = [self._to_int(word) for word in self._words("label")]
        if len(labels) != count:
            raise self._error(f"nr_class is {count}, but there are {len(labels)} labels")
        if len(set(labels)) != count:
            raise self._error("a label occurs twice")
        return labels

    def _weights(self, n_rows: int, n_problems: int) -> NDArray[np.float64]:
        self._line = len(self._lines)
        rows = self._lines[self._first :]
        if len(rows) != n_rows:
            raise self._error(f"there are {len(rows)} lines of weights, not {n_rows}")
        numbers: list[float] = []
        for j, text in enumerate(rows):
            self._line = self._first + j + 1
            words = text.split()
            if len(words) != n_problems:
                raise self._error(f"there are {len(words)} numbers, not {n_problems}")
            numbers += [self._to_float(word) for word in words]
        return np.array(numbers, dtype=np.float64).reshape(n_rows, n_problems).T

    def _words(self, key: str) -> list[str]:
        if key not in self._fields:
            self._line = self._first
            raise self._error(f"there is no line {key!r} before the weights")
        self._line, words = self._fields[key]
        return words

    def _one_word(self, key: str) -> str:
        words = self._words(key)
        if len(words) != 1:
            raise self._error(f"{key!r} needs one value")
        return words[0]

    def _integer(self, key: str, least: int) -> int:
        value = self._to_int(self._one_word(key))
        if value < least:
            raise self._error(f"{key} must be at least {least}, got {value}")
        return value

    def _to_int(self, word: str) -> int:
        # int() alone would take "1_0", and thousands of digits.
        if not re.fullmatch("[+-]?[0-9]{1,18}", word):
            raise self._error(f"{word[:40]!r} is not an integer")
        return int(word)

    def _to_float(self, word: str) -> float:
        try:
            value = float(word)
        except ValueError:
            value = math.nan
        if not math.isfinite(value) or "_" in word:
            raise self._error(f"{word[:40]!r} is not a finite number")
        return value

    def _error(self, what: str) -> ModelFileError:
        return ModelFileError(f"{self._name}, line {self._line}: {what}")
