"""Columns of Arrow data and their roles: features, labels, weights.

A value that is missing or not a number where one is needed is an error that names its row and
column.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
from numpy.typing import NDArray

from certsvm.files.batch import FEW_ROWS, Batch, csr, label_number
from certsvm.matrices import exact_labels, listed

# Text of all values of one-hot columns; more are no categories, and would take too much memory.
_MOST_CATEGORY_BYTES = 4_000_000
_LEAVE_OUT = "--drop NAME, or ignore=[NAME]"
_NUMBERS = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean)


class TableError(ValueError):
    """A table cannot be used; the message names the file and says why."""


@contextmanager
def explained(where: str) -> Iterator[None]:
    """Turn errors of Arrow, and of labels, into errors that name the table."""
    try:
        yield
    except TableError:
        raise
    except (pa.ArrowException, LookupError, OSError, ValueError) as error:
        hint = ""
        if is_too_long(error):
            hint = (
                ". It has no rows, or a row is longer than a block: is it a damaged file of lines?"
            )
        elif "UTF8" in str(error) or isinstance(error, UnicodeDecodeError):
            hint = ". Text must be UTF-8: iconv -f LATIN1 -t UTF-8 FILE > utf8.csv, for example"
        raise TableError(f"{where} cannot be read: {error}{hint}") from None


def is_too_long(error: Exception) -> bool:
    """Whether Arrow found a row of CSV, or the line of names, to be longer than a block."""
    return "straddling" in str(error) or "Empty CSV" in str(error)


class Features:
    """Columns of a table as features: as numbers, or one-hot.

    A column of strings becomes one feature for each of its values, called ``column=value``, which
    is one in the rows that have the value and zero in all others.

    Parameters
    ----------
    columns : sequence of str
        The columns, in the order of their features.
    values : dict, default={}
        The values of each column that is one-hot.

    Attributes
    ----------
    names : list of str
        Names of the features.
    spans : dict
        First and last feature, plus one, of each one-hot column.

    Examples
    --------
    >>> features = Features(("age", "eyes"), {"eyes": ("blue", "brown")})
    >>> features.names
    ['age', 'eyes=blue', 'eyes=brown']
    >>> features.spans
    {'eyes': [1, 3]}
    >>> Features.from_names(features.names, features.spans).columns
    ('age', 'eyes')
    """

    def __init__(
        self, columns: Sequence[str], values: Mapping[str, Sequence[str]] | None = None
    ) -> None:
        self.columns, self.values = tuple(columns), values or {}
        self.names: list[str] = []
        self.spans: dict[str, list[int]] = {}
        for column in self.columns:
            first = len(self.names)
            if column not in self.values:
                self.names.append(column)
                continue
            self.names += [f"{column}={value}" for value in self.values[column]]
            self.spans[column] = [first, len(self.names)]
        for name, count in Counter(self.names).most_common(1):
            if count > 1:
                raise ValueError(f"two features would be called {name!r}: rename a column")

    @classmethod
    def from_names(cls, names: Sequence[str], spans: Any) -> Features:
        """The features with these ``names`` and ``spans``; raises ValueError if they disagree."""
        columns: list[str] = []
        values: dict[str, list[str]] = {}
        first = 0
        try:
            for column, (begin, end) in sorted((spans or {}).items(), key=lambda item: item[1]):
                columns += [*names[first:begin], column]
                values[column] = [name[len(column) + 1 :] for name in names[begin:end]]
                first = end
            features = cls([*columns, *names[first:]], values)
            if (features.names, features.spans) != (list(names), spans or {}):
                raise ValueError("they are not those of the features")
        except (AttributeError, TypeError, ValueError) as error:
            raise ValueError(f"the one-hot columns {spans!r} make no sense: {error}") from None
        return features


class Columns:
    """The columns of a table and what they are used for.

    Parameters
    ----------
    where : str
        Name of the table in messages.
    schema : pyarrow.Schema
        Its columns. Those that are the index of a pandas frame are neither features nor labels
        unless they are named.
    label : str, default=None
        The column of labels; by default "label", or else the last column.
    weight : str, default=None
        The column of weights.
    features : Features or sequence of str, default=None
        The features; None means all other columns. If they are given without a label, the labels
        are in "label", or in the only other column, or missing.
    n_features : int, default=None
        How many features there must be. Without a label, a table with exactly so many columns,
        none of them called "label", has no labels.
    categorical : bool, default=False
        Whether columns of strings become one-hot. Their values have to be shown to ``learn``
        before the first rows are made.
    ignore : collection of str, default=()
        Columns that are neither features nor labels.
    columns : sequence of str, default=None
        The columns that may be features; None means all.
    usual_label : str, default=None
        The column that has the labels if ``label`` is not given, and the table has such a column.
    complete : bool, default=False
        Whether ``features`` must be all columns without another role. The labels are then where
        they are without ``features``: whoever chose these has no say in it.

    Attributes
    ----------
    features : Features
        The features.
    strings : list of str
        The columns that are one-hot, or will be.
    recoded : list of str
        The columns that are one-hot although they hold no strings.
    learnt : bool
        Whether the values of ``strings`` have to be shown to ``learn`` first.
    used, ignored, numbers : list of str
        The columns that have to be read, those that are not, and those that have to be numbers.
    label, weight : str or None
        The columns of labels and weights.
    notes : list of str
        Remarks about the columns.
    unseen : Counter
        How many values of each one-hot column were not among its values, so far.
    """

    def __init__(
        self, where: str, schema: pa.Schema, *, label: str | None = None, weight: str | None = None,
        features: Features | Sequence[str] | None = None, n_features: int | None = None,
        categorical: bool = False, ignore: Collection[str] = (), complete: bool = False,
        columns: Sequence[str] | None = None, usual_label: str | None = None,
    ) -> None:  # fmt: skip
        if len(set(schema.names)) < len(schema.names):
            raise TableError(
                f"{where} has two columns of the same name. If the line of names is missing, say "
                "so: --no-header, or header=False."
            )
        self._where, index = where, _index_columns(schema)
        self._types = dict(zip(schema.names, schema.types, strict=True))
        if features is not None and not isinstance(features, Features):
            features = Features(features)
        if label is None:
            fixed = () if features is None or complete else features.columns
            taken = {weight, *ignore, *index, *fixed}
            others = [name for name in self._types if name not in taken]
            if usual_label in set(self._types) - {weight, *ignore}:
                label = usual_label
            elif "label" in others:
                label = "label"
            elif fixed:
                label = others[0] if len(others) == 1 else None
            elif others and (complete or len(others) != n_features):
                label = others[-1]
        self.label, self.weight = label, weight
        roles: dict[str, Iterable[str | None]] = {
            "the labels": [label], "the weights": [weight], "--ignore or --drop": ignore,
            # Whoever made the model cannot make it a feature.
            "the index of a frame": set(index) - {label, weight, *ignore} if complete else (),
            "the model": () if features is None else features.columns,
            "--columns": columns or (),
        }  # fmt: skip
        taken_by: dict[str | None, str] = {None: ""}
        known = listed(schema.names)
        for role, names in roles.items():
            for name in names:
                if name is not None and name not in self._types:
                    raise TableError(f"{where} has no column {name!r} for {role}; it has {known}")
                if name is not None and taken_by.setdefault(name, role) != role:
                    raise TableError(
                        f"{where}: column {name!r} has {taken_by[name]}, and is for {role}, too: "
                        "it can have one role only (--label, --weight, --ignore)"
                    )
        others = [name for name in self._types if name not in taken_by and name not in index]
        if complete and features is not None and others:
            raise TableError(
                f"{where} has columns that the model does not use: {listed(others)}. Leave them "
                "out by name (--ignore) if that is meant, or say --label NAME or --weight NAME."
            )
        if columns is not None:
            chosen = set(columns)
            others = [name for name in self._types if name in chosen]
        self.features = features or Features(others)
        if not self.features.columns:
            raise TableError(f"{where} has no columns besides {label!r}")
        strings = {name for name, kind in self._types.items() if _is_string(kind)}
        self.strings = list(self.features.values)
        if features is None and categorical:
            self.strings = [name for name in others if name in strings]
        self.recoded = [name for name in self.features.values if name not in strings]
        self.learnt = features is None and bool(self.strings)
        self.unseen: Counter[str] = Counter()
        self.used = [*self.features.columns, *(c for c in (label, weight) if c is not None)]
        text = {label, *self.strings}
        self.numbers = [name for name in self.used if name not in text]
        used = set(self.used)
        self.ignored = [name for name in self._types if name not in used]
        self.notes = [] if label is None else [f"labels are in column {label!r}"]
        self.notes += [
            f"column {name!r} is the index of a frame, and not used"
            for name in index if name not in used
        ]  # fmt: skip
        for name in self.numbers:
            if not any(is_kind(self._types[name]) for is_kind in _NUMBERS):
                raise TableError(
                    f"{where}: column {name!r} holds {self._types[name]}, not numbers (which have "
                    f"decimal points, not commas). Leave it out ({_LEAVE_OUT}), make strings "
                    "one-hot (--categorical, categorical=True), or name the labels (--label)."
                )
        if n_features not in (None, len(self.features.names)):
            raise TableError(
                f"{where} has {len(self.features.names)} columns of features (labels in "
                f"{label!r}), the model {n_features}, and no names to match them by"
            )

    @property
    def feature_names(self) -> list[str]:
        """Names of the features."""
        return self.features.names

    @property
    def origin(self) -> dict[str, Any]:
        """What a model has to know of the table."""
        origin = {"one_hot": self.features.spans or None, "label": self.label}
        return {name: fact for name, fact in origin.items() if fact is not None}

    def learn(self, batches: Iterable[pa.RecordBatch]) -> None:
        """Collect the values of the columns that become one-hot."""
        values_of: dict[str, set[str]] = {name: set() for name in self.strings}
        size = n_rows = 0
        for batch in batches:
            for name, seen in values_of.items():
                values = self._text(batch.column(name), name, n_rows)
                new = set(pc.unique(values).to_pylist()) - seen
                seen |= new
                size += sum(map(len, new)) + len(name) * len(new)
            n_rows += len(batch)
            if size > _MOST_CATEGORY_BYTES:
                break
        name = max(values_of, key=lambda name: len(values_of[name]))
        all_different = len(values_of[name]) == n_rows > FEW_ROWS
        if all_different or size > _MOST_CATEGORY_BYTES:
            raise TableError(
                f"{self._where}: column {name!r} has {len(values_of[name]):,} values in {n_rows:,} "
                f"rows, so it holds names or text, not categories. Leave it out ({_LEAVE_OUT}), or "
                "hash it."
            )
        values = {name: sorted(seen) for name, seen in values_of.items()}
        with explained(self._where):
            self.features = Features(self.features.columns, values)

    def rows(self, batch: pa.RecordBatch, first: int, dtype: Any = np.float64) -> Batch:
        """The rows of a record batch, of which ``first`` come before it.

        Rows are sparse if columns are one-hot. Missing labels are empty strings.
        """
        y: NDArray[Any] = np.full(len(batch), "")
        if self.label is not None:
            y = self._labels(batch.column(self.label), self.label, first)
        weights = None
        if self.weight is not None:
            weights = self._numbers(batch.column(self.weight), self.weight, first)
            if (weights < 0).any():
                raise self._error(first + int(np.argmax(weights < 0)), self.weight, "is negative")
        return Batch(self._features(batch, first, np.dtype(dtype)), y, weights)

    def _features(self, batch: pa.RecordBatch, first: int, dtype: np.dtype[Any]) -> Any:
        columns, values = self.features.columns, self.features.values
        X = np.empty((len(batch), len(columns)), dtype=dtype)
        indices = np.empty((len(batch) if values else 0, len(columns)), dtype=np.int32)
        offset = 0
        for j, name in enumerate(columns):
            indices[:, j] = offset
            if name not in values:
                X[:, j] = self._numbers(batch.column(name), name, first, dtype)
                offset += 1
                continue
            known = pa.array(values[name], pa.large_string())
            codes = pc.index_in(self._text(batch.column(name), name, first), value_set=known)
            X[:, j] = seen = np.asarray(codes.is_valid())
            indices[:, j] += np.asarray(codes.fill_null(0))
            if not seen.all():
                self.unseen[name] += int((~seen).sum())
            offset += len(values[name])
        if not values:
            return X
        stored = X != 0
        indptr = np.append(0, np.cumsum(stored.sum(axis=1))).astype(indices.dtype)
        return csr(X[stored], indices[stored], indptr, (len(batch), offset))

    def _numbers(
        self, column: pa.Array, name: str, first: int, dtype: Any = np.float64
    ) -> NDArray[Any]:
        self._refuse_missing(column, name, first)
        with explained(f"{self._where}: column {name!r}"), np.errstate(over="ignore"):
            values: NDArray[Any] = np.asarray(column.cast(pa.float64())).astype(dtype, copy=False)
        bad = ~np.isfinite(values)
        if bad.any():
            row = first + int(np.argmax(bad))
            raise self._error(row, name, f"is not finite, or too large for {values.dtype}")
        return values

    def _labels(self, column: pa.Array, name: str, first: int) -> NDArray[Any]:
        with explained(f"{self._where}: column {name!r}"):
            if pa.types.is_string(column.type) and pa.types.is_floating(self._types[name]):
                column = _as_exact_numbers(column)
            column = _decoded(column)
            self._refuse_missing(column, name, first)
            if pa.types.is_integer(column.type):
                return np.asarray(column.cast(pa.int64()))
            if pa.types.is_floating(column.type):
                return self._numbers(column, name, first)
            if not (_is_string(column.type) or "binary" in str(column.type)):
                column = column.cast(pa.string())
            return exact_labels(self._text(column, name, first).to_pylist())

    def _text(self, column: pa.Array, name: str, first: int) -> pa.Array:
        """Strings, or bytes that are the UTF-8 of strings, as strings; others are an error."""
        with explained(f"{self._where}: column {name!r}"):
            column = _decoded(column)
            self._refuse_missing(column, name, first)
            # Arrow checks bytes, but not strings.
            return column.cast(pa.large_binary()).cast(pa.large_string())

    def _refuse_missing(self, column: pa.Array, name: str, first: int) -> None:
        if column.null_count:
            row = first + int(np.argmax(np.asarray(column.is_null())))
            raise self._error(row, name, "is missing. Fill in such values, or remove the rows.")

    def _error(self, row: int, name: str, what: str) -> TableError:
        return TableError(f"{self._where}: row {row + 1}, column {name!r} {what}")


def _index_columns(schema: pa.Schema) -> list[str]:
    """The columns that are the index of a pandas frame."""
    try:
        described = json.loads((schema.metadata or {})[b"pandas"])["index_columns"]
        # A range of numbers is described by an object, and has no column.
        return [name for name in described if isinstance(name, str) and name in schema.names]
    except (KeyError, TypeError, ValueError, RecursionError):
        # In CSV, pandas and R leave its name empty.
        return [name for name in schema.names[:1] if name == ""]


def _decoded(column: pa.Array) -> pa.Array:
    """The values of a column of categories; any other column as it is."""
    if not pa.types.is_dictionary(column.type):
        return column
    values = column.dictionary
    if _is_string(values.type):
        # Arrow cannot select from polars' views.
        values = values.cast(pa.large_string())
    return values.take(column.indices)


def _as_exact_numbers(column: pa.Array) -> pa.Array:
    """Labels of a CSV file as float64, of which none stands for two."""
    codes = column.dictionary_encode()
    texts = pc.utf8_trim_whitespace(codes.dictionary)
    missing = pc.is_in(texts, pa.array(pa.csv.ConvertOptions().null_values))
    texts = pc.if_else(missing, pa.scalar(None, pa.string()), texts)
    numbers = texts.cast(pa.float64())
    for text in texts.drop_null().to_pylist():
        label_number(text)
    return numbers.take(codes.indices)


def _is_string(kind: Any) -> bool:
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return str(kind) in ("string", "large_string", "string_view")
