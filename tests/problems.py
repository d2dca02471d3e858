"""Problems to test on: hypothesis strategies, and an independent solver for small ones."""

import math
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from hypothesis import strategies as st
from numpy.typing import NDArray

from certsvm.files.streams import BlockStream
from certsvm.kernels.losses import loss_named
from certsvm.problem.base import Objective
from certsvm.problem.problems import Problem, StreamedProblem
from certsvm.problem.rows import Rows
from certsvm.training.settings import Result

Array = NDArray[np.float64]


class Case(NamedTuple):
    """The ingredients of a problem, in plain form."""

    X: Array
    labels: Array
    weights: Array | None = None
    C: float = 1.0
    intercept_scaling: float = 0.0
    form: str = "dense-float64-int32"
    loss: str = "hinge"
    penalize_intercept: bool = True

    @property
    def free_intercept(self) -> bool:
        return self.intercept_scaling > 0 and not self.penalize_intercept

    def matrix(self) -> Any:
        """The rows as the case's form has them: csr or dense, float32 or float64, ..."""
        layout, values, indices = self.form.split("-")
        if layout == "dense":
            return np.ascontiguousarray(self.X, dtype=values)
        X = sp.csr_matrix(self.X.astype(values))
        X.indices = X.indices.astype(indices)
        X.indptr = X.indptr.astype(indices)
        return X

    def problem(self) -> Problem:
        rows = Rows(self.matrix(), intercept_scaling=self.intercept_scaling)
        return Problem(
            rows, self.labels, C=self.C, weights=self.weights, loss=loss_named(self.loss),
            penalize_intercept=self.penalize_intercept,
        )  # fmt: skip

    def patterns(self) -> Array:
        """y_k, as a dense matrix."""
        X = self.matrix()
        X = X.toarray() if sp.issparse(X) else X
        if self.intercept_scaling:
            X = np.column_stack([X, np.full(len(X), self.intercept_scaling)])
        return np.asarray(X, dtype=np.float64) * self.labels[:, None]

    def row_weights(self) -> Array:
        return np.ones(len(self.labels)) if self.weights is None else self.weights


FORMS = (
    "csr-float64-int32",
    "csr-float64-int64",
    "csr-float32-int32",
    "dense-float64-int32",
    "dense-float32-int32",
)


@st.composite
def cases(
    draw: st.DrawFn,
    *,
    dyadic: bool = False,
    weighted: bool | None = None,
    losses: Sequence[str] = ("hinge",),
    free_intercepts: bool = False,
) -> Case:
    """Small problems: empty and duplicate rows, all forms, weights and intercept or none.

    Values are few, so that ties and duplicates are frequent. ``dyadic`` makes lambda a power
    of two and all other numbers small integers, so that float64 computes without rounding.
    ``free_intercepts`` leaves some intercepts without a penalty, where both classes have weight.
    """
    n_columns = draw(st.integers(1, 4))
    n_rows = draw(st.sampled_from([1, 2, 4, 8]) if dyadic else st.integers(1, 10))
    if dyadic:
        value = st.integers(-3, 3).map(float)
    else:
        value = st.one_of(
            st.integers(-2, 2).map(float), st.floats(-3, 3, width=32, allow_subnormal=False)
        )
    row = st.lists(value, min_size=n_columns, max_size=n_columns)
    X = draw(st.lists(row, min_size=n_rows, max_size=n_rows))
    labels = draw(st.lists(st.sampled_from([-1.0, 1.0]), min_size=n_rows, max_size=n_rows))
    weights = None
    if draw(st.booleans()) if weighted is None else weighted:
        # A row of weight zero changes m, hence lambda, and with it exactness.
        choices = [1.0, 2.0, 3.0] if dyadic else [0.0, 0.5, 1.0, 2.0, 3.7]
        weights = np.array(
            draw(st.lists(st.sampled_from(choices), min_size=n_rows, max_size=n_rows))
        )
        if not weights.any():
            weights[0] = 1.0
    C = draw(st.sampled_from([0.015625, 0.25, 1.0, 16.0] if dyadic else [0.01, 0.1, 1.0, 10.0]))
    intercept_scaling = draw(st.sampled_from([0.0, 1.0] if dyadic else [0.0, 1.0, 0.3]))
    form = draw(st.sampled_from(FORMS))
    case = Case(np.array(X), np.array(labels), weights, C, intercept_scaling, form)
    case = case._replace(loss=draw(st.sampled_from(losses)))
    signed = case.labels * case.row_weights()
    if free_intercepts and intercept_scaling and signed.min() < 0 < signed.max():
        case = case._replace(penalize_intercept=draw(st.booleans()))
    return case


def streamed(case: Case, rows_at_once: int) -> StreamedProblem:
    """The problem of a case on a stream, in blocks of so many rows."""

    def blocks() -> Iterator[tuple[Any, ...]]:
        X, weights = case.matrix(), case.row_weights()
        for first in range(0, X.shape[0], rows_at_once):
            part = slice(first, first + rows_at_once)
            yield X[part], case.labels[part], weights[part]

    stream = BlockStream(blocks, intercept_scaling=case.intercept_scaling)
    return StreamedProblem(
        stream,
        int(np.searchsorted(stream.classes, 1.0)),
        Objective(case.C, loss_named(case.loss), case.penalize_intercept),
    )


def exact(value: float | Fraction) -> Fraction:
    """The number itself, without rounding."""
    return value if isinstance(value, Fraction) else Fraction(float(value))


def exact_sum(values: Iterable[float | Fraction]) -> Fraction:
    """Their sum, without rounding."""
    return sum(map(exact, values), Fraction(0))


def exact_dot(u: Iterable[float | Fraction], v: Iterable[float | Fraction]) -> Fraction:
    """u.v, without rounding."""
    return sum((exact(a) * exact(b) for a, b in zip(u, v, strict=True)), Fraction(0))


def squared_distance(computed: Array, expected: Sequence[Fraction]) -> Fraction:
    """|computed - expected|^2, without rounding."""
    pairs = zip(computed, expected, strict=True)
    return sum(((exact(c) - e) ** 2 for c, e in pairs), Fraction(0))


def nearly_parallel(case: Case) -> bool:
    """Whether two rows have almost, but not quite, the same direction.

    Dual coordinate descent then zigzags between them, for as many passes as the square of the
    angle's inverse.
    """
    Y = case.patterns()[case.row_weights() > 0]
    Y = Y[np.abs(Y).max(axis=1) > 0]
    Y = Y / np.linalg.norm(Y, axis=1, keepdims=True)
    distances = np.linalg.norm(Y[:, None] - Y[None, :], axis=2)
    distances = np.minimum(distances, np.linalg.norm(Y[:, None] + Y[None, :], axis=2))
    return bool(((distances > 1e-12) & (distances < 0.02)).any())


def objective(case: Case, w: Array) -> float:
    """J, with NumPy."""
    losses = np.maximum(0.0, 1.0 - case.patterns() @ w) ** _power(case)
    penalised = w[:-1] if case.free_intercept else w
    return float(0.5 * penalised @ penalised + case.C * (case.row_weights() @ losses))


def exact_objective(case: Case, w: Sequence[float | Fraction] | Array) -> Fraction:
    """J, without rounding."""
    exact_w = [Fraction(v) for v in w]
    total = Fraction(0)
    for x, label, s in zip(_exact_rows(case), case.labels, case.row_weights(), strict=True):
        margin = int(label) * sum((a * b for a, b in zip(x, exact_w, strict=True)), Fraction(0))
        total += Fraction(float(s)) * max(Fraction(0), 1 - margin) ** _power(case)
    penalised = exact_w[:-1] if case.free_intercept else exact_w
    return sum((v * v for v in penalised), Fraction(0)) / 2 + Fraction(case.C) * total


def exact_dual(case: Case, alpha: Sequence[Fraction]) -> Fraction:
    """L, without rounding, of an alpha that is balanced if the intercept is free."""
    rows = _exact_rows(case)
    w, penalty = [Fraction(0)] * len(rows[0]), Fraction(0)
    for x, label, a, s in zip(rows, case.labels, alpha, case.row_weights(), strict=True):
        w = [v + int(label) * a * b for v, b in zip(w, x, strict=True)]
        if case.loss == "squared_hinge" and a > 0:
            penalty += a * a / (4 * Fraction(case.C) * exact(s))
    assert not (case.free_intercept and w[-1])
    return sum(alpha, Fraction(0)) - penalty - sum((v * v for v in w), Fraction(0)) / 2


def exactly_balanced(case: Case, alpha: Sequence[Fraction]) -> list[Fraction]:
    """Alpha with the class of the larger sum scaled down to the sum of the other."""
    up = sum((a for a, label in zip(alpha, case.labels, strict=True) if label > 0), Fraction(0))
    down = sum(alpha, Fraction(0)) - up
    least = min(up, down)
    factors = {1: least / up if up else Fraction(1), -1: least / down if down else Fraction(1)}
    return [factors[int(label)] * a for a, label in zip(alpha, case.labels, strict=True)]


def _power(case: Case) -> int:
    return {"hinge": 1, "squared_hinge": 2}[case.loss]


def require_proof(case: Case, result: Result) -> None:
    """Assert that the alpha of a result is feasible and has the dual value of its certificate."""
    alpha, certificate = result.alpha, result.certificate
    if alpha is None and case.free_intercept:
        # Zero on one side, it is zero on both if it is balanced, and proves no more than L >= 0.
        assert certificate.dual == 0.0
        return
    assert alpha is not None
    assert (alpha >= 0).all()
    if case.loss == "hinge":
        assert (alpha <= case.C * case.row_weights()).all()
    assert not alpha[case.row_weights() == 0.0].any()
    exact_alpha = [exact(a) for a in alpha]
    if case.free_intercept:
        exact_alpha = exactly_balanced(case, exact_alpha)
    error = abs(exact_dual(case, exact_alpha) - exact(certificate.dual))
    # alpha itself is rounded to float64 in the end, once per row.
    sizes = abs(exact(certificate.dual)) + 20 * exact(alpha.sum())
    assert error <= exact(certificate.dual_rounding) + Fraction(1, 10**13) * sizes


def _exact_rows(case: Case) -> list[list[Fraction]]:
    signed = case.patterns() * case.labels[:, None]
    return [[Fraction(float(v)) for v in row] for row in signed]


def optimum(case: Case, *, accuracy: float = 1e-8) -> tuple[float, float]:
    """Bounds on J_opt by another method, with a relative distance of ``accuracy`` as a rule.

    Where rows are nearly alike the method stalls. The bounds are as true, but further apart.

    Coordinate descent in the dual on the Gram matrix, in NumPy; both bounds are evaluated from
    scratch. Exact coordinate steps converge linearly; pairs of steps are accelerated by a
    line search along the direction of the last sweep. It cannot keep alpha balanced, as a free
    intercept needs: see ``tests.exact``.
    """
    assert not case.free_intercept
    Y = case.patterns()
    box = case.C * case.row_weights()
    gram, penalty = Y @ Y.T, np.zeros(len(Y))
    if case.loss == "squared_hinge":
        # L gains -a^2 / (4 C s_k). Rows without weight have no alpha.
        np.divide(0.5, box, out=penalty, where=box > 0)
        gram += np.diag(penalty)
        box = np.where(box > 0, math.inf, 0.0)
    alpha = np.zeros(len(Y))
    for sweep in range(20_000):
        before = alpha.copy()
        for k in range(len(Y)):
            if gram[k, k] > 0:
                alpha[k] = np.clip(alpha[k] + (1 - gram[k] @ alpha) / gram[k, k], 0, box[k])
            else:
                alpha[k] = box[k]
        if sweep % 5 == 4:
            alpha = _extrapolate(before, alpha, gram, box)
        w = Y.T @ alpha
        low = float(alpha.sum() - 0.5 * (w @ w + penalty @ alpha**2))
        high = objective(case, w)
        if high - low <= accuracy * max(high, 1e-300):
            return low, high
    assert high - low <= 1e-4 * high, f"the reference solver stalled at {low} .. {high}"
    return low, high


def _extrapolate(before: Array, after: Array, gram: Array, box: Array) -> Array:
    step = after - before
    curvature = float(step @ gram @ step)
    if curvature <= 0 or not step.any():
        return after
    slope = float((1 - gram @ after) @ step)
    length = slope / curvature
    with np.errstate(divide="ignore", invalid="ignore"):
        room = np.where(step > 0, (box - after) / step, np.where(step < 0, -after / step, math.inf))
    length = min(length, float(np.min(room)))
    return after + length * step if length > 0 else after


def noisy(n_rows: int = 400, n_columns: int = 5, *, C: float = 0.1, seed: int = 0) -> Problem:
    """A problem whose classes overlap: the label is the sign of a column plus noise."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_rows, n_columns))
    labels = np.where(X[:, 0] + rng.standard_normal(n_rows) > 0, 1, -1)
    return Problem(Rows(X), labels, C=C)
