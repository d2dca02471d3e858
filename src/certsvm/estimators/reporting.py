"""Reports of fitted estimators: one HTML page each."""

from __future__ import annotations

from os import PathLike
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from certsvm.estimators import tensors
from certsvm.models.model import Model
from certsvm.report.fit import Evaluation, fit_report
from certsvm.report.page import write_page
from certsvm.storage.fingerprint import Fingerprint
from certsvm.training.history import History

VERIFICATION = "import certsvm\n\nprint(certsvm.verify(clf, X, y))  # with the training data"


class DocumentedMixin:
    """Links scikit-learn's diagram of an estimator to its page."""

    _doc_link_module = "certsvm"
    _doc_link_template = "https://certsvm.github.io/certsvm/api/certsvm.{estimator_name}.html"


class ReportMixin(DocumentedMixin):
    """Writes a report of the fit."""

    def report(self, path: str | PathLike[str], X: Any = None, y: Any = None) -> None:
        """Write a report of the fit: one HTML page that needs nothing else.

        It has the certificate as a sentence, J and L closing in on each other, the largest weights
        with intervals that contain those of the exact optimum, parameters and versions.

        Parameters
        ----------
        path : path
            The file to write.
        X : array-like, sparse matrix or tensor of shape (n_samples, n_features), default=None
            Rows to predict: the report then has the share of predictions that more training could
            not flip.
        y : array-like or tensor of shape (n_samples,), default=None
            Their labels, for the share of right predictions.

        Examples
        --------
        >>> import os, tempfile
        >>> from sklearn.datasets import load_iris
        >>> from certsvm import LinearSVC
        >>> X, y = load_iris(return_X_y=True, as_frame=True)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = os.path.join(folder, "fit.html")
        ...     LinearSVC().fit(X, y).report(path, X, y)
        ...     page = open(path).read()
        >>> "petal width" in page, "could not flip" in page
        (True, True)
        """
        check_is_fitted(self)
        content = fit_report(
            Model.from_estimator(self),
            evaluation=evaluation_of(self, X, y),
            verification=VERIFICATION,
            histories=histories_of(self),
        )
        write_page(path, content)


def histories_of(clf: Any) -> list[History] | None:
    """The history of each problem; none after ``partial_fit``."""
    found = getattr(clf, "history_", None)
    if found is None or clf.certificates_ is None:
        return None
    return [found] if isinstance(found, History) else list(found)


def evaluation_of(clf: Any, X: Any, y: Any) -> Evaluation | None:
    """What a fitted classifier answers on some rows, if there are any."""
    if X is None:
        if y is not None:
            raise ValueError("y without X: give the rows to predict, too")
        return None
    accuracy = None
    if y is not None:
        answers = np.asarray(tensors.on_host(clf.predict(X)))
        accuracy = float(np.mean(answers == np.asarray(tensors.on_host(y))))
    # A free intercept has no interval, and so have scores.
    free = any(certificate.free_intercept for certificate in clf.certificates_ or ())
    stability = None if free else float(clf.stability(X))
    found = None
    if y is not None and not tensors.are_tensors(X) and not hasattr(X, "dask"):
        found = Fingerprint.of(X, y)
    return Evaluation(int(X.shape[0]), stability, accuracy, found)
