"""Numbers of NumPy's types give what the same numbers of Python's give."""

from collections.abc import Callable
from dataclasses import fields
from typing import Any

import numpy as np
import pytest

from certsvm import LinearSVC, LinearSVCCV, Problem, Rows, bound, fit_path, fit_stream, train
from certsvm.certificates.certificate import Certificate
from certsvm.solvers import SGDs

RNG = np.random.default_rng(0)
X = RNG.standard_normal((40, 3))
Y = np.where(X[:, 0] + RNG.standard_normal(40) > 0, 1, -1)
PATH = fit_path(LinearSVC(random_state=0), X, Y, C_range=(0.01, 20.0), tol=1e-3)
WEIGHTS = RNG.random(40) + 0.5

FLOATS = [np.float16, np.float32, np.float64, np.longdouble]
Number = Callable[[float], Any]


def _fitted(**parameters: Any) -> list[Certificate]:
    return LinearSVC(random_state=0, **parameters).fit(X, Y).certificates_ or []


def _trained(number: Number) -> list[Certificate]:
    rows = Rows(X, intercept_scaling=number(0.7))
    problem = Problem(rows, Y, C=number(0.3), weights=number(WEIGHTS))
    result = train(problem, SGDs(f=number(1.3)), tol=number(0.03), max_time=number(99.3), seed=0)
    return [result.certificate]


def _searched(number: Number) -> list[Certificate]:
    search = LinearSVCCV(
        C_range=(number(0.013), number(1.7)), certify=number(0.3), tol=number(0.03), cv=2,
        intercept_scaling=number(0.7), max_time=number(99.3), random_state=0,
    ).fit(X, Y, sample_weight=number(WEIGHTS))  # fmt: skip
    assert type(search.C_) is float
    bounds = Certificate(search.error_bound_ + search.C_, search.error_bound_, number(0.3))
    return [bounds, *(search.certificates_ or [])]


def _at_ranges(number: Number) -> list[Certificate]:
    path = fit_path(
        LinearSVC(random_state=0, intercept_scaling=number(0.7)), X, Y, tol=number(0.03),
        C_range=(number(0.013), number(1.7)), sample_weight=number(WEIGHTS),
    )  # fmt: skip
    return [path.certificate(C) for C in (path.Cs[0], 0.7, path.Cs[-1])]


DOORS: dict[str, Callable[[Number], list[Certificate]]] = {
    "path.certificate": lambda number: [PATH.certificate(number(0.0113))],
    "fit_path": _at_ranges,
    "LinearSVC": lambda number: _fitted(
        C=number(0.3), tol=number(0.03), intercept_scaling=number(0.7), max_time=number(99.3)
    ),
    "LinearSVCCV": _searched,
    "bound": lambda number: [bound(
        number(np.array([0.3, 0.1, -0.2])), X, Y, C=number(0.3), intercept=number(0.1),
        intercept_scaling=number(0.7), tol=number(0.03), sample_weight=number(WEIGHTS),
    )],  # type: ignore[list-item]
    "train": _trained,
    "fit_stream": lambda number: [*fit_stream(
        [(X, Y, number(WEIGHTS))], C=number(0.3), tol=number(0.03), intercept_scaling=number(0.7),
        max_time=number(99.3), class_weight={-1: number(0.3), 1: number(0.7)},
    ).certificates],
}  # fmt: skip


@pytest.mark.parametrize("kind", FLOATS)
@pytest.mark.parametrize("door", DOORS)
def test_a_number_counts_as_its_float64(door: str, kind: Any) -> None:
    def rounded(value: Any) -> Any:
        if np.ndim(value):
            return np.asarray(value).astype(kind).astype(np.float64)
        return float(kind(value))

    def narrow(value: Any) -> Any:
        return np.asarray(value).astype(kind) if np.ndim(value) else kind(value)

    expected = DOORS[door](rounded)
    certificates = DOORS[door](narrow)
    assert certificates == expected
    for certificate in certificates:
        for field in fields(Certificate):
            assert type(getattr(certificate, field.name)) in (float, str, bool)


@pytest.mark.parametrize("kind", [np.int8, np.uint8, np.int32, np.uint64])
def test_whole_numbers_do_not_overflow(kind: Any) -> None:
    assert _fitted(C=kind(100), max_iter=kind(120)) == _fitted(C=100.0, max_iter=120)
    assert PATH.certificate(kind(3)) == PATH.certificate(3.0)
    online = [
        LinearSVC(number(100)).partial_fit(X, Y, classes=[-1, 1], total_samples=number(100)).coef_
        for number in (kind, int)
    ]
    assert np.array_equal(*online)


def test_a_longdouble_beyond_float64_is_refused() -> None:
    huge = np.longdouble("1e1000")
    if not np.isfinite(huge):
        pytest.skip("longdouble is float64 here")
    for tiny_or_huge in (huge, 1 / huge):
        with pytest.raises(ValueError, match="C must be"):
            Problem(Rows(X), Y, C=tiny_or_huge)  # type: ignore[arg-type]
