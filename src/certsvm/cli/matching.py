"""Rows of a file with the columns of a model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from certsvm.cli.app import BadInput, say
from certsvm.cli.inputs import blocks, kind_of, name_of, table_blocks

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from certsvm.cli.options import Options
    from certsvm.files import Model
    from certsvm.files.batch import Batch
    from certsvm.files.columns import Features

# Columns of a file that have no place in the model, and among them the values of one-hot columns.
_UNUSED, _UNSEEN = -1, -2


@dataclass
class ModelRows:
    """Rows with the columns of a model, to be read once, and what was read of their file.

    What is said about a model there is said about this.

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
    batches: Iterable[Batch] = ()

    def __iter__(self) -> Iterator[Batch]:
        """The batches."""
        for batch in self.batches:
            self.n_rows += len(batch.y)
            yield batch

    def as_json(self) -> dict[str, Any]:
        """What was read, with all names."""
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


def rows_for(
    model: Model, path: str, options: Options, *, complete: bool = False, exact: bool = False
) -> ModelRows:
    """The rows of a file with the columns of a model, in batches.

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
    options : Options
        How to read it.
    complete : bool, default=False
        Whether columns that the model does not use are an error, unless the options ignore them.
        The model has then no say in which column has the labels. Any answer that is to be trusted
        needs this: who made the model could have left out what contradicts it.
    exact : bool, default=False
        Whether features and values that the model has not are an error.
    """
    kind = kind_of(path)
    if kind == "table":
        return _of_table(model, path, options, complete=complete, exact=exact)
    rows, positions = ModelRows(path, model.n_features), None
    if kind == "blocks":
        rows, positions = _matched(model, path, options.ignore, complete=complete)
    elif options.zero_based is None and model.parameters.get("zero_based") is True:
        options = replace(options, zero_based=True)
    base = int(not options.zero_based)
    rows.batches = _fitted(rows, blocks(path, options), positions, base, exact=exact)
    return rows


def _of_table(
    model: Model, path: str, options: Options, *, complete: bool, exact: bool
) -> ModelRows:
    from certsvm.files.tables import Table

    features = _features_of(model)
    # Without names, the number of columns has to be right.
    width = model.n_features if features is None else None
    table = Table(
        path, features=features, n_features=width, ignore=options.ignore, complete=complete,
        **options.for_table(),
    )  # fmt: skip
    if exact and table.recoded:
        raise BadInput(
            f"{path}: column {table.recoded[0]!r} holds numbers, and the model has made its values "
            "one-hot: it was trained on other data"
        )

    def batches() -> Iterator[Batch]:
        for batch in table_blocks(table, options):
            if exact and table.unseen:
                raise BadInput(f"{unseen()}: it is not what the model was trained on")
            yield batch
        if table.unseen:
            say(f"{unseen()}; they count as none of its values")

    def unseen() -> str:
        counts = [f"{count} in column {name!r}" for name, count in table.unseen.items()]
        return f"{path} has values that the model has not seen ({', '.join(counts)})"

    columns = table.features.columns
    return ModelRows(path, len(columns), columns, table.ignored, table.label, table.weight,
                     batches=batches())  # fmt: skip


def _features_of(model: Model) -> Features | None:
    """The columns of tables for a model; None if it has no names."""
    from certsvm.files.columns import Features

    if model.feature_names is None:
        return None
    try:
        return Features.from_names(model.feature_names, model.parameters.get("one_hot"))
    except ValueError as error:
        raise BadInput(f"the model's features cannot be told apart: {error}") from None


def _matched(
    model: Model, path: str, ignore: Sequence[str], *, complete: bool
) -> tuple[ModelRows, NDArray[Any] | None]:
    """The columns of a converted file, and the place of each in the model; None if in order."""
    import numpy as np

    from certsvm.files.block_file import BlockFile
    from certsvm.matrices import listed

    summary = BlockFile(path).summary
    names, features, width = summary.feature_names, _features_of(model), model.n_features
    rows = ModelRows(path, width, names or (), label=summary.label, weight=summary.weight)
    if names is None or features is None:
        if ignore:
            raise BadInput(f"columns without names cannot be ignored: {ignore[0]!r}")
        if names is not None and summary.n_columns != width:
            raise BadInput(_other_width(path, summary.n_columns, width))
        return rows, None
    if len(set(names)) < len(names):
        raise BadInput(f"{path} has two columns of the same name")
    places = {name: i for i, name in enumerate(features.names)}
    one_hot = {c: names[first:last] for c, (first, last) in (summary.one_hot or {}).items()}
    ignored = {feature for name in ignore for feature in one_hot.get(name, [name])}
    for name in ignored:
        if name not in names:
            raise BadInput(f"{path} has no column {name!r} for --ignore")
        if name in places:
            raise BadInput(f"the model uses column {name!r}, which is to be ignored")
    # A value of a one-hot column need not occur in both files.
    optional = {f"{c}={value}" for c in one_hot for value in features.values.get(c, ())}
    missing = [name for name in places if name not in names and name not in optional]
    if missing:
        raise BadInput(
            f"{path} has no column {missing[0]!r} for the model, which has {width} columns, "
            f"{len(missing)} of them not in this file. Columns are matched by name."
        )
    # Of a column that the model knows, other values are unseen.
    known = (values for values in one_hot.values() if not places.keys().isdisjoint(values))
    unseen = {name for values in known for name in values}
    unused = [name for name in names if name not in places and name not in unseen]
    if complete and (found := [name for name in unused if name not in ignored]):
        raise BadInput(
            f"{path} has columns that the model does not use: {listed(found)}. Leave them out by "
            "name if that is meant: --ignore NAME."
        )
    if features.names == names:
        return rows, None
    others = (places.get(name, _UNSEEN if name in unseen else _UNUSED) for name in names)
    positions = np.fromiter(others, dtype=np.int64, count=len(names))
    return replace(rows, columns=features.names, ignored=unused), positions


def _fitted(
    rows: ModelRows, batches: Iterator[Batch], positions: NDArray[Any] | None, base: int, *,
    exact: bool,
) -> Iterator[Batch]:  # fmt: skip
    """Batches of text, or of a converted file, with the columns of a model.

    Messages count features from ``base``.
    """
    import numpy as np
    import scipy.sparse as sp

    from certsvm.files.batch import csr

    width, left_out = rows.n_columns, Counter[str]()
    for batch in batches:
        X = batch.X
        if not sp.issparse(X):
            if positions is not None:
                X = X[:, positions.argsort()[(positions < 0).sum() :]]
            elif X.shape[1] != width:
                raise BadInput(_other_width(rows.path, X.shape[1], width))
        elif positions is None and X.shape[1] <= width:
            X = csr(X.data, X.indices, X.indptr, (X.shape[0], width))
        else:
            if positions is None:
                indices = np.where(X.indices < width, X.indices, _UNSEEN)
            else:
                indices = positions[X.indices].astype(X.indices.dtype)
            unseen = np.flatnonzero(indices == _UNSEEN)
            in_rows = np.unique(np.searchsorted(X.indptr, unseen, side="right"))
            if exact and unseen.size:
                raise BadInput(
                    f"{name_of(rows.path)}: row {rows.n_rows + in_rows[0]} has feature "
                    f"{X.indices[unseen[0]] + base}, and the model has {width} features: it was "
                    "not trained on this file. (If only the count of the features differs, say "
                    "--zero-based or --one-based.)"
                )
            left_out.update(values=unseen.size, rows=in_rows.size)
            kept = indices >= 0
            indptr = np.append(0, np.cumsum(kept))[X.indptr].astype(X.indptr.dtype)
            X = csr(X.data[kept], indices[kept], indptr, (X.shape[0], width))
            X.sort_indices()
        yield batch._replace(X=X)
    if left_out["values"]:
        values, in_all = _counted(left_out["values"], "value"), _counted(left_out["rows"], "row")
        say(
            f"{name_of(rows.path)}: {values} in {in_all} are of features that the model has not "
            f"seen (it has {width}), and were left out"
        )


def _other_width(path: str, n_columns: int, width: int) -> str:
    return (
        f"{path} has {n_columns} columns, the model {width}, and there are no names to match them "
        "by. Convert a file with the model's columns, in their order."
    )


def _counted(number: int, what: str) -> str:
    return f"{number:,} {what}" + ("" if number == 1 else "s")
