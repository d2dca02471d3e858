"""The history of a training run, pass by pass."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certsvm.certificates.certificate import percent, tidy


@dataclass(frozen=True)
class Record:
    """The state of a training run after a pass.

    Attributes
    ----------
    seconds : float
        Time since training began.
    passes : int
        Number of passes over the data, which ``max_iter`` limits.
    epochs : int
        T, how often each row was presented: more than ``passes`` if some passes present rows
        several times.
    margin_errors, updates, free : float
        Numbers of margin errors, of changes of w or alpha, and of free support vectors (rows with
        alpha strictly inside the box) in this pass; NaN if the solver does not count them.
    primal : float
        J computed after this pass; NaN if it was not.
    primal_estimate : float
        The solver's estimate of J; NaN if it has none.
    dual : float
        The best dual bound so far.
    gap, relative_gap : float
        Gaps between the best J and the best dual bound so far, as computed; infinite before there
        are both, and zero below the level of rounding (see ``Certificate.relative_gap``).
    """

    seconds: float
    passes: int
    epochs: int
    margin_errors: float = math.nan
    updates: float = math.nan
    free: float = math.nan
    primal: float = math.nan
    primal_estimate: float = math.nan
    dual: float = 0.0
    gap: float = math.inf
    relative_gap: float = math.inf


# Integers, or NaN if the solver does not count them.
_COUNTS = ("passes", "epochs", "margin_errors", "updates", "free")
_COLUMNS = tuple(field.name for field in fields(Record))
# Passes in the table of a notebook.
_SHOWN = 5


class History(list[Record]):
    """The records of a run: a list, with columns by name.

    Examples
    --------
    >>> history = History()
    >>> history.append(Record(seconds=0.1, passes=1, epochs=1, margin_errors=7))
    >>> history["margin_errors"]
    array([7])
    >>> history[-1].passes, len(history)
    (1, 1)
    """

    def __getitem__(self, key: Any) -> Any:
        if not isinstance(key, str):
            return super().__getitem__(key)
        if key not in _COLUMNS:
            raise KeyError(f"{key!r}: the columns are {', '.join(_COLUMNS)}")
        column = np.array([getattr(record, key) for record in self], dtype=np.float64)
        counted = key in _COUNTS and bool(np.isfinite(column).all())
        return column.astype(np.int64) if counted else column

    def best_bounds(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The least J, infinite before there is one, and the largest L up to each pass."""
        primal = np.where(np.isnan(self["primal"]), np.inf, self["primal"])
        return np.minimum.accumulate(primal), np.maximum.accumulate(self["dual"])

    def closing_records(self) -> NDArray[np.float64]:
        """What a model keeps of this history."""
        return closing_records([self])

    def to_dict(self) -> dict[str, list[float]]:
        """Columns as lists, ready for ``pandas.DataFrame``."""
        return {name: [getattr(record, name) for record in self] for name in _COLUMNS}

    def to_frame(self: History | Histories) -> Any:
        """A ``pandas.DataFrame`` with a row for each pass; needs pandas."""
        import pandas as pd

        return pd.DataFrame(self.to_dict())

    def plot(self, path: str | Path | None = None) -> Any:
        """Plot J, L and the gap against seconds; needs ``certsvm[plot]``.

        Parameters
        ----------
        path : str or Path, default=None
            File to save the plot to.

        Returns
        -------
        figure : matplotlib.figure.Figure
            The plot; without a gap if nothing is proved.
        """
        from certsvm.plots import plot, training_charts

        return plot(training_charts({"": self}), path)

    def _repr_html_(self) -> str:
        """For notebooks: the gap against time, and the last passes."""
        from certsvm.markup import element, table
        from certsvm.plots import notebook_chart, training_charts

        if not self:
            return element("p", repr(self))
        chart = notebook_chart(training_charts({"": self})[-1], "history")
        rows = [
            [r.passes, f"{r.seconds:.3g}", *map(_shown, (r.primal, r.dual, r.relative_gap))]
            for r in self[-_SHOWN:]
        ]
        return element("div", chart, table(["passes", "seconds", "J", "L, best", "gap"], rows))

    def __repr__(self) -> str:
        if not self:
            return "<History: no pass>"
        last = self[-1]
        return f"<History: {shown_passes(last.passes)}, relative gap {last.relative_gap:.3g}>"


def shown_record(record: Record) -> str:
    """A pass as a line of text."""
    # The gap is infinite before J is first computed.
    primal = "none yet" if math.isinf(record.gap) else f"{record.dual + record.gap:.8g}"
    gap = "none yet" if math.isinf(record.relative_gap) else percent(record.relative_gap)
    return (
        f"pass {record.passes:5d} {record.seconds:5.1f} s   primal {primal:<12} "
        f"dual {record.dual:<12.8g} gap {gap}"
    )


def shown_passes(passes: int) -> str:
    """A number of passes, in words.

    Examples
    --------
    >>> shown_passes(1), shown_passes(7)
    ('1 pass', '7 passes')
    """
    return "1 pass" if passes == 1 else f"{passes} passes"


def _shown(value: float) -> str:
    return f"{value:.6g}" if math.isfinite(value) else ""


# Passes of each problem that ``closing_records`` keeps.
_MOST_RECORDS = 500


def closing_records(histories: Sequence[History]) -> NDArray[np.float64]:
    """How J and L closed in on each other, in one array: what a model keeps of its history.

    Parameters
    ----------
    histories : sequence of History
        One for each problem.

    Returns
    -------
    records : ndarray of shape (n_records, 4)
        Four columns: the number of the problem, passes, the least J so far (infinite
        before there is one) and the largest L. Of many passes, some are left out. Times are left
        out, too, so that the same training makes the same model.

    Examples
    --------
    >>> history = History()
    >>> history.append(Record(seconds=0.5, passes=1, epochs=1, primal=3.0, dual=2.0))
    >>> closing_records([history]).tolist()
    [[0.0, 1.0, 3.0, 2.0]]
    """
    parts = []
    for i, history in enumerate(histories):
        number = np.full(len(history), float(i))
        part = np.column_stack([number, history["passes"], *history.best_bounds()])
        if len(part) > _MOST_RECORDS:
            part = part[np.unique(np.linspace(0, len(part) - 1, _MOST_RECORDS).round().astype(int))]
        parts.append(part)
    return np.concatenate(parts) if parts else np.empty((0, 4))


class Histories(list[History]):
    """The histories of several binary problems, in the order of the classes.

    Parameters
    ----------
    histories : iterable of History
        One for each problem.
    labels : sequence
        The positive class of each problem.

    Examples
    --------
    >>> one, other = History(), History()
    >>> one.append(Record(seconds=0.1, passes=1, epochs=1))
    >>> other.append(Record(seconds=0.1, passes=1, epochs=1))
    >>> other.append(Record(seconds=0.2, passes=2, epochs=2))
    >>> columns = Histories([one, other], ["ham", "spam"]).to_dict()
    >>> columns["class"], columns["passes"]
    (['ham', 'spam', 'spam'], [1, 1, 2])
    """

    def __init__(self, histories: Iterable[History], labels: Sequence[Any]) -> None:
        super().__init__(histories)
        self.labels = list(labels)

    def plot(self, path: str | Path | None = None) -> Any:
        """Plot the gap of each class against seconds; needs ``certsvm[plot]``.

        Parameters
        ----------
        path : str or Path, default=None
            File to save the plot to.

        Returns
        -------
        figure : matplotlib.figure.Figure
            The plot; of J if nothing is proved.
        """
        from certsvm.plots import plot, training_charts

        histories = dict(zip(map(tidy, self.labels), self, strict=True))
        return plot(training_charts(histories), path)

    def _repr_html_(self) -> str:
        """For notebooks: the last pass of each class."""
        from certsvm.markup import table

        rows = []
        for label, history in zip(self.labels, self, strict=True):
            last = history[-1] if history else Record(math.nan, 0, 0, dual=math.nan)
            shown = map(_shown, (last.seconds, last.dual, last.relative_gap))
            rows.append([label, last.passes, *shown])
        return table(["class", "passes", "seconds", "L, best", "gap"], rows)

    def closing_records(self) -> NDArray[np.float64]:
        """What a model keeps of these histories."""
        return closing_records(self)

    def to_dict(self) -> dict[str, list[Any]]:
        """Columns as lists, one class after the other; the first column is the class."""
        labels = [label for label, history in zip(self.labels, self, strict=True) for _ in history]
        return {"class": labels, **History(itertools.chain.from_iterable(self)).to_dict()}

    # A row for each class and pass.
    to_frame = History.to_frame
