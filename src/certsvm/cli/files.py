"""Files that commands read and write: data of any kind, models, and rows with a model's columns.

Packages that are slow to import are imported where they are used: --help must start at once.
"""

from __future__ import annotations

import itertools
import os
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from certsvm import files
from certsvm.cli import facts, say
from certsvm.cli.options import Options

if TYPE_CHECKING:
    from certsvm.certificates.certificate import Certificate
    from certsvm.files.batch import Batch
    from certsvm.files.columns import Columns

_BEGINNINGS = {
    b"solver_type": "text model", b"<!DOCTYPE html>": "page", b"ARROW1": "converted file"
}  # fmt: skip
# Kinds that cannot be told from other files.
_WITHOUT_FORMAT = ("predictions", "picture")


def kind_of(path: str) -> str:
    """One of "blocks", "table", "text" and "embeddings"; standard input ("-") is text."""
    if path == "-":
        return "text"
    if is_model(path):
        raise ValueError(f"{path} is a model, and rows are needed here")
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


def opened(path: str, options: Options, **more: Any) -> tuple[Any, Iterable[Batch]]:
    """The reader of a file, to which ``more`` goes, and its rows in bounded memory.

    Indices of text are as in the file.
    """
    kind = kind_of(path)
    how = options.reading(kind) | more
    if kind == "text":
        how |= {"dtype": options.dtype}
    from certsvm.files.block_sources import open_data

    file = open_data(source_of(path), **how)
    if hasattr(file, "blocks"):
        return file, file.blocks(dtype=options.dtype)
    return file, file if kind == "text" else file()


def load(path: str, options: Options, **more: Any) -> tuple[Batch, dict[str, Any]]:
    """All of a file in memory, with its ``feature_names`` and ``origin`` for the model.

    Remarks of the reader, to which ``more`` goes, are printed on standard error.
    """
    from certsvm.files.batch import Batch, joined

    kind = kind_of(path)
    if kind == "text":
        how = options.reading(kind) | {"dtype": options.dtype, "n_jobs": options.n_jobs or 0}
        text = files.read_libsvm(source_of(path), **how)
        tell(path, *text.notes)
        return Batch(text.X, text.y), {"origin": {"zero_based": text.zero_based}}
    file, batches = opened(path, options, **more)
    if kind == "embeddings":
        # A device takes them as they are.
        batches = [file.read(None if options.device else options.dtype)]
    tell(path, *getattr(file, "notes", ()))
    unseen: Any = getattr(file, "unseen", Counter())
    rows = joined(list(_all_known(path, batches, unseen)))
    return rows, facts(file, "feature_names origin")


def is_model(path: str) -> bool:
    """Whether a file is a model of certsvm or liblinear, by its first bytes."""
    return path != "-" and kind_at(path) in ("model", "text model")


def load_model(path: str, *, with_witness: bool = False) -> files.Model:
    """A model of certsvm or liblinear, optionally with the witness beside it, if there is one."""
    if kind_at(path) == "text model":
        return files.load_liblinear(path)
    return files.Model.load(path, witness=with_witness and os.path.exists(files.witness_path(path)))


def problem_of(model: files.Model) -> str:
    """What the certificates of a model are about, in words: whoever wrote it has chosen this."""
    problem, weights = model.certificates[0].problem, model.class_weight.tolist()
    of_classes = f", weights of classes {', '.join(f'{w:g}' for w in weights)}"
    return f"{problem}{'' if set(weights) == {1.0} else of_classes}"


def certificates_as_json(model: files.Model) -> list[dict[str, Any]]:
    """The certificate of each problem, as a dict."""
    names = "relative_gap proved_gap met"
    return [{"class": label, **asdict(c), **facts(c, names)} for label, c in certified(model)]


def certified(model: files.Model) -> list[tuple[Any, Certificate]]:
    """The class on the positive side of each problem, with its certificate."""
    return list(zip(model.classes[-model.n_problems :].tolist(), model.certificates, strict=False))


class ModelRows:
    """The rows of a file with the columns of a model, in batches, to be read once.

    Tables, and files converted from them, are matched with the model by name, or by the number of
    columns if the model has no names. Text is zero- or one-based as in training, unless the options
    say otherwise. Values of features that the model does not have are left out, and their number
    is printed at the end. What is said about a model on these rows is said about ``str`` of this.

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

    Attributes
    ----------
    n_rows : int
        Rows so far.
    columns : Columns or None
        What the columns of a table are used for; None if they have no names.
    """

    def __init__(
        self, model: files.Model, path: str, options: Options, *, complete: bool = False,
        exact: bool = False,
    ) -> None:  # fmt: skip
        from certsvm.files.columns import Features

        self.n_rows, self._path, self._width = 0, path, model.n_features
        self._exact, kind = exact, kind_of(path)
        named = model.parameters.get("label")
        self._named = named if isinstance(named, str) else None
        roles: dict[str, Any] = {"ignore": options.ignore, "complete": complete}
        if model.feature_names is None:
            roles["n_features"] = model.n_features
        else:
            one_hot = model.parameters.get("one_hot")
            roles["features"] = Features.from_names(model.feature_names, one_hot)
        if kind == "text" and options.zero_based is None:
            options = replace(options, zero_based=model.parameters.get("zero_based") is True)
        trusting = {} if exact else {"usual_label": self._named}
        more = {"table": roles | trusting, "embeddings": {"labelled": complete}}.get(kind, {})
        self._file, self._batches = opened(path, options, **more)
        self._base = int(kind == "text" and not options.zero_based)
        self.columns: Columns | None = None
        if kind == "table":
            self.columns = self._file
        elif kind == "blocks":
            self.columns = _columns_of(self._file, roles)
        recoded = [] if self.columns is None else self.columns.recoded
        if recoded and (exact or kind == "blocks"):
            raise ValueError(
                f"{path}: column {recoded[0]!r} holds numbers, and the model has made its values "
                "one-hot: it was trained on other data"
            )
        # Whether the labels are where they are because the model says so.
        self._believed = kind == "table" and not exact and options.label is None

    def __iter__(self) -> Iterator[Batch]:
        """The batches."""
        unseen: Any = getattr(self._file, "unseen", Counter())
        batches = self._batches
        if self.columns is not self._file:
            batches = self._with_features(batches, unseen)
        for batch in _all_known(self._path, batches, unseen, exact=self._exact):
            self.n_rows += len(batch.y)
            yield batch

    def _with_features(self, batches: Iterable[Batch], unseen: Counter[str]) -> Iterator[Batch]:
        """Batches of text or of a converted file, with the columns of the model.

        Values that the model has not seen are counted in ``unseen``.
        """
        import numpy as np
        import scipy.sparse as sp

        from certsvm.files.batch import csr

        end = self._base + self._width
        chosen: Any = slice(self._base, end)
        others: list[int] = []
        if self.columns is not None:
            features, spans = self.columns.features, self._file.summary.one_hot or {}
            places = {name: i for i, name in enumerate(self._file.feature_names)}
            # A value that does not occur in the file is behind the last column.
            chosen = [places.get(name, len(places)) for name in features.names]
            known = [range(*spans[name]) for name in spans.keys() & {*features.columns}]
            others = list({*itertools.chain(*known)}.difference(chosen))
        for batch in batches:
            X = batch.X
            if sp.issparse(X):
                is_unseen = X.indices >= end if self.columns is None else np.isin(X.indices, others)
                unseen += Counter({"": int(is_unseen.sum())})
                shape = (X.shape[0], max(X.shape[1], self._width + 1) + 1)
                X = csr(X.data, X.indices, X.indptr, shape)[:, chosen]
                X.sort_indices()
            elif self.columns is not None:
                X = X[:, chosen]
            elif X.shape[1] != self._width:
                raise ValueError(
                    f"{self._path} has {X.shape[1]} columns, the model {self._width}, and there "
                    "are no names to match them by"
                )
            yield batch._replace(X=X)

    def as_json(self) -> dict[str, Any]:
        """What was read, with all names."""
        answer: dict[str, Any] = {"file": name_of(self._path), "rows": self.n_rows}
        answer |= {"n_columns": self._width, "model_label": None, "label": None, "weight": None}
        answer |= {"columns": [], "ignored": []}
        if self.columns is not None:
            answer |= facts(self.columns, "weight ignored") | {"label": self.columns.label or None}
            answer |= {"columns": self.columns.features.columns, "model_label": self._named}
            answer["n_columns"] = len(answer["columns"])
        return answer

    @property
    def labels_in(self) -> str | None:
        """The column of labels; and what the model says, if that was decisive or is another."""
        if self.columns is None or not self.columns.label:
            return None
        label, named = self.columns.label, self._named
        if named not in (None, label):
            return f"{label!r} (the model says {named!r})"
        return f"{label!r}{' (as the model says)' if named and self._believed else ''}"

    def __str__(self) -> str:
        from certsvm.matrices import listed

        parts = [f"{name_of(self._path)}: {_counted(self.n_rows, 'row')}"]
        used = _counted(self.as_json()["n_columns"], "column")
        if self.columns is not None:
            parts += [f"labels in {self.labels_in}"] if self.labels_in else []
            parts += [f"weights in {self.columns.weight!r}"] if self.columns.weight else []
            names, ignored = self.columns.features.columns, self.columns.ignored
            used += f" used ({listed(names)}), {len(ignored) or 'none'} ignored"
            used += f" ({listed(ignored)})" if ignored else ""
        return "; ".join([*parts, used])


def _counted(number: int, what: str) -> str:
    return f"{number:,} {what}" + ("" if number == 1 else "s")


def _columns_of(file: Any, roles: dict[str, Any]) -> Columns | None:
    """The columns of the table that a file was converted from; None if they have no names."""
    import pyarrow as pa

    from certsvm.files.columns import Columns, Features

    summary, label = file.summary, file.summary.label or ""
    if summary.feature_names is None:
        if roles["ignore"]:
            raise ValueError(f"--ignore does not apply to {file.path}, whose columns have no names")
        return None
    # Without names in the model, each value of a one-hot column is a column.
    one_hot = summary.one_hot if "features" in roles else None
    ours = Features.from_names(summary.feature_names, one_hot)
    types = {name: pa.string() if name in ours.values else pa.float64() for name in ours.columns}
    schema = [*types.items(), (label, pa.string())]
    schema += [(summary.weight, pa.float64())] if summary.weight is not None else []
    return Columns(str(file.path), pa.schema(schema), label=label, weight=summary.weight, **roles)


def _all_known(
    path: str, batches: Iterable[Batch], unseen: Counter[str], *, exact: bool = False
) -> Iterator[Batch]:
    """The batches; values that the model has not seen are reported, or are an error."""
    from certsvm.matrices import listed

    def what() -> str:
        where = f" (in {listed([*unseen])})" if all(unseen) else ""
        return f"{_counted(unseen.total(), 'value')} of features that the model has not seen{where}"

    for batch in batches:
        if exact and unseen:
            raise ValueError(
                f"{name_of(path)}: {what()}: it was not trained on this file. (If only the count "
                "of features differs, say --zero-based or --one-based.)"
            )
        yield batch
    if unseen:
        tell(path, f"{what()} were left out")


def require_outputs(inputs: Iterable[str | None], **kinds: str | None) -> None:
    """Raise unless the outputs, each given by its kind, may be written.

    An output, and the witness that belongs to an output that is a model, is never an input, nor
    what belongs to an input, nor another output, nor a file of a kind that the command does not
    write. It is applied before anything is read, so that an hour of training is not lost. What has
    no format of its own, such as predictions, replaces any file that is not certsvm's.

    Kinds are model, text_model, converted_file, scaled_file, scaling, page, predictions, picture
    and checkpoint. An input may be a folder, whose files are inputs, or "-", standard input.
    Predictions may go to "-", standard output, to a device or to a pipe.
    """
    paths = {kind.replace("_", " "): path for kind, path in kinds.items() if path is not None}
    if "model" in paths:
        paths["witness"] = files.witness_path(paths["model"])
    taken = [path for path in inputs if path is not None]
    taken += [files.witness_path(path) for path in taken if path != "-" and not os.path.isdir(path)]
    for kind, path in paths.items():
        if path == "-" or (os.path.exists(path) and not os.path.isfile(path)):
            if kind != "predictions":
                raise ValueError(f"a {kind} cannot be written to {path}: it needs a file")
            # With ">>", predictions would be read as rows, without an end.
            out = "/dev/stdout"
            if path == "-" and os.path.isfile(out) and any(_same(out, other) for other in taken):
                raise ValueError("standard output is an input, and would be appended to")
            continue
        if any(_same(path, other) for other in taken):
            raise ValueError(f"{path} is an input or another output, and would be overwritten")
        taken.append(path)
        folder = os.path.dirname(os.path.abspath(path))
        if not os.access(folder, os.W_OK):
            raise ValueError(f"there is no folder {folder} that can be written to, for {path}")
        there = kind_at(path) if os.path.exists(path) else ""
        if there not in ((None, "") if kind in _WITHOUT_FORMAT else (kind, "")):
            what = f"is not a {kind}" + (f" but a {there}" if there else "")
            if kind == "scaled file":
                what = "cannot be told from data of yours"
            raise ValueError(f"{path} {what}, and would be overwritten: choose another name")


def _same(output: str, other: str) -> bool:
    """Whether an output is another file, or in that folder, or is standard input ("-")."""
    if not os.path.exists(output):
        return os.path.realpath(output) == os.path.realpath(other)
    if other == "-":
        return os.path.samefile(sys.stdin.fileno(), output)
    if os.path.isdir(other):
        return os.path.samefile(other, os.path.dirname(os.path.abspath(output)))
    return os.path.exists(other) and os.path.samefile(other, output)


def kind_at(path: str) -> str | None:
    """The kind of a file; "" if it is empty, None if it is none of ours."""
    from certsvm.files.container import kind_of_container

    with open(path, "rb") as file:
        start = file.read(4096)
    known = (kind for beginning, kind in _BEGINNINGS.items() if start.startswith(beginning))
    kind = next(known, kind_of_container(start)) if start else ""
    # Ours name their maker.
    foreign = kind in ("page", "converted file") and b"certsvm" not in start
    return f"{kind} of another program" if foreign else kind
