"""Model files, and rows with the columns of a model."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from certsvm.cli.app import BadInput, facts, say
from certsvm.cli.inputs import batches_of, kind_of, name_of, opened

if TYPE_CHECKING:
    from certsvm.cli.options import Options
    from certsvm.files import BlockFile, Model, Table
    from certsvm.files.batch import Batch
    from certsvm.files.columns import Columns, Features

_LIBLINEAR = b"solver_type"


def load_model(path: str, data: str | None = None, *, with_witness: bool = False) -> Model:
    """A model of certsvm or liblinear, optionally with the witness beside it, if there is one.

    ``data`` is the other file of the command, in case that the two were swapped.
    """
    from certsvm.files import Model, load_liblinear, witness_path

    if not is_model(path):
        swapped = data is not None and data != "-" and is_model(data)
        what = f", and {data} is one:" if swapped else ". `certsvm train` makes one."
        raise BadInput(f"{path} is not a model{what} MODEL comes first, then FILE.")
    if _start(path).startswith(_LIBLINEAR):
        return load_liblinear(path)
    return Model.load(path, witness=with_witness and Path(witness_path(path)).exists())


def is_model(path: str) -> bool:
    """Whether a file is a model of certsvm or liblinear, by its first bytes."""
    from certsvm.files.container import is_container

    start = _start(path)
    return start.startswith(_LIBLINEAR) or is_container(start)


def _start(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read(64)


def certificates_as_json(model: Model) -> list[dict[str, Any]]:
    """The certificate of each problem, as a dict."""
    return [
        {"class": label, **asdict(certificate)} | facts(certificate, "relative_gap proved_gap met")
        for label, certificate in zip(positive_classes(model), model.certificates, strict=False)
    ]


def positive_classes(model: Model) -> list[Any]:
    """The class on the positive side of each problem."""
    classes: list[Any] = model.classes.tolist()
    return classes[1:] if model.n_problems == 1 else classes


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
    model_label : str or None
        The column of labels that the model names.
    believed : bool
        Whether the labels are there because the model says so.
    n_rows : int
        Rows so far.
    """

    path: str
    n_columns: int
    columns: Sequence[str] = ()
    ignored: Sequence[str] = ()
    label: str | None = None
    weight: str | None = None
    model_label: str | None = None
    believed: bool = False
    n_rows: int = 0
    batches: Iterable[Batch] = ()

    def __iter__(self) -> Iterator[Batch]:
        """The batches."""
        for batch in self.batches:
            self.n_rows += len(batch.y)
            yield batch

    def as_json(self) -> dict[str, Any]:
        """What was read, with all names."""
        told = facts(self, "label weight model_label n_columns columns ignored")
        return {"file": name_of(self.path), "rows": self.n_rows, **told}

    @property
    def labels_in(self) -> str:
        """The column of labels; and what the model says, if that was decisive or is another."""
        if self.model_label not in (None, self.label):
            return f"{self.label!r} (the model says {self.model_label!r})"
        return f"{self.label!r}" + (" (as the model says)" if self.believed else "")

    def __str__(self) -> str:
        from certsvm.matrices import listed

        told = [f"{name_of(self.path)}: {_counted(self.n_rows, 'row')}"]
        told += [f"labels in {self.labels_in}"] if self.label is not None else []
        told += [f"weights in {self.weight!r}"] if self.weight is not None else []
        used = _counted(self.n_columns, "column")
        if self.columns:
            used += f" used ({listed(self.columns)}), {len(self.ignored) or 'none'} ignored"
        used += f" ({listed(self.ignored)})" if self.ignored else ""
        return "; ".join([*told, used])


def rows_for(
    model: Model, path: str, options: Options, *, complete: bool = False, exact: bool = False
) -> ModelRows:
    """The rows of a file with the columns of a model, in batches.

    Tables, and files converted from them, are matched with the model by name, or by the number of
    columns if the model has no names. Text is zero- or one-based as in training, unless the options
    say otherwise. Features and values that the model does not have are left out, and their number
    is printed at the end.

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
        Any answer that is to be trusted needs this: who made the model could have left out what
        contradicts it.
    exact : bool, default=False
        Whether features and values that the model does not have are an error. The model has then no
        say in which column has the labels.
    """
    kind, features = kind_of(path), _features_of(model)
    roles = {
        "features": features, "n_features": model.n_features if features is None else None,
        "ignore": options.ignore, "complete": complete,
    }  # fmt: skip
    named = model.parameters.get("label")
    named = named if isinstance(named, str) else None
    if kind == "text" and options.zero_based is None:
        zero_based = model.parameters.get("zero_based") is True
        options = replace(options, zero_based=zero_based)
    try:
        chosen_by = {} if exact else {"usual_label": named}
        given: dict[str, Any] = roles | chosen_by if kind == "table" else {}
        if kind == "embeddings":
            given = {"labelled": complete}
        file = opened(path, options, **given)
    except ValueError as error:
        if exact and named not in (None, options.label) and kind == "table":
            more = f"The model says that the labels are in {named!r} (--label)."
            raise BadInput(f"{str(error).removesuffix('.')}. {more}") from None
        raise
    columns = file if kind == "table" else _columns_of(file, roles) if kind == "blocks" else None
    rows = ModelRows(path, model.n_features)
    if columns is not None:
        if columns.recoded and (exact or kind == "blocks"):
            raise BadInput(
                f"{path}: column {columns.recoded[0]!r} holds numbers, and the model has made its "
                "values one-hot: it was trained on other data"
            )
        names = columns.features.columns
        believed = kind == "table" and options.label is None and not exact
        rows = ModelRows(
            path, len(names), names, columns.ignored, columns.label or None, columns.weight, named,
            believed and columns.label == named is not None,
        )  # fmt: skip
    batches = batches_of(file, options)
    if kind == "table":
        rows.batches = _known_values(path, file, batches, exact=exact)
    else:
        base = int(kind == "text" and not options.zero_based)
        chosen: slice | list[int] = slice(base, base + model.n_features)
        others: set[int] = set()
        if columns is not None:
            places = {name: i for i, name in enumerate(file.feature_names)}
            chosen = [places.get(name, len(places)) for name in columns.features.names]
            spans = (file.summary.one_hot or {}).items()
            known = [range(*span) for name, span in spans if name in columns.features.columns]
            others = {*itertools.chain(*known)} - {*chosen}
        rows.batches = _known_features(rows, batches, model.n_features, chosen, others, exact=exact)
    return rows


def _features_of(model: Model) -> Features | None:
    """The columns of tables for a model; None if it has no names."""
    from certsvm.files.columns import Features

    if model.feature_names is None:
        return None
    try:
        return Features.from_names(model.feature_names, model.parameters.get("one_hot"))
    except ValueError as error:
        raise BadInput(f"the model's features cannot be told apart: {error}") from None


def _columns_of(file: BlockFile, roles: dict[str, Any]) -> Columns | None:
    """The columns of the table that a file was converted from; None if they have no names."""
    import pyarrow as pa

    from certsvm.files.columns import Columns, Features

    summary, named = file.summary, roles["features"] is not None
    if summary.feature_names is None:
        if roles["ignore"]:
            raise BadInput(f"columns without names cannot be ignored: {roles['ignore'][0]!r}")
        return None
    # Without names in the model, each value of a one-hot column is a column.
    ours = Features.from_names(summary.feature_names, summary.one_hot if named else None)
    label = summary.label or ""
    types = {name: pa.string() if name in ours.values else pa.float64() for name in ours.columns}
    fields = [*types.items(), (label, pa.string())]
    fields += [(summary.weight, pa.float64())] if summary.weight is not None else []
    return Columns(str(file.path), pa.schema(fields), label=label, weight=summary.weight, **roles)


def _known_values(
    path: str, table: Table, batches: Iterable[Batch], *, exact: bool
) -> Iterator[Batch]:
    """Batches of a table; values that one-hot columns of the model do not have are reported."""

    def unseen() -> str:
        counts = [f"{count} in column {name!r}" for name, count in table.unseen.items()]
        return f"{path} has values that the model has not seen ({', '.join(counts)})"

    for batch in batches:
        if exact and table.unseen:
            raise BadInput(f"{unseen()}: it is not what the model was trained on")
        yield batch
    if table.unseen:
        say(f"{unseen()}; they count as none of its values")


def _known_features(
    rows: ModelRows, batches: Iterable[Batch], width: int, chosen: slice | list[int],
    others: Collection[int], *, exact: bool,
) -> Iterator[Batch]:  # fmt: skip
    """Batches of text, or of a converted file, with the features of a model.

    Parameters
    ----------
    rows : ModelRows
        What they are for.
    batches : iterable of Batch
        The rows of the file.
    width : int
        How many features the model has.
    chosen : slice or list of int
        Where they are in the file. A value that does not occur there is behind the last column.
    others : collection of int
        Which further features of the file are values that the model has not seen; behind a slice,
        all are.
    exact : bool
        Whether these are an error.
    """
    import numpy as np
    import scipy.sparse as sp

    from certsvm.files.batch import csr

    n_values = n_rows = 0
    for batch in batches:
        X = batch.X
        if sp.issparse(X):
            if isinstance(chosen, slice):
                unseen = np.flatnonzero(X.indices >= chosen.stop)
            else:
                unseen = np.flatnonzero(np.isin(X.indices, list(others)))
            in_rows = np.unique(np.searchsorted(X.indptr, unseen, side="right"))
            if exact and unseen.size:
                raise BadInput(
                    f"{name_of(rows.path)}: row {rows.n_rows + in_rows[0]} has feature "
                    f"{X.indices[unseen[0]]}, and the model has {width} features: it was not "
                    "trained on this file. (If only the count of the features differs, say "
                    "--zero-based or --one-based.)"
                )
            n_values, n_rows = n_values + unseen.size, n_rows + in_rows.size
            n_columns = max(X.shape[1], width + 1) + 1
            X = csr(X.data, X.indices, X.indptr, (X.shape[0], n_columns))[:, chosen]
            X.sort_indices()
        elif isinstance(chosen, list):
            X = X[:, chosen]
        elif X.shape[1] != width:
            raise BadInput(
                f"{rows.path} has {X.shape[1]} columns, the model {width}, and there are no names "
                "to match them by. Convert a file with the model's columns, in their order."
            )
        yield batch._replace(X=X)
    if n_values:
        say(
            f"{name_of(rows.path)}: {_counted(n_values, 'value')} in {_counted(n_rows, 'row')} are "
            f"of features that the model has not seen (it has {width}), and were left out"
        )


def _counted(number: int, what: str) -> str:
    return f"{number:,} {what}" + ("" if number == 1 else "s")
