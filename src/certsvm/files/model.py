"""A trained model, independent of the estimator that trained it.

A model predicts with NumPy and SciPy alone, holds its certificates, and is saved in one file. A
certificate in a file is a claim. Checking it takes the data and, for the dual bound, the witness,
which is saved in a second file beside the model.
"""

from __future__ import annotations

import contextlib
import hashlib
import math
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certsvm._version import __version__
from certsvm.certificates import certificate as claims
from certsvm.certificates.certificate import Certificate
from certsvm.files import container
from certsvm.files.atomic import atomic_write
from certsvm.files.container import ModelFileError
from certsvm.markup import element
from certsvm.matrices import checked_matrix, columns_in_order, dense, exact_labels, read_only
from certsvm.scalars import plain
from certsvm.verification.evidence import Fingerprint, Witness, added_up
from certsvm.verification.optimum_intervals import OptimumMixin, RowSizes, products, row_sizes

_ARRAYS = ("coef", "intercept", "class_weight")
# What the certificates of all classes have in common, and parameters repeat.
_PROBLEM = ("C", "loss", "intercept_scaling", "penalize_intercept")


@dataclass(frozen=True, eq=False)
class Model(OptimumMixin):
    """A linear classifier and its certificates.

    Attributes
    ----------
    coef : ndarray of shape (n_problems, n_features)
        Weights of the columns: one row for two classes, else one per class.
    intercept : ndarray of shape (n_problems,)
        Intercepts.
    classes : ndarray of shape (n_classes,)
        Labels, ascending: int64, float64, bool or str.
    class_weight : ndarray of shape (n_classes,)
        Factors of the row weights of each class; with more than two classes, in the problem of
        that class only.
    certificates : tuple of Certificate
        One for each row of ``coef``, or none.
    parameters : dict
        Parameters of training, as far as known, in types of JSON: "C", "loss",
        "intercept_scaling" (0 for no intercept), "penalize_intercept", "tol", "solver",
        "class_weight", "seed", "passes", ...
    feature_names : tuple of str, or None
        Names of the columns.
    fingerprint : Fingerprint or None
        Fingerprint of the training data.
    witness : Witness or None
        Dual points, from which the dual bounds can be recomputed.
    history : ndarray of shape (n_records, 4), or None
        How training went, for reports: for some passes of each problem, its number, passes, the
        least J so far (infinite before there is one) and the largest L.
    certsvm_version : str
        Version of certsvm that made the model.

    Examples
    --------
    >>> model = Model(
    ...     coef=np.array([[2.0, -1.0]]), intercept=np.array([0.5]),
    ...     classes=np.array(["ham", "spam"]), class_weight=np.ones(2),
    ... )
    >>> model.predict([[1.0, 0.0], [0.0, 1.0]]).tolist()
    ['spam', 'ham']
    """

    coef: NDArray[np.float64]
    intercept: NDArray[np.float64]
    classes: NDArray[Any]
    class_weight: NDArray[np.float64]
    certificates: tuple[Certificate, ...] = ()
    parameters: dict[str, Any] = field(default_factory=dict)
    feature_names: tuple[str, ...] | None = None
    fingerprint: Fingerprint | None = None
    witness: Witness | None = None
    history: NDArray[np.float64] | None = None
    certsvm_version: str = __version__

    def __post_init__(self) -> None:
        kept = vars(self)
        for name in (*_ARRAYS, "history"):
            if kept[name] is not None:
                kept[name] = read_only(np.asarray(kept[name], dtype=np.float64))
        kept["classes"] = read_only(_checked_labels(self.classes))
        kept["certificates"] = tuple(self.certificates)
        if self.feature_names is not None:
            kept["feature_names"] = tuple(self.feature_names)
        # As a file keeps them: fail now rather than when a model that took hours is saved.
        text = container.to_json({**self.parameters, **self._problem()})
        kept["parameters"] = container.from_json(text.encode())
        self._check()

    @property
    def n_problems(self) -> int:
        """Number of binary problems: 1 for two classes, else one per class."""
        return int(self.coef.shape[0])

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return int(self.coef.shape[1])

    def _check(self) -> None:
        """Raise a ValueError unless everything has its shape, and numbers are finite."""
        names, n_classes = self.feature_names, self.classes.size
        n_problems = 1 if n_classes == 2 else n_classes
        width = self.coef.shape[-1] if self.coef.ndim else 0
        shapes = (n_problems, width), (n_problems,), (n_classes,)
        for name, shape in zip(_ARRAYS, shapes, strict=True):
            array, needed = getattr(self, name), f"{n_classes} classes need {name} of shape {shape}"
            if array.shape != shape or not np.isfinite(array).all():
                raise ValueError(f"{needed}, of finite numbers")
        if (self.class_weight < 0).any():
            raise ValueError("class_weight must not be negative")
        if len(self.certificates) not in (0, n_problems):
            raise ValueError(f"{n_problems} problems need as many certificates or none")
        if names is not None and [isinstance(name, str) for name in names] != [True] * width:
            raise ValueError("feature_names must be strings, one for each column")
        if not isinstance(self.certsvm_version, str):
            raise ValueError("certsvm_version must be a string")
        records = np.zeros((0, 4)) if self.history is None else self.history
        four = records.ndim == 2 and records.shape[1] == 4
        # J is infinite before it is computed.
        if not (four and np.isfinite(records[:, [0, 1, 3]]).all() and (records > -np.inf).all()):
            raise ValueError("history must have four columns: problem, passes, J, L")

    def _problem(self) -> dict[str, Any]:
        """What was minimised, as far as it is known; the certificates must agree."""
        stated = {name: self.parameters[name] for name in _PROBLEM if name in self.parameters}
        for claim in self.certificates or (Certificate(0.0, 0.0, 0.0, **stated),):
            _check_certificate(claim)
        for name in _PROBLEM if self.certificates else ():
            stated[name], *others = {getattr(claim, name) for claim in self.certificates}
            if others:
                raise ValueError(f"the certificates of the classes differ in {name}")
        return stated

    @classmethod
    def from_estimator(cls, clf: Any, fingerprint: Fingerprint | None = None) -> Model:
        """The model of a fitted estimator; ``LinearSVC.to_model`` can add a witness.

        Parameters
        ----------
        clf : LinearSVC
            Fitted, with ``fit`` or ``partial_fit``.
        fingerprint : Fingerprint, default=None
            Fingerprint of the training data.

        Returns
        -------
        model : Model
            With copies of the estimator's arrays; after ``partial_fit``, without certificates.
        """
        if not hasattr(clf, "coef_"):
            raise ValueError(f"this {type(clf).__name__} is not fitted: call fit first")
        if clf.multilabel_:
            raise ValueError(
                "models and reports are for one label a row; of several, keep the classifier "
                "itself (pickle), or fit one to each column of y"
            )
        certificates, names, history = (
            getattr(clf, name, None) for name in ("certificates_", "feature_names_in_", "history_")
        )
        # Parameters of the estimator may have been changed since fit.
        about = certificates[0] if certificates else clf
        parameters = {name: plain(getattr(about, name)) for name in _PROBLEM}
        if not certificates and not clf.fit_intercept:
            parameters["intercept_scaling"] = 0.0
        seed = plain(clf.random_state)
        parameters |= {
            "tol": plain(certificates[0].target if certificates else clf.tol),
            "solver": str(clf.solver_), "class_weight": listed_weights(clf.class_weight),
            "seed": seed if isinstance(seed, int) else None,
            "max_iter": plain(clf.max_iter), "passes": plain(clf.n_iter_),
        }  # fmt: skip
        return cls(
            coef=np.array(dense(clf.coef_)), intercept=np.array(clf.intercept_),
            classes=np.array(clf.classes_), class_weight=np.array(clf.class_weight_),
            certificates=tuple(certificates or ()), parameters=parameters, fingerprint=fingerprint,
            feature_names=None if names is None else tuple(map(str, names)),
            history=None if history is None else history.closing_records(),
        )  # fmt: skip

    def decision_function(self, X: Any, *, allow_fewer: bool = False) -> NDArray[np.float64]:
        """Scores of rows.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
            The rows. The columns of a frame are matched by name if the model has names, and must
            be the model's; those of an array are taken in their order.
        allow_fewer : bool, default=False
            Whether an array may have fewer columns than the model, the rest being zero. Text files
            show only the columns that occur in them.

        Returns
        -------
        scores : ndarray of shape (n_samples,) or (n_samples, n_classes)
            Positive for ``classes[1]``, or for the class of the column.
        """
        X = checked_matrix(columns_in_order(X, self.feature_names))
        scores = self._scores(X, allow_fewer=allow_fewer)
        return scores.ravel() if self.n_problems == 1 else scores

    def labels_of(self, scores: NDArray[np.float64]) -> NDArray[Any]:
        """The labels that belong to scores of ``decision_function``."""
        index = (scores > 0).astype(np.intp) if scores.ndim == 1 else scores.argmax(axis=1)
        labels: NDArray[Any] = self.classes[index]
        return labels

    def predict(self, X: Any, *, allow_fewer: bool = False) -> NDArray[Any]:
        """Predicted labels of rows.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
            The rows. The columns of a frame are matched by name if the model has names, and must
            be the model's; those of an array are taken in their order.
        allow_fewer : bool, default=False
            Whether X may have fewer columns than the model, the rest being zero.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            Entries of ``classes``.
        """
        return self.labels_of(self.decision_function(X, allow_fewer=allow_fewer))

    def _scores(self, X: Any, *, allow_fewer: bool = False) -> NDArray[np.float64]:
        n_columns, n_features = X.shape[1], self.n_features
        if n_columns > n_features or (n_columns < n_features and not allow_fewer):
            hint = "; predict(X, allow_fewer=True) takes them as zero"
            hint = hint if n_columns < n_features else ""
            raise ValueError(f"X has {n_columns} columns, the model {n_features}{hint}")
        scores = products(X, self.coef[:, :n_columns]) + self.intercept
        if not np.isfinite(scores).all():
            k = int(np.argmin(np.isfinite(scores).all(axis=1)))
            raise ValueError(f"row {k} of X contains NaN, infinity, or values too large to add up")
        return scores

    def _scores_and_sizes(self, X: Any) -> tuple[NDArray[np.float64], RowSizes]:
        X = added_up(checked_matrix(columns_in_order(X, self.feature_names)))
        return self._scores(X), row_sizes(X)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model atomically, and its witness, if it has one, beside it.

        Without a witness, that of the model which is replaced is removed. Any other file of that
        name is left alone.

        Parameters
        ----------
        path : str or path-like
            The file. The witness goes to ``witness_path(path)``.
        """
        proof = witness_path(path)
        content = {
            "certsvm_version": self.certsvm_version, "classes": self.classes.tolist(),
            "certificates": [asdict(certificate) for certificate in self.certificates],
            "parameters": self.parameters, "feature_names": self.feature_names,
            "fingerprint": None if self.fingerprint is None else asdict(self.fingerprint),
        }  # fmt: skip
        named = {name: getattr(self, name) for name in (*_ARRAYS, "history")}
        arrays = {name: array for name, array in named.items() if array is not None}
        # Whether the witness there is that of the model which is replaced, and not of this one.
        outdated = False
        if self.witness is None:
            with contextlib.suppress(OSError, ValueError):
                about = load_witness(proof)[1]
                outdated = about != self.digest and about == Model.load(path).digest
        # A disk that is full leaves the old model and the old witness: neither is replaced before
        # both are written. If we are killed between the two, their digests differ, or the old model
        # has no witness any more.
        with atomic_write(path) as file:
            file.writelines(container.container_parts("model", content, arrays))
            file.flush()
            os.fsync(file.fileno())
            if self.witness is not None:
                save_witness(proof, self.witness, self.digest)
            elif outdated:
                with contextlib.suppress(FileNotFoundError):
                    os.remove(proof)

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, witness: bool = False) -> Model:
        """Read a model.

        Parameters
        ----------
        path : str or path-like
            The file.
        witness : bool, default=False
            Whether to read the witness too, which may be far larger.

        Returns
        -------
        model : Model
            The model as it was saved.

        Raises
        ------
        ModelFileError
            The file is not a model or damaged, or the witness belongs to another model.
        """
        content, arrays = container.read_container(path, "model")
        try:
            content["certificates"] = [Certificate(**claim) for claim in content["certificates"]]
            if content["fingerprint"] is not None:
                content["fingerprint"] = Fingerprint(**content["fingerprint"])
            content["classes"] = np.array(content["classes"], dtype=object)
            model = cls(**content, **arrays, witness=None)
        except (KeyError, OverflowError, TypeError, ValueError) as error:
            raise ModelFileError(f"{os.fspath(path)} holds no valid model: {error}") from error
        if not witness:
            return model
        proof, about = load_witness(witness_path(path))
        if about != model.digest:
            raise ModelFileError(
                f"{witness_path(path)} belongs to another model. Remove it, or restore the model."
            )
        return replace(model, witness=proof)

    def to_sklearn(self) -> Any:
        """A fitted ``sklearn.svm.LinearSVC`` that predicts the same labels.

        Returns
        -------
        clf : sklearn.svm.LinearSVC
            With the model's loss, as if it had been fitted; it has no certificates. Should it be
            fitted again, it penalises the intercept: scikit-learn's class always does.
        """
        from sklearn.svm import LinearSVC

        clf = LinearSVC(
            loss=self.loss, C=self.parameters.get("C", 1.0),
            fit_intercept=self.intercept_scaling > 0,
            intercept_scaling=self.intercept_scaling or 1.0,
            random_state=self.parameters.get("seed"),
        )  # fmt: skip
        clf.coef_, clf.intercept_ = self.coef.copy(), self.intercept.copy()
        clf.classes_ = self.classes.copy()
        clf.n_features_in_ = self.n_features
        clf.n_iter_ = int(self.parameters.get("passes", 0))
        if self.feature_names is not None:
            clf.feature_names_in_ = np.array(self.feature_names, dtype=object)
        return clf

    @property
    def digest(self) -> str:
        """Digest of weights and certificates; witnesses store it."""
        proved = container.to_json([asdict(certificate) for certificate in self.certificates])
        whole = hashlib.blake2b(self.coef.tobytes(), digest_size=16)
        whole.update(self.intercept.tobytes() + proved.encode())
        return whole.hexdigest()

    @property
    def loss(self) -> str:
        """The loss that was minimised: "hinge", also if it is unknown, or "squared_hinge"."""
        return str(self.parameters.get("loss", claims.HINGE_NAME))

    @property
    def intercept_scaling(self) -> float:
        """The augmentation rho; if it is unknown, 1 if there are intercepts, else 0."""
        return float(self.parameters.get("intercept_scaling", self.intercept.any()))

    @property
    def _title(self) -> str:
        known, version = self.parameters, claims.printable(self.certsvm_version)
        classes = f"{self.classes.size} classes: {listing(self.classes.tolist())}"
        problem = [f"{name} = {known[name]}" for name in _PROBLEM if name in known]
        facts = "; ".join([classes, f"{self.n_features} features", *problem])
        return f"linear model of certsvm {version}; {facts}"

    @property
    def _claims(self) -> claims.Certificates:
        return claims.Certificates(self.certificates, self.classes[-self.n_problems :])

    def __repr__(self) -> str:
        gaps = [c.proved_gap for c in self.certificates] or [math.inf]
        # A negative gap is a contradiction.
        proved = min(gaps) >= 0.0 and max(gaps) < math.inf
        claim = f"within {claims.percent(max(gaps))} of the optimum, as it claims"
        return f"{self._title}; {claim if proved else 'nothing is proved'}"

    def _repr_html_(self) -> str:
        """For notebooks: what it is, and the certificates, which are claims."""
        return element("div", element("p", repr(self)), self._claims._repr_html_())

    def __str__(self) -> str:
        rows = [] if self.fingerprint is None else [f"trained on {self.fingerprint}"]
        proof = "no certificate: nothing is proved about the distance to the optimum"
        return "\n".join([self._title, *rows, repr(self._claims) if self.certificates else proof])


def witness_path(path: str | os.PathLike[str]) -> str:
    """The witness file of a model: its path with ``.witness`` appended."""
    return os.fspath(path) + ".witness"


def save_witness(path: str | os.PathLike[str], witness: Witness, model: str) -> None:
    """Write a witness atomically.

    Parameters
    ----------
    path : str or path-like
        The file to write.
    witness : Witness
        The witness.
    model : str
        Digest of the model.
    """
    arrays = {"codes": witness.codes, "scale": witness.scale}
    container.write_container(path, "witness", {"model": model}, arrays)


def load_witness(path: str | os.PathLike[str]) -> tuple[Witness, str]:
    """Read a witness file.

    Parameters
    ----------
    path : str or path-like
        The file.

    Returns
    -------
    witness : Witness
        The witness.
    model : str
        Digest of its model.

    Raises
    ------
    ModelFileError
        The file is not a witness, or damaged.
    """
    content, arrays = container.read_container(path, "witness")
    try:
        return Witness(**arrays), str(content["model"])
    except (KeyError, TypeError, ValueError) as error:
        raise ModelFileError(f"{os.fspath(path)} holds no valid witness: {error}") from error


def listed_weights(class_weight: Any) -> Any:
    """Weights of classes for JSON, whose keys are strings, as labels need not be."""
    if not isinstance(class_weight, dict):
        return class_weight
    return [[plain(label), float(weight)] for label, weight in class_weight.items()]


def listing(items: Sequence[Any]) -> str:
    """The first few items, as text."""
    return ", ".join([*map(claims.tidy, items[:5]), *(["..."] if len(items) > 5 else [])])


def _checked_labels(classes: Any) -> NDArray[Any]:
    """The labels as numbers of 64 bits, booleans or strings; raises unless they are ascending."""
    values = np.asarray(classes).tolist()
    labels = exact_labels(values)
    if labels.ndim != 1 or labels.size < 2 or labels.dtype.kind not in "biufU":
        raise ValueError(f"classes must be at least two numbers or strings, got {classes!r:.200}")
    if not all(a < b for a, b in pairwise(values)):
        raise ValueError(f"classes must be distinct and ascending, got {listing(values)}")
    return labels


def _check_certificate(claim: Certificate) -> None:
    """Raise ValueError unless the values of a certificate are of their types, and in range."""
    least = {"primal": -math.inf, "dual": -math.inf, "C": math.ulp(0.0)}
    for name, value in asdict(claim).items():
        holds = type(value) in (int, float) and (math.isfinite(value) or name == "target")
        if name in ("loss", "bound", "penalize_intercept"):
            named = value in claims.LOSS_NAMES or name != "loss"
            holds = named and type(value) is (bool if name == "penalize_intercept" else str)
        elif holds:
            holds = value >= least.get(name, 0.0)
        if not holds:
            raise ValueError(f"{name} of a certificate cannot be {value!r:.60}")
