"""Verification of a certificate from scratch, by code that training does not use.

Verification uses NumPy and SciPy on the data as given: no compiled code, no rows prepared for
kernels. J is recomputed from the coefficients. If the model keeps its dual point alpha, or a
witness that determines it, every alpha_k is checked against its box and L is recomputed from
sum_k alpha_k y_k. Otherwise the dual bound is reported as claimed. The rows are read a block at a
time, so they need not fit in memory.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from certsvm.certificates.certificate import PRIMAL_ONLY, Certificate, percent, tidy
from certsvm.certificates.weights import dense
from certsvm.storage.fingerprint import FingerprintBuilder

# The recomputation rounds, too, by about 1e-13 of the bound. A lost or doubled block of rows, or a
# model of other data, changes the bound by far more than this fraction.
RECOMPUTATION_TOLERANCE = 1e-9
# Relative to J. Rounding never makes a larger allowance, and a larger one would excuse anything.
LARGEST_ALLOWANCE = 0.01

Vector: TypeAlias = NDArray[np.float64]
Blocks: TypeAlias = Iterable[tuple[Any, ...]]
"""(X, labels) or (X, labels, weights) of consecutive rows."""

_ROWS_AT_ONCE = 8192


class AlphaSource(Protocol):
    """An object that determines the dual points of all problems, such as a witness."""

    @property
    def n_rows(self) -> int | None:
        """Number of rows; None if it determines alpha for any number of rows."""

    def alpha_of(
        self, i: int, claimed: Certificate, X: Any, signs: Vector, weights: Vector, first: int
    ) -> Vector:
        """Alpha of a block of rows in problem i; ``first`` is the number of its first row."""


@dataclass(frozen=True)
class Verification:
    """A certificate beside its recomputed values.

    Attributes
    ----------
    claimed : Certificate
        The certificate in the model.
    primal : float
        J, recomputed.
    dual : float or None
        L, recomputed from alpha; None if the model does not keep it.
    box_violation : float
        The largest amount by which alpha leaves its box: zero for a feasible point.
    label : object
        The positive class of the problem.
    """

    claimed: Certificate
    primal: float
    dual: float | None
    box_violation: float
    label: Any

    @property
    def dual_verified(self) -> bool:
        """Whether the dual bound was recomputed from a feasible alpha."""
        return self.dual is not None and self.box_violation == 0.0

    @property
    def relative_gap(self) -> float:
        """The recomputed J / L - 1, with the claimed L if there is no alpha."""
        dual = self.claimed.dual if self.dual is None else self.dual
        return self.primal / dual - 1.0 if dual > 0 else math.inf

    @property
    def ok(self) -> bool:
        """Whether no recomputed value contradicts the certificate.

        This says nothing about a dual bound that could not be recomputed (``dual_verified``), nor
        about the target.
        """
        c = self.claimed
        numbers = (
            c.primal, c.dual, c.primal_rounding, c.dual_rounding, c.C, c.intercept_scaling
        )  # fmt: skip
        if not (all(map(math.isfinite, numbers)) and min(numbers[2:]) >= 0):
            return False
        if max(c.primal_rounding, c.dual_rounding) > LARGEST_ALLOWANCE * abs(c.primal):
            return False
        # The claims are J <= primal + rounding and L >= dual - rounding, and that both values are
        # those of this model on these data. Conditions are written so that NaN does not pass.
        tolerance = RECOMPUTATION_TOLERANCE * abs(c.primal)
        if not abs(self.primal - c.primal) <= c.primal_rounding + tolerance:
            return False
        # Weak duality: no true dual bound lies above J.
        if not c.dual <= c.primal + tolerance:
            return False
        if self.dual is None:
            return True
        # Relative to L, which may be far below J.
        tolerance = RECOMPUTATION_TOLERANCE * abs(self.dual)
        agrees = abs(self.dual - c.dual) <= c.dual_rounding + tolerance
        return self.box_violation == 0.0 and agrees

    def __str__(self) -> str:
        if self.dual is not None:
            dual = f"dual {self.dual:.6g} recomputed from alpha"
        elif self.claimed.bound == PRIMAL_ONLY:
            dual = "no dual bound (certsvm.bound finds one)"
        else:
            dual = f"dual {self.claimed.dual:.6g} claimed, not verified: that takes the dual point"
        parts = [f"class {tidy(self.label)}: primal {self.primal:.6g} recomputed", dual]
        if self.box_violation > 0:
            parts.append(f"alpha leaves its box by {self.box_violation:.3g}")
        if math.isfinite(self.relative_gap):
            parts.append(f"gap {percent(self.relative_gap)}")
        if not self.ok:
            parts.append(
                f"DOES NOT MATCH the certificate (primal {self.claimed.primal:.6g}, dual "
                f"{self.claimed.dual:.6g}): other data, other weights, or a changed model"
            )
        return "; ".join(parts)


class VerificationReport(list[Verification]):
    """One ``Verification`` for each binary problem.

    Attributes
    ----------
    same_data : bool or None
        Whether the data have the fingerprint of the training data; None if the model has none.
    """

    same_data: bool | None = None

    @property
    def ok(self) -> bool:
        """Whether no recomputed value contradicts a certificate."""
        return all(v.ok for v in self)

    @property
    def dual_verified(self) -> bool:
        """Whether every dual bound was recomputed from a feasible alpha."""
        return all(v.dual_verified for v in self)

    def __str__(self) -> str:
        return "\n".join(str(v) for v in self)


def verify(
    clf: Any, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None
) -> VerificationReport:
    """Recompute a fitted classifier's certificate from the training data.

    Parameters
    ----------
    clf : LinearSVC
        Fitted, with ``fit``.
    X : array-like or sparse matrix of shape (n_samples, n_features)
        The training data.
    y : array-like of shape (n_samples,)
        Their labels.
    sample_weight : array-like of shape (n_samples,), default=None
        Their weights, if the classifier was fitted with weights.

    Returns
    -------
    report : VerificationReport
        A list with one ``Verification`` per binary problem. ``report.ok`` says whether the
        data confirm every certificate, ``report.dual_verified`` whether the dual bounds were
        recomputed too, which needs a classifier fitted with ``store_dual=True``.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from certsvm import LinearSVC, verify
    >>> X, y = make_classification(random_state=0)
    >>> clf = LinearSVC(C=0.1, store_dual=True, random_state=0).fit(X, y)
    >>> report = verify(clf, X, y)
    >>> report.ok, report.dual_verified
    (True, True)
    """
    certificates: list[Certificate] | None = getattr(clf, "certificates_", None)
    if not certificates:
        raise ValueError(
            f"this {type(clf).__name__} has no certificate to verify. Pass a certsvm.LinearSVC "
            "after fit (partial_fit does not certify); of a pipeline, its last step with the "
            "transformed X."
        )
    X = X if sp.issparse(X) else np.asarray(X)
    labels = np.asarray(y).ravel()
    n_rows = X.shape[0]
    if labels.shape != (n_rows,):
        raise ValueError(f"X has {n_rows} rows, but y has {labels.size} labels")
    weights = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    if weights is not None and weights.ndim == 0:
        weights = np.full(n_rows, float(weights))
    if weights is not None and weights.shape != (n_rows,):
        raise ValueError(f"X has {n_rows} rows, but sample_weight has shape {weights.shape}")
    alphas = getattr(clf, "dual_coef_", None)
    source = None if alphas is None else _StoredAlphas(alphas)
    if source is not None and source.n_rows != n_rows:
        raise ValueError(f"the model keeps {source.n_rows} dual variables, X has {n_rows} rows")
    recounts = _recounts(dense(clf.coef_), clf.intercept_, certificates, source)
    return _recompute(recounts, clf.classes_, clf.class_weight_, [(X, labels, weights)])


def verify_model(model: Any, blocks: Blocks) -> VerificationReport:
    """Recompute a saved model's certificate from the training data.

    Parameters
    ----------
    model : certsvm.Model
        The model. If it has a witness, the dual bounds are recomputed too.
    blocks : iterable of (X, labels) or (X, labels, weights)
        The training data, read once.

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
    >>> report = verify_model(model, [(X[:50], y[:50], None), (X[50:], y[50:], None)])
    >>> report.ok, report.dual_verified
    (True, False)
    """
    if not model.certificates:
        raise ValueError("this model has no certificate to verify: nothing is proved about it")
    builder = FingerprintBuilder(model.coef.shape[1])

    def fingerprinted() -> Iterator[tuple[Any, ...]]:
        for block in blocks:
            yield block
            builder.update(*block[:2])

    recounts = _recounts(model.coef, model.intercept, model.certificates, model.witness)
    report = _recompute(recounts, model.classes, model.class_weight, fingerprinted())
    fingerprint = builder.finish()
    if model.witness is not None and model.witness.n_rows not in (None, fingerprint.n_rows):
        raise ValueError(
            f"the witness is about {model.witness.n_rows} rows, the data has {fingerprint.n_rows}"
        )
    if model.fingerprint is not None:
        report.same_data = fingerprint == model.fingerprint
    return report


class _Recount:
    """J and L of one problem, summed up block by block."""

    def __init__(
        self, i: int, coef: Vector, intercept: float, claimed: Certificate,
        source: AlphaSource | None,
    ) -> None:  # fmt: skip
        self._i, self._source, self.claimed = i, source, claimed
        self.coef, self._intercept = coef, intercept
        self._w = np.zeros(coef.size)
        self._losses: list[float] = []
        self._alpha_sums: list[float] = []
        self._signed_sums: list[float] = []
        self._violation = 0.0

    def add(self, X: Any, signs: Vector, weights: Vector, first: int) -> None:
        """Add a block of rows, of which ``first`` is the number of the first."""
        margins = signs * (X @ self.coef + self._intercept)
        self._losses.append(float(weights @ np.maximum(0.0, 1.0 - margins)))
        if self._source is None:
            return
        alpha = self._source.alpha_of(self._i, self.claimed, X, signs, weights, first)
        excess = np.maximum(-alpha, alpha - self.claimed.C * weights)
        if not np.isfinite(excess).all():
            self._violation = math.inf
            return
        self._violation = max(self._violation, float(np.max(excess, initial=0.0)))
        signed = signs * alpha
        self._w += X.T @ signed
        self._signed_sums.append(float(signed.sum()))
        self._alpha_sums.append(float(alpha.sum()))

    def verification(self, label: Any) -> Verification:
        """J and L of all blocks, beside the claims."""
        rho, dual = self.claimed.intercept_scaling, None
        if rho > 0:
            bias_weight = self._intercept / rho
        else:
            # Without a constant column, no weight vector of the problem has an intercept.
            bias_weight = 0.0 if self._intercept == 0.0 else math.inf
        squared_norm = float(self.coef @ self.coef) + bias_weight * bias_weight
        primal = 0.5 * squared_norm + self.claimed.C * math.fsum(self._losses)
        if self._source is not None:
            bias_weight = rho * math.fsum(self._signed_sums)
            squared_norm = float(self._w @ self._w) + bias_weight * bias_weight
            dual = math.fsum(self._alpha_sums) - 0.5 * squared_norm
        return Verification(self.claimed, primal, dual, self._violation, label)


@dataclass(frozen=True)
class _StoredAlphas:
    """The dual points that a fitted estimator stores."""

    alphas: Vector

    @property
    def n_rows(self) -> int:
        return int(self.alphas.shape[1])

    def alpha_of(
        self, i: int, claimed: Certificate, X: Any, signs: Vector, weights: Vector, first: int
    ) -> Vector:
        return self.alphas[i, first : first + weights.size]


def _recounts(
    coef: Vector, intercept: Vector, claims: Sequence[Certificate], source: AlphaSource | None
) -> list[_Recount]:
    return [
        _Recount(i, coef[i], float(intercept[i]), claimed, source)
        for i, claimed in enumerate(claims)
    ]


def _recompute(
    recounts: Sequence[_Recount], classes: NDArray[Any], class_weight: Vector, blocks: Blocks
) -> VerificationReport:
    """Recompute J and L of all problems in one pass over the blocks."""
    first, n_columns = 0, recounts[0].coef.size
    positive_classes = [1] if classes.size == 2 else range(classes.size)
    for X, labels, *rest in blocks:
        X = X.tocsr() if sp.issparse(X) else np.asarray(X)
        if X.shape[1] != n_columns:
            raise ValueError(f"X has {X.shape[1]} columns, the model {n_columns}")
        position = np.searchsorted(classes, np.asarray(labels).ravel())
        if not np.array_equal(classes[np.minimum(position, classes.size - 1)], labels):
            raise ValueError("y contains labels that the model was not trained on")
        weights = class_weight[position]
        if rest and rest[0] is not None:
            weights = weights * rest[0]
        for start in range(0, X.shape[0], _ROWS_AT_ONCE):
            chunk = slice(start, start + _ROWS_AT_ONCE)
            rows = X[chunk].astype(np.float64)
            for positive, recount in zip(positive_classes, recounts, strict=True):
                signs = np.where(position[chunk] == positive, 1.0, -1.0)
                recount.add(rows, signs, weights[chunk], first + start)
        first += X.shape[0]
    return VerificationReport(
        recount.verification(classes[positive])
        for positive, recount in zip(positive_classes, recounts, strict=True)
    )
