"""Checking a certificate from scratch, on another path.

Nothing here is shared with training: no compiled code, no rows prepared for kernels, only
NumPy and SciPy on the data as given. J is recomputed from the coefficients. If the model keeps
its dual point alpha, or a witness from which alpha follows, the box is checked entry by entry,
sum_k alpha_k y_k is rebuilt from the rows, and L follows; otherwise the dual bound can only be
reported as claimed. The rows are taken a block at a time, so they need not fit in memory.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from certsvm.certificates.agreement import LARGEST_ALLOWANCE, RECOMPUTATION_TOLERANCE
from certsvm.certificates.certificate import PRIMAL_ONLY, Certificate, percent, tidy
from certsvm.storage.fingerprint import Fingerprint, FingerprintBuilder

Vector: TypeAlias = NDArray[np.float64]
Blocks: TypeAlias = Iterable[tuple[Any, ...]]
"""Rows, labels and perhaps weights, a block at a time."""
AlphaOf: TypeAlias = Callable[[Any, Vector, Vector, int], Vector]
"""alpha of a block: called with the rows, +-1, their weights s_k and how many rows came before."""

_ROWS_AT_ONCE = 8192


class AlphaSource(Protocol):
    """What the dual points of all problems follow from, such as a witness."""

    @property
    def n_rows(self) -> int | None:
        """How many rows it is about; None if alpha follows for any number of rows."""

    def alpha_of(
        self, i: int, claimed: Certificate, X: Any, signs: Vector, weights: Vector, first: int
    ) -> Vector:
        """The i-th problem's alpha of a block of rows that ``first`` rows come before."""


class CertifiedModel(Protocol):
    """What is verified of a model: its weights, and the claims about them."""

    @property
    def coef(self) -> Vector:
        """Weights of the columns, of shape (n_problems, n_features)."""

    @property
    def intercept(self) -> Vector:
        """Intercepts, of shape (n_problems,)."""

    @property
    def classes(self) -> NDArray[Any]:
        """Labels, ascending."""

    @property
    def class_weight(self) -> Vector:
        """The factors of the weights of each class's rows."""

    @property
    def certificates(self) -> Sequence[Certificate]:
        """One for each problem, or none."""

    @property
    def witness(self) -> AlphaSource | None:
        """What the dual bounds can be recomputed from."""

    @property
    def fingerprint(self) -> Fingerprint | None:
        """Of the training data."""


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
        tolerance = RECOMPUTATION_TOLERANCE * max(abs(c.primal), abs(c.dual))
        if max(c.primal_rounding, c.dual_rounding) > LARGEST_ALLOWANCE * abs(c.primal):
            return False
        if abs(self.primal - c.primal) > c.primal_rounding + tolerance:
            return False
        if self.dual is None:
            # Weak duality: no J may lie below a true dual bound.
            return self.primal >= c.dual - c.dual_rounding - tolerance
        agrees = abs(self.dual - c.dual) <= c.dual_rounding + tolerance
        return self.box_violation == 0.0 and agrees

    def __str__(self) -> str:
        how = (
            "no dual bound (certsvm.bound finds one)"
            if self.claimed.bound == PRIMAL_ONLY
            else f"dual {self.claimed.dual:.6g} claimed, not verified: that takes the dual point"
        )
        dual = how if self.dual is None else f"dual {self.dual:.6g} recomputed from alpha"
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
        Whether the data are those the model was trained on, by their fingerprint; None if the
        model has none.
    """

    same_data: bool | None = None

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
    weights = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    if weights is not None and weights.ndim == 0:
        weights = np.full(n_rows, float(weights))
    if weights is not None and weights.shape != (n_rows,):
        raise ValueError(f"X has {n_rows} rows, but sample_weight has shape {weights.shape}")
    alphas = getattr(clf, "dual_coef_", None)
    source = None if alphas is None else _KeptAlphas(alphas)
    if source is not None and source.n_rows != n_rows:
        raise ValueError(f"the model keeps {source.n_rows} dual variables, X has {n_rows} rows")
    recounts = _recounts(clf.coef_, clf.intercept_, certificates, source)
    for _ in _recounted(recounts, clf.classes_, clf.class_weight_, [(X, labels, weights)]):
        pass
    return _report(recounts, clf.classes_)


def verify_model(model: CertifiedModel, blocks: Blocks) -> VerificationReport:
    """Recompute a saved model's certificate from the training data.

    Parameters
    ----------
    model : certsvm.Model
        The model; with its witness, the dual bounds are recomputed too.
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
    recounts = _recounts(model.coef, model.intercept, model.certificates, model.witness)
    fingerprint = FingerprintBuilder(model.coef.shape[1])
    n_rows = 0
    for X, labels in _recounted(recounts, model.classes, model.class_weight, blocks):
        fingerprint.update(X, labels)
        n_rows += X.shape[0]
    if model.witness is not None and model.witness.n_rows not in (None, n_rows):
        raise ValueError(f"the witness is about {model.witness.n_rows} rows, the data has {n_rows}")
    report = _report(recounts, model.classes)
    if model.fingerprint is not None:
        report.same_data = fingerprint.finish() == model.fingerprint
    return report


class _Recount:
    """J and L of one problem, from scratch."""

    def __init__(
        self, coef: Vector, intercept: float, claimed: Certificate, alpha: AlphaOf | None
    ) -> None:
        self._coef = coef
        self._intercept = intercept
        self.claimed = claimed
        self._alpha = alpha
        self._losses: list[float] = []
        self._alpha_sums: list[float] = []
        self._w = np.zeros(coef.size)
        self._bias_sum: list[float] = []
        self.violation = 0.0

    def add(self, X: Any, signs: Vector, weights: Vector, first: int) -> None:
        """Count a block of rows in."""
        margins = signs * (X @ self._coef + self._intercept)
        self._losses.append(float(weights @ np.maximum(0.0, 1.0 - margins)))
        if self._alpha is None:
            return
        alpha = self._alpha(X, signs, weights, first)
        excess = np.maximum(-alpha, alpha - self.claimed.C * weights)
        finite = bool(np.isfinite(alpha).all())
        worst = float(np.max(excess, initial=0.0)) if finite else math.inf
        self.violation = max(self.violation, worst)
        signed = signs * alpha
        self._w += X.T @ signed
        self._bias_sum.append(float(signed.sum()))
        self._alpha_sums.append(math.fsum(alpha))

    def primal(self) -> float:
        """J."""
        intercept_scaling = self.claimed.intercept_scaling
        bias_weight = self._intercept / intercept_scaling if intercept_scaling > 0 else 0.0
        squared_norm = float(self._coef @ self._coef) + bias_weight**2
        return 0.5 * squared_norm + self.claimed.C * math.fsum(self._losses)

    def dual(self) -> float | None:
        """L; None without alpha."""
        if self._alpha is None:
            return None
        bias_weight = self.claimed.intercept_scaling * math.fsum(self._bias_sum)
        squared_norm = float(self._w @ self._w) + bias_weight**2
        return math.fsum(self._alpha_sums) - 0.5 * squared_norm


@dataclass(frozen=True)
class _KeptAlphas:
    """The dual points as a fitted estimator keeps them."""

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
        _Recount(
            coef[i], float(intercept[i]), claimed,
            None if source is None else partial(source.alpha_of, i, claimed),
        )
        for i, claimed in enumerate(claims)
    ]  # fmt: skip


def _recounted(
    recounts: Sequence[_Recount], classes: NDArray[Any], class_weight: Vector, blocks: Blocks
) -> Iterator[tuple[Any, NDArray[Any]]]:
    """Count all blocks in, and pass rows and labels on."""
    first = 0
    for X, labels, *rest in blocks:
        row_weights = rest[0] if rest else None
        X = X.tocsr() if sp.issparse(X) else np.asarray(X)
        if X.shape[1] != recounts[0]._coef.size:
            raise ValueError(f"X has {X.shape[1]} columns, the model {recounts[0]._coef.size}")
        position = np.searchsorted(classes, np.asarray(labels).ravel())
        if not np.array_equal(classes[np.minimum(position, classes.size - 1)], labels):
            raise ValueError("y contains labels that the model was not trained on")
        weights = class_weight[position] if row_weights is None else (
            row_weights * class_weight[position])  # fmt: skip
        for start in range(0, X.shape[0], _ROWS_AT_ONCE):
            part = slice(start, start + _ROWS_AT_ONCE)
            rows = X[part].astype(np.float64)
            for i, recount in enumerate(recounts):
                positive = 1 if classes.size == 2 else i
                signs = np.where(position[part] == positive, 1.0, -1.0)
                recount.add(rows, signs, weights[part], first + start)
        first += X.shape[0]
        yield X, labels


def _report(recounts: Sequence[_Recount], classes: NDArray[Any]) -> VerificationReport:
    positive = classes[1:] if classes.size == 2 else classes
    return VerificationReport(
        Verification(r.claimed, r.primal(), r.dual(), r.violation, label)
        for r, label in zip(recounts, positive, strict=True)
    )
