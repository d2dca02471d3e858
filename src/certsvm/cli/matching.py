"""Rows of a file with the columns of a model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from certsvm.cli.app import BadInput, say
from certsvm.cli.inputs import blocks, kind_of, name_of, table_blocks

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from certsvm.cli.options import DataOptions
    from certsvm.files import Model
    from certsvm.files.batch import Batch
    from certsvm.files.columns import Features
    from certsvm.files.tables import Table


@dataclass
class Reading:
    """What was read of a file: what is said about a model there is said about this.

    Attributes
    ----------
    path : str
        The file.
    n_columns : int
        How many columns are features.
    columns, ignored : sequence of str
        Their names, and those of columns that were not read; empty if the file has none.
    label, weight : str or None
        The columns of labels and weights, as far as they have names.
    n_rows : int
        Rows so far.
    """

    path: str
    n_columns: int
    columns: Sequence[str] = ()
    ignored: Sequence[str] = ()
    label: str | None = None
    weight: str | None = None
    n_rows: int = 0

    def as_json(self) -> dict[str, Any]:
        """With all names."""
        return {
            "file": name_of(self.path), "rows": self.n_rows, "label": self.label,
            "weight": self.weight, "n_columns": self.n_columns, "columns": list(self.columns),
            "ignored": list(self.ignored),
        }  # fmt: skip

    def __str__(self) -> str:
        from certsvm.matrices import listed

        facts = [f"{name_of(self.path)}: {_counted(self.n_rows, 'row')}"]
        facts += [f"labels in {self.label!r}"] if self.label is not None else []
        facts += [f"weights in {self.weight!r}"] if self.weight is not None else []
        used = _counted(self.n_columns, "column")
        if self.columns:
            used += f" used ({listed(self.columns)})"
            used += f", {len(self.ignored)} ignored" if self.ignored else ", none ignored"
        facts += [used + (f" ({listed(self.ignored)})" if self.ignored else "")]
        return "; ".join(facts)


class FittedRows:
    """The rows of a file with the columns of a model, in batches, to be read once.

    Tables, and files converted from them, are matched with the model by name, or by the number of
    columns if the model has no names. Text is zero- or one-based as in training, unless the options
    say otherwise. Features of text that the model has not are left out, as are values of one-hot
    columns, and their number is said at the end.

    Parameters
    ----------
    model : Model
        The model.
    path : str
        The file.
    options : DataOptions
        How to read it.
    complete : bool, default=False
        Whether columns that the model does not use are an error, unless the options ignore them.
        The model has then no say in which column has the labels. Any answer that is to be trusted
        needs this: who made the model could have left out what contradicts it.
    exact : bool, default=False
        Whether features and values that the model has not are an error.

    Attributes
    ----------
    reading : Reading
        What was read.
    """

    def __init__(
        self,
        model: Model,
        path: str,
        options: DataOptions,
        *,
        complete: bool = False,
        exact: bool = False,
    ) -> None:
        kind = kind_of(path)
        self._batches: Iterator[Batch]
        if kind == "table":
            table = self._table(model, path, options, complete=complete)
            if exact and table.recoded:
                raise BadInput(
                    f"{path}: column {table.recoded[0]!r} holds numbers, and the model has made "
                    "its values one-hot: it was trained on other data"
                )
            self.reading = Reading(
                path, len(table.features.columns), table.features.columns, table.ignored,
                table.label, table.weight,
            )  # fmt: skip
            self._batches = _of_table(table, options, exact=exact)
            return
        zero_based = model.parameters.get("zero_based")
        if kind == "text" and options.zero_based is None and isinstance(zero_based, bool):
            options = replace(options, zero_based=zero_based)
        fitted = FittedColumns(
            model, path, kind, options.ignore, first=int(not options.zero_based), complete=complete
        )
        self.reading = fitted.reading
        self._batches = _of_numbered(fitted, blocks(path, options), exact=exact)

    def __iter__(self) -> Iterator[Batch]:
        """The batches."""
        for batch in self._batches:
            self.reading.n_rows += len(batch.y)
            yield batch

    @staticmethod
    def _table(model: Model, path: str, options: DataOptions, *, complete: bool) -> Table:
        from certsvm.files.tables import Table

        features = features_of(model)
        # Without names, the number of columns has to be right.
        width = model.n_features if features is None else None
        return Table(
            path, features=features, n_features=width, ignore=options.ignore, complete=complete,
            **options.for_table(),
        )  # fmt: skip


def _of_table(table: Table, options: DataOptions, *, exact: bool) -> Iterator[Batch]:
    for batch in table_blocks(table, options):
        if exact and table.unseen:
            raise BadInput(
                f"{table.path} {_unseen(table.unseen)}: it is not what the model was trained on"
            )
        yield batch
    if table.unseen:
        say(f"{table.path} {_unseen(table.unseen)}; they count as none of its values")


def _unseen(unseen: Mapping[str, int]) -> str:
    counts = [f"{count} in column {name!r}" for name, count in unseen.items()]
    return f"has values that the model has not seen ({', '.join(counts)})"


def _of_numbered(
    fitted: FittedColumns, batches: Iterator[Batch], *, exact: bool
) -> Iterator[Batch]:
    for batch in batches:
        rows = fitted(batch)
        if exact:
            fitted.refuse_unseen()
        yield rows
    fitted.say_unseen()


def features_of(model: Model) -> Features | None:
    """The columns of tables for a model; None if it has no names."""
    from certsvm.files.columns import Features

    if model.feature_names is None:
        return None
    try:
        return Features.from_names(model.feature_names, model.parameters.get("one_hot"))
    except ValueError as error:
        raise BadInput(f"the model's features cannot be told apart: {error}") from None


# Columns of a file that have no place in the model, and among them the values of one-hot columns.
_UNUSED, _UNSEEN = -1, -2


class FittedColumns:
    """Gives batches of text, or of a converted file, the columns of a model.

    Parameters
    ----------
    model : Model
        The model.
    path : str
        The file.
    kind : str
        "text" or "blocks".
    ignore : sequence of str, default=()
        Columns of a converted file to leave out.
    first : int, default=1
        Number of the first feature, in messages.
    complete : bool, default=False
        Whether other columns of a converted file that the model does not use are an error.

    Attributes
    ----------
    reading : Reading
        What is read.
    """

    def __init__(
        self, model: Model, path: str, kind: str, ignore: Sequence[str] = (), *, first: int = 1,
        complete: bool = False,
    ) -> None:  # fmt: skip
        self._path, self._base = path, first
        self._width = model.n_features
        self.reading = Reading(path, self._width)
        # Position in the model of each column of the file, or one of the above; None if they are
        # the same.
        self._positions: NDArray[Any] | None = None
        if kind == "blocks":
            self._match(model, ignore, complete=complete)
        self._rows = self._values = self._seen_rows = 0
        self._first: tuple[int, int] | None = None

    def __call__(self, batch: Batch) -> Batch:
        """A batch with the model's columns."""
        import scipy.sparse as sp

        X = batch.X
        if sp.issparse(X):
            X = self._sparse(X)
        elif self._positions is not None:
            X = X[:, self._positions.argsort()[(self._positions < 0).sum() :]]
        elif X.shape[1] != self._width:
            raise BadInput(self._other_width(X.shape[1]))
        self._seen_rows += len(batch.y)
        return batch._replace(X=X)

    def refuse_unseen(self) -> None:
        """Raise if a row had a feature that the model has not."""
        if self._first is not None:
            row, feature = self._first
            raise BadInput(
                f"{name_of(self._path)}: row {row} has feature {feature}, and the model has "
                f"{self._width} features: it was not trained on this file. (If only the count of "
                "the features differs, say --zero-based or --one-based.)"
            )

    def say_unseen(self) -> None:
        """Say how much was left out."""
        if self._values:
            values, rows = _counted(self._values, "value"), _counted(self._rows, "row")
            say(
                f"{name_of(self._path)}: {values} in {rows} are of features that the model has "
                f"not seen (it has {self._width}), and were left out"
            )

    def _sparse(self, X: Any) -> Any:
        import numpy as np

        from certsvm.files.batch import csr

        indices, shape = X.indices, (X.shape[0], self._width)
        if self._positions is not None:
            indices = self._positions[indices].astype(indices.dtype)
        elif X.shape[1] <= self._width:
            return csr(X.data, indices, X.indptr, shape)
        else:
            indices = np.where(indices < self._width, indices, _UNSEEN)
        self._count(X, indices == _UNSEEN)
        kept = indices >= 0
        indptr = np.append(0, np.cumsum(kept))[X.indptr].astype(X.indptr.dtype)
        fitted = csr(X.data[kept], indices[kept], indptr, shape)
        fitted.sort_indices()
        return fitted

    def _count(self, X: Any, unseen: NDArray[Any]) -> None:
        import numpy as np

        places = np.flatnonzero(unseen)
        rows = np.unique(np.searchsorted(X.indptr, places, side="right"))
        self._values += places.size
        self._rows += rows.size
        if places.size and self._first is None:
            feature = int(X.indices[places[0]]) + self._base
            self._first = self._seen_rows + int(rows[0]), feature

    def _match(self, model: Model, ignore: Sequence[str], *, complete: bool) -> None:
        """Compare the columns of a converted file with the model's."""
        import numpy as np

        from certsvm.files.block_file import BlockFile
        from certsvm.matrices import listed

        summary = BlockFile(self._path).summary
        names, ours = summary.feature_names, features_of(model)
        self.reading = Reading(
            self._path, self._width, names or (), label=summary.label, weight=summary.weight
        )
        if names is None or ours is None:
            if ignore:
                raise BadInput(f"columns without names cannot be ignored: {ignore[0]!r}")
            if names is not None and summary.n_columns != self._width:
                raise BadInput(self._other_width(summary.n_columns))
            return
        if len(set(names)) < len(names):
            raise BadInput(f"{self._path} has two columns of the same name")
        places = {name: i for i, name in enumerate(ours.names)}
        theirs = {c: names[first:last] for c, (first, last) in (summary.one_hot or {}).items()}
        ignored = {}
        for name in ignore:
            for feature in theirs.get(name, [name]):
                ignored[feature] = name
                if feature not in names:
                    raise BadInput(f"{self._path} has no column {name!r} for --ignore")
                if feature in places:
                    raise BadInput(f"the model uses column {name!r}, which is to be ignored")
        # A value of a one-hot column need not occur in both files.
        optional = {f"{c}={v}" for c in theirs for v in ours.values.get(c, ())}
        missing = [name for name in places if name not in names and name not in optional]
        if missing:
            raise BadInput(
                f"{self._path} has no column {missing[0]!r} for the model, which has "
                f"{self._width} columns, {len(missing)} of them not in this file. Columns are "
                "matched by name."
            )
        # Of a column that the model knows, other values are unseen.
        known = [values for values in theirs.values() if not places.keys().isdisjoint(values)]
        unseen = {name for values in known for name in values}
        unused = [name for name in names if name not in places and name not in unseen]
        if complete and (found := [name for name in unused if name not in ignored]):
            raise BadInput(
                f"{self._path} has columns that the model does not use: {listed(found)}. Leave "
                "them out by name if that is meant: --ignore NAME."
            )
        self.reading = replace(self.reading, columns=ours.names, ignored=unused)
        if ours.names != names:
            self._positions = np.array(
                [places.get(name, _UNSEEN if name in unseen else _UNUSED) for name in names],
                dtype=np.int64,
            )

    def _other_width(self, n_columns: int) -> str:
        return (
            f"{self._path} has {n_columns} columns, the model {self._width}, and there are no "
            "names to match them by. Convert a file with the model's columns, in their order."
        )


def _counted(number: int, what: str) -> str:
    return f"{number:,} {what}" + ("" if number == 1 else "s")
