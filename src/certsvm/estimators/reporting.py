"""Reports of fitted estimators: one HTML page each."""

from __future__ import annotations

from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from certsvm.estimators import tensors
from certsvm.matrices import exact_labels
from certsvm.training.history import History

if TYPE_CHECKING:
    from certsvm.report.fit import Check, Evaluation

_VERIFICATION = "import certsvm\n\nprint(certsvm.verify(clf, X, y))  # with the training data"


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
        from certsvm.models.model import Model
        from certsvm.report.fit import fit_report
        from certsvm.report.page import write_page

        check_is_fitted(self)
        content = fit_report(
            Model.from_estimator(self),
            check_of(self),
            evaluation=evaluation_of(self, X, y),
            histories=histories_of(self),
            n_rows=getattr(self, "n_samples_seen_", None),
        )
        write_page(path, content)


def check_of(clf: Any) -> Check:
    """How others can check a fitted classifier."""
    from certsvm.report.fit import Check

    return Check(_VERIFICATION, dual_kept=hasattr(clf, "dual_coef_"))


def histories_of(clf: Any) -> list[History] | None:
    """The history of each problem; none after ``partial_fit``."""
    found = getattr(clf, "history_", None)
    if found is None or clf.certificates_ is None:
        return None
    return [found] if isinstance(found, History) else list(found)


def are_right(answers: Any, y: Any) -> NDArray[np.bool_]:
    """Which predicted labels are the given ones."""
    answers, labels = np.asarray(answers), exact_labels(y)
    # A column of labels, or a single one, would be compared with all answers.
    if labels.shape != answers.shape:
        raise ValueError(f"{answers.size} rows do not go with labels of shape {labels.shape}")
    right: NDArray[np.bool_] = answers == labels
    return right


def evaluation_of(clf: Any, X: Any, y: Any) -> Evaluation | None:
    """What a fitted classifier answers on some rows, if there are any."""
    from certsvm.report.fit import Evaluation
    from certsvm.storage.fingerprint import Fingerprint

    if X is None:
        if y is not None:
            raise ValueError("y without X: give the rows to predict, too")
        return None
    answers, accuracy = clf.predict(X), None
    # A free intercept has no interval, and so no score has one.
    free = any(certificate.free_intercept for certificate in clf.certificates_ or ())
    stability = None if free else float(clf.stability(X))
    if y is not None:
        accuracy = float(np.mean(are_right(tensors.on_host(answers), tensors.on_host(y))))
    found = None
    if y is not None and not tensors.are_tensors(X) and not hasattr(X, "dask"):
        found = Fingerprint.of(X, y)
    return Evaluation(int(X.shape[0]), stability, accuracy, found)
