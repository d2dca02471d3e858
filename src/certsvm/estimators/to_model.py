"""Models of fitted estimators, with a proof that others can recompute."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sklearn.utils.validation import check_is_fitted

from certsvm.certificates.verification import verify
from certsvm.estimators import tensors
from certsvm.fitting.sources import MemorySource
from certsvm.fitting.witnesses import Witnesses
from certsvm.kernels.losses import loss_named
from certsvm.models.model import Model
from certsvm.problem.objective import Objective
from certsvm.storage.fingerprint import Fingerprint


class ModelMixin:
    """Turns a fitted estimator into a ``Model``, which can be saved."""

    def to_model(self, X: Any = None, y: Any = None, sample_weight: Any = None) -> Model:
        """The fitted model, to be saved without pickle.

        Parameters
        ----------
        X : array-like, sparse matrix or tensor of shape (n_samples, n_features), default=None
            The training data. With them, the model has their fingerprint and, after a fit with
            ``store_dual=True``, a witness: anyone who has the data can recompute both bounds of
            its certificate. The certificate is verified first.
        y : array-like or tensor of shape (n_samples,), default=None
            Their labels.
        sample_weight : array-like or tensor of shape (n_samples,), default=None
            Their weights, if the fit had weights.

        Returns
        -------
        model : Model
            With copies of the estimator's arrays. The witness stores each dual variable in as few
            bits as the target allows, so that its bound can be a little lower.

        Examples
        --------
        >>> from sklearn.datasets import make_classification
        >>> from certsvm import LinearSVC, verify_model
        >>> X, y = make_classification(random_state=0)
        >>> clf = LinearSVC(C=0.1, store_dual=True, random_state=0).fit(X, y)
        >>> model = clf.to_model(X, y)
        >>> verify_model(model, [(X, y)]).verdict
        'confirmed'
        """
        check_is_fitted(self)
        if (X is None) != (y is None) or (X is None and sample_weight is not None):
            raise ValueError("to_model takes both X and y, the training data, or neither")
        return Model.from_estimator(self) if X is None else _proved(self, X, y, sample_weight)


def _proved(clf: Any, X: Any, y: Any, sample_weight: Any) -> Model:
    given = (tensors.on_host(values) for values in (X, y, sample_weight))
    X, y, weights = clf._validate(*given, reset=False)
    # The witness's bound is computed from these data, and J is not.
    report = verify(clf, X, y, weights)
    if not report.ok:
        raise ValueError(
            f"The certificate is {report.verdict} by these data, so they do not seem to be the "
            f"training data, with their weights and in their order:\n{report}"
        )
    model = Model.from_estimator(clf, Fingerprint.of(X, y))
    if not report.dual_verified:
        return model
    claim = clf.certificates_[0]
    source = MemorySource(
        X, y, weights, class_weight=dict(zip(clf.classes_, clf.class_weight_, strict=True)),
        intercept_scaling=claim.intercept_scaling,
    )  # fmt: skip
    objective = Objective(claim.C, loss_named(claim.loss), claim.penalize_intercept)
    witnesses = Witnesses()
    certificates = tuple(
        witnesses.keep(i, source.problem(i, objective), certificate, alpha)
        for i, (certificate, alpha) in enumerate(
            zip(clf.certificates_, clf.dual_coef_, strict=True)
        )
    )
    joined = witnesses.joined(len(certificates))
    return replace(model, certificates=certificates, witness=joined)
