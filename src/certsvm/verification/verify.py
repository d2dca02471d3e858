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
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields, replace
from fractions import Fraction
from functools import partial
from numbers import Real
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from certsvm.certificates.certificate import LOSS_NAMES, PRIMAL_ONLY, Certificate, percent, tidy
from certsvm.markup import element, statement, table
from certsvm.matrices import checked_matrix, columns_in_order, dense, exact_labels, refuse_masked
from certsvm.scalars import as_float
from certsvm.verification import interval_arithmetic as arithmetic
from certsvm.verification.evidence import FingerprintBuilder
from certsvm.verification.exact import Row, judge, upwards
from certsvm.verification.interval_arithmetic import Interval, ProblemSums, RowBlock, Vector
from certsvm.verification.optimum_intervals import added_up

# Relative to J. A larger allowance does not make a claim false, but what it excuses beyond this is
# not confirmed: the printed numbers would be far from the true ones.
LARGEST_EXCUSE = 1e-3

CONFIRMED, HALF_CONFIRMED, UNDECIDED, REFUTED = VERDICTS = (
    "confirmed", "half confirmed", "undecided", "refuted"
)  # fmt: skip
"""From best to worst. Half confirmed: J is confirmed, and L was not recomputed."""

Blocks: TypeAlias = Iterable[tuple[Any, ...]]
"""(X, labels) or (X, labels, weights) of consecutive rows."""

AlphaOf: TypeAlias = Callable[[int, Vector, int], Vector]
"""Returns alpha of a block of rows in problem i, given their C s_k and the number of the first."""

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
        What ``certsvm.verification.exact.judge`` found, if verification was exact: fractions "J"
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
        if not (finite and min(least_zero) >= 0.0 and c.C > 0.0):
            return REFUTED
        primal, dual = Fraction(c.primal), Fraction(c.dual)
        excuse = Fraction(LARGEST_EXCUSE) * abs(primal)
        verdict = _compared(self.J, primal, Fraction(c.primal_rounding), excuse)
        rounding = Fraction(c.dual_rounding)
        # No true lower bound lies above J.
        least = dual - rounding
        if self.L is None:
            of_dual = HALF_CONFIRMED if least <= self.J.low else UNDECIDED
            of_dual = REFUTED if least > self.J.high else of_dual
        else:
            of_dual = _compared(self.L, dual, rounding, excuse)
            of_dual = of_dual if self.box_violation == 0.0 else REFUTED
        return max(verdict, of_dual, key=VERDICTS.index)

    @property
    def relative_gap(self) -> float:
        """The recomputed J / L - 1, an upper bound; with the claimed L if there is no alpha."""
        if self.L is not None:
            return self.recomputed.proved_gap
        c = self.claimed
        if not (math.isfinite(c.dual) and math.isfinite(c.dual_rounding)):
            return math.inf
        return replace(self.recomputed, dual=c.dual, dual_rounding=c.dual_rounding).proved_gap

    def __str__(self) -> str:
        claimed = self.claimed
        if self.L is not None:
            dual = f"dual {self.L.low:.6g} recomputed from alpha"
        elif claimed.bound == PRIMAL_ONLY:
            dual = "no dual bound (certsvm.bound finds one)"
        else:
            dual = f"dual {claimed.dual:.6g} claimed, not verified: that takes the dual point"
        parts = [f"class {tidy(self.label)}: primal {self.J.high:.6g} recomputed", dual]
        if self.box_violation > 0:
            parts.append(f"alpha leaves its box by {self.box_violation:.3g}")
        elif math.isfinite(self.relative_gap):
            parts.append(f"gap {percent(self.relative_gap)}")
        claims = f"the certificate (primal {claimed.primal:.6g}, dual {claimed.dual:.6g})"
        if self.verdict == REFUTED:
            parts.append(f"DOES NOT MATCH {claims}: other data, other weights, or a changed model")
        elif self.verdict == UNDECIDED:
            parts.append(f"CANNOT BE CHECKED at this precision against {claims}: the primal is")
            parts[-1] += f" {self.J}" + ("" if self.L is None else f" and the dual {self.L}")
        if self.exact is not None:
            parts.append(f"exactly, J - primal = {upwards(self.exact['J - primal'])}")
            if self.L is not None:
                parts.append(f"dual - L = {upwards(self.exact['dual - L'])}")
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
        rows = [
            [
                tidy(v.label), v.verdict, f"{v.primal:.6g}",
                "none" if v.dual is None else f"{v.dual:.6g}", percent(v.relative_gap),
            ]
            for v in self
        ]  # fmt: skip
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
    certificates: list[Certificate] | None = getattr(clf, "certificates_", None)
    if not certificates:
        raise ValueError(
            f"this {type(clf).__name__} has no certificate to verify. Pass a certsvm.LinearSVC "
            "after fit (partial_fit does not certify); of a pipeline, its last step and its X."
        )
    X = checked_matrix(columns_in_order(X, getattr(clf, "feature_names_in_", None)))
    shape = len(certificates), X.shape[0]
    alphas: Any = getattr(clf, "dual_coef_", None)
    if alphas is not None:
        alphas = np.asarray(alphas, dtype=np.float64)
        if alphas.shape != shape:
            what = f"the model keeps dual variables of shape {alphas.shape}, not {shape}"
            raise ValueError(f"{what}, as its certificates and X need: pass the training data")

    def stored(offset: int, i: int, box: Vector, first: int) -> Vector:
        part: Vector = alphas[offset + i, first : first + box.size]
        return part

    recomputed = _exact_report if exact else _report
    coef, alpha_of = dense(clf.coef_), None if alphas is None else stored
    if not getattr(clf, "multilabel_", False):
        return recomputed(
            coef, clf.intercept_, certificates, clf.classes_, clf.class_weight_,
            alpha_of and partial(alpha_of, 0), [(X, y, sample_weight)],
        )  # fmt: skip
    report, labels = VerificationReport(), columns_of_labels(y, shape[::-1])
    # Or some certificates, or weights, would be left out.
    if {len(coef), *map(len, (clf.intercept_, clf.classes_, clf.class_weight_))} != {shape[0]}:
        names = "coef_, intercept_, classes_, class_weight_ and certificates_"
        raise ValueError(f"{names} are not of the same length: they do not belong together")
    for i, label in enumerate(clf.classes_):
        # Each column is a problem of its own: its ones against its zeros.
        column, factors = slice(i, i + 1), np.array([1.0, clf.class_weight_[i]])
        of_label = recomputed(
            coef[column], clf.intercept_[column], certificates[column], np.arange(2), factors,
            alpha_of and partial(alpha_of, i), [(X, labels[:, i], sample_weight)],
        )  # fmt: skip
        report.append(replace(of_label[0], label=label))
    return report


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
    witness, builder = model.witness, FingerprintBuilder(model.coef.shape[1])
    if witness is not None and witness.n_problems != (n := len(model.certificates)):
        raise ValueError(
            f"there are dual points of {witness.n_problems} problems, {n} certificates"
        )

    def fingerprinted() -> Iterator[tuple[Any, ...]]:
        for X, *rest in blocks:
            X = columns_in_order(X, getattr(model, "feature_names", None))
            yield X, *rest
            builder.update(X, np.asarray(rest[0]).ravel())

    report = (_exact_report if exact else _report)(
        model.coef, model.intercept, model.certificates, model.classes, model.class_weight,
        None if witness is None else witness.alpha, fingerprinted(),
    )  # fmt: skip
    fingerprint = builder.finish()
    if witness is not None and witness.n_rows != fingerprint.n_rows:
        raise ValueError(
            f"the witness is about {witness.n_rows} rows, the data has {fingerprint.n_rows}"
        )
    if model.fingerprint is not None:
        report.same_data = fingerprint == model.fingerprint
    return report


def _report(
    coef: Vector, intercept: Vector, claims: Sequence[Certificate], classes: NDArray[Any],
    class_weight: Vector, alpha_of: AlphaOf | None, blocks: Blocks,
) -> VerificationReport:  # fmt: skip
    """Recompute J and L of all problems in one pass over the blocks."""
    positive_classes = _positive_classes(coef, intercept, claims, classes, class_weight)
    sums = [
        ProblemSums(_as_floats(claim), w, float(b), dual=alpha_of is not None)
        for w, b, claim in zip(coef, intercept, claims, strict=True)
    ]
    n_before = 0
    for X, position, given in _checked(blocks, classes, coef.shape[1]):
        for first, rows in row_blocks(X):
            part = slice(first, first + rows.n_rows)
            for i, positive in enumerate(positive_classes):
                signs = np.where(position[part] == positive, 1.0, -1.0)
                weights = weights_in_problem(class_weight, position[part], positive, given[part])
                alpha = None
                if alpha_of is not None:
                    alpha = alpha_of(i, sums[i].claimed.C * weights, n_before + first)
                sums[i].add(rows, signs, weights, alpha)
        n_before += position.size
    return VerificationReport(
        Verification(s.claimed, s.J(), s.L() if alpha_of else None, s.box_violation, label)
        for s, label in zip(sums, classes[positive_classes], strict=True)
    )


def _exact_report(
    coef: Vector, intercept: Vector, claims: Sequence[Certificate], classes: NDArray[Any],
    class_weight: Vector, alpha_of: AlphaOf | None, blocks: Blocks,
) -> VerificationReport:  # fmt: skip
    """The same, without rounding."""
    _positive_classes(coef, intercept, claims, classes, class_weight)
    labels, numbers = classes.tolist(), range(len(claims))

    def alpha_of_row(i: int, k: int, box: float) -> float:
        assert alpha_of is not None
        return float(alpha_of(i, np.array([box]), k)[0])

    def rows() -> Iterator[Row]:
        for X, position, given in _checked(blocks, classes, coef.shape[1]):
            X = added_up(X)
            for k in range(position.size):
                if sp.issparse(X):
                    part = slice(X.indptr[k], X.indptr[k + 1])
                    columns, values = X.indices[part].tolist(), X.data[part]
                else:
                    columns, values = list(range(coef.shape[1])), X[k]
                floats = values.astype(np.float64).tolist()
                yield labels[position[k]], float(given[k]), columns, floats

    weights = [[*w, b] for w, b in zip(coef.tolist(), intercept.tolist(), strict=True)]
    claimed = [_as_floats(claim) for claim in claims]
    points = [partial(alpha_of_row, i) if alpha_of else None for i in numbers]
    try:
        found = judge(
            list(map(asdict, claimed)), labels, class_weight.tolist(), weights, rows(), points
        )
    except (ArithmeticError, IndexError) as error:
        raise ValueError(f"the model or its witness is not about these rows: {error}") from None
    report = VerificationReport()
    for claim, exact in zip(claimed, found, strict=True):
        J, L = Interval.around(exact["J"], Fraction(0)), exact["L"]
        L = None if L is None else Interval.around(L, Fraction(0))
        outside = math.inf if alpha_of is not None and L is None else 0.0
        report.append(Verification(claim, J, L, outside, exact["class"], exact=exact))
    return report


def _positive_classes(
    coef: Vector, intercept: Vector, claims: Sequence[Certificate], classes: NDArray[Any],
    class_weight: Vector,
) -> Sequence[int]:  # fmt: skip
    """The positions of the positive classes; a ValueError unless the model's parts fit together."""
    numbers = [1] if classes.size == 2 else range(classes.size)
    together = len(coef) == intercept.size == len(claims) == len(numbers)
    if not (coef.ndim == 2 and together and class_weight.shape == classes.shape):
        raise ValueError(
            f"{classes.size} classes, {class_weight.size} class weights, coef of {coef.shape}, "
            f"{intercept.size} intercepts and {len(claims)} certificates do not belong together"
        )
    for given in (coef, intercept, class_weight):
        if not np.can_cast(given.dtype, np.float64):
            raise ValueError(f"weights, intercepts and factors must be float64, got {given.dtype}")
    return numbers


def _checked(
    blocks: Blocks, classes: NDArray[Any], n_columns: int
) -> Iterator[tuple[Any, NDArray[np.intp], Vector]]:
    """The rows of blocks, the places of their labels among the classes, and their weights."""
    for X, labels, *rest in blocks:
        X = checked_matrix(X)
        n_rows = X.shape[0]
        if X.shape[1] != n_columns:
            raise ValueError(f"X has {X.shape[1]} columns, the model {n_columns}")
        weights = rest[0] if rest and rest[0] is not None else 1.0
        yield X, positions(classes, labels, n_rows), checked_weights(weights, n_rows)


def _as_floats(claim: Certificate) -> Certificate:
    """The certificate with all its numbers as float64; raises a ValueError if one is not."""
    if claim.loss not in LOSS_NAMES:
        raise ValueError(f"the loss of a certificate is unknown: {claim.loss!r:.60}")
    if not isinstance(free := claim.penalize_intercept, bool | np.bool_):
        raise ValueError(f"penalize_intercept is neither true nor false: {free!r:.60}")
    numbers: dict[str, Any] = {name: getattr(claim, name) for name in _NUMBERS}
    for name, value in numbers.items():
        if not isinstance(value, Real):
            raise ValueError(f"the {name} of a certificate is not a number: {value!r:.60}")
        numbers[name] = as_float(value, f"the {name} of a certificate")
    return replace(claim, **numbers)


def positions(classes: NDArray[Any], y: ArrayLike, n_rows: int) -> NDArray[np.intp]:
    """The place of each label among the classes, compared as Python does: exactly."""
    labels = exact_labels(y).ravel()
    if labels.shape != (n_rows,):
        raise ValueError(f"X has {n_rows} rows, but there are {labels.size} labels")
    places = {label: i for i, label in enumerate(classes.tolist())}
    # In blocks, to bound the memory of labels as Python's objects.
    starts = range(0, n_rows, _VALUES_AT_ONCE)
    values = (v for i in starts for v in labels[i : i + _VALUES_AT_ONCE].tolist())
    position = np.fromiter((places.get(value, -1) for value in values), np.intp, n_rows)
    if (position < 0).any():
        other = labels[int(np.argmin(position))]
        known = ", ".join([*map(tidy, classes[:6]), *(["..."] if classes.size > 6 else [])])
        what = f"y has labels that the model was not trained on, such as {tidy(other)}"
        raise ValueError(f"{what}; it knows {known}")
    return position


def columns_of_labels(y: Any, shape: tuple[int, int]) -> NDArray[Any]:
    """Labels with a column for each problem."""
    labels = exact_labels(dense(y) if sp.issparse(y) else y)
    if labels.shape != shape:
        raise ValueError(f"y has shape {labels.shape}, but the model needs {shape}")
    return labels


def checked_weights(weights: ArrayLike, n_rows: int) -> Vector:
    """Weights of rows, in float64; a number is that of every row."""
    refuse_masked(sample_weight=weights)
    checked: Vector = np.asarray(weights, dtype=np.float64)
    if checked.ndim == 0:
        checked = np.full(n_rows, checked)
    if checked.shape != (n_rows,):
        raise ValueError(f"X has {n_rows} rows, but the weights have shape {checked.shape}")
    if not (np.isfinite(checked) & (checked >= 0.0)).all():
        raise ValueError("weights of rows must be finite and not negative")
    return checked


def weights_in_problem(
    class_weight: Vector, position: NDArray[np.intp], positive: int, given: Vector
) -> Vector:
    """The weights of rows in the problem of one class against the rest.

    ``position`` is that of the row's label among the classes, ``given`` are the weights of the
    rows. With more than two classes, only the weight of the positive class counts.
    """
    own = class_weight.size == 2 or position == positive
    with np.errstate(over="ignore"):
        factors = np.where(own, class_weight[position], 1.0)
        return checked_weights(factors * given, position.size)


def _require_ieee_arithmetic() -> None:
    """Raise a ValueError where the proof does not hold: libraries can change how threads round."""
    one, little = np.ones(2), np.array([2.0**-54, -(2.0**-55)])
    fault = "numbers are not rounded to nearest" if (one + little != one).any() else ""
    if not (np.full(1, arithmetic.UNDERFLOW) * 1.0).any():
        fault = "subnormal numbers are flushed to zero (torch.set_flush_denormal does so)"
    if fault:
        raise ValueError(f"nothing can be verified in this process, in which {fault}")


def row_blocks(X: Any) -> Iterator[tuple[int, RowBlock]]:
    """The rows in blocks of some ten thousand values, each with the number of its first row."""
    (n_rows, n_columns), sparse, X = X.shape, sp.issparse(X), added_up(X)
    _require_ieee_arithmetic()
    starts = X.indptr.astype(np.int64) if sparse else np.arange(n_rows + 1) * n_columns
    # Vectors as long as a row are added for each block: a block should not be much smaller.
    at_once = max(_VALUES_AT_ONCE, n_columns)
    first = 0
    while first < n_rows:
        last = int(np.searchsorted(starts, starts[first] + at_once, side="right")) - 1
        last = min(max(last, first + 1), first + _VALUES_AT_ONCE, n_rows)
        part, n_here = slice(int(starts[first]), int(starts[last])), last - first
        if sparse:
            values, columns = X.data[part], X.indices[part].astype(np.intp)
        else:
            values = X[first:last].reshape(-1)
            columns = np.tile(np.arange(n_columns), n_here)
        values = values.astype(np.float64)
        rows = np.repeat(np.arange(n_here), np.diff(starts[first : last + 1]))
        if not np.isfinite(values).all():
            wrong = first + int(rows[np.argmin(np.isfinite(values))])
            raise ValueError(f"row {wrong} of X contains NaN or infinity")
        yield first, RowBlock(values, rows, columns, n_here, n_columns)
        first = last
