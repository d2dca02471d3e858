"""Checking a certificate from scratch, on another path.

Nothing here is shared with training: no compiled code, no rows prepared for kernels, only
NumPy and SciPy on the data as given. J is recomputed from the coefficients. If the model keeps
its dual point alpha, the box is checked entry by entry, sum_k alpha_k y_k is rebuilt from the
rows, and L follows; otherwise the dual bound can only be reported as claimed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from certsvm.certificate import PRIMAL_ONLY, Certificate, percent

_ROWS_AT_ONCE = 8192
# Both paths round differently: beyond the stated allowance for one, this much is for the other.
_AGREEMENT = 1e-9
# An allowance this large was not made by rounding; it would excuse anything.
_LARGEST_ALLOWANCE = 0.01


@dataclass(frozen=True)
class Verification:
    """What recomputing a certificate gave.

    Attributes
    ----------
    claimed : Certificate
        What the model says.
    primal : float
        J, recomputed.
    dual : float or None
        L, recomputed from alpha; None if the model does not keep it.
    box_violation : float
        The largest amount by which alpha leaves its box: zero for a feasible point.
    label : object
        The class whose problem this is, against all others.
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
        """The recomputed J / L - 1, with the claimed L if alpha is not at hand."""
        dual = self.claimed.dual if self.dual is None else self.dual
        return self.primal / dual - 1.0 if dual > 0 else math.inf

    @property
    def ok(self) -> bool:
        """Whether nothing that was recomputed contradicts the certificate.

        It says nothing about what could not be recomputed (see ``dual_verified``), nor whether
        the certificate meets its target.
        """
        c = self.claimed
        sane = all(map(math.isfinite, (c.primal, c.dual, c.primal_rounding, c.dual_rounding)))
        if not (sane and c.primal_rounding >= 0 and c.dual_rounding >= 0):
            return False
        # What is claimed are bounds: J is no more than primal + rounding, L no less than
        # dual - rounding. And the values must be those of this model and these data.
        tolerance = _AGREEMENT * max(abs(c.primal), abs(c.dual))
        if not (
            self.primal <= c.primal + c.primal_rounding + tolerance
            and abs(self.primal - c.primal) <= c.primal_rounding + tolerance
        ):
            return False
        if self.dual is None:
            # Weak duality: no J may lie below a true dual bound.
            return self.primal >= c.dual - c.dual_rounding - tolerance
        return (
            self.box_violation == 0.0
            and c.dual - c.dual_rounding <= self.dual + tolerance
            and abs(self.dual - c.dual) <= c.dual_rounding + tolerance
            and max(c.primal_rounding, c.dual_rounding) <= _LARGEST_ALLOWANCE * abs(c.primal)
        )

    def __str__(self) -> str:
        how = (
            "no dual bound (certsvm.bound finds one)"
            if self.claimed.bound == PRIMAL_ONLY
            else f"dual {self.claimed.dual:.6g} claimed, not verified (fit with store_dual=True)"
        )
        dual = how if self.dual is None else f"dual {self.dual:.6g} recomputed from alpha"
        parts = [f"class {self.label}: primal {self.primal:.6g} recomputed", dual]
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
    """One ``Verification`` for each binary problem."""

    @property
    def ok(self) -> bool:
        """Whether nothing that was recomputed contradicts a certificate."""
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
        data bear out every certificate, ``report.dual_verified`` whether the dual bounds
        were recomputed too, which needs a model fitted with ``store_dual=True``.

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
    if not sp.issparse(X):
        X = np.asarray(X)
    elif X.format != "csr":
        X = X.tocsr()
    labels = np.asarray(y).ravel()
    n_rows = X.shape[0]
    if labels.shape != (n_rows,):
        raise ValueError(f"X has {n_rows} rows, but y has {labels.size} labels")
    if X.shape[1] != clf.coef_.shape[1]:
        raise ValueError(f"X has {X.shape[1]} columns, the model {clf.coef_.shape[1]}")
    position = np.searchsorted(clf.classes_, labels)
    if not np.array_equal(clf.classes_[np.minimum(position, clf.classes_.size - 1)], labels):
        raise ValueError("y contains labels that the model was not trained on")
    weights = np.asarray(1.0 if sample_weight is None else sample_weight, dtype=np.float64)
    if weights.ndim == 0:
        weights = np.full(n_rows, float(weights))
    if weights.shape != (n_rows,):
        raise ValueError(f"X has {n_rows} rows, but sample_weight has shape {weights.shape}")
    weights = weights * clf.class_weight_[position]
    alphas = getattr(clf, "dual_coef_", None)
    report = VerificationReport()
    for i, claimed in enumerate(certificates):
        positive = 1 if clf.classes_.size == 2 else i
        reflection = np.where(position == positive, 1.0, -1.0)
        intercept = float(clf.intercept_[i])
        primal = _primal(X, reflection, weights, clf.coef_[i], intercept, claimed)
        dual, violation = None, 0.0
        if alphas is not None:
            dual, violation = _dual(X, reflection, weights, alphas[i], claimed)
        report.append(Verification(claimed, primal, dual, violation, clf.classes_[positive]))
    return report


def _blocks(X: Any) -> Any:
    """Rows as float64, a few at a time, with where they start."""
    for start in range(0, X.shape[0], _ROWS_AT_ONCE):
        yield start, X[start : start + _ROWS_AT_ONCE].astype(np.float64)


def _primal(
    X: Any,
    reflection: NDArray[np.float64],
    weights: NDArray[np.float64],
    coef: NDArray[np.float64],
    intercept: float,
    claimed: Certificate,
) -> float:
    losses = []
    for start, block in _blocks(X):
        part = slice(start, start + block.shape[0])
        margins = reflection[part] * (block @ coef + intercept)
        losses.append(float(weights[part] @ np.maximum(0.0, 1.0 - margins)))
    bias_weight = intercept / claimed.bias if claimed.bias > 0 else 0.0
    return 0.5 * (float(coef @ coef) + bias_weight**2) + claimed.C * math.fsum(losses)


def _dual(
    X: Any,
    reflection: NDArray[np.float64],
    weights: NDArray[np.float64],
    alpha: NDArray[np.float64],
    claimed: Certificate,
) -> tuple[float, float]:
    if alpha.shape != weights.shape:
        raise ValueError(f"the model keeps {alpha.size} dual variables, X has {weights.size} rows")
    excess = np.maximum(-alpha, alpha - claimed.C * weights)
    violation = float(np.max(excess, initial=0.0)) if np.isfinite(alpha).all() else math.inf
    w = np.zeros(X.shape[1])
    signed = reflection * alpha
    for start, block in _blocks(X):
        w += block.T @ signed[start : start + block.shape[0]]
    bias_weight = claimed.bias * float(signed.sum())
    dual = math.fsum(alpha) - 0.5 * (float(w @ w) + bias_weight**2)
    return dual, violation
