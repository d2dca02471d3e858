"""LinearSVC: the classifier."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from numbers import Integral, Real
from os import PathLike
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from joblib import effective_n_jobs
from numpy.typing import NDArray
from sklearn import config_context
from sklearn.base import _fit_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_feature_names, _check_sample_weight

from certsvm.certificates.certificate import DEFAULT_TOL, Certificates
from certsvm.estimators.classifier import LinearClassifier, are_tensors, on_host, rollback
from certsvm.estimators.sklearn_callbacks import CallbackSupportMixin, FitTasks
from certsvm.files.model import listing
from certsvm.files.scores import binary_problems, positive_classes
from certsvm.fitting.fit_classes import fit_classes
from certsvm.fitting.sources import MemorySource, Source, class_factors
from certsvm.kernels.losses import HINGE, LOSSES, loss_named
from certsvm.matrices import dense, exact_labels, refuse_changed_labels, refuse_masked
from certsvm.problem.base import Objective
from certsvm.problem.problems import Problem
from certsvm.problem.rows import Rows, join, split
from certsvm.resources import require_memory_for
from certsvm.scalars import as_float
from certsvm.solvers import Solver, Start
from certsvm.training.history import Histories, History, shown_passes
from certsvm.training.settings import INTERRUPTED, Result, Settings


def _learns_online(estimator: LinearSVC) -> bool:
    """True if ``partial_fit`` minimises this objective; else an error that says why not."""
    instead = "batches for other objectives go to fit, or as a stream to fit_stream"
    if estimator.loss != HINGE.name:
        raise ValueError(f"partial_fit is for loss={HINGE.name!r}: {instead}")
    if estimator.fit_intercept and not estimator.penalize_intercept:
        raise ValueError(f"partial_fit is not for penalize_intercept=False: {instead}")
    return True


class LinearSVC(CallbackSupportMixin, LinearClassifier):
    """Linear support vector classifier that proves how close to the optimum it is.

    Minimises the hinge loss, or its square, with an L2 penalty,

        J(w) = 1/2 |w|^2 + C * sum_k s_k * l(w.y_k),     y_k = +-[x_k, intercept_scaling],

    where the sign of y_k is the label of row k, and ``l(m)`` is ``max(0, 1 - m)`` or its square.
    Training stops when ``J(w) <= (1 + tol) * J_opt`` is proved. The proof is kept in
    ``certificate_``.

    The intercept is the weight of a constant column of height ``intercept_scaling``. By default
    it is regularised like the others, as in liblinear: a larger height regularises it less and
    slows training. With ``penalize_intercept=False``, the penalty leaves it out.

    The keywords are those of ``sklearn.svm.LinearSVC`` and more; ``docs/migration.md`` says which
    of them mean something else here. Prefer that class for an L1 penalty, and
    ``sklearn.linear_model.SGDClassifier`` for other losses.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the loss against the penalty; larger means less regularisation.
    loss : {"hinge", "squared_hinge"}, default="hinge"
        The loss of a row. (The default of ``sklearn.svm.LinearSVC`` is ``"squared_hinge"``.)
    tol : float, default=1e-4
        Relative accuracy to be proved: training ends when ``J(w) / J_opt - 1 <= tol`` is
        certain. It is relative to the optimal objective value, so 0.01 means one per cent for
        any data, any scaling and any C.
    solver : str or Solver, default="auto"
        A name from ``certsvm.solvers.SOLVERS``. Of these, ``"working-set"``, ``"newton"``,
        ``"smoothed-newton"``, ``"block-dcd"``, ``"dcd"``, ``"mpu"``, ``"ocas"``, ``"svmperf"``,
        ``"sgd-s"`` and ``"sgd-m"`` certify;
        ``"sgd-r"``, ``"pegasos"``, ``"norma"``, ``"svmsgd"`` and ``"sgd-qn"`` have no dual bound,
        so they cannot tell when ``tol`` is reached and run until a limit; ``certsvm.bound``
        certifies their answer afterwards. A configured object, such as
        ``certsvm.solvers.SGDs(windows=0)``, is accepted too.
        ``"auto"`` chooses between "working-set" and "newton" by their predicted cost and may
        switch once; ``solver_`` records the choice. It solves small problems to machine
        precision. The squared hinge is minimised by ``"auto"``, ``"working-set"``, ``"newton"``,
        ``"smoothed-newton"``, ``"block-dcd"`` and ``"dcd"``, and so is either loss with
        ``penalize_intercept=False``.
    fit_intercept : bool, default=True
        Whether to learn an intercept. (The command ``certsvm train`` has liblinear's default: none
        without ``-B``. ``-B 1`` is the default here.)
    intercept_scaling : float, default=1.0
        Height of the constant column behind the intercept. Of no effect if ``fit_intercept`` or
        ``penalize_intercept`` is False.
    penalize_intercept : bool, default=True
        Whether the penalty contains the weight behind the intercept. If not, the optimum does not
        depend on ``intercept_scaling``. Has no effect if ``fit_intercept`` is False.
    class_weight : dict or "balanced", default=None
        Factors for the weights of each class's rows. "balanced" gives all classes the same total
        weight. With more than two classes, the factor of a class counts in the problem of that
        class against the rest, and the rows of the rest weigh 1, as in liblinear;
        ``sample_weight`` weighs rows in all problems.
    max_iter : int, default=1000
        Limit on passes over the data, for each binary problem.
    max_time : float, default=None
        Limit in seconds, for each binary problem. The first pass is completed in any case; others
        do not begin if they are expected to end too late, and are cut short if they do.
    n_jobs : int, default=None
        Number of threads, for several classes at once or inside one fit ("newton" shares most
        of its work among them, other solvers only the computation of the objective). None means
        1 unless in a ``joblib.parallel_config`` context, -1 all processors. BLAS is held to one
        thread where a fit calls it. Ignored for tensors: PyTorch has its own threads.
    device : str or torch.device, default=None
        Where ``fit`` trains. ``"cuda"`` moves NumPy arrays there, block by block in each pass if
        they do not fit. None means where the data are: the CPU for NumPy arrays and sparse
        matrices, the tensors' device for tensors, which are never moved to the host.
    random_state : int, RandomState instance or None, default=None
        Seed of the order in which rows are presented; each class has a random stream of its
        own. An int gives the same bits each time, for the same number of threads.
    warm_start : bool, default=False
        Whether ``fit`` starts from the previous solution, if the shapes still agree.
    store_dual : bool, default=False
        Whether to keep ``dual_coef_``, the dual point behind the certificate, so that
        ``certsvm.verify`` can check it too.
    checkpoint : path, default=None
        A folder in which ``fit`` keeps w and the dual point, every ten seconds or so. After a
        crash, the same ``fit`` goes on from there, and computes the bounds there anew; one for
        another objective or data of another shape is refused. Not for tensors or warm starts.
    verbose : int, default=0
        1 prints a line each second, larger values a line for each pass. The certificate of each
        class is printed when its training ends.
    penalty : {"l2"}, default="l2"
        The norm in the penalty, as in ``sklearn.svm.LinearSVC``, which has ``"l1"``, too, as
        liblinear and skglm have.
    dual : bool or "auto", default="auto"
        Accepted as in ``sklearn.svm.LinearSVC``, where it chooses between an algorithm for the
        primal and one for the dual problem. Both have the same optimum, and here every fit bounds
        it from both sides, so that all values give the same answer; ``solver`` chooses the
        algorithm.
    multi_class : {"ovr"}, default="ovr"
        How several classes are told apart: each against all others. ``sklearn.svm.LinearSVC`` and
        liblinear have ``"crammer_singer"``, too.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        Weights of the columns; one row for two classes, else one per class. A CSR matrix after
        ``sparsify``.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        Intercepts; zero if ``fit_intercept`` is False.
    classes_ : ndarray of shape (n_classes,)
        The labels; the numbers of the columns if y was a matrix of zeros and ones.
    multilabel_ : bool
        Whether y was a matrix of zeros and ones. Predictions then are, too.
    certificate_ : Certificate
        The certificate; for several classes, the one with the largest gap. None after
        ``partial_fit``.
    certificates_ : list of Certificate
        One for each row of ``coef_``.
    history_ : History, or Histories for several classes
        One record for each pass; for several classes, a list with the history of each.
        ``history_.to_frame()`` is one data frame in either case, for several classes with a column
        ``class``.
    n_iter_ : int
        Passes over the data; the largest number for several classes.
    solver_ : str
        Name of the solver; with "auto", of the solvers it used.
    dual_coef_ : ndarray of shape (1, n_samples) or (n_classes, n_samples)
        alpha, with 0 <= alpha_k <= C s_k; for the squared hinge, alpha_k >= 0. Only with
        ``store_dual=True``.
    class_weight_ : ndarray of shape (n_classes,)
        The factors that ``class_weight`` stands for.
    t_ : int
        Presentations of rows so far.
    n_samples_seen_ : int
        Rows seen by ``fit``, and since then by ``partial_fit``.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the columns, if X has names.

    See Also
    --------
    sklearn.svm.LinearSVC : Same problem for the same ``loss``; its tolerance is about dual
        variables or the gradient and says nothing of the objective.
    sklearn.linear_model.SGDClassifier : Many losses, for streams; no measure of accuracy.
    certsvm.verify : Recomputes the certificate.

    Notes
    -----
    Data of type float32 or float64, C-ordered dense or CSR whose columns ascend, is used in place,
    and must not be changed by another thread during ``fit``: nothing would notice, and the
    certificate would hold for neither the old data nor the new. All sums are accumulated in
    float64.

    If the target is missed, ``fit`` warns with the gap reached, except for solvers without a
    dual bound. Ctrl-C ends ``fit`` early and keeps the best model so far with its certificate.
    Classes whose training had not begun have zero weights and prove nothing. Before the first
    pass is complete, KeyboardInterrupt is raised as usual. In a search or a loop, each Ctrl-C
    ends one fit.

    References
    ----------
    C. Panagiotakopoulos and P. Tsampouka, The Stochastic Gradient Descent for the Primal
    L1-SVM Optimization Revisited, ECML-PKDD 2013.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from certsvm import LinearSVC
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> X = StandardScaler().fit_transform(X)
    >>> clf = LinearSVC(C=0.1, random_state=0).fit(X, y)
    >>> clf.certificate_.met, clf.certificate_.relative_gap <= 0.01
    (True, True)
    >>> clf.score(X, y) > 0.97
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "C": [Interval(Real, 0, None, closed="neither")],
        "loss": [StrOptions(set(LOSSES))],
        "tol": [Interval(Real, 0, None, closed="left")],
        "solver": [str, Solver],
        "fit_intercept": ["boolean"],
        "intercept_scaling": [Interval(Real, 0, None, closed="neither")],
        "penalize_intercept": ["boolean"],
        "class_weight": [StrOptions({"balanced"}), dict, None],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "max_time": [Interval(Real, 0, None, closed="left"), None],
        "n_jobs": [Integral, None],
        "device": "no_validation",  # type: ignore[dict-item]
        "random_state": ["random_state"],
        "warm_start": ["boolean"],
        "store_dual": ["boolean"],
        "checkpoint": [str, PathLike, None],
        "verbose": ["verbose"],
        "penalty": [StrOptions({"l2"})],
        "dual": ["boolean", StrOptions({"auto"})],
        "multi_class": [StrOptions({"ovr"})],
    }

    history_: History | Histories
    n_iter_: int
    n_samples_seen_: int
    solver_: str
    t_: int
    _ends: list[Start]

    def __init__(
        self, C: float = 1.0, *, loss: str = "hinge", tol: float = DEFAULT_TOL,
        solver: str | Solver = "auto", fit_intercept: bool = True, intercept_scaling: float = 1.0,
        penalize_intercept: bool = True, class_weight: dict[Any, float] | str | None = None,
        max_iter: int = 1000, max_time: float | None = None, n_jobs: int | None = None,
        device: Any = None, random_state: int | np.random.RandomState | None = None,
        warm_start: bool = False, store_dual: bool = False,
        checkpoint: str | PathLike[str] | None = None, verbose: int = 0,
        penalty: str = "l2", dual: bool | str = "auto", multi_class: str = "ovr",
    ) -> None:  # fmt: skip
        self.C, self.loss, self.tol, self.solver = C, loss, tol, solver
        self.fit_intercept, self.intercept_scaling = fit_intercept, intercept_scaling
        self.penalize_intercept, self.class_weight = penalize_intercept, class_weight
        self.max_iter, self.max_time, self.n_jobs, self.device = max_iter, max_time, n_jobs, device
        self.random_state, self.warm_start, self.store_dual = random_state, warm_start, store_dual
        self.checkpoint, self.verbose = checkpoint, verbose
        self.penalty, self.dual, self.multi_class = penalty, dual, multi_class

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> LinearSVC:
        """Train to the accuracy ``tol``, or until a limit is reached.

        Parameters
        ----------
        X : array-like, sparse matrix or tensor of shape (n_samples, n_features)
            The data. CSR and C-ordered dense arrays of type float32 or float64 are used in
            place, and so are PyTorch's tensors (and CuPy's arrays) of type float16, bfloat16,
            float32 or float64, on any device.
        y : array-like or tensor of shape (n_samples,) or (n_samples, n_classes)
            Labels: strings, booleans, integers, ... Or zeros and ones, if a row may have several
            labels: each column is then a problem of its own.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights >= 0 of the rows. A row of weight zero counts as absent.

        Returns
        -------
        self : LinearSVC
            Fitted.
        """
        with rollback(self):
            source = self._source(X, y, sample_weight)
            given = {"X": X, "y": y, "metadata": {"sample_weight": sample_weight}}
            solver = self._solver_for(source)
            results = self._fit_source(source, solver, given)
        # Outside: where warnings are errors, a missed target must not cost the model.
        self._warn_if_missed(results, solver)
        return self

    def _source(self, X: Any, y: Any, sample_weight: Any) -> Source:
        """The data, wherever they are."""
        if are_tensors(X) or self.device is not None:
            from certsvm.torch.source import TensorSource

            refuse_masked(sample_weight=sample_weight)
            source = TensorSource(
                X, y, sample_weight,
                class_weight=self.class_weight, intercept_scaling=self._rho(), device=self.device,
            )  # fmt: skip
            self.n_features_in_ = source.n_columns
            # A data frame's; tensors have none.
            _check_feature_names(self, None if are_tensors(X) else X, reset=True)
            return source
        return self._in_memory(X, y, sample_weight)

    def _in_memory(self, X: Any, y: Any, sample_weight: Any) -> MemorySource:
        if sp.issparse(y):
            y = y.toarray()
        X, y, weights = self._validate(X, y, sample_weight, reset=True)
        check_classification_targets(y)
        return MemorySource(
            X, y, weights, class_weight=self.class_weight, intercept_scaling=self._rho()
        )

    def _fit_source(self, source: Source, solver: Solver, given: dict[str, Any]) -> list[Result]:
        """Train on a source, and set the fitted attributes."""
        settings, tasks = self._settings(source, solver), FitTasks(self, source, given)
        settings = replace(settings, observers=[tasks])
        results = fit_classes(source, settings, start=self._starts(source))
        self._set_fitted(source, results)
        tasks.end_fit()
        return results

    def _solver_for(self, source: Source) -> Solver:
        """The solver, on this kind of data and for this objective."""
        return source.solver(self.solver, self._objective())

    def _objective(self) -> Objective:
        return Objective(self.C, loss_named(self.loss), self.penalize_intercept)

    def _settings(self, source: Source, solver: Solver) -> Settings:
        """The parameters, checked against the solver."""
        if self.store_dual and not solver.certifies:
            raise ValueError(
                f"store_dual=True needs a solver with a dual point, and {solver.name!r} has none. "
                "Use certsvm.bound on the fitted model, or another solver."
            )
        if self.checkpoint is not None and self.warm_start:
            raise ValueError("checkpoint is not for warm starts: both say where to begin")
        seed, interval = self.random_state, {0: None, 1: 1.0}.get(self.verbose, 0.0)
        if not isinstance(seed, Integral):
            seed = check_random_state(seed).randint(np.iinfo(np.int32).max)
        return Settings(
            self._objective(), tol=self.tol, solver=solver, max_iter=self.max_iter,
            max_time=self.max_time, seed=seed, n_jobs=effective_n_jobs(self.n_jobs),
            checkpoint=self.checkpoint,
            keep_alpha=self.store_dual or (self.warm_start and solver.warm_starts_from_alpha),
            print_every=interval,
        )  # fmt: skip

    @available_if(_learns_online)
    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(
        self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None, *,
        total_samples: int | None = None,
    ) -> LinearSVC:  # fmt: skip
        """Present the rows once, in their order, and go on from there: for streams.

        This is SGD as in ``solver="sgd-s"``, one presentation at a time. Nothing is proved: neither
        the objective over all rows nor complete passes over them are known here, so
        ``certificate_`` is None afterwards. A ``fit`` with ``warm_start=True`` goes on from
        the stream's model and certifies. There is no ``partial_fit`` for the squared hinge, nor for
        an intercept without penalty.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            A batch of rows.
        y : array-like of shape (n_samples,)
            Their labels.
        classes : array-like of shape (n_classes,), default=None
            All labels that will ever come. Needed at the first call.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights >= 0 of the rows.
        total_samples : int, default=None
            The number of rows that the loss is summed over: C weighs their sum. Give it when
            several passes are made over the same rows. None means all rows seen so far,
            ``n_samples_seen_``, as is right for a stream that does not repeat.

        Returns
        -------
        self : LinearSVC
            With one more batch learned.
        """
        with rollback(self):
            first = not hasattr(self, "classes_")
            if self.multilabel_:
                raise ValueError("partial_fit is for one label a row, and fit was given several")
            if first and classes is None:
                raise ValueError("classes must be passed on the first call to partial_fit.")
            least_one = isinstance(total_samples, Integral) and total_samples >= 1
            if not (total_samples is None or least_one):
                raise ValueError(f"total_samples must be an integer >= 1, got {total_samples!r}")
            if self.class_weight == "balanced":
                raise ValueError("class_weight='balanced' needs all labels at once: pass a dict")
            X, y, weights = self._validate(X, y, sample_weight, reset=first)
            labels = self.classes_ if classes is None else np.unique(exact_labels(classes))
            if first:
                if labels.size < 2:
                    raise ValueError(f"classes needs at least two classes, got {labels.tolist()}")
                n_problems, n_columns = len(positive_classes(labels.size)), X.shape[1]
                # For each class the weights, and a copy that replaces them.
                require_memory_for(n_columns, 2 * n_problems + 1)
                self.classes_, self.t_, self.n_samples_seen_ = labels, 0, 0
                self.coef_ = np.zeros((n_problems, n_columns))
                self.intercept_ = np.zeros(n_problems)
            elif not np.array_equal(self.classes_, labels):
                before = listing(self.classes_.tolist())
                raise ValueError(f"classes are not the same as on the first call, {before}")
            self.n_samples_seen_ += len(y)
            total = self.n_samples_seen_ if total_samples is None else int(total_samples)
            self._present(X, y, weights, self._objective().C * total)
            self.n_iter_, self.solver_ = 1, "sgd-s"
            # What was proved, and known of the dual problem, was about another model.
            self.certificate_ = self.certificates_ = None
            for name in ("dual_coef_", "history_"):
                self.__dict__.pop(name, None)
            self._ends = [Start(np.empty(0), max(1, round(self.t_ / total)))] * len(self.coef_)
        return self

    def _present(self, X: Any, y: Any, weights: Any, C_total: float) -> None:
        """Present a batch once; ``C_total`` is C times the rows that the loss is summed over."""
        from certsvm.solvers.sgd_s import present_once

        rows = Rows(X, intercept_scaling=self._rho())
        classes, before = self.classes_, self.t_
        self.coef_, self.intercept_ = dense(self.coef_).copy(), self.intercept_.copy()
        self.class_weight_ = class_factors(self.class_weight, classes, np.ones(classes.size))
        problems = binary_problems(classes, self.class_weight_, y, weights, rows.n_rows)
        for i, (signs, of_rows) in enumerate(problems):
            if of_rows.any():
                # C is such that lambda = 1 / (C m) comes out as 1 / C_total.
                C = C_total / np.count_nonzero(of_rows)
                problem = Problem(rows, signs, C=C, weights=of_rows)
                w = problem.weight_vector(self.coef_[i], float(self.intercept_[i]))
                w, t = present_once(problem, w, before)
                self.coef_[i], self.intercept_[i] = problem.coefficients(w)
                self.t_ = max(self.t_, t)

    def _starts(self, source: Source) -> list[Start] | None:
        """The start of each problem; None if there is no previous solution of the same shape."""
        if not (self.warm_start and hasattr(self, "_ends")):
            return None
        # Two labels a row have two problems, and two classes one.
        same_shape = self.coef_.shape == (len(source.labels), source.n_columns)
        if not (same_shape and np.array_equal(self.classes_, source.classes)):
            return None
        rho, objective, ratio = source.intercept_scaling, self._objective(), None
        # After partial_fit there are no certificates.
        for proved in self.certificates_ or ():
            if (proved.loss, proved.free_intercept) == (objective.loss.name, objective.frees(rho)):
                ratio = objective.C / proved.C
        starts = []
        for i, end in enumerate(self._ends):
            w = join(dense(self.coef_[i]).ravel(), float(self.intercept_[i]), rho)
            # The dual variables of another objective may be infeasible for this one.
            start = Start(w, end.epochs) if ratio is None else replace(end, w=w)
            starts.append(source.scaled_start(start, ratio or 1.0))
        return starts

    def _rho(self) -> float:
        """Height of the constant column behind the intercept; zero if there is none."""
        if not self.fit_intercept:
            return 0.0
        # A free intercept does not depend on it, but how well solvers converge does.
        if not self.penalize_intercept:
            return 1.0
        return as_float(self.intercept_scaling, "intercept_scaling")

    def _validate(
        self, X: Any, y: Any, sample_weight: Any, *, reset: bool
    ) -> tuple[Any, NDArray[Any], NDArray[np.float64] | None]:
        refuse_masked(sample_weight=sample_weight)
        labels = exact_labels(y)
        # Rows checks that all values are finite, while it computes their norms.
        X, y = self._validated(
            X, y, order="C", ensure_all_finite=False, reset=reset,
            multi_output=labels.ndim == 2 and labels.shape[1] > 1,
        )  # fmt: skip
        refuse_changed_labels(labels, y)
        if sample_weight is None:
            return X, y, None
        with config_context(array_api_dispatch=False):
            weights = _check_sample_weight(sample_weight, X, dtype=np.float64)
        if (weights < 0).any():
            raise ValueError("sample_weight must not be negative")
        return X, y, weights

    def _set_fitted(self, source: Source, results: Sequence[Result]) -> None:
        """Set the fitted attributes, all at once."""
        parts = [split(result.w, source.intercept_scaling) for result in results]
        self.coef_, self.intercept_ = map(np.array, zip(*parts, strict=True))
        self.n_features_in_ = source.n_columns
        self.classes_, self.class_weight_ = source.classes, source.factors
        self.multilabel_ = source.multilabel
        proved = (result.certificate for result in results)
        self.certificates_ = Certificates(proved, source.labels)
        self.certificate_ = max(self.certificates_, key=lambda c: c.proved_gap)
        histories = [result.history for result in results]
        self.history_ = histories[0] if len(histories) == 1 else Histories(histories, source.labels)
        self.n_iter_ = max(result.passes for result in results)
        self.solver_ = max((result.solver for result in results), key=len)
        self.n_samples_seen_ = source.n_rows
        self.t_ = max(result.epochs for result in results) * source.n_rows
        # Their weights are in coef_ and intercept_, and alpha is a number for each row, which may
        # have been on a device.
        alphas = [on_host(r.start.alpha) if self.warm_start else None for r in results]
        self._ends = [
            replace(r.start, w=np.empty(0), alpha=alpha)
            for r, alpha in zip(results, alphas, strict=True)
        ]
        self.__dict__.pop("dual_coef_", None)
        if self.store_dual:
            # Where no dual point was accepted, zero is what the bound of zero comes from.
            zero = np.zeros(source.n_rows)
            self.dual_coef_ = np.array([zero if r.alpha is None else r.alpha for r in results])

    def _warn_if_missed(
        self, results: Sequence[Result], solver: Solver, stacklevel: int = 4
    ) -> None:
        missed = [r for r in results if not r.certificate.met]
        if not (missed and solver.certifies):
            return
        worst = max(missed, key=lambda r: r.certificate.proved_gap)
        certificate = worst.certificate
        advice = "To get closer, raise max_iter or max_time, scale the columns to similar size, "
        advice += "" if self.solver == "auto" else "try solver='auto', "
        advice += "or lower C; or accept a larger tol."
        if worst.reason == INTERRUPTED:
            advice = "The next fit goes on from it." if self.warm_start else ""
        elif certificate.relative_gap <= max(self.tol, 0.5 * certificate.proved_gap):
            advice = "This is the limit of double precision: no more can be proved."
        of = f" for {len(missed)} of {len(results)} classes" if len(results) > 1 else ""
        warnings.warn(
            f"The target accuracy was not reached{of} at C = {self.C:g} by {worst.solver}: "
            f"{worst.reason} after {shown_passes(worst.passes)}. The model is valid, and "
            f"certificate_ states its accuracy: {certificate}. {advice}".rstrip(),
            ConvergenceWarning,
            stacklevel=stacklevel,  # past fit and its wrapper, to the caller of fit
        )
