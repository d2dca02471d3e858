"""Verification of certificates from data, model and witness, by code that training does not use.

The arithmetic is in ``interval_arithmetic``, which yields intervals that contain the exact J and
L; this module reads the data and compares. A certificate claims that J(w) and L(alpha) are the
numbers in it, up to its allowances. The verdict about it is one of

* confirmed: the intervals prove the claim;
* refuted: they contradict it;
* undecided: they are too wide for either, as float64 cannot compute these numbers well enough.

docs/verification.md has the proof that what is confirmed is true. If the model keeps neither its
dual point alpha nor a witness that determines it, J alone is recomputed, and the dual bound is
reported as claimed. The rows are read a block at a time, so they need not fit in memory.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, fields, replace
from fractions import Fraction
from itertools import pairwise
from numbers import Real
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from certsvm.certificates.certificate import LOSS_NAMES, PRIMAL_ONLY, Certificate, percent, tidy
from certsvm.markup import element, statement, table
from certsvm.matrices import checked_matrix, columns_in_order, dense, exact_labels, refuse_masked
from certsvm.scalars import as_float
from certsvm.verification import exact as exactly
from certsvm.verification.evidence import FingerprintBuilder, entries
from certsvm.verification.interval_arithmetic import (
    UNDERFLOW,
    Interval,
    ProblemSums,
    RowBlock,
    Vector,
)

# Relative to J. A larger allowance does not make a claim false, but what it excuses beyond this is
# not confirmed: the printed numbers would be far from the true ones.
LARGEST_EXCUSE = 1e-3

CONFIRMED, HALF_CONFIRMED, UNDECIDED, REFUTED = VERDICTS = (
    "confirmed", "half confirmed", "undecided", "refuted"
)  # fmt: skip
"""From best to worst. Half confirmed: J is confirmed, and L was not recomputed."""

Blocks: TypeAlias = Iterable[tuple[Any, ...]]
"""(X, labels) or (X, labels, weights) of consecutive rows."""

_VALUES_AT_ONCE = 1 << 17
_NUMBERS = [field.name for field in fields(Certificate) if field.type == "float"]


class Judged:
    """What has a verdict.

    Attributes
    ----------
    verdict : str
        One of ``VERDICTS``.
    """

    verdict: Any

    @property
    def ok(self) -> bool:
        """Whether all that could be recomputed is confirmed.

        This says nothing about a dual bound that could not be recomputed (``dual_verified``), nor
        about the target.
        """
        return self.verdict in (CONFIRMED, HALF_CONFIRMED)

    @property
    def dual_verified(self) -> bool:
        """Whether every J and L is confirmed, the latter from a feasible alpha."""
        return bool(self.verdict == CONFIRMED)


@dataclass(frozen=True)
class Verification(Judged):
    """A certificate beside its recomputed values.

    Attributes
    ----------
    claimed : Certificate
        The certificate in the model.
    J : Interval
        Contains J(w).
    L : Interval or None
        Contains L(alpha); None if the model does not keep alpha.
    box_violation : float
        The largest amount by which alpha leaves its box: zero for a feasible point.
    label : object
        The positive class of the problem.
    exact : dict or None, default=None
        What ``certsvm.verification.exact`` found, if verification was exact: fractions "J"
        and "L", and the verdict, which allows for no more than the certificate does.
    """

    claimed: Certificate
    J: Interval
    L: Interval | None
    box_violation: float
    label: Any
    exact: dict[str, Any] | None = None

    @property
    def primal(self) -> float:
        """An upper bound on J(w), and so on the optimum."""
        return self.J.high

    @property
    def dual(self) -> float | None:
        """A lower bound on L(alpha), and so on the optimum; None without a feasible alpha."""
        return self.L.low if self.L is not None and self.box_violation == 0.0 else None

    @property
    def recomputed(self) -> Certificate:
        """The certificate with the recomputed bounds, which are proved, for the claimed ones.

        Without a feasible alpha, L is zero. The allowances are zero: rounding is in the bounds.
        """
        dual = max(0.0, self.dual or 0.0)
        return replace(
            self.claimed, primal=self.primal, dual=dual, primal_rounding=0.0, dual_rounding=0.0
        )

    @property
    def verdict(self) -> str:
        """One of ``VERDICTS``."""
        if self.exact is not None:
            return str(self.exact["verdict"])
        c = self.claimed
        least_zero = (c.primal_rounding, c.dual_rounding, c.intercept_scaling)
        # Conditions are written so that NaN does not pass.
        finite = all(map(math.isfinite, (c.primal, c.dual, c.C, *least_zero)))
        if not (finite and min(least_zero) >= 0.0 and c.C > 0.0 and self.box_violation == 0.0):
            return REFUTED
        primal, dual, of_primal, of_dual = map(
            Fraction, (c.primal, c.dual, c.primal_rounding, c.dual_rounding)
        )
        excuse = Fraction(LARGEST_EXCUSE) * abs(primal)
        verdicts = [_compared(self.J, primal, of_primal, excuse)]
        if self.L is not None:
            verdicts.append(_compared(self.L, dual, of_dual, excuse))
        # No true lower bound lies above J.
        elif (least := dual - of_dual) > self.J.high:
            return REFUTED
        else:
            verdicts.append(HALF_CONFIRMED if least <= self.J.low else UNDECIDED)
        return max(verdicts, key=VERDICTS.index)

    @property
    def relative_gap(self) -> float:
        """The recomputed J / L - 1, an upper bound; with the claimed L if there is no alpha."""
        c, recomputed = self.claimed, self.recomputed
        if self.L is None and math.isfinite(c.dual) and math.isfinite(c.dual_rounding):
            recomputed = replace(recomputed, dual=c.dual, dual_rounding=c.dual_rounding)
        return recomputed.proved_gap

    def __str__(self) -> str:
        c, J, L = self.claimed, self.J, self.L
        dual = f"dual {c.dual:.6g} claimed, not verified: that takes the dual point"
        if L is not None:
            dual = f"dual {L.low:.6g} recomputed from alpha"
        elif c.bound == PRIMAL_ONLY:
            dual = "no dual bound (certsvm.bound finds one)"
        parts = [f"class {tidy(self.label)}: primal {J.high:.6g} recomputed", dual]
        if self.box_violation > 0:
            parts.append(f"alpha leaves its box by {self.box_violation:.3g}")
        elif math.isfinite(self.relative_gap):
            parts.append(f"gap {percent(self.relative_gap)}")
        claims = f"the certificate (primal {c.primal:.6g}, dual {c.dual:.6g})"
        if self.verdict == REFUTED:
            parts.append(f"DOES NOT MATCH {claims}: other data, other weights, or a changed model")
        elif self.verdict == UNDECIDED:
            parts.append(f"CANNOT BE CHECKED at this precision against {claims}: the primal is {J}")
            parts[-1] += "" if L is None else f" and the dual {L}"
        if self.exact is not None:
            excess = {name: self.exact[name] for name in ("J - primal", "dual - L")}
            shown = [f"{k} = {exactly.upwards(x)}" for k, x in excess.items() if x is not None]
            parts.append(f"exactly, {'; '.join(shown)}")
        return "; ".join(parts)

    def __repr__(self) -> str:
        return f"{self.verdict}: {self}"

    def _repr_html_(self) -> str:
        """For notebooks: the verdict, and what it is about."""
        return statement(self.dual_verified, repr(self), f"problem {self.claimed.problem}")


def _compared(value: Interval, claimed: Fraction, allowance: Fraction, excuse: Fraction) -> str:
    """The verdict on the claim that a number in ``value`` is the claimed one."""
    near = min(allowance, excuse)
    if value.low >= claimed - near and value.high <= claimed + near:
        return CONFIRMED
    if value.high < claimed - allowance or value.low > claimed + allowance:
        return REFUTED
    return UNDECIDED


class VerificationReport(Judged, list[Verification]):
    """One ``Verification`` for each binary problem.

    Attributes
    ----------
    same_data : bool or None
        Whether the data have the fingerprint of the training data; None if the model has none.
    """

    same_data: bool | None = None

    @property
    def verdict(self) -> str:
        """The worst verdict about a certificate, one of ``VERDICTS``."""
        return max((v.verdict for v in self), key=VERDICTS.index, default=UNDECIDED)

    def __str__(self) -> str:
        return "\n".join([*map(str, self), *self._other_data])

    def __repr__(self) -> str:
        said = str(self[0]) if len(self) == 1 else f"{len(self)} classes"
        return "; ".join([f"{self.verdict}: {said}", *self._other_data])

    def _repr_html_(self) -> str:
        """For notebooks: the verdict, and a row for each class."""
        duals = ["none" if v.dual is None else f"{v.dual:.6g}" for v in self]
        rows = [
            [tidy(v.label), v.verdict, f"{v.primal:.6g}", dual, percent(v.relative_gap)]
            for v, dual in zip(self, duals, strict=True)
        ]
        header = ["class", "verdict", "J, recomputed", "L, recomputed", "gap"]
        return element("div", statement(self.dual_verified, repr(self)), table(header, rows))

    @property
    def _other_data(self) -> list[str]:
        other = "these are not the data that the model was trained on, or not in their order"
        return [] if self.same_data in (None, True) else [f"{other}; what is said is about these"]


def verify(
    clf: Any, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None, *, exact: bool = False
) -> VerificationReport:
    """Recompute a fitted classifier's certificate from the training data.

    Parameters
    ----------
    clf : LinearSVC
        Fitted, with ``fit``. Of a search, such as ``LinearSVCCV``, it is the ``best_estimator_``.
    X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
        The training data. The columns of a frame are matched by name: one that is missing, or that
        the classifier does not use, is an error.
    y : array-like of shape (n_samples,) or (n_samples, n_classes)
        Their labels.
    sample_weight : array-like of shape (n_samples,), default=None
        Their weights, if the classifier was fitted with weights.
    exact : bool, default=False
        Whether to compute with integers of any length instead of intervals. This takes some
        microseconds for each value of X and class, leaves nothing undecided, and tolerates no
        rounding beyond the certificate's own allowances.

    Returns
    -------
    report : VerificationReport
        A list with one ``Verification`` per binary problem. ``report.verdict`` is "confirmed" if
        every certificate is proved to be true, which needs a classifier fitted with
        ``store_dual=True``; "half confirmed" if there is no dual point to check; "refuted" if a
        certificate is proved to be false; "undecided" if float64 is too coarse to tell.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from certsvm import LinearSVC, verify
    >>> X, y = make_classification(random_state=0)
    >>> clf = LinearSVC(C=0.1, store_dual=True, random_state=0).fit(X, y)
    >>> verify(clf, X, y).verdict
    'confirmed'
    """
    clf = getattr(clf, "best_estimator_", clf)
    if not getattr(clf, "certificates_", None):
        raise ValueError(
            f"this {type(clf).__name__} has no certificate to verify. Pass a certsvm.LinearSVC "
            "after fit (partial_fit does not certify); of a pipeline, its last step and its X."
        )
    alphas = getattr(clf, "dual_coef_", None)
    alphas = None if alphas is None else np.atleast_2d(np.asarray(alphas, dtype=np.float64))
    return _recomputed(clf, alphas, [(X, y, sample_weight)], exact=exact)


def verify_model(
    model: Any, blocks: Blocks | Callable[[], Blocks], *, exact: bool = False
) -> VerificationReport:
    """Recompute a saved model's certificate from the training data.

    Parameters
    ----------
    model : certsvm.Model
        The model. If it has a witness, the dual bounds are recomputed too.
    blocks : iterable of (X, labels) or (X, labels, weights), or a function that returns one
        The training data, read once: ``[(X, y)]`` if they are in one piece. The columns of a data
        frame are matched by name: one that is missing, or that the model does not use, is an error.
        Select those that the verdict is to be about.
    exact : bool, default=False
        Whether to compute with integers of any length instead of intervals, as ``verify`` does.

    Returns
    -------
    report : VerificationReport
        As from ``verify``.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from certsvm import LinearSVC, Model
    >>> X, y = make_classification(random_state=0)
    >>> model = Model.from_estimator(LinearSVC(C=0.1, random_state=0).fit(X, y))
    >>> verify_model(model, [(X[:50], y[:50], None), (X[50:], y[50:], None)]).verdict
    'half confirmed'
    """
    if not model.certificates:
        raise ValueError("this model has no certificate to verify: certsvm bound makes one")
    if callable(blocks):
        blocks = blocks()
    builder = FingerprintBuilder(model.coef.shape[1])
    report = _recomputed(model, model.witness, blocks, builder, exact=exact)
    if model.fingerprint is not None:
        report.same_data = builder.finish() == model.fingerprint
    return report


def _recomputed(
    model: Any, point: Any, blocks: Blocks, builder: FingerprintBuilder | None = None, *,
    exact: bool,
) -> VerificationReport:  # fmt: skip
    """Recompute J and L of all problems in one pass over the blocks.

    ``point`` is the dual point of all problems: a witness, the alpha of each row, or None.
    """
    names = ("coef", "intercept", "certificates", "classes", "class_weight")
    coef, intercept, claims, classes, factors = (fitted(model, name) for name in names)
    coef, multilabel = dense(coef), getattr(model, "multilabel_", False)
    numbers = positive_classes(classes.size, multilabel=multilabel)
    together = len(coef) == intercept.size == len(claims) == len(numbers)
    if not (coef.ndim == 2 and together and factors.shape == classes.shape):
        raise ValueError(
            f"{classes.size} classes, {factors.size} class weights, coef of {coef.shape}, "
            f"{intercept.size} intercepts and {len(claims)} certificates do not belong together"
        )
    for given in (coef, intercept, factors):
        if not np.can_cast(given.dtype, np.float64):
            raise ValueError(f"weights, intercepts and factors must be float64, got {given.dtype}")
    claimed, dual = [_as_floats(claim) for claim in claims], point is not None
    feature_names = getattr(model, "feature_names", getattr(model, "feature_names_in_", None))
    triples = list(zip(claimed, coef, intercept.tolist(), strict=True))
    sums: list[Any]
    try:
        if exact:
            sums = [exactly.Problem(asdict(c), [*w.tolist(), b], dual=dual) for c, w, b in triples]
        else:
            sums = [ProblemSums(c, w, b, dual=dual) for c, w, b in triples]
    except OverflowError as error:
        raise ValueError(f"a weight, intercept or claim is infinite: {error}") from None
    # Of each problem and row.
    kept = getattr(point, "codes", point)
    n_rows = 0
    for X, y, *rest in blocks:
        X = checked_matrix(columns_in_order(X, feature_names))
        n_before, n_rows = n_rows, n_rows + X.shape[0]
        if X.shape[1] != coef.shape[1]:
            raise ValueError(f"X has {X.shape[1]} columns, the model {coef.shape[1]}")
        position = positions(classes, y, X.shape[0], multilabel=multilabel)
        row_weights = checked_weights(rest[0] if rest else None, X.shape[0])
        if builder is not None:
            builder.update(X, np.asarray(y).ravel())
        if dual and kept[:, :n_rows].shape != (len(claims), n_rows):
            break
        for first, block in row_blocks(X):
            part = slice(first, first + block.n_rows)
            problems = signs_and_weights(factors, position[part], row_weights[part])
            rows = _exact_rows(block) if exact else block
            for i, (signs, weights) in enumerate(problems):
                alpha, here = None, slice(n_before + first, n_before + part.stop)
                if dual:
                    box = claimed[i].C * weights
                    alpha = kept[i, here] if kept is point else point.alpha(i, box, here.start)
                if exact:
                    _add_exactly(sums[i], rows, signs, weights, alpha)
                else:
                    sums[i].add(rows, signs, weights, alpha)
    if dual and kept.shape != (len(claims), n_rows):
        of = f"{len(claims)} certificates and {n_rows} rows or more"
        raise ValueError(f"there are dual variables of shape {kept.shape}, not of {of}")
    report = VerificationReport()
    for c, s, label in zip(claimed, sums, classes[numbers], strict=True):
        if exact:
            found = s.verdict()
            J, L = found["J"], found["L"]
            L = None if L is None else Interval.of(L, L)
            outside = 0.0 if s.feasible else math.inf
            report.append(Verification(c, Interval.of(J, J), L, outside, label, exact=found))
        else:
            L = s.L() if dual else None
            report.append(Verification(c, s.J(), L, s.box_violation, label))
    return report


def _exact_rows(block: RowBlock) -> list[tuple[list[int], exactly.Exact]]:
    """The columns and the exact values of each row, which ends with the constant column."""
    edges = np.searchsorted(block.rows, np.arange(block.n_rows + 1)).tolist()
    columns, values = block.columns.tolist(), block.values.tolist()
    return [
        ([*columns[a:b], block.n_columns], exactly.exactly([*values[a:b], 1.0]))
        for a, b in pairwise(edges)
    ]


def _add_exactly(
    problem: exactly.Problem, rows: Any, signs: Vector, weights: Vector, alpha: Vector | None
) -> None:
    """Add rows, from ``_exact_rows``, to sums that are not rounded."""
    alphas = [None] * len(rows) if alpha is None else alpha.tolist()
    numbers = signs.astype(np.intp).tolist(), weights.tolist(), alphas
    for (columns, row), y, s, alpha_k in zip(rows, *numbers, strict=True):
        problem.add(y, s, columns, row, alpha_k)


def _as_floats(claim: Certificate) -> Certificate:
    """The certificate with all its numbers as float64; raises a ValueError if one is not."""
    penalised = claim.penalize_intercept
    if claim.loss not in LOSS_NAMES or not isinstance(penalised, bool | np.bool_):
        what = f"loss {claim.loss!r:.60}, penalize_intercept {penalised!r:.60}"
        raise ValueError(f"a certificate is about no problem that is known: {what}")
    numbers: dict[str, Any] = {name: getattr(claim, name) for name in _NUMBERS}
    for name, value in numbers.items():
        if not isinstance(value, Real):
            raise ValueError(f"the {name} of a certificate is not a number: {value!r:.60}")
        numbers[name] = as_float(value, f"the {name} of a certificate")
    return replace(claim, **numbers)


def fitted(model: Any, name: str) -> Any:
    """What a ``Model`` has under this name, and a fitted classifier under scikit-learn's."""
    return getattr(model, name if hasattr(model, "coef") else f"{name}_")


def positive_classes(n_classes: int, *, multilabel: bool = False) -> list[int]:
    """The class on the positive side of each binary problem, by position."""
    return [1] if n_classes == 2 and not multilabel else list(range(n_classes))


def binary_problems(
    classes: NDArray[Any], class_weight: Vector, y: Any, given: Any, n_rows: int, *,
    multilabel: bool = False,
) -> Iterator[tuple[Vector, Vector]]:  # fmt: skip
    """Signs and weights of rows in each problem, of their labels and given weights (None: one)."""
    position = positions(classes, y, n_rows, multilabel=multilabel)
    return signs_and_weights(class_weight, position, checked_weights(given, n_rows))


def signs_and_weights(
    class_weight: Vector, position: NDArray[Any], given: Vector
) -> Iterator[tuple[Vector, Vector]]:
    """Signs and weights of rows in each problem.

    ``position`` and ``given`` are from ``positions`` and ``checked_weights``. With more than two
    classes, only the weight of the positive class counts.
    """
    multilabel = position.ndim == 2
    for i in positive_classes(class_weight.size, multilabel=multilabel):
        positive = position[:, i] if multilabel else position == i
        others = class_weight[0] if class_weight.size == 2 and not multilabel else 1.0
        with np.errstate(over="ignore"):
            weights = np.where(positive, class_weight[i], others) * given
        yield np.where(positive, 1.0, -1.0), checked_weights(weights, given.size)


def positions(
    classes: NDArray[Any], y: Any, n_rows: int, *, multilabel: bool = False
) -> NDArray[Any]:
    """The place of each label among the classes, compared as Python does: exactly.

    If a row may have several labels, a matrix says which it has.
    """
    labels = exact_labels(dense(y) if multilabel and sp.issparse(y) else y)
    labels = labels if multilabel else labels.ravel()
    shape = (n_rows, classes.size) if multilabel else (n_rows,)
    if labels.shape != shape:
        raise ValueError(f"X has {n_rows} rows, and y has shape {labels.shape}, not {shape}")
    if multilabel:
        classes = np.arange(2)
        position = np.select([labels == 1, labels == 0], [np.int8(1), np.int8(0)], np.int8(-1))
    else:
        places = {label: i for i, label in enumerate(classes.tolist())}
        # In blocks, to bound the memory of labels as Python's objects.
        starts = range(0, n_rows, _VALUES_AT_ONCE)
        values = (v for i in starts for v in labels[i : i + _VALUES_AT_ONCE].tolist())
        position = np.fromiter((places.get(value, -1) for value in values), np.intp, n_rows)
    if (position < 0).any():
        other = labels.ravel()[int(np.argmin(position))]
        known = f"{', '.join(map(tidy, classes[:6]))}{', ...' if classes.size > 6 else ''}"
        what = f"y has labels that the model was not trained on, such as {tidy(other)}"
        raise ValueError(f"{what}; it knows {known}")
    return position == 1 if multilabel else position


def checked_weights(weights: ArrayLike | None, n_rows: int) -> Vector:
    """Weights of rows, in float64; a number is that of every row, and None means one."""
    refuse_masked(sample_weight=weights)
    checked: Vector = np.asarray(1.0 if weights is None else weights, dtype=np.float64)
    if checked.ndim == 0:
        checked = np.full(n_rows, checked)
    if checked.shape != (n_rows,):
        raise ValueError(f"X has {n_rows} rows, but the weights have shape {checked.shape}")
    if not (np.isfinite(checked) & (checked >= 0.0)).all():
        raise ValueError("row weights must be finite and not negative")
    return checked


def row_blocks(X: Any) -> Iterator[tuple[int, RowBlock]]:
    """The rows in blocks of some ten thousand values, each with the number of its first row."""
    one, little = np.ones(2), np.array([2.0**-54, -(2.0**-55)])
    fault = "numbers are not rounded to nearest" if (one + little != one).any() else ""
    if not (np.full(1, UNDERFLOW) * 1.0).any():
        fault = "subnormal numbers are flushed to zero (torch.set_flush_denormal does so)"
    # Libraries can change how threads round.
    if fault:
        raise ValueError(f"nothing can be verified in this process, in which {fault}")
    # Vectors as long as a row are added for each block: a block should not be much smaller.
    at_once, n_columns = max(_VALUES_AT_ONCE, X.shape[1]), X.shape[1]
    for first, n_rows, values, rows, columns in entries(X, at_once):
        if not np.isfinite(values).all():
            wrong = first + int(rows[np.argmin(np.isfinite(values))])
            raise ValueError(f"row {wrong} of X contains NaN or infinity")
        yield first, RowBlock(values, rows, columns, n_rows, n_columns)
