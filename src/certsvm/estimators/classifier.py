"""What a fitted classifier answers: scores, labels, intervals, a model to save and a report.

Arrays and sparse matrices go through scikit-learn's checks, and answers are arrays. Tensors are
answered where they are, with tensors.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from importlib.util import find_spec
from os import PathLike
from types import ModuleType
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn import config_context
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from certsvm.certificates.certificate import tidy
from certsvm.files.scores import OptimumMixin, products
from certsvm.fitting.sources import MemorySource
from certsvm.kernels.losses import loss_named
from certsvm.matrices import checked_csr, dense, exact_labels, refuse_broken
from certsvm.problem.base import Objective
from certsvm.training.history import History
from certsvm.verification import optimum_intervals
from certsvm.verification.optimum_intervals import Array, OptimumIntervals, RowSizes

if TYPE_CHECKING:
    from certsvm.files.model import Model
    from certsvm.report import PageFile


_VERIFICATION = "import certsvm\n\nprint(certsvm.verify(clf, X, y))  # with the training data"


class LinearClassifier(OptimumMixin, ClassifierMixin, BaseEstimator):
    """A linear classifier with certificates."""

    _doc_link_module = "certsvm"
    _doc_link_template = "https://certsvm.github.io/certsvm/api/certsvm.{estimator_name}.html"

    classes_: NDArray[Any]
    # An array, or after sparsify a CSR matrix.
    coef_: Any
    # None after partial_fit.
    certificates_: Any

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.classifier_tags.multi_label = True
        # array_api_support would promise more than answers in kind: attributes on the device of X,
        # and no answers elsewhere. Ours are on the host, for verification, files and other data.
        return tags

    def _validated(self, X: Any, *given: Any, **checks: Any) -> Any:
        """X, and y if given, after scikit-learn's checks; data of our types are not copied."""
        # SciPy's conversion to CSR adds up values that are stored twice in their own type: of
        # single precision, of eight bits, or of one. Verification would find other rows.
        if sp.issparse(X):
            X = checked_csr(X)
        else:
            refuse_broken(X)
        # All arrays become NumPy's, whatever array_api_dispatch says.
        with config_context(array_api_dispatch=False):
            return validate_data(
                self, X, *given, accept_sparse="csr", dtype=[np.float64, np.float32], **checks
            )

    def _scores(self, X: Any) -> Any:
        """Scores in float64, a column for each problem; of tensors, a tensor."""
        check_is_fitted(self)
        if are_tensors(X):
            return answers().scores_of(self, X)
        return products(self._validated(X, reset=False), self.coef_) + self.intercept_

    def decision_function(self, X: Any) -> Any:
        """Signed distances to the separating hyperplanes, times the norms of their weights.

        Parameters
        ----------
        X : array-like, sparse matrix or tensor of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        scores : ndarray, or tensor for a tensor, of shape (n_samples,) or (n_samples, n_classes)
            Positive where the row belongs to ``classes_[1]``, or to the column's class.
        """
        scores = self._scores(X)
        return self._like(X, scores.ravel() if scores.shape[1] == 1 else scores)

    def predict(self, X: Any) -> Any:
        """Predict labels.

        Parameters
        ----------
        X : array-like, sparse matrix or tensor of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        labels : ndarray, or tensor for a tensor and labels that are numbers, of shape (n_samples,)
            Taken from ``classes_``. After a fit to several labels a row, zeros and ones of shape
            (n_samples, n_classes).
        """
        if are_tensors(X):
            check_is_fitted(self)
            return answers().predict(self, X)
        scores = self._scores(X)
        if self.multilabel_:
            return (scores > 0).astype(np.int64)
        return self.classes_[(scores[:, 0] > 0) * 1 if scores.shape[1] == 1 else scores.argmax(1)]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The share of rows that are predicted rightly, by weight; of several labels, all of them.

        Parameters
        ----------
        X : array-like, sparse matrix or tensor of shape (n_samples, n_features)
            The rows.
        y : array-like or tensor of shape (n_samples,)
            Their labels.
        sample_weight : array-like or tensor of shape (n_samples,), default=None
            Weights of the rows.

        Returns
        -------
        accuracy : float
            Between 0 and 1.
        """
        if are_tensors(X):
            check_is_fitted(self)
            return float(answers().score(self, X, y, sample_weight))
        exact_labels(y)
        return float(super().score(X, y, sample_weight))

    def top_k_accuracy(self, X: Any, y: Any, k: int = 5, sample_weight: Any = None) -> float:
        """The share of rows whose label is among the k classes of the highest scores, by weight.

        Tensors are answered in batches, where they are.

        Parameters
        ----------
        X : array-like, sparse matrix or tensor of shape (n_samples, n_features)
            The rows.
        y : array-like or tensor of shape (n_samples,)
            Their labels.
        k : int, default=5
            How many classes count.
        sample_weight : array-like or tensor of shape (n_samples,), default=None
            Weights of the rows.

        Returns
        -------
        accuracy : float
            Between 0 and 1.
        """
        check_is_fitted(self)
        if self.multilabel_ or not 1 <= k < len(self.classes_):
            raise ValueError(
                f"top_k_accuracy needs one label a row and 1 <= k < {len(self.classes_)}, the "
                f"number of classes, got k={k}"
            )
        if are_tensors(X):
            return float(answers().score(self, X, y, sample_weight, k))
        scores = self._scores(X)
        of_classes = np.hstack([-scores, scores]) if scores.shape[1] == 1 else scores
        # As predict does, of equal scores take the first.
        top = np.argsort(-of_classes, axis=1, kind="stable")[:, :k]
        right = [are_right(labels, y) for labels in self.classes_[top].T]
        return float(np.average(np.any(right, axis=0), weights=sample_weight))

    def sparsify(self) -> Self:
        """Make ``coef_`` a sparse matrix, which takes less memory where most weights are zero.

        The weight of a column is zero if no row has a value there, which is common with hashed
        features, or if no support vector has. Where more than two thirds of the weights are not
        zero, the sparse matrix takes more memory than the array.

        Certificates stay valid, and all methods work as before; ``fit`` and ``partial_fit`` make
        ``coef_`` dense again.

        Returns
        -------
        self : LinearSVC
            With ``coef_`` as a CSR matrix.

        Examples
        --------
        >>> import scipy.sparse as sp
        >>> from certsvm import LinearSVC
        >>> X = sp.csr_matrix(([1.0, 1.0], ([0, 1], [3, 700])), shape=(2, 1000))
        >>> clf = LinearSVC(random_state=0).fit(X, [0, 1]).sparsify()
        >>> clf.coef_.nnz, clf.predict(X).tolist()
        (2, [0, 1])
        """
        check_is_fitted(self)
        self.coef_ = sp.csr_matrix(self.coef_)
        return self

    def densify(self) -> Self:
        """Make ``coef_`` an array again, after ``sparsify``.

        Returns
        -------
        self : LinearSVC
            With ``coef_`` as an array.
        """
        check_is_fitted(self)
        self.coef_ = dense(self.coef_)
        return self

    def to_model(self, X: Any = None, y: Any = None, sample_weight: Any = None) -> Model:
        """The fitted model, to be saved without pickle.

        Parameters
        ----------
        X : array-like, sparse matrix or tensor of shape (n_samples, n_features), default=None
            The training data, after a fit with ``store_dual=True``. With them, the model has their
            fingerprint and a witness: anyone who has the data can recompute both bounds of its
            certificate.
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
        from certsvm.files.model import Model
        from certsvm.fitting.fit_model import joined, proof
        from certsvm.verification.verify import verify

        check_is_fitted(self)
        if (X is None) != (y is None) or (X is None and sample_weight is not None):
            raise ValueError("to_model takes both X and y, the training data, or neither")
        model = Model.from_estimator(self)
        if X is None:
            return model
        if not hasattr(self, "dual_coef_"):
            raise ValueError("a proof needs the dual point: fit with store_dual=True")
        X, y, weights = self._validate(*map(on_host, (X, y, sample_weight)), reset=False)
        report = verify(self, X, y, weights)
        if not report.dual_verified:
            raise ValueError(
                f"The certificate is {report.verdict} by these data: they seem not to be the "
                f"training data, with weights and in their order:\n{report}"
            )
        c = model.certificates[0]
        source = MemorySource(
            X, y, weights, intercept_scaling=c.intercept_scaling,
            class_weight=dict(zip(model.classes.tolist(), model.class_weight, strict=True)),
        )  # fmt: skip
        objective = Objective(c.C, loss_named(c.loss), c.penalize_intercept)
        points = enumerate(zip(model.certificates, self.dual_coef_, strict=True))
        proofs = [proof(source.problem(i, objective), c, alpha) for i, (c, alpha) in points]
        certificates, witnesses = zip(*proofs, strict=True)
        return replace(
            model, certificates=certificates, witness=joined(witnesses),
            fingerprint=source.fingerprint,
            parameters=model.parameters | ({"float32": True} if source.float32 else {}),
        )  # fmt: skip

    def report(
        self, path: str | PathLike[str] | None = None, X: Any = None, y: Any = None
    ) -> PageFile | None:
        """Write a report of the fit: one HTML page that needs nothing else.

        It has the certificate as a sentence, J and L closing in on each other, the largest weights
        with intervals that contain those of the exact optimum, parameters and versions. Needs
        ``certsvm[plot]``.

        Parameters
        ----------
        path : path, default=None
            The file to write; None means a temporary one.
        X : array-like, sparse matrix or tensor of shape (n_samples, n_features), default=None
            Rows to predict: the report then has the share of predictions that more training could
            not flip.
        y : array-like or tensor of shape (n_samples,), default=None
            Their labels, for a confusion matrix with precision and recall of each class.

        Returns
        -------
        page : str or None
            Without ``path``, the path of the page. Notebooks show the page itself.

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
        from certsvm.report import fit_report, write_page

        check_is_fitted(self)
        return write_page(path, fit_report(self._facts(X, y)))

    def _facts(self, X: Any, y: Any) -> Any:
        """What a page tells: the model, its history and what it answers on X, if given."""
        from certsvm.files.model import Model
        from certsvm.report import Evaluation, Fit

        evaluation = None
        if X is None and y is not None:
            raise ValueError("y without X: give the rows to predict, too")
        if X is not None:
            predicted, confusion = np.asarray(on_host(self.predict(X))), None
            # A free intercept has no interval, and so no score has one.
            free = any(certificate.free_intercept for certificate in self.certificates_ or ())
            if y is not None:
                labels = exact_labels(on_host(y))
                are_right(predicted, labels)
                pairs = (map(tidy, given.tolist()) for given in (labels, predicted))
                confusion = Counter(zip(*pairs, strict=True))
            stability = None if free else self.stability(X)
            evaluation = Evaluation(len(predicted), stability, confusion)
        # There is none after partial_fit.
        histories = getattr(self, "history_", None)
        return Fit(
            Model.from_estimator(self), _VERIFICATION, dual_kept=hasattr(self, "dual_coef_"),
            evaluation=evaluation,
            histories=[histories] if isinstance(histories, History) else histories,
            n_rows=getattr(self, "n_samples_seen_", None),
        )  # fmt: skip

    def _optimum(self) -> OptimumIntervals:
        check_is_fitted(self)
        return super()._optimum()

    def _scores_and_sizes(self, X: Any) -> tuple[Array, RowSizes]:
        if are_tensors(X):
            return self._scores(X).cpu().numpy(), answers().row_sizes(X)
        X = optimum_intervals.added_up(self._validated(X, reset=False))
        return products(X, self.coef_) + self.intercept_, optimum_intervals.row_sizes(X)

    def _to_host(self, values: Any) -> Any:
        return on_host(values)

    def _like(self, X: Any, values: NDArray[Any], *, upwards: bool | None = None) -> Any:
        return answers().rounded(X, values, upwards) if are_tensors(X) else values


def are_right(answers: Any, y: Any) -> NDArray[np.bool_]:
    """Which predicted labels are the given ones."""
    answers, labels = np.asarray(answers), exact_labels(y)
    # A column of labels, or a single one, would be compared with all answers.
    if labels.shape != answers.shape:
        raise ValueError(f"{answers.size} rows do not go with labels of shape {labels.shape}")
    right: NDArray[np.bool_] = answers == labels
    return right


def are_tensors(X: Any) -> bool:
    """Whether X is a tensor, or something on a device that can be made one."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(X, torch.Tensor):
        return True
    if isinstance(X, np.ndarray | np.generic) or not hasattr(X, "__dlpack_device__"):
        return False
    # CuPy's arrays and their like. What is on the CPU, NumPy can take as well.
    return X.__dlpack_device__()[0] != 1 and find_spec("torch") is not None


def answers() -> ModuleType:
    """``certsvm.torch.answers``."""
    from certsvm.torch import answers

    return answers


def on_host(values: Any) -> Any:
    """Labels or weights as an array, if they are a tensor."""
    return answers().host(values) if are_tensors(values) else values


def fitted_attributes(estimator: Any) -> dict[str, Any]:
    """What ``fit`` has set for users."""
    return {name: value for name, value in vars(estimator).items() if name.endswith("_")}


@contextmanager
def rollback(estimator: Any) -> Iterator[None]:
    """Put all attributes back if an exception passes: a failed fit changes nothing."""
    before = dict(vars(estimator))
    try:
        yield
    except BaseException:
        vars(estimator).clear()
        vars(estimator).update(before)
        raise
