"""LinearSVC: the classifier, what it answers when it is fitted, and its reports.

Arrays and sparse matrices go through scikit-learn's checks, and answers are arrays. Tensors are
answered where they are, with tensors.
"""

from __future__ import annotations

import sys
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from importlib.util import find_spec
from numbers import Integral, Real
from os import PathLike
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from joblib import effective_n_jobs
from numpy.typing import NDArray
from sklearn import config_context
from sklearn.base import BaseEstimator, ClassifierMixin, _fit_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state, check_scalar, multiclass, validation
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from certsvm import matrices
from certsvm.certificates.certificate import DEFAULT_TOL, Certificate, Certificates, tidy
from certsvm.fitting.fit_classes import fit_classes
from certsvm.fitting.sources import MemorySource, Source, class_factors
from certsvm.kernels.losses import HINGE, LOSSES, loss_named
from certsvm.problem.base import Objective
from certsvm.problem.problems import Problem
from certsvm.problem.rows import Rows, join, split
from certsvm.resources import require_memory_for
from certsvm.scalars import as_float
from certsvm.solvers import Solver, Start, make_solver
from certsvm.training.history import Histories, shown_passes
from certsvm.training.settings import INTERRUPTED, Result, Settings
from certsvm.verification import optimum_intervals
from certsvm.verification.evidence import added_up
from certsvm.verification.optimum_intervals import OptimumMixin, products
from certsvm.verification.verify import binary_problems, positive_classes, verify

if TYPE_CHECKING:
    from certsvm.files.model import Model
    from certsvm.report import PageFile

_VERIFICATION = "import certsvm\n\nprint(certsvm.verify(clf, X, y))  # with the training data"


def _learns_online(estimator: LinearSVC) -> bool:
    """True if ``partial_fit`` minimises this objective; else an error that says why not."""
    free_intercept = estimator.fit_intercept and not estimator.penalize_intercept
    if free_intercept or estimator.loss != HINGE.name:
        raise ValueError(
            "partial_fit is for loss='hinge' and not for penalize_intercept=False: batches for "
            "other objectives go to fit, or as a stream to fit_stream"
        )
    return True


class LinearSVC(OptimumMixin, ClassifierMixin, BaseEstimator):
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

    classes_: NDArray[Any]
    # None after partial_fit.
    certificate_: Certificate | None
    certificates_: list[Certificate] | None
    _doc_link_module = "certsvm"
    _doc_link_template = "https://certsvm.github.io/certsvm/api/certsvm.{estimator_name}.html"
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

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.classifier_tags.multi_label = True
        # array_api_support would promise more than answers in kind: attributes on the device of X,
        # and no answers elsewhere. Ours are on the host, for verification, files and other data.
        return tags

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
            settings = self._settings(source)
            results = fit_classes(source, settings, start=self._starts(source))
            self._set_fitted(source, results)
        # Outside: where warnings are errors, a missed target must not cost the model.
        self._warn_if_missed(results, settings)
        return self

    def _source(self, X: Any, y: Any, sample_weight: Any) -> Source:
        """The data, wherever they are."""
        how: Any = {"class_weight": self.class_weight, "intercept_scaling": self._rho()}
        if are_tensors(X) or self.device is not None:
            from certsvm.torch.source import TensorSource

            matrices.refuse_masked(sample_weight=sample_weight)
            source = TensorSource(X, y, sample_weight, device=self.device, **how)
            self.n_features_in_ = source.n_columns
            # A data frame's; tensors have none.
            validation._check_feature_names(self, None if are_tensors(X) else X, reset=True)
            return source
        if sp.issparse(y):
            y = y.toarray()
        X, y, weights = self._validate(X, y, sample_weight, reset=True)
        multiclass.check_classification_targets(y)
        return MemorySource(X, y, weights, **how)

    def _objective(self) -> Objective:
        return Objective(self.C, loss_named(self.loss), self.penalize_intercept)

    def _settings(self, source: Source) -> Settings:
        """The parameters, checked against the solver."""
        solver = source.solver(self.solver, self._objective())
        if self.store_dual and not solver.certifies:
            raise ValueError(
                f"store_dual=True needs a solver with a dual point, and {solver.name!r} has none: "
                "use certsvm.bound on the fitted model, or another solver"
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
        from certsvm.solvers.sgd_s import present_once

        with rollback(self):
            if self.multilabel_:
                raise ValueError("partial_fit is for one label a row, and fit was given several")
            if total_samples is not None:
                check_scalar(total_samples, "total_samples", Integral, min_val=1)
            if self.class_weight == "balanced":
                raise ValueError("class_weight='balanced' needs all labels at once: pass a dict")
            labels = None if classes is None else matrices.exact_labels(classes)
            first = multiclass._check_partial_fit_first_call(self, labels)
            X, y, weights = self._validate(X, y, sample_weight, reset=first)
            classes = self.classes_
            if first:
                if classes.size < 2:
                    raise ValueError(f"classes needs at least two classes, got {classes.tolist()}")
                shape = (len(positive_classes(classes.size)), X.shape[1])
                # For each class the weights, and a copy that replaces them.
                require_memory_for(shape[1], 2 * shape[0] + 1)
                self.coef_, self.intercept_ = np.zeros(shape), np.zeros(shape[0])
                self.t_ = self.n_samples_seen_ = 0
            self.n_samples_seen_ += len(y)
            total = int(total_samples or self.n_samples_seen_)
            rows, before = Rows(X, intercept_scaling=self._rho()), self.t_
            self.coef_, self.intercept_ = matrices.dense(self.coef_).copy(), self.intercept_.copy()
            self.class_weight_ = class_factors(self.class_weight, classes, np.ones(classes.size))
            problems = binary_problems(classes, self.class_weight_, y, weights, rows.n_rows)
            for i, (signs, of_rows) in enumerate(problems):
                if of_rows.any():
                    # C is such that lambda = 1 / (C m) comes out as 1 / (C total).
                    C = self._objective().C * total / np.count_nonzero(of_rows)
                    problem = Problem(rows, signs, C=C, weights=of_rows)
                    w = problem.weight_vector(self.coef_[i], float(self.intercept_[i]))
                    w, t = present_once(problem, w, before)
                    self.coef_[i], self.intercept_[i] = problem.coefficients(w)
                    self.t_ = max(self.t_, t)
            self.n_iter_, self.solver_ = 1, "sgd-s"
            # What was proved, and known of the dual problem, was about another model.
            self.certificate_ = self.certificates_ = None
            for name in ("dual_coef_", "history_"):
                self.__dict__.pop(name, None)
            self._ends = [Start(np.empty(0), max(1, round(self.t_ / total)))] * len(self.coef_)
        return self

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
            w = join(matrices.dense(self.coef_[i]).ravel(), float(self.intercept_[i]), rho)
            # The dual variables of another objective may be infeasible for this one.
            start = Start(w, end.epochs) if ratio is None else replace(end, w=w)
            starts.append(source.scaled_start(start, ratio or 1.0))
        return starts

    def _rho(self) -> float:
        """Height of the constant column behind the intercept; zero if there is none."""
        # A free intercept does not depend on it, but how well solvers converge does.
        height = self.intercept_scaling if self.penalize_intercept else 1.0
        return as_float(height, "intercept_scaling") if self.fit_intercept else 0.0

    def _validate(
        self, X: Any, y: Any, sample_weight: Any, *, reset: bool
    ) -> tuple[Any, NDArray[Any], NDArray[np.float64] | None]:
        matrices.refuse_masked(sample_weight=sample_weight)
        labels = matrices.exact_labels(y)
        # Rows checks that all values are finite, while it computes their norms.
        X, y = self._validated(
            X, y, order="C", ensure_all_finite=False, reset=reset,
            multi_output=labels.ndim == 2 and labels.shape[1] > 1,
        )  # fmt: skip
        matrices.refuse_changed_labels(labels, y)
        if sample_weight is None:
            return X, y, None
        with config_context(array_api_dispatch=False):
            weights = validation._check_sample_weight(sample_weight, X, dtype=np.float64)
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
        keep = on_host if self.warm_start else lambda alpha: None
        starts = (result.start for result in results)
        self._ends = [replace(s, w=np.empty(0), alpha=keep(s.alpha)) for s in starts]
        self.__dict__.pop("dual_coef_", None)
        if self.store_dual:
            # Where no dual point was accepted, zero is what the bound of zero comes from.
            zero = np.zeros(source.n_rows)
            self.dual_coef_ = np.array([zero if r.alpha is None else r.alpha for r in results])

    def _warn_if_missed(self, results: list[Result], settings: Settings, level: int = 4) -> None:
        missed = [r for r in results if not r.certificate.met]
        if not (missed and make_solver(settings.solver).certifies):
            return
        worst = max(missed, key=lambda r: r.certificate.proved_gap)
        certificate = worst.certificate
        advice = " To get closer, raise max_iter or max_time, scale the columns to similar size, "
        advice += "try solver='auto', or lower C; or accept a larger tol."
        if worst.reason == INTERRUPTED:
            advice = " The next fit goes on from it." if self.warm_start else ""
        elif certificate.relative_gap <= max(self.tol, 0.5 * certificate.proved_gap):
            advice = " This is the limit of double precision: no more can be proved."
        of = f" for {len(missed)} of {len(results)} classes" if len(results) > 1 else ""
        warnings.warn(
            f"The target accuracy was not reached{of} at C = {self.C:g} by {worst.solver}: "
            f"{worst.reason} after {shown_passes(worst.passes)}. The model is valid, and "
            f"certificate_ states its accuracy: {certificate}.{advice}",
            ConvergenceWarning,
            stacklevel=level,  # past fit and its wrapper, to the caller of fit
        )

    def _validated(self, X: Any, *given: Any, **checks: Any) -> Any:
        """X, and y if given, after scikit-learn's checks; data of our types are not copied."""
        # SciPy's conversion to CSR adds up values that are stored twice in their own type: of
        # single precision, of eight bits, or of one. Verification would find other rows.
        if sp.issparse(X):
            X = matrices.checked_csr(X)
        else:
            matrices.refuse_broken(X)
        # All arrays become NumPy's, whatever array_api_dispatch says.
        with config_context(array_api_dispatch=False):
            return validation.validate_data(
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
        matrices.exact_labels(y)
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
        self.coef_ = matrices.dense(self.coef_)
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
        with intervals that contain those of the exact optimum, and the parameters. Needs
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
        from certsvm.report import Evaluation, fit_parts

        evaluation = None
        if X is None and y is not None:
            raise ValueError("y without X: give the rows to predict, too")
        if X is not None:
            predicted, confusion = np.asarray(on_host(self.predict(X))), None
            # A free intercept has no interval, and so no score has one.
            free = any(certificate.free_intercept for certificate in self.certificates_ or ())
            if y is not None:
                labels = matrices.exact_labels(on_host(y))
                are_right(predicted, labels)
                pairs = (map(tidy, given.tolist()) for given in (labels, predicted))
                confusion = Counter(zip(*pairs, strict=True))
            stability = None if free else self.stability(X)
            evaluation = Evaluation(len(predicted), stability, confusion)
        return fit_parts(
            Model.from_estimator(self), _VERIFICATION, dual_kept=hasattr(self, "dual_coef_"),
            evaluation=evaluation, n_rows=getattr(self, "n_samples_seen_", None),
        )  # fmt: skip

    def _optimum(self) -> optimum_intervals.OptimumIntervals:
        check_is_fitted(self)
        return super()._optimum()

    def _scores_and_sizes(self, X: Any) -> tuple[Any, Any]:
        if are_tensors(X):
            return self._scores(X).cpu().numpy(), answers().row_sizes(X)
        X = added_up(self._validated(X, reset=False))
        return products(X, self.coef_) + self.intercept_, optimum_intervals.row_sizes(X)

    def _to_host(self, values: Any) -> Any:
        return on_host(values)

    def _like(self, X: Any, values: NDArray[Any], *, upwards: bool | None = None) -> Any:
        return answers().rounded(X, values, upwards) if are_tensors(X) else values


def are_right(answers: Any, y: Any) -> NDArray[np.bool_]:
    """Which predicted labels are the given ones."""
    answers, labels = np.asarray(answers), matrices.exact_labels(y)
    # A column of labels, or a single one, would be compared with all answers.
    if labels.shape != answers.shape:
        raise ValueError(f"{answers.size} rows do not go with labels of shape {labels.shape}")
    return np.asarray(answers == labels)


def are_tensors(X: Any) -> bool:
    """Whether X is a tensor, or something on a device that can be made one."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(X, torch.Tensor):
        return True
    if isinstance(X, np.ndarray | np.generic) or not hasattr(X, "__dlpack_device__"):
        return False
    # CuPy's arrays and their like. What is on the CPU, NumPy can take as well.
    return X.__dlpack_device__()[0] != 1 and find_spec("torch") is not None


def answers() -> Any:
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
