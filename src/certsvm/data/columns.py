"""Columns of Arrow data and their roles: features, labels, weights.

A value that is missing or not a number where one is needed is an error that names its row and
column.
"""

from __future__ import annotations

import difflib
import os
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import scipy.sparse as sp
from numpy.typing import NDArray

from certsvm.data.batch import Batch, csr
from certsvm.data.features import Features
from certsvm.data.labels import FEW_ROWS, label_number
from certsvm.matrices import exact_labels, listed
from certsvm.problem.rows import Vector

# Text of all values of one-hot columns; more are no categories, and would take too much memory.
_MOST_CATEGORY_BYTES = 4_000_000


class TableError(ValueError):
    """A table cannot be used; the message names the file and says why."""


def open_for_arrow(path: Path) -> Any:
    """The file, read by Arrow itself.

    A file of Python's would be released by one of Arrow's threads, which needs the interpreter for
    it: if that is ending just then, the process aborts.
    """
    return pa.OSFile(os.fsencode(path))


class Columns:
    """The columns of a table and what they are used for.

    Parameters
    ----------
    where : str
        Name of the table in messages.
    types : dict
        Arrow's type of each column.
    label : str, default=None
        The column of labels; by default "label", or else the last column.
    weight : str, default=None
        The column of weights.
    features : Features, default=None
        The features; None means all other columns. If they are given without a label, the labels
        are in "label", or in the only other column, or missing.
    n_features : int, default=None
        The number of features, if it is known. Without a label, a table with exactly so many
        columns, none of them called "label", has no labels.
    index : collection of str, default=()
        Columns that are the index of a pandas frame: they are neither features nor labels unless
        they are named.
    categorical : bool, default=False
        Whether columns of strings become one-hot. Their values have to be shown to ``learn``
        before the first rows are made.
    ignore : collection of str, default=()
        Columns that are neither features nor labels.
    complete : bool, default=False
        Whether ``features`` must be all columns without another role. The labels are then where
        they are without ``features``: whoever chose these has no say in it.

    Attributes
    ----------
    features : Features
        The features.
    label, weight : str or None
        The columns of labels and weights.
    unseen : Counter
        How many values of each one-hot column were not among its values, so far.
    """

    def __init__(
        self,
        where: str,
        types: dict[str, Any],
        *,
        label: str | None = None,
        weight: str | None = None,
        features: Features | None = None,
        n_features: int | None = None,
        index: Collection[str] = (),
        categorical: bool = False,
        ignore: Collection[str] = (),
        complete: bool = False,
    ) -> None:
        self._where, self._types, self.index = where, types, list(index)
        self.weight, self._ignore = weight, list(dict.fromkeys(ignore))
        self.label = self._label(label, *((None, None) if complete else (features, n_features)))
        guessed = label is None and (features is None or complete)
        self._assumed = guessed and self.label not in (None, "label")
        self.unseen: Counter[str] = Counter()
        self._refuse_unknown(features)
        if complete and features is not None:
            self._refuse_other_columns(features)
        self.features = features or Features(tuple(self._others()))
        if not self.features.columns:
            raise TableError(f"{where} has no columns besides {self.label!r}")
        self.learnt = features is None and categorical
        self.strings = [
            name for name in self.features.columns if self.learnt and _is_string(types[name])
        ]
        self._refuse_non_numbers()

    @property
    def label_place(self) -> str:
        """Where labels are, for messages."""
        return f"{self.label!r}{self._guess}"

    @property
    def _guess(self) -> str:
        return ", the last one (--label, or label=..., names another)" if self._assumed else ""

    @property
    def used(self) -> list[str]:
        """The columns that have to be read."""
        roles = [name for name in (self.label, self.weight) if name is not None]
        return list(dict.fromkeys([*self.features.columns, *roles]))

    @property
    def ignored(self) -> list[str]:
        """The columns that are not read."""
        used = set(self.used)
        return [name for name in self._types if name not in used]

    @property
    def recoded(self) -> list[str]:
        """The columns that are one-hot although they hold no strings."""
        return [name for name in self.features.values if not _is_string(self._types[name])]

    @property
    def numbers(self) -> list[str]:
        """The columns that have to be numbers."""
        one_hot = {*self.features.values, *self.strings}
        weight = [] if self.weight is None else [self.weight]
        return [name for name in [*self.features.columns, *weight] if name not in one_hot]

    def learn(self, batches: Iterable[pa.RecordBatch]) -> None:
        """Collect the values of the columns that become one-hot."""
        if not self.strings:
            return
        found: dict[str, set[str]] = {name: set() for name in self.strings}
        size = n_rows = 0
        for batch in batches:
            for name in self.strings:
                self._refuse_missing(batch.column(name), name, n_rows)
                values = self._as_strings(batch.column(name), name, n_rows)
                new = set(pc.unique(values).to_pylist()) - found[name]
                found[name] |= new
                size += sum(map(len, new)) + len(name) * len(new)
                if size > _MOST_CATEGORY_BYTES:
                    self._refuse_identifier(name, f"{len(found[name]):,} values and more")
            n_rows += len(batch)
        for name, seen in found.items():
            if n_rows > FEW_ROWS and len(seen) == n_rows:
                self._refuse_identifier(name, "a value of its own in each row")
        values = {name: tuple(sorted(seen)) for name, seen in found.items()}
        with self.explained():
            self.features = Features(self.features.columns, values)

    def rows(self, batch: pa.RecordBatch, first: int) -> Batch:
        """The rows of a record batch, of which ``first`` come before it.

        Rows are sparse if columns are one-hot. Missing labels are empty strings.
        """
        columns = self.features.columns
        if self.features.values:
            X = self._sparse(batch, first)
        else:
            X = np.empty((len(batch), len(columns)))
            for j, name in enumerate(columns):
                X[:, j] = self._numbers(batch.column(name), name, first)
        y: NDArray[Any] = np.full(len(batch), "")
        if self.label is not None:
            y = self._labels(batch.column(self.label), self.label, first)
        return Batch(X, y, self._weights(batch, first))

    def in_type(self, X: Any, dtype: Any) -> Any:
        """X as another float type; overflow is an error."""
        with np.errstate(over="ignore"):
            converted = X.astype(dtype, copy=False)
        values = converted.data if sp.issparse(converted) else converted
        if not np.isfinite(values).all():
            if sp.issparse(X):
                bad = int(np.argmin(np.isfinite(values)))
                value, column = X.data[bad], X.indices[bad]
            else:
                row, column = np.argwhere(~np.isfinite(values))[0]
                value = X[row, column]
            raise TableError(
                f"{self._where}: {value!r} in column {self.features.names[column]!r} is too large "
                f"for {np.dtype(dtype).name}"
            )
        return converted

    @contextmanager
    def explained(self, what: str = "") -> Iterator[None]:
        """Turn errors of Arrow, and of names, into errors that name the table."""
        try:
            yield
        except TableError:
            raise
        except (pa.ArrowException, OSError, ValueError) as error:
            raise TableError(f"{self._where}: {what}cannot be read: {error}") from None

    def _others(self) -> list[str]:
        """Columns without a role."""
        taken = {self.label, self.weight, *self.index, *self._ignore}
        return [name for name in self._types if name not in taken]

    def _label(
        self, label: str | None, features: Features | None, n_features: int | None
    ) -> str | None:
        given = Counter(name for name in (label, self.weight, *self._ignore) if name is not None)
        twice = [name for name, count in given.items() if count > 1]
        if twice:
            raise TableError(
                f"{self._where}: column {twice[0]!r} cannot hold labels and weights both, or one "
                "of them and be ignored"
            )
        if label is not None:
            return label
        taken = {self.weight, *self._ignore, *(() if features is None else features.columns)}
        if "label" in self.index and "label" not in taken:
            raise TableError(
                f"{self._where}: column 'label' is the index of a frame. Say which column "
                "has the labels (--label, or label=...)."
            )
        taken |= set(self.index)
        others = [name for name in self._types if name not in taken]
        if "label" in others:
            return "label"
        if features is None:
            return None if len(others) == n_features or not others else others[-1]
        return others[0] if len(others) == 1 else None

    def _refuse_other_columns(self, features: Features) -> None:
        """Raise unless the features are all columns without another role."""
        facts: dict[str | None, str] = {
            **dict.fromkeys(self.index, "is the index of a frame"),
            **dict.fromkeys(self._ignore, "is to be ignored"),
            self.weight: "has the weights",
            self.label: f"has the labels{self._guess}",
        }
        for name in features.columns:
            if name in facts:
                raise TableError(
                    f"{self._where}: column {name!r} {facts[name]}, and the model takes it for a "
                    "feature: it was trained on other data, or with other options"
                )
        used = set(features.columns)
        unused = [name for name in self._others() if name not in used]
        if unused:
            raise TableError(
                f"{self._where} has columns that the model does not use: {listed(unused)}. Leave "
                "them out by name if that is meant: --ignore NAME (or say --label NAME or "
                "--weight NAME)."
            )

    def _refuse_unknown(self, features: Features | None) -> None:
        roles = [(self.label, "the labels"), (self.weight, "the weights")]
        needed = () if features is None else features.columns
        missing = [name for name in needed if name not in self._types]
        roles += [(name, "--ignore") for name in self._ignore]
        roles += [(name, "the model") for name in missing]
        for name, role in roles:
            if name is None or name in self._types:
                continue
            names = [name for name in self._types if name not in self.index]
            shown = ", ".join(names[:20]) + (", ..." if len(names) > 20 else "")
            near = [] if name in missing else difflib.get_close_matches(name, names, n=1)
            more = f". Did you mean {near[0]!r}?" if near else ""
            if len(missing) > 1:
                more += f" ({len(missing)} of the model's {len(needed)} columns are missing)"
            if name in missing:
                more += ". Columns are matched by name: rename them as they were in training."
            raise TableError(
                f"{self._where} has no column {name!r} for {role}; it has {shown}{more}"
            )

    def _refuse_non_numbers(self) -> None:
        numbers = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean)
        for name in self.numbers:
            kind = self._types[name]
            if any(is_kind(kind) for is_kind in numbers):
                continue
            advice = "Leave it out, or encode it."
            if _is_string(kind):
                advice = (
                    "With --categorical (categorical=True), each of its values becomes a column "
                    "of zeros and ones (one-hot). Or leave it out. Numbers have decimal points, "
                    "not commas."
                )
            if self._assumed:
                advice += (
                    f" If it has the labels, say --label {name} (label={name!r}): they were taken "
                    f"from the last column, {self.label!r}."
                )
            raise TableError(f"{self._where}: column {name!r} holds {kind}, not numbers. {advice}")

    def _refuse_identifier(self, name: str, what: str) -> None:
        raise TableError(
            f"{self._where}: column {name!r} has {what}, so it holds names or text, not "
            "categories. Leave it out, or hash it."
        )

    def _sparse(self, batch: pa.RecordBatch, first: int) -> Any:
        """The rows, with one-hot columns, as a CSR matrix."""
        columns, values = self.features.columns, self.features.values
        width = len(self.features.names)
        entries = np.ones((len(batch), len(columns)))
        indices = np.empty(entries.shape, dtype=np.int32 if width < 2**31 else np.int64)
        offset = 0
        for j, name in enumerate(columns):
            if name in values:
                codes = self._codes(batch.column(name), name, first)
                entries[:, j] = codes >= 0
                indices[:, j] = offset + codes
                offset += len(values[name])
            else:
                entries[:, j] = self._numbers(batch.column(name), name, first)
                indices[:, j] = offset
                offset += 1
        stored = entries != 0
        indptr = np.append(0, np.cumsum(stored.sum(axis=1))).astype(indices.dtype)
        return csr(entries[stored], indices[stored], indptr, (len(batch), width))

    def _codes(self, column: pa.Array, name: str, first: int) -> NDArray[np.int64]:
        """The position of each value among those of its column, or -1."""
        self._refuse_missing(column, name, first)
        known = pa.array(self.features.values[name], pa.string())
        with self.explained(f"column {name!r} "):
            found = pc.index_in(self._as_strings(column, name, first), value_set=known)
        codes: NDArray[np.int64] = np.asarray(found.fill_null(-1), dtype=np.int64)
        n_unseen = int((codes < 0).sum())
        if n_unseen:
            self.unseen[name] += n_unseen
        return codes

    def _weights(self, batch: pa.RecordBatch, first: int) -> Vector | None:
        if self.weight is None:
            return None
        weights = self._numbers(batch.column(self.weight), self.weight, first)
        if (weights < 0).any():
            row = first + int(np.argmax(weights < 0)) + 1
            raise TableError(f"{self._where}: row {row}, column {self.weight!r} is negative")
        return weights

    def _numbers(self, column: pa.Array, name: str, first: int) -> Vector:
        self._refuse_missing(column, name, first)
        with self.explained():
            values: Vector = np.asarray(column.cast(pa.float64()), dtype=np.float64)
        bad = ~np.isfinite(values)
        if bad.any():
            row = first + int(np.argmax(bad)) + 1
            raise TableError(f"{self._where}: row {row}, column {name!r} is not finite")
        return values

    def _labels(self, column: pa.Array, name: str, first: int) -> NDArray[Any]:
        with self.explained(f"column {name!r} of labels "):
            if pa.types.is_floating(self._types[name]) and pa.types.is_string(column.type):
                column = _as_exact_numbers(column)
            self._refuse_missing(column, name, first)
            if pa.types.is_integer(column.type):
                return np.asarray(column.cast(pa.int64()))
            if pa.types.is_floating(column.type):
                return self._numbers(column, name, first)
            if _is_string(column.type) or _is_binary(column.type):
                column = self._as_strings(column, name, first)
            if pa.types.is_time(column.type):
                # Python's have no nanoseconds.
                column = column.cast(pa.string())
            return exact_labels([str(label) for label in column.to_pylist()])

    def _as_strings(self, column: Any, name: str, first: int) -> Any:
        """Strings, or bytes that are the UTF-8 of strings, as strings; others are an error."""
        if pa.types.is_dictionary(column.type):
            column = column.dictionary_decode()
        # Arrow checks bytes, but not strings.
        column = column.cast(pa.large_binary())
        try:
            return column.cast(pa.large_string()).cast(pa.string())
        except pa.ArrowInvalid:
            row, value = next(
                (i, value) for i, value in enumerate(column.to_pylist()) if not _is_utf8(value)
            )
            raise TableError(
                f"{self._where}: row {first + row + 1}, column {name!r} holds {value[:20]!r}, "
                "which is not text in UTF-8. Decode the column before it is written (in pandas, "
                'df[name].str.decode("latin-1") for Latin-1).'
            ) from None

    def _refuse_missing(self, column: pa.Array, name: str, first: int) -> None:
        if column.null_count:
            missing = np.asarray(column.is_null())
            raise TableError(
                f"{self._where}: row {first + int(np.argmax(missing)) + 1}, column {name!r} is "
                "missing. Fill in such values, or remove the rows."
            )


def types_of(schema: pa.Schema, where: str) -> dict[str, Any]:
    """The type of each column; two of the same name are an error."""
    if len(set(schema.names)) < len(schema.names):
        raise TableError(
            f"{where} has two columns of the same name. If the line of names is missing, say so: "
            "--no-header, or header=False."
        )
    return dict(zip(schema.names, schema.types, strict=True))


def _is_string(kind: Any) -> bool:
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return True
    return hasattr(pa.types, "is_string_view") and bool(pa.types.is_string_view(kind))


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


def _is_binary(kind: Any) -> bool:
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    types = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_fixed_size_binary)
    return any(is_type(kind) for is_type in types)


def _is_utf8(value: bytes | None) -> bool:
    try:
        (value or b"").decode()
    except UnicodeDecodeError:
        return False
    return True
