"""One small class for each system: how to call it, and which knob sets its accuracy.

They run in separate environments, so they import only NumPy and SciPy until a system is needed. All
minimise 1/2 |w|^2 + C sum_k max(0, 1 - y_k w.x_k), or the same with the squares of the losses,
without intercept; the classes translate C into the parameter of each system.
"""

from __future__ import annotations

import ctypes
import hashlib
import math
from abc import ABC, abstractmethod
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from benchmarks.peers import ladders

Array = NDArray[np.float64]

NO_LIMIT = 10**8
"""Iterations, for systems that insist on a limit: only the tolerance is to end a fit."""


class Adapter(ABC):
    """The interface to a system."""

    name: ClassVar[str]
    """Name in tables and for ``--peers``."""

    package: ClassVar[str]
    """Name for pip, and of its environment."""

    module: ClassVar[str]
    """Module that must be importable."""

    variants: ClassVar[tuple[str, ...]] = ("",)
    """Ways of using it; the fastest counts."""

    variants_of_square: ClassVar[tuple[str, ...]] = ()
    """The same for the squared hinge; none if it does not minimise that."""

    knob: ClassVar[str] = "tolerance"
    """Kind of setting: a tolerance, or a number of passes."""

    def __init__(self, threads: int = 1, scratch: Path = Path(), loss: str = "hinge") -> None:
        self.threads = threads
        self.scratch = scratch
        self.loss = loss

    @classmethod
    def variants_for(cls, loss: str) -> tuple[str, ...]:
        """Ways of using it for a loss; none if it does not minimise that."""
        return cls.variants if loss == "hinge" else cls.variants_of_square

    @classmethod
    def ladder(cls, accuracy: float) -> list[float]:
        """The settings to try for a true relative accuracy, loose ones first."""
        return ladders.tolerances()

    def version(self) -> str:
        """The version that is installed."""
        return version(self.package)

    def warm_up(self, X: sp.csr_matrix, y: Array) -> None:
        """Compile and load everything on a small ``X``."""
        self.prepare(X, y)
        for variant in self.variants_for(self.loss):
            self.weights(self.fit(0.01, variant, 1.0 if self.knob == "passes" else 0.1))

    def prepare(self, X: sp.csr_matrix, y: Array) -> None:
        """Take the data; this is not timed."""
        self.X, self.y = X, y

    @abstractmethod
    def fit(self, C: float, variant: str, setting: float) -> Any:
        """Train; this is what is timed."""

    def weights(self, model: Any) -> Array:
        """The weight vector of the result of ``fit``; not timed."""
        return np.asarray(model.coef_, dtype=np.float64).ravel()

    def remarks(self, model: Any) -> dict[str, bool]:
        """Further facts about a fit."""
        return {}


class Ours(Adapter):
    """certsvm at its defaults; it stops by its own certificate, so there is one setting."""

    name = "certsvm"
    package = "certsvm"
    module = "certsvm"
    variants_of_square = ("",)

    @classmethod
    def ladder(cls, accuracy: float) -> list[float]:
        """The accuracy itself."""
        return [accuracy]

    def version(self) -> str:
        """The version and a fingerprint of the sources, which change between versions."""
        digest = hashlib.sha256()
        for path in sorted(Path(str(import_module("certsvm").__file__)).parent.rglob("*.py")):
            digest.update(path.read_bytes())
        return f"{version(self.package)}+{digest.hexdigest()[:8]}"

    def warm_up(self, X: sp.csr_matrix, y: Array) -> None:
        """Both solvers that the default uses; the second one takes few columns only."""
        few = sp.csr_matrix(X[:, :50])
        few.indices, few.indptr = (a.astype(X.indices.dtype) for a in (few.indices, few.indptr))
        self.prepare(few, y)
        for solver in ("working-set", "newton", "auto"):
            self._estimator(0.01, 1e-3).set_params(solver=solver).fit(few, y)

    def fit(self, C: float, variant: str, setting: float) -> Any:
        """Train until the setting is proved."""
        return self._estimator(C, setting).fit(self.X, self.y)

    def remarks(self, model: Any) -> dict[str, bool]:
        """Whether the accuracy was proved."""
        return {"met": bool(model.certificate_.met)}

    def _estimator(self, C: float, tol: float) -> Any:
        return import_module("certsvm").LinearSVC(
            C=C, tol=tol, loss=self.loss, fit_intercept=False, random_state=0, n_jobs=self.threads,
            max_iter=NO_LIMIT,
        )  # fmt: skip


class SklearnLinearSVC(Adapter):
    """scikit-learn's copy of liblinear; the conversion in its fit counts."""

    name = "sklearn-LinearSVC"
    package = "scikit-learn"
    module = "sklearn.svm"
    variants_of_square = ("primal", "dual")

    def fit(self, C: float, variant: str, setting: float) -> Any:
        """Dual coordinate descent, or Newton's method with conjugate gradients in the primal."""
        estimator = import_module("sklearn.svm").LinearSVC(
            C=C, loss=self.loss, dual=variant != "primal", fit_intercept=False, tol=setting,
            max_iter=NO_LIMIT, random_state=0,
        )  # fmt: skip
        return estimator.fit(self.X, self.y)


class SklearnSGD(Adapter):
    """scikit-learn's SGD; its tolerance says nothing of the objective, so passes are counted."""

    name = "sklearn-SGD"
    package = "scikit-learn"
    module = "sklearn.linear_model"
    variants = ("last", "average")
    knob = "passes"

    @classmethod
    def ladder(cls, accuracy: float) -> list[float]:
        """Numbers of passes."""
        return ladders.passes()

    def fit(self, C: float, variant: str, setting: float) -> Any:
        """It minimises alpha/2 |w|^2 and the mean loss."""
        estimator = import_module("sklearn.linear_model").SGDClassifier(
            loss="hinge", alpha=1 / (C * self.y.size), fit_intercept=False, tol=None,
            max_iter=int(setting), average=variant == "average", random_state=0,
        )  # fmt: skip
        return estimator.fit(self.X, self.y)


class Liblinear(Adapter):
    """liblinear's own Python interface; the copy into its structures is made beforehand."""

    name = "liblinear"
    package = "liblinear-official"
    module = "liblinear.liblinearutil"
    variants_of_square = ("-s 2", "-s 1")

    def prepare(self, X: sp.csr_matrix, y: Array) -> None:
        """Copy the rows into liblinear's nodes."""
        super().prepare(X, y)
        self._problem = import_module(self.module).problem(y, X)

    def fit(self, C: float, variant: str, setting: float) -> Any:
        """Dual coordinate descent, for 300 passes at most: the limit is in its source.

        With -s 2, Newton's method with conjugate gradients in the primal.
        """
        options = f"{variant or '-s 3'} -B -1 -q -c {C!r} -e {setting!r} {self._threads()}"
        # It takes C's random numbers where the last fit left them; so a fit can be repeated.
        ctypes.CDLL(None).srand(1)
        return import_module(self.module).train(self._problem, options)

    def weights(self, model: Any) -> Array:
        """It separates the label that comes first in the data from the other."""
        w: Array = np.ctypeslib.as_array(model.w, (self.X.shape[1],)) * model.label[0]
        return w

    def _threads(self) -> str:
        return ""


class LiblinearMulticore(Liblinear):
    """The same with threads."""

    name = "liblinear-multicore"
    package = "liblinear-multicore"

    def _threads(self) -> str:
        return f"-m {self.threads}"


class SnapML(Adapter):
    """IBM's Snap ML; its regularizer is 1/C."""

    name = "snapml"
    package = "snapml"
    module = "snapml"

    @classmethod
    def ladder(cls, accuracy: float) -> list[float]:
        """The tolerance is about a change of w, which may be small far from the optimum."""
        return ladders.tolerances(1e-12)

    def fit(self, C: float, variant: str, setting: float) -> Any:
        """Dual coordinate descent."""
        estimator = import_module("snapml").SupportVectorMachine(
            regularizer=1 / C, tol=setting, max_iter=NO_LIMIT, fit_intercept=False,
            n_jobs=self.threads, random_state=0,
        )  # fmt: skip
        return estimator.fit(self.X, self.y)


class ReHLine(Adapter):
    """ReHLine, by its class for named losses."""

    name = "rehline"
    package = "rehline"
    module = "rehline"

    def fit(self, C: float, variant: str, setting: float) -> Any:
        """Dual coordinate descent that stops by the duality gap."""
        estimator = import_module("rehline").plqERM_Ridge(
            loss={"name": "svm"}, C=C, tol=setting, max_iter=NO_LIMIT
        )
        return estimator.fit(self.X, self.y)


class Skglm(Adapter):
    """skglm; its default working set of ten rows suits few support vectors only."""

    name = "skglm"
    package = "skglm"
    module = "skglm"
    variants = ("working sets of 1000", "all rows", "working sets of 10")

    def fit(self, C: float, variant: str, setting: float) -> Any:
        """Anderson-accelerated coordinate descent in the dual."""
        size = self.y.size if variant == "all rows" else int(variant.split()[-1])
        estimator = import_module("skglm").LinearSVC(
            C=C, tol=setting, fit_intercept=False, p0=size, max_iter=NO_LIMIT, max_epochs=NO_LIMIT
        )
        return estimator.fit(self.X, self.y)


class VowpalWabbit(Adapter):
    """Vowpal Wabbit, called as a library so that the start of a process does not count.

    The rows are written to its cache file beforehand, in random order, as it goes through them
    in the order of the file. Its --l2 shrinks w at each margin error and not at each row, so
    what it minimises is close to our problem but not the same.
    """

    name = "vw"
    package = "vowpalwabbit"
    module = "vowpalwabbit"
    variants = ("--sgd -l 5", "--invariant", "--sgd --power_t 0.75", "")
    knob = "passes"

    @classmethod
    def ladder(cls, accuracy: float) -> list[float]:
        """Numbers of passes."""
        return ladders.passes(1000)

    def prepare(self, X: sp.csr_matrix, y: Array) -> None:
        """Write the cache file, unless it is there from an earlier start."""
        super().prepare(X, y)
        bits = max(1, math.ceil(math.log2(X.shape[1])))
        rows = self.scratch / f"{X.shape[0]}-rows.vw"
        cache = rows.with_suffix(".cache")
        self._arguments = [
            "--quiet", "--loss_function", "hinge", "--noconstant", "--holdout_off",
            "--bit_precision", str(bits), "--cache_file", str(cache),
        ]  # fmt: skip
        if cache.exists():
            return
        with rows.open("w") as file:
            for k in np.random.default_rng(0).permutation(y.size):
                row = slice(X.indptr[k], X.indptr[k + 1])
                values = zip(X.indices[row].tolist(), X.data[row].tolist(), strict=True)
                file.write(f"{int(y[k])} | {' '.join(f'{i}:{x:.9g}' for i, x in values)}\n")
        self._workspace("--data", str(rows)).finish()
        rows.unlink()

    def fit(self, C: float, variant: str, setting: float) -> Any:
        """As many passes over the cache as the setting says."""
        return self._workspace(
            "--passes", str(int(setting)), "--l2", repr(1 / (C * self.y.size)), *variant.split()
        )

    def weights(self, model: Any) -> Array:
        """One by one; there is no other way."""
        w = np.array([model.get_weight(i) for i in range(self.X.shape[1])])
        model.finish()
        return w

    def _workspace(self, *arguments: str) -> Any:
        return import_module("vowpalwabbit").Workspace(arg_list=[*self._arguments, *arguments])


ADAPTERS: dict[str, type[Adapter]] = {
    adapter.name: adapter
    for adapter in (
        Ours,
        SklearnLinearSVC,
        SklearnSGD,
        Liblinear,
        LiblinearMulticore,
        SnapML,
        ReHLine,
        Skglm,
        VowpalWabbit,
    )
}
PEERS = [name for name in ADAPTERS if name != Ours.name]
