"""A trained model, independent of the estimator that trained it.

A model predicts with NumPy and SciPy alone, holds its certificates, and is saved in one file. A
certificate in a file is a claim. Checking it takes the data and, for the dual bound, the witness,
which is saved in a second file beside the model.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import xxhash
from numpy.typing import NDArray

from certsvm._version import __version__
from certsvm.certificates.certificate import HINGE, Certificate, printable, tidy
from certsvm.files.atomic import atomic_write
from certsvm.files.checks import (
    check_certificate,
    check_loss,
    checked_labels,
    is_finite,
    listing,
)
from certsvm.files.container import Container, ModelFileError, container_bytes, read_container
from certsvm.files.optimum import OptimumMixin
from certsvm.files.scores import linear_scores
from certsvm.files.strict_json import encoded
from certsvm.files.witness_file import is_witness, load_witness, save_witness
from certsvm.matrices import checked_matrix, columns_in_order, dense, read_only
from certsvm.training.history import CLOSING, History, closing_records
from certsvm.verification.fingerprint import Fingerprint
from certsvm.verification.optimum_intervals import (
    Array,
    RowSizes,
    added_up,
    row_sizes,
)
from certsvm.verification.witness import WeightsWitness, Witness

KIND = "model"


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
    witness : Witness, WeightsWitness or None
        Dual points, from which the dual bounds can be recomputed. Needs a fingerprint.
    history : ndarray of shape (n_records, 4), or None
        How training went, for reports: ``certsvm.training.history.closing_records``.
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
    witness: Witness | WeightsWitness | None = None
    history: NDArray[np.float64] | None = None
    certsvm_version: str = __version__

    def __post_init__(self) -> None:
        for name in ("coef", "intercept", "class_weight"):
            array = np.asarray(getattr(self, name), dtype=np.float64)
            if not np.isfinite(array).all():
                raise ValueError(f"{name} contains NaN or infinity")
            object.__setattr__(self, name, read_only(array))
        object.__setattr__(self, "classes", read_only(checked_labels(self.classes)))
        object.__setattr__(self, "certificates", tuple(self.certificates))
        object.__setattr__(self, "parameters", {**self.parameters})
        if self.feature_names is not None:
            object.__setattr__(self, "feature_names", tuple(self.feature_names))
        self._check_shapes()
        self._check_history()
        self._check_parameters()
        for certificate in self.certificates:
            check_certificate(certificate)
        self._check_one_problem()
        self._check_data()

    @property
    def n_problems(self) -> int:
        """Number of binary problems: 1 for two classes, else one per class."""
        return int(self.coef.shape[0])

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return int(self.coef.shape[1])

    def _check_shapes(self) -> None:
        n_classes = self.classes.size
        n_problems = 1 if n_classes == 2 else n_classes
        if self.coef.ndim != 2 or self.coef.shape[0] != n_problems:
            raise ValueError(
                f"{n_classes} classes need coef of {n_problems} rows, got shape {self.coef.shape}"
            )
        for name, length in (("intercept", n_problems), ("class_weight", n_classes)):
            shape = getattr(self, name).shape
            if shape != (length,):
                raise ValueError(f"{name} must have shape ({length},), got {shape}")
        if (self.class_weight < 0).any():
            raise ValueError("class_weight must not be negative")
        if len(self.certificates) not in (0, n_problems):
            raise ValueError(
                f"{n_problems} problems need as many certificates or none, not "
                f"{len(self.certificates)}"
            )
        names = self.feature_names
        if names is None:
            return
        if len(names) != self.n_features or not all(isinstance(name, str) for name in names):
            raise ValueError(f"feature_names must be {self.n_features} strings")

    def _check_history(self) -> None:
        if self.history is None:
            return
        records = np.asarray(self.history, dtype=np.float64)
        if records.ndim != 2 or records.shape[1] != len(CLOSING):
            raise ValueError(f"history must have {len(CLOSING)} columns, got {records.shape}")
        problems, known = records[:, 0], records[:, [1, 3]]
        if not (np.isfinite(known).all() and np.isin(problems, np.arange(self.n_problems)).all()):
            raise ValueError("history has records of no problem, or numbers that are none")
        # J is infinite before it is computed.
        if not (records[:, 2] > -np.inf).all():
            raise ValueError("history contains a J that is none")
        object.__setattr__(self, "history", read_only(records))

    def _check_parameters(self) -> None:
        # Fail now rather than when a model that took hours is saved.
        encoded(self.parameters, "parameters")
        for name, least in (("C", "> 0"), ("intercept_scaling", ">= 0")):
            if name not in self.parameters:
                continue
            value = self.parameters[name]
            if not (is_finite(value) and (value > 0 or (value == 0 and least == ">= 0"))):
                raise ValueError(f"{name} must be a finite number {least}, got {value!r}")
            if any(getattr(certificate, name) != value for certificate in self.certificates):
                raise ValueError(f"a certificate is about another {name} than the model")
        parameters = self.parameters
        check_loss(parameters.get("loss", HINGE), parameters.get("penalize_intercept", True))
        for certificate in self.certificates:
            if parameters.get("loss", certificate.loss) != certificate.loss:
                raise ValueError("a certificate is about another loss than the model")
            penalised = parameters.get("penalize_intercept", certificate.penalize_intercept)
            # Without an intercept, there is none to penalise.
            if penalised != certificate.penalize_intercept and certificate.intercept_scaling > 0:
                raise ValueError("a certificate is about another penalty than the model")

    def _check_one_problem(self) -> None:
        """Raise unless the certificates agree on what was minimised, if the parameters are silent.

        Nobody could otherwise tell, from what is printed, what the gap of a class is about.
        """
        for name in ("C", "intercept_scaling", "loss", "free_intercept"):
            if len({getattr(certificate, name) for certificate in self.certificates}) > 1:
                raise ValueError(f"the certificates of the classes differ in {name}")

    def _check_data(self) -> None:
        if self.fingerprint is not None and self.fingerprint.n_columns != self.n_features:
            raise ValueError(
                f"the fingerprint is of {self.fingerprint.n_columns} columns, the model has "
                f"{self.n_features}"
            )
        if self.witness is None:
            return
        if self.fingerprint is None:
            raise ValueError("a model with a witness needs the fingerprint of the data it is about")
        if self.witness.n_problems != self.n_problems:
            raise ValueError(
                f"the witness is about {self.witness.n_problems} problems, the model about "
                f"{self.n_problems}"
            )

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
        names = getattr(clf, "feature_names_in_", None)
        certificates = tuple(getattr(clf, "certificates_", None) or ())
        return cls(
            coef=np.array(dense(clf.coef_), dtype=np.float64),
            intercept=np.array(clf.intercept_, dtype=np.float64),
            classes=np.array(clf.classes_),
            class_weight=np.array(clf.class_weight_, dtype=np.float64),
            certificates=certificates,
            parameters=_parameters_of(clf, certificates),
            feature_names=None if names is None else tuple(str(name) for name in names),
            fingerprint=fingerprint,
            history=_history_of(clf),
        )

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
        X = columns_in_order(X, self.feature_names)
        scores = linear_scores(X, self.coef, self.intercept, allow_fewer=allow_fewer)
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

    def _scores_and_sizes(self, X: Any) -> tuple[Array, RowSizes]:
        X = added_up(checked_matrix(columns_in_order(X, self.feature_names)))
        return linear_scores(X, self.coef, self.intercept), row_sizes(X)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model atomically, and its witness, if it has one, beside it.

        Without a witness, that of the model which is replaced is removed. Any other file of that
        name is left alone.

        Parameters
        ----------
        path : str or path-like
            The file. The witness goes to ``witness_path(path)``.

        Raises
        ------
        FileExistsError
            A file that is not a witness would be overwritten by one.
        """
        proof = witness_path(path)
        if self.witness is not None and os.path.exists(proof) and not is_witness(proof):
            raise FileExistsError(
                f"{proof} is not a witness, and would be overwritten by one: save the model under "
                "another name, or move that file"
            )
        outdated = self.witness is None and _is_outdated(path, self.digest)
        content = {
            "certsvm_version": self.certsvm_version,
            "classes": self.classes.tolist() if self.classes.dtype.kind == "U" else None,
            "certificates": [asdict(certificate) for certificate in self.certificates],
            "parameters": self.parameters,
            "feature_names": None if self.feature_names is None else list(self.feature_names),
            "fingerprint": None if self.fingerprint is None else asdict(self.fingerprint),
        }
        arrays = {name: getattr(self, name) for name in ("coef", "intercept", "class_weight")}
        if self.classes.dtype.kind != "U":
            arrays["classes"] = self.classes
        if self.history is not None:
            arrays["history"] = self.history
        data = container_bytes(KIND, content, arrays)
        # A disk that is full leaves the old model and the old witness: neither is replaced before
        # both are written. If we are killed between the two, their digests differ, or the old model
        # has no witness any more.
        with atomic_write(path) as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
            if self.witness is not None and self.fingerprint is not None:
                save_witness(proof, self.witness, self.fingerprint, self.digest)
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
            The file is not a model or damaged, or the witness belongs to other data.
        """
        container = read_container(path, KIND)
        proof = None
        if witness:
            if not os.path.exists(witness_path(path)):
                raise FileNotFoundError(
                    f"there is no witness {witness_path(path)} beside the model. "
                    "LinearSVC.to_model with the training data (after store_dual=True), "
                    "fit_stream(witness=True) and `certsvm train --witness` make one."
                )
            proof = load_witness(witness_path(path))
        try:
            model = _restored(cls, container, None if proof is None else proof.witness)
        except (KeyError, TypeError, ValueError) as error:
            raise ModelFileError(f"{os.fspath(path)} holds no valid model: {error}") from error
        if proof is not None and proof.fingerprint != model.fingerprint:
            raise ModelFileError(
                f"{witness_path(path)} is about other data ({proof.fingerprint}) than the model in "
                f"{os.fspath(path)} ({model.fingerprint})"
            )
        if proof is not None and proof.model not in ("", model.digest):
            raise ModelFileError(
                f"{witness_path(path)} belongs to another model than {os.fspath(path)}: one of "
                "them was replaced. Remove the witness, or restore the model."
            )
        return model

    def to_sklearn(self) -> Any:
        """A fitted ``sklearn.svm.LinearSVC`` that predicts the same labels.

        Returns
        -------
        clf : sklearn.svm.LinearSVC
            With the model's loss, as if it had been fitted; it has no certificates. Should it be
            fitted again, it penalises the intercept: scikit-learn's class always does.
        """
        from sklearn.svm import LinearSVC

        intercept_scaling = self.intercept_scaling
        clf = LinearSVC(
            loss=self.loss,
            C=self.parameters.get("C", 1.0),
            fit_intercept=intercept_scaling > 0,
            intercept_scaling=intercept_scaling if intercept_scaling > 0 else 1.0,
            random_state=self.parameters.get("seed"),
        )
        clf.coef_ = self.coef.copy()
        clf.intercept_ = self.intercept.copy()
        clf.classes_ = self.classes.copy()
        clf.n_features_in_ = self.n_features
        clf.n_iter_ = int(self.parameters.get("passes", 0))
        if self.feature_names is not None:
            clf.feature_names_in_ = np.array(self.feature_names, dtype=object)
        return clf

    @property
    def digest(self) -> str:
        """Digest of weights and certificates; witnesses store it."""
        claims = [_claims_text(certificate) for certificate in self.certificates]
        text = f"({', '.join(claims)}{',' if len(claims) == 1 else ''})"
        content = [self.coef.tobytes(), self.intercept.tobytes(), text.encode()]
        return xxhash.xxh3_128_hexdigest(b"".join(content))

    @property
    def loss(self) -> str:
        """The loss that was minimised: "hinge", also if it is unknown, or "squared_hinge"."""
        return str(self._minimised("loss", HINGE))

    @property
    def intercept_scaling(self) -> float:
        """The augmentation rho; if it is unknown, 1 if there are intercepts, else 0."""
        return float(self._minimised("intercept_scaling", bool(self.intercept.any())))

    def _minimised(self, name: str, unknown: Any) -> Any:
        """A parameter of the problem; if the parameters are silent, that of the certificates."""
        proved = getattr(self.certificates[0], name) if self.certificates else unknown
        return self.parameters.get(name, proved)

    def __str__(self) -> str:
        facts = [f"{self.classes.size} classes: {listing(self.classes.tolist())}"]
        facts.append(f"{self.n_features} features")
        minimised = {name: self._minimised(name, None) for name in ("C", "intercept_scaling")}
        facts += [f"{name} = {value}" for name, value in minimised.items() if value is not None]
        if self.loss != HINGE:
            facts.append(f"loss = {self.loss}")
        if self.intercept_scaling > 0 and not self._minimised("penalize_intercept", True):
            facts.append("the intercept is not penalised")
        lines = [f"linear model of certsvm {printable(self.certsvm_version)}; " + "; ".join(facts)]
        if self.fingerprint is not None:
            lines.append(f"trained on {self.fingerprint}")
        if not self.certificates:
            lines.append("no certificate: nothing is proved about the distance to the optimum")
        positive = self.classes[1:] if self.n_problems == 1 else self.classes
        lines += [
            f"class {tidy(label)}: {certificate}"
            for label, certificate in zip(positive, self.certificates, strict=False)
        ]
        return "\n".join(lines)


def witness_path(path: str | os.PathLike[str]) -> str:
    """The witness file of a model: its path with ``.witness`` appended."""
    return os.fspath(path) + ".witness"


def _is_outdated(path: str | os.PathLike[str], digest: str) -> bool:
    """Whether the witness beside a model is its own, and not of the one that will replace it."""
    try:
        about = load_witness(witness_path(path)).model
        return about != digest and about == Model.load(path).digest
    except (OSError, ValueError):
        return False


def _restored(
    cls: type[Model], container: Container, witness: Witness | WeightsWitness | None
) -> Model:
    content, arrays = container.content, container.arrays
    # Labels that are strings are in the content, others are an array.
    in_arrays = {"classes"} if content.get("classes") is None else set()
    container.require_only(
        content={"certificates", "certsvm_version", "classes", "feature_names", "fingerprint",
                 "parameters"},
        arrays={"coef", "intercept", "class_weight"} | in_arrays | ({"history"} & set(arrays)),
    )  # fmt: skip
    for name in ("coef", "intercept", "class_weight", *({"history"} & set(arrays))):
        if arrays[name].dtype != np.float64:
            raise ValueError(f"{name} is not float64")
    if not isinstance(content["certsvm_version"], str):
        raise ValueError("certsvm_version is no string")
    if not isinstance(content["parameters"], dict):
        raise ValueError("parameters is no dict")
    feature_names, labels = (_strings(content, name) for name in ("feature_names", "classes"))
    fingerprint = content["fingerprint"]
    return cls(
        coef=arrays["coef"],
        intercept=arrays["intercept"],
        classes=arrays["classes"] if labels is None else np.array(labels, dtype=object),
        class_weight=arrays["class_weight"],
        certificates=tuple(Certificate(**claims) for claims in content["certificates"]),
        parameters=content["parameters"],
        feature_names=None if feature_names is None else tuple(feature_names),
        fingerprint=None if fingerprint is None else Fingerprint(**fingerprint),
        witness=witness,
        history=arrays.get("history"),
        certsvm_version=content["certsvm_version"],
    )


def _claims_text(certificate: Certificate) -> str:
    """A certificate as files of format 1 have it, which knew one loss and no free intercept."""
    values = asdict(certificate)
    for name, only in (("loss", HINGE), ("penalize_intercept", True)):
        if values[name] == only:
            del values[name]
    # The text of NumPy's floats is another, and files return Python's.
    values = {
        name: float(value) if isinstance(value, float) else value for name, value in values.items()
    }
    return f"Certificate({', '.join(f'{name}={value!r}' for name, value in values.items())})"


def _strings(content: dict[str, Any], name: str) -> list[str] | None:
    value = content[name]
    if value is None or (isinstance(value, list) and all(isinstance(v, str) for v in value)):
        return value
    raise ValueError(f"{name} is no list of strings")


def _history_of(clf: Any) -> NDArray[np.float64] | None:
    """The records of an estimator's training; after ``partial_fit``, none."""
    found = getattr(clf, "history_", None)
    if found is None or getattr(clf, "certificates_", None) is None:
        return None
    return closing_records([found] if isinstance(found, History) else list(found))


def _parameters_of(clf: Any, certificates: Sequence[Certificate]) -> dict[str, Any]:
    """Parameters of an estimator's training, in types of JSON."""
    weights, seed = clf.class_weight, clf.random_state
    if isinstance(weights, dict):
        # Keys in JSON are strings, labels need not be.
        weights = [
            [label.item() if isinstance(label, np.generic) else label, float(weight)]
            for label, weight in weights.items()
        ]
    parameters: dict[str, Any] = {
        "C": float(clf.C),
        "loss": str(getattr(clf, "loss", HINGE)),
        "penalize_intercept": bool(getattr(clf, "penalize_intercept", True)),
        "tol": float(clf.tol),
        "intercept_scaling": float(clf.intercept_scaling) if clf.fit_intercept else 0.0,
        "solver": str(clf.solver_),
        "class_weight": weights,
        "seed": int(seed) if isinstance(seed, int | np.integer) else None,
        "max_iter": int(clf.max_iter),
        "passes": int(clf.n_iter_),
    }
    if certificates:
        # Parameters may have been changed since fit.
        proved = certificates[0]
        parameters |= {
            "C": proved.C, "tol": proved.target, "intercept_scaling": proved.intercept_scaling,
            "loss": proved.loss, "penalize_intercept": proved.penalize_intercept,
        }  # fmt: skip
    return parameters
