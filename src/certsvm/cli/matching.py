"""Rows of a file with the columns of a model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from certsvm.cli.app import BadInput, say
from certsvm.cli.inputs import name_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from certsvm.data.batch import Batch
    from certsvm.data.features import Features
    from certsvm.models import Model


def features_of(model: Model) -> Features | None:
    """The columns of tables for a model; None if it has no names."""
    from certsvm.data.features import Features

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
    first : int, default=1
        Number of the first feature, in messages.
    """

    def __init__(self, model: Model, path: str, kind: str, *, first: int = 1) -> None:
        self._path, self._base = path, first
        self._width = model.n_features
        # Position in the model of each column of the file, or one of the above; None if they are
        # the same.
        self._positions: NDArray[Any] | None = None
        if kind == "blocks":
            self._match(model)
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

        from certsvm.data.batch import csr

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

    def _match(self, model: Model) -> None:
        """Compare the columns of a converted file with the model's."""
        import numpy as np

        from certsvm.data.block_file import BlockFile

        file = BlockFile(self._path)
        names, n_columns = file.feature_names, file.summary.n_columns
        if names is None:
            return
        if model.feature_names is None:
            if n_columns != self._width:
                raise BadInput(self._other_width(n_columns))
            return
        if list(model.feature_names) == names:
            return
        places = {name: i for i, name in enumerate(model.feature_names)}
        theirs, ours = file.summary.one_hot or {}, features_of(model)
        assert ours is not None
        # A value of a one-hot column need not occur in both files.
        optional = {f"{c}={v}" for c in theirs for v in ours.values.get(c, ())}
        missing = [name for name in places if name not in names and name not in optional]
        if missing:
            raise BadInput(
                f"{self._path} has no column {missing[0]!r} for the model, which has "
                f"{self._width} columns, {len(missing)} of them not in this file. Columns are "
                "matched by name."
            )
        unseen = {name for first, last in theirs.values() for name in names[first:last]}
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
