"""Checks of the parts of a model, from training or from a file."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certsvm.certificates.certificate import (
    HINGE,
    SQUARED_HINGE,
    Certificate,
    largest_scale,
    tidy,
)

_MOST_SHOWN = 5


def is_finite(value: Any) -> bool:
    """Whether the value is a finite number; booleans are not."""
    return type(value) in (float, int, np.float64) and math.isfinite(value)


def listing(items: Sequence[Any]) -> str:
    """The first few items, as text."""
    shown = ", ".join(tidy(item) for item in items[:_MOST_SHOWN])
    return shown if len(items) <= _MOST_SHOWN else f"{shown}, ..."


def checked_labels(classes: Any) -> NDArray[Any]:
    """The labels as int64, float64, bool or str; raises unless they are distinct and ascending.

    >>> checked_labels(np.array(["ham", "spam"], dtype=object)).dtype.kind
    'U'
    """
    given = np.asarray(classes)
    if given.ndim != 1 or given.size < 2:
        raise ValueError(f"a model needs two classes or more, got {given!r}")
    kind = given.dtype.kind
    if kind == "O" and all(isinstance(label, str) for label in given):
        labels: NDArray[Any] = given.astype(np.str_)
    elif kind in "Ub":
        labels = given
    elif kind in "iu":
        labels = given.astype(np.int64)
    elif kind == "f":
        labels = given.astype(np.float64)
    else:
        raise ValueError(f"classes must be numbers, booleans or strings, got {given!r}")
    values = labels.tolist()
    # NumPy drops NUL at the end of a string, and int64 cannot hold all of uint64.
    if values != given.tolist():
        raise ValueError(f"classes cannot be kept exactly: {given!r}")
    if not all(a < b for a, b in pairwise(values)):
        raise ValueError(f"classes must be distinct and ascending, got {listing(values)}")
    return labels


def check_certificate(certificate: Certificate) -> None:
    """Raise ValueError if the values of a certificate cannot come from training."""
    numbers = asdict(certificate)
    bound, target = numbers.pop("bound"), numbers.pop("target")
    check_loss(numbers.pop("loss"), numbers.pop("penalize_intercept"))
    for name, value in numbers.items():
        if not is_finite(value):
            raise ValueError(f"{name} of a certificate must be a finite number, got {value!r}")
    if not (isinstance(target, float | int) and target >= 0):
        raise ValueError(f"target of a certificate must be a number >= 0, got {target!r}")
    if not isinstance(bound, str):
        raise ValueError(f"bound of a certificate must be a string, got {bound!r}")
    for name in ("primal_rounding", "dual_rounding", "intercept_scaling"):
        if numbers[name] < 0:
            raise ValueError(f"{name} of a certificate must not be negative")
    if not (certificate.C > 0 and 0 <= certificate.scale <= largest_scale(certificate.loss)):
        raise ValueError(
            "a certificate needs C > 0 and a scale >= 0, which is at most 1 for the hinge"
        )


def check_loss(loss: Any, penalize_intercept: Any) -> None:
    """Raise ValueError unless the values name a loss and say whether an intercept is penalised."""
    if loss not in (HINGE, SQUARED_HINGE):
        raise ValueError(f"loss must be {HINGE!r} or {SQUARED_HINGE!r}, got {loss!r}")
    if not isinstance(penalize_intercept, bool):
        raise ValueError(f"penalize_intercept must be true or false, got {penalize_intercept!r}")
