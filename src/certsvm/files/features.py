"""What the features of rows from a table are made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Features:
    """Columns of a table as features: as numbers, or one-hot.

    A column of strings becomes one feature for each of its values, called ``column=value``, which
    is one in the rows that have the value and zero in all others.

    Attributes
    ----------
    columns : tuple of str
        The columns, in the order of their features.
    values : dict
        The values of each column that is one-hot.

    Examples
    --------
    >>> features = Features(("age", "eyes"), {"eyes": ("blue", "brown")})
    >>> features.names
    ['age', 'eyes=blue', 'eyes=brown']
    >>> features.spans
    {'eyes': [1, 3]}
    >>> Features.from_names(features.names, features.spans) == features
    True
    """

    columns: tuple[str, ...]
    values: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        names = self.names
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise ValueError(f"two features would be called {twice!r}: rename a column")

    @property
    def names(self) -> list[str]:
        """Names of the features."""
        names: list[str] = []
        for column in self.columns:
            values = self.values.get(column)
            names += [column] if values is None else [f"{column}={value}" for value in values]
        return names

    @property
    def spans(self) -> dict[str, list[int]] | None:
        """First and last feature, plus one, of each one-hot column; None if there is none."""
        spans, first = {}, 0
        for column in self.columns:
            values = self.values.get(column)
            last = first + (1 if values is None else len(values))
            if values is not None:
                spans[column] = [first, last]
            first = last
        return spans or None

    @classmethod
    def from_names(cls, names: Sequence[str], spans: Any) -> Features:
        """The features with these ``names`` and ``spans``; raises ValueError if they disagree."""
        if spans is None:
            return cls(tuple(names))
        if not isinstance(spans, dict):
            raise ValueError("the one-hot columns must be a mapping")
        columns: list[str] = []
        values: dict[str, tuple[str, ...]] = {}
        first = 0
        for column, span in sorted(spans.items(), key=lambda item: _pair(item[1])):
            begin, end = _pair(span)
            if not (isinstance(column, str) and first <= begin < end <= len(names)):
                raise ValueError(f"the features of column {column!r} cannot be {span!r}")
            own = names[begin:end]
            if not all(name.startswith(f"{column}=") for name in own):
                raise ValueError(f"the features of column {column!r} have other names")
            columns += [*names[first:begin], column]
            values[column] = tuple(name[len(column) + 1 :] for name in own)
            first = end
        return cls((*columns, *names[first:]), values)


def _pair(span: Any) -> tuple[int, int]:
    if not (isinstance(span, list) and len(span) == 2 and all(type(i) is int for i in span)):
        raise ValueError(f"{span!r} is no range of features")
    return span[0], span[1]
