"""Models of fitted estimators, with a proof that others can recompute."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from certsvm.certificates.primal import primal_bound
from certsvm.estimators import tensors
from certsvm.fitting.sources import MemorySource
from certsvm.kernels.losses import loss_named
from certsvm.problem.objective import Objective

if TYPE_CHECKING:
    from certsvm.models.model import Model


class ModelMixin:
    """Turns a fitted estimator into a ``Model``, which can be saved."""

    def to_model(self, X: Any = None, y: Any = None, sample_weight: Any = None) -> Model:
        """The fitted model, to be saved without pickle.

        Parameters
        ----------
        X : array-like, sparse matrix or tensor of shape (n_samples, n_features), default=None
            The training data, after a fit with ``store_dual=True``. With them, the model has their
            fingerprint and a witness: anyone who has the data can recompute both bounds of its
            certificate, which are computed anew from them.
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
        from certsvm.models.model import Model

        check_is_fitted(self)
        if (X is None) != (y is None) or (X is None and sample_weight is not None):
            raise ValueError("to_model takes both X and y, the training data, or neither")
        return Model.from_estimator(self) if X is None else _proved(self, X, y, sample_weight)


def _proved(clf: Any, X: Any, y: Any, sample_weight: Any) -> Model:
    from certsvm.fitting.witnesses import joined, proof
    from certsvm.models.model import Model
    from certsvm.storage.fingerprint import Fingerprint
    from certsvm.verification.verify import verify

    given = (tensors.on_host(values) for values in (X, y, sample_weight))
    if not hasattr(clf, "dual_coef_"):
        raise ValueError(
            "a proof of these data needs the dual point: fit with store_dual=True. Without data, "
            "to_model() is the model with its certificate as a claim."
        )
    X, y, weights = clf._validate(*given, reset=False)
    report = verify(clf, X, y, weights)
    if not report.dual_verified:
        raise ValueError(
            f"The certificate is {report.verdict} by these data, so they do not seem to be the "
            f"training data, with their weights and in their order:\n{report}"
        )
    model = Model.from_estimator(clf, Fingerprint.of(X, y))
    claim = clf.certificates_[0]
    source = MemorySource(
        X, y, weights, class_weight=dict(zip(clf.classes_, clf.class_weight_, strict=True)),
        intercept_scaling=claim.intercept_scaling,
    )  # fmt: skip
    if not np.array_equal(source.classes, clf.classes_):
        raise ValueError(f"y has not all classes of the fit, {clf.classes_.tolist()}")
    objective = Objective(claim.C, loss_named(claim.loss), claim.penalize_intercept)
    proofs = []
    for i, certificate in enumerate(clf.certificates_):
        problem = source.problem(i, objective)
        # What was verified may differ in the last digits, so J is that of these data, as L is.
        w = problem.weight_vector(model.coef[i], float(model.intercept[i]))
        J = primal_bound(problem, w)
        certificate = replace(certificate, primal=J.value, primal_rounding=J.rounding)
        proofs.append(proof(problem, certificate, clf.dual_coef_[i]))
    certificates, witnesses = zip(*proofs, strict=True)
    return replace(model, certificates=certificates, witness=joined(witnesses))
