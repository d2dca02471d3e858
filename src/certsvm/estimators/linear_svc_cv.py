"""LinearSVCCV: chooses C by cross-validation, with a proof if it is asked for."""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Sequence
from dataclasses import replace
from numbers import Integral, Real
from os import PathLike
from typing import Any, ClassVar

import numpy as np
from scipy.stats import rankdata
from sklearn.base import BaseEstimator, ClassifierMixin, _fit_context, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import accuracy_score, get_scorer, get_scorer_names
from sklearn.model_selection import check_cv
from sklearn.utils import metadata_routing as routing
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import _check_method_params, check_is_fitted, indexable

from certsvm.certificates.certificate import DEFAULT_TOL, percentage_points
from certsvm.estimators.linear_svc import LinearSVC, fitted_attributes, rollback
from certsvm.estimators.path import checked_range, checked_values
from certsvm.fitting.cross_validation import DEFAULT_RANGE, CrossValidation, values_in
from certsvm.fitting.folds import Fold
from certsvm.fitting.sources import MemorySource
from certsvm.report import PageFile, choice_parts, page, write_page
from certsvm.solvers import Solver
from certsvm.training.settings import Result

# The parameters of all fits, and others that mean the same for the search.
_COMMON = (
    "loss", "tol", "solver", "fit_intercept", "intercept_scaling", "penalize_intercept",
    "class_weight", "max_iter", "n_jobs", "random_state", "device",
)  # fmt: skip
_ALIKE = (*_COMMON, "max_time", "verbose")


class LinearSVCCV(ClassifierMixin, BaseEstimator):
    """Linear support vector classifier that chooses C by cross-validation, with a proof.

    Without ``certify``, models are trained on all folds at several values of C, each from the last
    one, and the C of the best mean score is chosen.

    With ``certify=0.01``, C is chosen such that its error is proved to be at most one percentage
    point above the least error of *any* C in the range, fitted or not. The error at C is the mean
    over the folds of the share of held-out rows that the exact optimum at C gets wrong. Two
    fits of proved accuracy bound it for every C between them.

    Of several C that are equally good, the smallest is chosen.

    Parameters
    ----------
    C_range : tuple of float, default=None
        The lowest and the highest C. None means (0.001, 100), or the range of the values ``Cs``.
    Cs : int or sequence of float, default=None
        Values of C, or how many of them to take from the range, at equal ratios. None means 20;
        with ``certify``, where they are only those to begin with, one for each decade.
    cv : int, splitter or iterable, default=5
        The folds: a number, for stratified ones; a scikit-learn splitter; or pairs of arrays, the
        positions of the training rows and of those held out.
    certify : float, default=None
        How much larger the error of the choice may be than the least error in the range, proved;
        0.01 is one percentage point. None means that nothing is proved.
    scoring : str or callable, default=None
        A scorer of scikit-learn. None means accuracy, which ``certify`` needs.
    refit : bool, default=True
        Whether to train a model on all rows with the C that was chosen.
    loss : {"hinge", "squared_hinge"}, default="hinge"
        The loss of a row in training. The error of a choice is the share of rows that are predicted
        wrongly in either case.
    tol : float, default=1e-4
        Relative accuracy of the model of all rows, as in ``LinearSVC``. The models of the folds are
        trained to ten times ``tol`` and to 1e-3 at least, which is enough to compare their errors,
        or, with ``certify``, as accurately as the proof needs.
    solver : str or Solver, default="auto"
        As in ``LinearSVC``. ``certify`` needs one that certifies.
    fit_intercept : bool, default=True
        Whether to learn an intercept.
    intercept_scaling : float, default=1.0
        Height of the constant column behind the intercept.
    penalize_intercept : bool, default=True
        Whether the penalty contains the weight behind the intercept, as in ``LinearSVC``.
        ``certify`` needs it.
    class_weight : dict or "balanced", default=None
        Factors for the weights of each class's rows in training, as in ``LinearSVC``; "balanced"
        for each fold.
    max_iter : int, default=1000
        Limit on passes over the data, for each binary problem.
    max_time : float, default=None
        Limit in seconds for the search. All folds are fitted at one value at least.
    max_fits : int, default=None
        Limit on the number of values of C with ``certify``.
    n_jobs : int, default=None
        Number of processes, for folds and values of C at the same time; searches that take a second
        or two stay in this one. None means 1 unless in a ``joblib.parallel_config`` context, -1 all
        processors. The result does not depend on it.
    random_state : int, RandomState instance or None, default=None
        Seed of the order in which rows are presented. The folds are those of ``cv``.
    verbose : int, default=0
        Larger than 0 prints a line for each value of C.
    device : str or torch.device, default=None
        Where to train, as in ``LinearSVC``; tensors are trained where they are. Folds and classes
        are then trained together, at as many values of C as memory has room for.

    Attributes
    ----------
    C_ : float
        The choice.
    Cs_ : ndarray of shape (n_Cs,)
        The values of C: as given, or all that were fitted with ``certify``, ascending.
    scores_ : ndarray of shape (n_folds, n_Cs)
        The score of each fold at each of them; NaN where a limit or Ctrl-C came first.
    best_score_ : float
        The mean score at ``C_``.
    error_bound_ : float
        No C in the range has a mean error below this, proved; zero without ``certify``.
    certified_ : bool
        Whether the error of ``C_`` is proved to be at most ``error_bound_ + certify``.
    cv_results_ : dict
        Scores and times in the form of ``GridSearchCV``, which ``pandas.DataFrame`` takes.
    curve_ : Curve
        Errors against C, with the bounds for every C; ``curve_.plot()`` shows them.
    best_estimator_ : LinearSVC
        The model of all rows, if ``refit``; ``coef_``, ``intercept_``, ``certificate_`` and
        ``certificates_`` are its own.
    classes_ : ndarray of shape (n_classes,)
        The labels.
    n_iter_ : ndarray of shape (n_folds, n_Cs)
        Passes over the data; the largest number for several classes.
    n_splits_ : int
        Number of folds.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the columns, if X has names.

    See Also
    --------
    LinearSVC : One model, at a given C.
    fit_path : Models for every C in a range.
    sklearn.model_selection.GridSearchCV : Searches over any parameters, and proves nothing.

    Notes
    -----
    Each fold has a copy of its training rows, so that n folds take n times the memory of the data.
    Processes map it from a temporary file. Tensors are not copied.

    Each fit starts from the fit of its fold at the next smaller C. If the error falls towards an
    end of the range and is least there, ``fit`` warns that the range should be wider.

    If the proof was not reached within the limits, ``fit`` warns, and ``error_bound_`` states what
    is proved by then. So does Ctrl-C, except before all folds were fitted at a first value of C.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import StandardScaler
    >>> from certsvm import LinearSVCCV
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> X = StandardScaler().fit_transform(X)
    >>> clf = LinearSVCCV(C_range=(0.001, 1.0), certify=0.01, random_state=0).fit(X, y)
    >>> clf.certified_, 1 - clf.best_score_ <= clf.error_bound_ + 0.01
    (True, True)
    >>> clf.certificate_.met, clf.score(X, y) > 0.97
    (True, True)
    """

    _doc_link_module, _doc_link_template = "certsvm", LinearSVC._doc_link_template
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "C_range": ["array-like", None],
        "Cs": [Interval(Integral, 2, None, closed="left"), "array-like", None],
        "cv": ["cv_object"],
        "certify": [Interval(Real, 0, 1, closed="neither"), None],
        "scoring": [StrOptions(set(get_scorer_names())), callable, None],
        "refit": ["boolean"],
        "max_fits": [Interval(Integral, 2, None, closed="left"), None],
        **{name: LinearSVC._parameter_constraints[name] for name in _ALIKE},
    }

    def __init__(
        self, *, C_range: tuple[float, float] | None = None,
        Cs: int | Sequence[float] | None = None, cv: Any = 5, certify: float | None = None,
        scoring: Any = None, refit: bool = True,
        loss: str = "hinge", tol: float = DEFAULT_TOL, solver: str | Solver = "auto",
        fit_intercept: bool = True, intercept_scaling: float = 1.0, penalize_intercept: bool = True,
        class_weight: dict[Any, float] | str | None = None, max_iter: int = 1000,
        max_time: float | None = None, max_fits: int | None = None, n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None, verbose: int = 0,
        device: Any = None,
    ) -> None:  # fmt: skip
        self.C_range, self.Cs, self.cv, self.certify = C_range, Cs, cv, certify
        self.scoring, self.refit, self.loss, self.tol = scoring, refit, loss, tol
        self.solver, self.class_weight, self.fit_intercept = solver, class_weight, fit_intercept
        self.intercept_scaling, self.penalize_intercept = intercept_scaling, penalize_intercept
        self.max_iter, self.max_time, self.max_fits = max_iter, max_time, max_fits
        self.n_jobs, self.random_state, self.verbose = n_jobs, random_state, verbose
        self.device = device

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    @_fit_context(prefer_skip_nested_validation=False)
    def fit(self, X: Any, y: Any, sample_weight: Any = None, **params: Any) -> LinearSVCCV:
        """Choose C, and train a model with it.

        Parameters
        ----------
        X : array-like, sparse matrix or tensor of shape (n_samples, n_features)
            The data, used in place as in ``LinearSVC.fit``.
        y : array-like of shape (n_samples,)
            Labels.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights >= 0 of the rows, in training and in the scores; with scikit-learn's metadata
            routing, in the scores only if the scorer asks for them.
        **params : dict
            ``groups`` for the splitter; with metadata routing, what splitter and scorer ask for.

        Returns
        -------
        self : LinearSVCCV
            Fitted.
        """
        split_with: dict[str, Any] = {"groups": params.get("groups")}
        scored_with: dict[str, Any] = {"sample_weight": sample_weight}
        if routing._routing_enabled():
            routed = routing.process_routing(self, "fit", sample_weight=sample_weight, **params)
            split_with, scored_with = dict(routed.splitter.split), dict(routed.scorer.score)
        elif params.keys() - {"groups"}:
            raise TypeError(
                f"fit got unexpected arguments {sorted(params)}, which it passes on with "
                "sklearn.set_config(enable_metadata_routing=True) only"
            )
        with rollback(self):
            Cs, is_accuracy = self._values(), _is_accuracy(self.scoring)
            template = LinearSVC(**{name: getattr(self, name) for name in _COMMON})
            # LinearSVC's own checks of the data; names and number of columns are recorded on it.
            source: Any = template._source(X, y, sample_weight)
            in_memory = isinstance(source, MemorySource)
            if source.multilabel:
                raise ValueError("LinearSVCCV is for one label a row: search for each column of y")
            if not (in_memory or is_accuracy):
                raise ValueError(f"scoring on tensors is accuracy, not {self.scoring!r}")
            settings = replace(template._settings(source), max_time=self.max_time)
            self.__dict__.update(fitted_attributes(template))
            self.classes_, labels = source.classes, source.y
            if (weights := scored_with.pop("sample_weight", None)) is not None:
                weights = source.row_weights if weights is sample_weight else np.asarray(weights)
                scored_with["sample_weight"] = weights
            splitter, (indexed, _) = check_cv(self.cv, labels, classifier=True), indexable(X, y)
            splits = splitter.split(indexed, labels, **split_with)
            if in_memory:
                folds = [Fold(source, train, test, weights) for train, test in splits]
            else:
                folds = source.folds(splits, weights, () if self.certify else Cs)
            if not folds:
                raise ValueError("cv gives no folds: it must give at least one pair (train, test)")
            scorer = get_scorer(self.scoring or "accuracy")

            def score(fold: Fold, C: float, results: list[Result]) -> float:
                model = clone(template).set_params(C=C)
                model._set_fitted(fold, results)
                chosen = _check_method_params(source.X, params=scored_with, indices=fold.test)
                return float(scorer(model, source.X[fold.test], labels[fold.test], **chosen))

            def show(search: CrossValidation) -> None:
                if self.verbose:
                    print(search, file=sys.stderr, flush=True)

            search = CrossValidation(
                folds, settings, certify=self.certify, max_fits=self.max_fits,
                score=None if is_accuracy else score, callback=show,
            ).run(Cs)  # fmt: skip
            self._set_fitted(search, Cs)
            if self.refit:
                model = template.set_params(C=self.C_).fit(X, y, sample_weight)
                self.best_estimator_ = model
                self.coef_, self.intercept_ = model.coef_, model.intercept_
                self.certificate_, self.certificates_ = model.certificate_, model.certificates_
        # Outside: where warnings are errors, a missed target must not cost the model.
        self._warn(search)
        return self

    def _values(self) -> list[float]:
        """The values of C, or those to begin with."""
        certify = self.certify is not None
        if self.max_fits is not None and not certify:
            raise ValueError("max_fits is a limit for certify; without it, choose fewer Cs")
        if certify and not _is_accuracy(self.scoring):
            raise ValueError(f"certify needs scoring=None or 'accuracy', not {self.scoring!r}")
        low_high = None if self.C_range is None else checked_range(self.C_range)
        given: Any = self.Cs
        if not np.iterable(given):
            return values_in(low_high or DEFAULT_RANGE, given, certify=certify)
        values = checked_values(given)
        if low_high and not all(low_high[0] <= C <= low_high[1] for C in values):
            raise ValueError(f"Cs must be in C_range, which is {low_high}, got {values}")
        if certify:
            values += low_high or ()
            if len(set(values)) < 2:
                raise ValueError("certify needs a range: give C_range, or at least two values Cs")
        return values

    def _set_fitted(self, search: CrossValidation, Cs: list[float]) -> None:
        values, best, self.n_splits_ = search.values, search.best, len(search.folds)
        Cs = Cs if self.certify is None else sorted(values)
        unfitted = [math.nan] * self.n_splits_

        def of_folds(name: str) -> Any:
            """A row for each fold, a column for each C."""
            known = {C: [getattr(fit, name) for fit in values[C].folds] for C in values}
            return np.array([known.get(C, unfitted) for C in Cs]).T

        self.Cs_, self.scores_ = np.array(Cs), of_folds("score")
        self.n_iter_ = np.nan_to_num(of_folds("passes")).astype(np.int64)
        # Values of C that were not fitted rank last.
        ranked = rankdata(np.nan_to_num(-self.scores_.mean(axis=0), nan=math.inf), method="min")
        self.cv_results_ = {
            "params": [{"C": C} for C in Cs],
            "param_C": np.ma.MaskedArray(self.Cs_, mask=False),
            "rank_test_score": ranked.astype(np.int32),
            **{f"split{i}_test_score": row for i, row in enumerate(self.scores_)},
        }
        for name in ("fit_time", "score_time", "test_score"):
            table = of_folds(name.removeprefix("test_"))
            self.cv_results_[f"mean_{name}"] = table.mean(axis=0)
            self.cv_results_[f"std_{name}"] = table.std(axis=0)
        self.C_, self.best_score_ = best.C, float(np.mean(best.scores))
        self.certified_, self.curve_ = search.certified, search.curve
        self.error_bound_ = search.bound

    def _warn(self, search: CrossValidation) -> None:
        """Warn of a search that did not reach its accuracy, and of a choice at the edge."""
        met = [fold.met for value in search.values.values() for fold in value.folds]
        reason = search.reason
        if not (reason or all(met)) and search.solver.certifies:
            reason = f"the accuracy was not reached in {met.count(False)} of {len(met)} fits"
        if reason and not self.certified_:
            proved = ""
            if self.certify is not None:
                within = percentage_points(search.best.high - self.error_bound_)
                proved = (
                    f" The error of C = {self.C_:g} is within {within} of the least, proved, and "
                    f"certify asks for {percentage_points(float(self.certify))}."
                )
            warnings.warn(
                f"The search ended early: {reason} after {len(search.values)} values of C.{proved} "
                "Raise max_time, max_fits or max_iter, or accept a larger certify or tol.",
                ConvergenceWarning, stacklevel=4,
            )  # fmt: skip
        Cs, errors = self.curve_.Cs, self.curve_.errors
        for name, end, inner in (("lowest", 0, 1), ("highest", -1, -2)):
            if Cs.size > 1 and Cs[end] == self.C_ and errors[end] < errors[inner]:
                text = f"C = {self.C_:g} has the best score and is the {name} C of its range"
                text += ": widen it, since a C beyond it may be better."
                warnings.warn(text, stacklevel=4)

    def report(
        self, path: str | PathLike[str] | None = None, X: Any = None, y: Any = None
    ) -> PageFile | None:
        """Write a report of the choice: one HTML page with the error at every C.

        Parameters
        ----------
        path : path, default=None
            The file to write; None means a temporary one.
        X : array-like or sparse matrix of shape (n_samples, n_features), default=None
            Rows to predict with the model of all rows, if ``refit``.
        y : array-like of shape (n_samples,), default=None
            Their labels.

        Returns
        -------
        page : str or None
            Without ``path``, the path of the page. Notebooks show the page itself.
        """
        check_is_fitted(self)
        parts = choice_parts(self.curve_, self.certify, self.certified_)
        if self.refit:
            parts["fit"] = self.best_estimator_._facts(X, y)
        title = "Linear SVM: the choice of C"
        subtitle = f"cross-validation on {self.n_splits_} folds"
        return write_page(path, page(title, subtitle, **parts))

    def _repr_html_inner(self) -> str:
        """For notebooks: the diagram; after fit the choice, and the certificate of the model."""
        shown: str = super()._repr_html_inner()
        for view in (getattr(self, "curve_", None), getattr(self, "certificate_", None)):
            shown += view._repr_html_() if view is not None else ""
        return shown

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        shown: dict[str, str] = super()._repr_mimebundle_(**kwargs)
        return shown | ({"text/html": self._repr_html_inner()} if "text/html" in shown else {})

    @available_if(lambda clf: clf.refit)
    def decision_function(self, X: Any) -> Any:
        """Scores of ``best_estimator_``; see ``LinearSVC.decision_function``.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        scores : ndarray of shape (n_samples,) or (n_samples, n_classes)
            Positive where the row belongs to ``classes_[1]``, or to the column's class.
        """
        check_is_fitted(self)
        return self.best_estimator_.decision_function(X)

    @available_if(lambda clf: clf.refit)
    def predict(self, X: Any) -> Any:
        """Predict labels with ``best_estimator_``.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            Taken from ``classes_``.
        """
        check_is_fitted(self)
        return self.best_estimator_.predict(X)

    @available_if(lambda clf: clf.refit)
    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The score of ``best_estimator_`` by ``scoring``; accuracy by default.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The rows.
        y : array-like of shape (n_samples,)
            Their labels.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows.

        Returns
        -------
        score : float
            The score.
        """
        check_is_fitted(self)
        if _is_accuracy(self.scoring):
            return float(self.best_estimator_.score(X, y, sample_weight))
        given = {} if sample_weight is None else {"sample_weight": sample_weight}
        return float(get_scorer(self.scoring)(self.best_estimator_, X, y, **given))

    def get_metadata_routing(self) -> Any:
        """What metadata this estimator takes, and what it passes on to splitter and scorer.

        Returns
        -------
        routing : MetadataRouter
            Routing information.
        """
        splits = routing.MethodMapping().add(caller="fit", callee="split")
        scores = routing.MethodMapping().add(caller="fit", callee="score")
        return (
            routing.MetadataRouter(owner=self)
            .add_self_request(self)
            .add(splitter=check_cv(self.cv, classifier=True), method_mapping=splits)
            .add(scorer=get_scorer(self.scoring or "accuracy"), method_mapping=scores)
        )


def _is_accuracy(scoring: Any) -> bool:
    """Whether a scorer is the share of rows that are predicted rightly."""
    scorer = get_scorer(scoring or "accuracy")
    known = getattr(scorer, "_score_func", None) is accuracy_score
    return known and scorer._sign == 1 and not scorer._kwargs
