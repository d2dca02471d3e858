"""``LinearSVC`` for data on a Dask cluster."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from numbers import Real
from os import PathLike
from typing import Any, ClassVar

import dask
import numpy as np
from dask.delayed import delayed
from distributed import Client, default_client
from sklearn.base import clone as clone_of
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import _check_feature_names, check_is_fitted

from certsvm.certificates.certificate import COARSE_TOL
from certsvm.dask.cluster import Cluster, ClusterLostError
from certsvm.dask.source import SOLVERS, ClusterSource, as_rows, cut_together
from certsvm.estimators.linear_svc import LinearSVC as LocalLinearSVC
from certsvm.fitting.sources import Source
from certsvm.solvers import Solver
from certsvm.training.settings import LOST, Result


class LinearSVC(LocalLinearSVC):
    """Linear SVM on a Dask cluster, with the same certificate as on one machine.

    The rows stay on the workers, in the given blocks. ``"smoothed-newton"``, whose steps are sums
    over the rows, is for few columns and very many rows. ``"cocoa"``, dual coordinate descent on
    each worker and on the free rows of all, is for all else.

    Parameters
    ----------
    C, loss, fit_intercept, intercept_scaling, penalize_intercept : various
        As for ``certsvm.LinearSVC``.
    tol : float, default=0.01
        As for ``certsvm.LinearSVC``, but coarser by default, since passes are expensive.
    class_weight, max_iter, max_time, random_state, verbose : various
        As for ``certsvm.LinearSVC``. ``max_iter`` counts passes or rounds.
    solver : str or Solver, default="auto"
        ``"smoothed-newton"`` (or ``"newton"``), ``"cocoa"``, or ``"auto"``: the former if the
        intercept is not penalised; up to 500 columns, first the one that suits the shape, and then
        the other if the gap does not fall; else the latter.
    store_dual : bool, default=False
        Whether to bring ``dual_coef_``, a number for each row, to the client.
    checkpoint : path, default=None
        A folder in which ``fit`` keeps the state of training.
    client : distributed.Client, default=None
        The client of the cluster; None means the current default client.
    deadline : float, default=60.0
        Seconds without a finished task after which the cluster counts as lost. It should be longer
        than a pass over the rows of the largest worker.
    recheck : bool, default=True
        Whether to compute the certificate again from scratch when training has ended.

    Attributes
    ----------
    coef_, intercept_, classes_, certificate_, certificates_, history_, n_iter_, solver_ : various
        As for ``certsvm.LinearSVC``.

    Notes
    -----
    A lost worker costs time only: Dask computes its blocks again, their digests are checked, and
    training goes on. If all workers or the scheduler are gone, or no task finishes for
    ``deadline`` seconds, ``fit`` raises ``ClusterLostError``. Its ``model`` is the estimator as far
    as it was trained, with its certificate, or None if nothing was trained.

    Examples
    --------
    >>> import dask.array as da
    >>> from distributed import Client
    >>> from certsvm.dask import LinearSVC
    >>> with Client(processes=False, dashboard_address=None) as client:
    ...     X = da.random.default_rng(0).normal(size=(1000, 5), chunks=(250, 5))
    ...     y = (X[:, 0] > 0).astype(int)
    ...     clf = LinearSVC(C=1.0, random_state=0).fit(X, y)
    ...     float((clf.predict(X) == y).mean().compute()) > 0.9
    True
    >>> clf.certificate_.met
    True
    """

    _doc_link_template = "https://certsvm.github.io/certsvm/api/certsvm.dask.{estimator_name}.html"

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **LocalLinearSVC._parameter_constraints,
        "solver": [StrOptions({"auto", *SOLVERS}), Solver],
        "client": "no_validation",  # type: ignore[dict-item]
        "deadline": [Interval(Real, 0, None, closed="neither")],
        "recheck": ["boolean"],
    }

    def __init__(
        self, C: float = 1.0, *, loss: str = "hinge", tol: float = COARSE_TOL,
        solver: str | Solver = "auto", fit_intercept: bool = True, intercept_scaling: float = 1.0,
        penalize_intercept: bool = True, class_weight: dict[Any, float] | str | None = None,
        max_iter: int = 1000, max_time: float | None = None,
        random_state: int | np.random.RandomState | None = None, store_dual: bool = False,
        checkpoint: str | PathLike[str] | None = None, verbose: int = 0,
        client: Client | None = None, deadline: float = 60.0, recheck: bool = True,
    ) -> None:  # fmt: skip
        super().__init__(
            C, loss=loss, tol=tol, solver=solver, fit_intercept=fit_intercept,
            intercept_scaling=intercept_scaling, penalize_intercept=penalize_intercept,
            class_weight=class_weight, max_iter=max_iter, max_time=max_time,
            random_state=random_state, store_dual=store_dual, checkpoint=checkpoint,
            verbose=verbose,
        )  # fmt: skip
        self.client, self.deadline, self.recheck = client, deadline, recheck

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> LinearSVC:
        """Train to the accuracy ``tol``, or until a limit is reached.

        Parameters
        ----------
        X : dask array, dask data frame, list of blocks, or path
            The rows, sparse or dense. Blocks may be delayed. A path is a file made by ``certsvm
            convert``, or a folder of such files, which the workers read themselves.
        y : dask array, series, list of blocks or str
            Labels; the name of their column if X is a data frame. None for a path.
        sample_weight : dask array, series, list of blocks or str, default=None
            Row weights >= 0, or the name of their column.

        Returns
        -------
        self : LinearSVC
            Fitted.

        Raises
        ------
        ClusterLostError
            If the cluster makes no progress; its ``model`` is what was trained until then.
        """
        super().fit(X, y, sample_weight)
        return self

    def _set_fitted(self, source: Source, results: Sequence[Result]) -> None:
        super()._set_fitted(source, results)
        for result in results:
            if result.reason.startswith(LOST):
                raise ClusterLostError(result.reason.removeprefix(f"{LOST}: "), copy.copy(self))

    def _source(self, X: Any, y: Any, sample_weight: Any) -> ClusterSource:
        """The data, loaded on the workers."""
        source = ClusterSource(
            Cluster(self.client or default_client(), float(self.deadline)), X, y, sample_weight,
            class_weight=self.class_weight, intercept_scaling=self._rho(), recheck=self.recheck,
        )  # fmt: skip
        if source.feature_names is not None:
            self.feature_names_in_ = np.array(source.feature_names, dtype=object)
        return source

    def partial_fit(self, *_: Any, **__: Any) -> LinearSVC:
        """Not available on a cluster, as a certificate is about all rows."""
        raise AttributeError(
            "certsvm.dask.LinearSVC has no partial_fit; fit takes data that comes in blocks"
        )

    def __sklearn_clone__(self) -> LinearSVC:
        """Clone the estimator with the same client, as a connection cannot be copied."""
        parameters = self.get_params(deep=False)
        client = parameters.pop("client")
        return type(self)(**clone_of(parameters, safe=False), client=client)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the client, which belongs to this process."""
        return {**super().__getstate__(), "client": None}

    def decision_function(self, X: Any) -> Any:
        """Decision values, lazy for a Dask collection.

        Parameters
        ----------
        X : array-like, sparse matrix or Dask collection of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        scores : array of shape (n_samples,) or (n_samples, n_classes)
            A Dask array if X is a Dask collection.
        """
        return self._lazily(X, "decision_function")

    def predict(self, X: Any) -> Any:
        """Predicted labels, lazy for a Dask collection.

        Parameters
        ----------
        X : array-like, sparse matrix or Dask collection of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        labels : array of shape (n_samples,)
            A Dask array if X is a Dask collection.
        """
        return self._lazily(X, "predict")

    def decision_interval(self, X: Any) -> Any:
        """Intervals of the exact optimum's decision values, lazy for a Dask collection.

        Parameters
        ----------
        X : array-like, sparse matrix or Dask collection of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        low, high : array of shape (n_samples,) or (n_samples, n_classes)
            Dask arrays if X is a Dask collection.
        """
        ends = self._lazily(X, "decision_interval")
        if not hasattr(X, "dask"):
            return ends
        half = ends.shape[1] // 2
        return (ends[:, 0], ends[:, 1]) if half == 1 else (ends[:, :half], ends[:, half:])

    def stability(self, X: Any, sample_weight: Any = None) -> float:
        """The share of predictions that more training could not flip.

        Parameters
        ----------
        X : array-like, sparse matrix or Dask collection of shape (n_samples, n_features)
            The rows. Those of a collection come to the client one block after the other.
        sample_weight : array-like or Dask array of shape (n_samples,), default=None
            Weights of the rows in the share.

        Returns
        -------
        share : float
            From 0 to 1.
        """
        if not hasattr(X, "dask"):
            return super().stability(X, sample_weight)
        rows = self._rows(X).to_delayed()[:, 0]
        cut = [None] * len(rows) if sample_weight is None else sample_weight.to_delayed().ravel()
        blocks = zip(rows, cut, strict=True)
        return super().stability(dask.compute(x, None, w, scheduler=self.client) for x, w in blocks)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The share of rows that are predicted rightly, by weight.

        It is computed at once, on the cluster for a Dask collection. ``(clf.predict(X) ==
        y).mean()`` is the same, lazily.

        Parameters
        ----------
        X : dask array, dask data frame, or rows in memory
            The rows.
        y : dask array, series or str, or labels in memory
            Their labels, or the name of the column.
        sample_weight : dask array, series or str, or weights in memory, default=None
            Weights of the rows, or the name of the column.

        Returns
        -------
        accuracy : float
            Between 0 and 1.
        """
        if not hasattr(X, "dask"):
            return super().score(X, y, sample_weight)
        check_is_fitted(self)
        if hasattr(X, "columns"):
            roles = [name for name in (y, sample_weight) if isinstance(name, str)]
            _check_feature_names(self, X._meta.drop(columns=roles), reset=False)
        local, blocks = self._local(), cut_together(X, y, sample_weight)
        weights = dask.compute(
            [delayed(_weights_rightly)(local, block) for block in blocks], scheduler=self.client
        )
        right, total = np.sum(weights[0], axis=0)
        return float(right / total)

    def _lazily(self, X: Any, method: str) -> Any:
        """What a method answers; for a collection, when it is computed."""
        check_is_fitted(self)
        if not hasattr(X, "dask"):
            return getattr(super(), method)(X)
        rows, local = self._rows(X), self._local()
        meta = _apply(np.empty((0, self.n_features_in_)), local, method)
        one = meta.ndim == 1
        shape = {"drop_axis": 1} if one else {"chunks": (rows.chunks[0], meta.shape[1:])}
        return rows.map_blocks(_apply, local, method, dtype=meta.dtype, meta=meta, **shape)

    def _rows(self, X: Any) -> Any:
        """A collection as a Dask array that is not cut by columns."""
        if hasattr(X, "columns"):
            _check_feature_names(self, X._meta, reset=False)
        return (X.to_dask_array() if hasattr(X, "to_dask_array") else X).rechunk({1: -1})

    def _local(self) -> LocalLinearSVC:
        """The fitted model without the client, to send with tasks."""
        local = LocalLinearSVC(fit_intercept=self.fit_intercept)
        for name in ("coef_", "intercept_", "classes_", "n_features_in_", "certificates_"):
            setattr(local, name, getattr(self, name))
        return local


def _weights_rightly(local: LocalLinearSVC, block: tuple[Any, Any, Any]) -> tuple[float, float]:
    """The weight of the rows of a block that are predicted rightly, and of all its rows."""
    X, y, weights = block
    right = _apply(as_rows(X), local, "predict") == np.asarray(y).ravel()
    weights = np.ones(len(y)) if weights is None else np.asarray(weights, dtype=np.float64).ravel()
    return float(weights[right].sum()), float(weights.sum())


def _apply(block: Any, local: LocalLinearSVC, method: str) -> Any:
    """What a method answers to a block; of intervals, the ends side by side."""
    if block.shape[0] == 0:
        return _apply(np.zeros((1, local.n_features_in_)), local, method)[:0]
    answer = getattr(local, method)(block)
    return np.column_stack(answer) if isinstance(answer, tuple) else answer
