"""Files that commands read: data of any kind, models, and rows with the columns of a model.

Packages that are slow to import are imported where they are used: --help must start at once.
"""

from __future__ import annotations

import itertools
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from certsvm.cli import say
from certsvm.cli.app import BadInput, facts
from certsvm.cli.options import Options
from certsvm.cli.outputs import kind_at
from certsvm.cli.progress import watch_compilation

if TYPE_CHECKING:
    from certsvm.certificates.certificate import Certificate
    from certsvm.files import Model
    from certsvm.files.batch import Batch
    from certsvm.files.columns import Columns

_BLOCK_BYTES = 16_000_000


def kind_of(path: str) -> str:
    """One of "blocks", "table", "text" and "embeddings"; standard input ("-") is text."""
    if path == "-":
        return "text"
    if is_model(path):
        raise BadInput(f"{path} is a model, and rows are needed here")
    from certsvm.files import block_sources

    return block_sources.kind_of(path)


def name_of(path: str) -> str:
    """The name of a file in messages."""
    return "standard input" if path == "-" else str(Path(path))


def tell(path: str, *notes: str) -> None:
    """Print remarks about a file."""
    for note in notes:
        say(f"{name_of(path)}: {note}")


def source_of(path: str) -> Any:
    """The path, or standard input for "-"."""
    return sys.stdin.buffer if path == "-" else path


def opened(path: str, options: Options, **more: Any) -> Any:
    """The reader of a file: ``BlockFile``, ``Embeddings``, ``Table``, or ``LibsvmBlocks``."""
    from certsvm.files.block_sources import open_data

    kind = kind_of(path)
    reading = options.reading(kind) | more
    if kind == "text":
        watch_compilation(quiet=options.silent)
        reading |= {"block_bytes": _BLOCK_BYTES, "dtype": options.dtype}
    return open_data(source_of(path), **reading)


def batches_of(file: Any, options: Options) -> Iterable[Batch]:
    """The rows of a file that was opened, in bounded memory. Indices of text are as in the file."""
    if hasattr(file, "blocks"):
        batches: Iterable[Batch] = file.blocks(_BLOCK_BYTES, options.dtype)
        return batches
    return iter(file) if hasattr(file, "__iter__") else file()  # type: ignore[no-any-return]


def load(path: str, options: Options, **more: Any) -> tuple[Batch, dict[str, Any]]:
    """All of a file in memory, with its ``feature_names`` and ``origin`` for the model.

    Remarks of the reader, to which ``more`` goes, are printed on standard error.
    """
    from certsvm.files.batch import Batch, joined

    watch_compilation(quiet=options.silent)
    if kind_of(path) == "text":
        from certsvm.files.libsvm import read_libsvm

        how = options.reading("text") | {"dtype": options.dtype, "n_jobs": options.n_jobs or 0}
        text = read_libsvm(source_of(path), **how)
        tell(path, *text.notes)
        return Batch(text.X, text.y), {"origin": {"zero_based": text.zero_based}}
    file = opened(path, options, **more)
    if kind_of(path) == "embeddings":
        # A device takes them as they are.
        return file.read(None if options.device else options.dtype), {}
    tell(path, *getattr(file, "notes", ()))
    unseen: Any = getattr(file, "unseen", Counter())
    rows = joined(list(_told(path, batches_of(file, options), unseen)))
    return rows, {"feature_names": file.feature_names, "origin": file.origin}


def is_model(path: str) -> bool:
    """Whether a file is a model of certsvm or liblinear, by its first bytes."""
    return path != "-" and kind_at(path) in ("model", "text model")


def load_model(path: str, *, with_witness: bool = False) -> Model:
    """A model of certsvm or liblinear, optionally with the witness beside it, if there is one."""
    from certsvm.files import Model, load_liblinear, witness_path

    if not is_model(path):
        raise BadInput(f"{path} is not a model, as `certsvm train` makes it: MODEL comes first")
    if kind_at(path) == "text model":
        return load_liblinear(path)
    return Model.load(path, witness=with_witness and Path(witness_path(path)).exists())


def problem_of(model: Model) -> str:
    """What the certificates of a model are about, in words: whoever wrote it has chosen this."""
    problem = model.certificates[0].problem
    if (model.class_weight == 1.0).all():
        return problem
    return f"{problem}, weights of classes {', '.join(f'{w:g}' for w in model.class_weight)}"


def certificates_as_json(model: Model) -> list[dict[str, Any]]:
    """The certificate of each problem, as a dict."""
    return [
        {"class": label, **asdict(certificate)} | facts(certificate, "relative_gap proved_gap met")
        for label, certificate in certified(model)
    ]


def certified(model: Model) -> list[tuple[Any, Certificate]]:
    """The class on the positive side of each problem, with its certificate."""
    return list(zip(model.classes[-model.n_problems :].tolist(), model.certificates, strict=False))


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
    columns : Columns or None
        What the columns of a table are used for; None if they have no names.
    model_label : object
        The column of labels that the model names.
    believed : bool
        Whether the labels are there because the model says so.
    batches : iterable of Batch
        The rows.
    n_rows : int
        Rows so far.
    """

    path: str
    n_columns: int
    columns: Columns | None = None
    model_label: object = None
    believed: bool = False
    batches: Iterable[Batch] = ()
    n_rows: int = 0

    def __iter__(self) -> Iterator[Batch]:
        """The batches."""
        for batch in self.batches:
            self.n_rows += len(batch.y)
            yield batch

    def as_json(self) -> dict[str, Any]:
        """What was read, with all names."""
        told = facts(self, "n_columns model_label") | {"file": name_of(self.path)}
        told |= {"rows": self.n_rows, "label": None, "weight": None, "columns": [], "ignored": []}
        if self.columns is not None:
            told |= facts(self.columns, "weight ignored") | {"label": self.columns.label or None}
            told["columns"] = self.columns.features.columns
        return told

    @property
    def labels_in(self) -> str | None:
        """The column of labels; and what the model says, if that was decisive or is another."""
        if self.columns is None or not self.columns.label:
            return None
        said = " (as the model says)" if self.believed else ""
        if self.model_label not in (None, self.columns.label):
            said = f" (the model says {self.model_label!r})"
        return f"{self.columns.label!r}{said}"

    def __str__(self) -> str:
        from certsvm.matrices import listed

        told = [f"{name_of(self.path)}: {_counted(self.n_rows, 'row')}"]
        used = _counted(self.n_columns, "column")
        if self.columns is not None:
            told += [f"labels in {self.labels_in}"] if self.labels_in else []
            told += [f"weights in {self.columns.weight!r}"] if self.columns.weight else []
            names, ignored = self.columns.features.columns, self.columns.ignored
            used += f" used ({listed(names)}), {len(ignored) or 'none'} ignored"
            used += f" ({listed(ignored)})" if ignored else ""
        return "; ".join([*told, used])


def _counted(number: int, what: str) -> str:
    return f"{number:,} {what}" + ("" if number == 1 else "s")


def rows_for(
    model: Model, path: str, options: Options, *, complete: bool = False, exact: bool = False
) -> ModelRows:
    """The rows of a file with the columns of a model, in batches.

    Tables, and files converted from them, are matched with the model by name, or by the number of
    columns if the model has no names. Text is zero- or one-based as in training, unless the options
    say otherwise. Values of features that the model does not have are left out, and their number
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
        Whether values of features that the model does not have are an error. The model has then no
        say in which column has the labels.
    """
    kind, named = kind_of(path), model.parameters.get("label")
    named = named if isinstance(named, str) else None
    roles = _roles_of(model) | {"ignore": options.ignore, "complete": complete}
    if kind == "text" and options.zero_based is None:
        options = replace(options, zero_based=model.parameters.get("zero_based") is True)
    more = roles if exact else roles | {"usual_label": named}
    more = {"table": more, "embeddings": {"labelled": complete}}.get(kind, {})
    file = opened(path, options, **more)
    columns = file if kind == "table" else _columns_of(file, roles) if kind == "blocks" else None
    rows = ModelRows(path, model.n_features, columns)
    if columns is not None:
        if columns.recoded and (exact or kind == "blocks"):
            raise BadInput(
                f"{path}: column {columns.recoded[0]!r} holds numbers, and the model has made its "
                "values one-hot: it was trained on other data"
            )
        rows.n_columns, rows.model_label = len(columns.features.columns), named
        rows.believed = kind == "table" and not exact and options.label is None
        rows.believed &= columns.label == named is not None
    batches, unseen = batches_of(file, options), Counter[str]()
    if kind == "table":
        unseen = file.unseen
    else:
        base = int(kind == "text" and not options.zero_based)
        batches = _with_features(model, file, columns, batches, base, unseen)
    rows.batches = _told(path, batches, unseen, exact=exact)
    return rows


def _roles_of(model: Model) -> dict[str, Any]:
    """The columns of tables for a model: by name, or their number if it has no names."""
    from certsvm.files.columns import Features

    if model.feature_names is None:
        return {"n_features": model.n_features}
    try:
        one_hot = model.parameters.get("one_hot")
        return {"features": Features.from_names(model.feature_names, one_hot)}
    except ValueError as error:
        raise BadInput(f"the model's features cannot be told apart: {error}") from None


def _columns_of(file: Any, roles: dict[str, Any]) -> Columns | None:
    """The columns of the table that a file was converted from; None if they have no names."""
    import pyarrow as pa

    from certsvm.files.columns import Columns, Features

    summary = file.summary
    if summary.feature_names is None:
        if roles["ignore"]:
            raise BadInput(f"--ignore does not apply to {file.path}, whose columns have no names")
        return None
    # Without names in the model, each value of a one-hot column is a column.
    ours = Features.from_names(
        summary.feature_names, summary.one_hot if "features" in roles else None
    )
    label = summary.label or ""
    fields = [(n, pa.string() if n in ours.values else pa.float64()) for n in ours.columns]
    fields += [(label, pa.string())]
    fields += [(summary.weight, pa.float64())] if summary.weight is not None else []
    return Columns(str(file.path), pa.schema(fields), label=label, weight=summary.weight, **roles)


def _with_features(
    model: Model, file: Any, columns: Columns | None, batches: Iterable[Batch], base: int,
    unseen: Counter[str],
) -> Iterator[Batch]:  # fmt: skip
    """Batches of text, whose indices count from ``base``, or of a converted file, as of a model.

    Values that the model has not seen are counted in ``unseen``.
    """
    import numpy as np
    import scipy.sparse as sp

    from certsvm.files.batch import csr

    width = model.n_features
    chosen: Any = slice(base, base + width)
    others: list[int] = []
    if columns is not None:
        places = {name: i for i, name in enumerate(file.feature_names)}
        # A value that does not occur in the file is behind the last column.
        chosen = [places.get(name, len(places)) for name in columns.features.names]
        spans = (file.summary.one_hot or {}).items()
        known = [range(*span) for name, span in spans if name in columns.features.columns]
        others = list({*itertools.chain(*known)}.difference(chosen))
    for batch in batches:
        X = batch.X
        if sp.issparse(X):
            behind = X.indices >= base + width if columns is None else np.isin(X.indices, others)
            unseen += Counter({"": int(behind.sum())})
            n_columns = max(X.shape[1], width + 1) + 1
            X = csr(X.data, X.indices, X.indptr, (X.shape[0], n_columns))[:, chosen]
            X.sort_indices()
        elif columns is not None:
            X = X[:, chosen]
        elif X.shape[1] != width:
            raise BadInput(
                f"{file.path} has {X.shape[1]} columns, the model {width}, and there are no names "
                "to match them by. Convert a file with the model's columns, in their order."
            )
        yield batch._replace(X=X)


def _told(
    path: str, batches: Iterable[Batch], unseen: Counter[str], *, exact: bool = False
) -> Iterator[Batch]:
    """The batches; values that the model has not seen are reported, or are an error."""
    from certsvm.matrices import listed

    def told() -> str:
        where = f" (in {listed([*unseen])})" if all(unseen) else ""
        return f"{_counted(unseen.total(), 'value')} of features that the model has not seen{where}"

    for batch in batches:
        if exact and unseen:
            raise BadInput(
                f"{name_of(path)}: {told()}: it was not trained on this file. (If only the count "
                "of features differs, say --zero-based or --one-based.)"
            )
        yield batch
    if unseen:
        tell(path, f"{told()} were left out")
