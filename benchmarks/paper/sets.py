"""The paper's data sets, substitutes for them, and sets that are always available.

A set is parsed once; after that it comes from the cache. Missing sets are left out, with a message
that says how to get them.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.datasets import fetch_covtype, fetch_rcv1, load_breast_cancer, load_digits

from benchmarks.data import DataSet, MissingDataError, find, load, read
from benchmarks.peers import worker

Labelled = tuple[sp.csr_matrix, NDArray[np.float64]]

# The paper multiplies the features of Physics and Covertype by this.
SCALE = 0.001
# Codes of missing values in the physics data, and the number of columns with them.
_ABSENT, _ABSENT_COLUMNS = (999.0, 9999.0), 8
_LIBSVM = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/binary.html"


@dataclass(frozen=True)
class Where:
    """Where to look for data."""

    folder: Path | None
    fetch: bool = False

    def file(self, *names: str) -> Path:
        """The first of these files that exists, plain or compressed."""
        if self.folder is None:
            raise MissingDataError("no data folder was given (--data)")
        for name in names:
            try:
                return find(self.folder, name)
            except MissingDataError:
                continue
        raise MissingDataError(f"{' or '.join(names)} is not in {self.folder}")


@dataclass(frozen=True)
class Recipe:
    """A data set and how to get it.

    Attributes
    ----------
    name : str
        Name in the tables.
    of : str
        "paper", "stand-in" or "generated".
    note : str
        Description, if it is not one of the paper's.
    get : callable
        Reads it, or raises ``MissingDataError``.
    files : tuple of str
        Files that it is read from; empty if it comes from a package.
    how : str
        How to get it.
    """

    name: str
    of: str
    note: str
    get: Callable[[Where], Labelled]
    files: tuple[str, ...] = ()
    how: str = ""


def _libsvm(*names: str) -> Callable[[Where], Labelled]:
    def get(where: Where) -> Labelled:
        path = where.file(*names)
        _, X, y = read(path, path.name)
        return X, y

    return get


def _physics(where: Where) -> Labelled:
    """Identity, label, 78 features; columns with missing values are removed."""
    table = np.loadtxt(where.file("phy_train.dat"))
    features = table[:, 2:]
    absent = np.isin(features, _ABSENT).any(axis=0)
    if absent.sum() != _ABSENT_COLUMNS:
        raise MissingDataError(
            f"phy_train.dat has {absent.sum()} columns with missing values, not "
            f"{_ABSENT_COLUMNS}: it is not the training file of KDD Cup 2004"
        )
    return sp.csr_matrix(SCALE * features[:, ~absent]), _signs(table[:, 1] > 0)


def _covertype(where: Where) -> Labelled:
    """The first class against the rest."""
    if where.folder is not None:
        with suppress(MissingDataError):
            _, X, y = load(where.folder, "covtype")
            return X, y
    try:
        X, y = fetch_covtype(return_X_y=True, download_if_missing=where.fetch)
    except OSError as error:
        raise MissingDataError(
            f"scikit-learn has not downloaded it (--fetch does): {error}"
        ) from error
    return sp.csr_matrix(SCALE * X), _signs(y == 1)


def _rcv1(topic: str) -> Callable[[Where], Labelled]:
    def get(where: Where) -> Labelled:
        try:
            bunch = fetch_rcv1(download_if_missing=where.fetch)
        except OSError as error:
            raise MissingDataError(
                f"scikit-learn has not downloaded it (--fetch does): {error}"
            ) from error
        column = list(bunch.target_names).index(topic)
        return sp.csr_matrix(bunch.data), _signs(bunch.target[:, column].toarray().ravel() > 0)

    return get


def _breast_cancer(_: Where) -> Labelled:
    X, y = load_breast_cancer(return_X_y=True)
    return sp.csr_matrix(X / X.max(axis=0)), _signs(y == 1)


def _digits(_: Where) -> Labelled:
    X, y = load_digits(return_X_y=True)
    return sp.csr_matrix(X / 16.0), _signs(y % 2 == 1)


def _text(_: Where) -> Labelled:
    """Rows of thirty words out of 10,000 with a Zipf distribution; unit length."""
    rng = np.random.default_rng(0)
    rows, columns, words = 6000, 10_000, 30
    popularity = 1.0 / np.arange(1, columns + 1)
    drawn = rng.choice(columns, size=(rows, words), p=popularity / popularity.sum())
    X = sp.csr_matrix(
        (np.ones(rows * words), (np.repeat(np.arange(rows), words), drawn.ravel())),
        shape=(rows, columns),
    )
    X.sum_duplicates()
    lengths = np.sqrt(X.multiply(X).sum(axis=1))
    X = sp.csr_matrix(X.multiply(1.0 / np.asarray(lengths)))
    score = X @ rng.standard_normal(columns)
    return X, _signs(score + 0.2 * rng.standard_normal(rows) > 0)


def _dense(_: Where) -> Labelled:
    """Twenty normal columns, five of them informative; a tenth of the labels is flipped."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((10_000, 20))
    right = X[:, :5] @ rng.standard_normal(5) > 0
    return sp.csr_matrix(X), _signs(right ^ (rng.random(10_000) < 0.1))


def _signs(positive: NDArray[np.bool_]) -> NDArray[np.float64]:
    return np.where(positive, 1.0, -1.0)


_RCV1_HOW = "scikit-learn downloads it: --fetch (0.7 GB)"
RECIPES = {
    recipe.name: recipe
    for recipe in (
        Recipe("Adult", "paper", "", _libsvm("a9a"), ("a9a",), _LIBSVM),
        Recipe("Web", "paper", "", _libsvm("w8a"), ("w8a",), _LIBSVM),
        Recipe(
            "Physics", "paper", "", _physics, ("phy_train.dat",),
            "training file of the physics task of KDD Cup 2004",
        ),
        Recipe("Real-sim", "paper", "", _libsvm("real-sim"), ("real-sim",), _LIBSVM),
        Recipe(
            "News20", "paper", "", _libsvm("news20.binary"), ("news20.binary",), _LIBSVM,
        ),
        Recipe(
            "Webspam", "paper", "", _libsvm("webspam_wc_normalized_unigram.svm"),
            ("webspam_wc_normalized_unigram.svm",), _LIBSVM,
        ),
        Recipe(
            "Covertype", "paper", "", _covertype, ("covtype.csv",),
            "scikit-learn downloads it: --fetch (11 MB)",
        ),
        Recipe("C11", "paper", "", _rcv1("C11"), (), _RCV1_HOW),
        Recipe("CCAT", "paper", "", _rcv1("CCAT"), (), _RCV1_HOW),
        Recipe(
            "news20", "stand-in", "for News20: 20 newsgroups, 1- to 3-grams, rebuilt",
            _libsvm("news20"), ("news20",),
        ),
        Recipe(
            "debian", "stand-in", "for Real-sim: descriptions of Debian packages",
            _libsvm("debian"), ("debian",),
        ),
        Recipe("kdd99", "stand-in", "for Webspam: KDD Cup 99", _libsvm("kdd99"), ("kdd99",)),
        Recipe(
            "moneyfx", "stand-in", "for C11 and CCAT: Reuters, topic money-fx",
            _libsvm("moneyfx"), ("moneyfx",),
        ),
        Recipe("ijcnn1", "stand-in", "for Physics: IJCNN 2001", _libsvm("ijcnn1"), ("ijcnn1",)),
        Recipe("text", "generated", "words at random", _text),
        Recipe("dense", "generated", "normal numbers, a tenth of the labels wrong", _dense),
        Recipe("cancer", "generated", "scikit-learn's breast cancer data", _breast_cancer),
        Recipe("digits", "generated", "scikit-learn's digits, odd or even", _digits),
    )
}  # fmt: skip
GENERATED = [name for name, recipe in RECIPES.items() if recipe.of == "generated"]


def sets(names: list[str], where: Where, cache: Path) -> Iterator[tuple[Recipe, DataSet]]:
    """The available sets of these names, one at a time."""
    for name in names:
        recipe = RECIPES[name]
        try:
            yield recipe, _cached(recipe, where, cache)
        except MissingDataError as why:
            how = f". To get it: {recipe.how}" if recipe.how else ""
            print(f"{name} is left out: {why}{how}", file=sys.stderr)


def _cached(recipe: Recipe, where: Where, cache: Path) -> DataSet:
    """Read a set, from the cache if its file is unchanged."""
    path = cache / "sets" / f"{recipe.name}-{_origin(recipe, where)}.npz"
    if not path.exists():
        X, y = recipe.get(where)
        path.parent.mkdir(parents=True, exist_ok=True)
        new = path.with_suffix(".new.npz")
        worker.save(new, X, y)
        new.replace(path)
    return DataSet(recipe.name, *worker.load(path))


def _origin(recipe: Recipe, where: Where) -> str:
    """A digest that changes with the file that the set is read from."""
    text: list[Any] = [recipe.name]
    if recipe.files and where.folder is not None:
        try:
            file = where.file(*recipe.files)
            text += [file.name, file.stat().st_size, file.stat().st_mtime_ns]
        except MissingDataError:
            pass
    return hashlib.sha256(repr(text).encode()).hexdigest()[:8]
