"""The history, by pass and by column."""

from __future__ import annotations

import math

import pytest

from certsvm.training.history import History, Record


def history(n_records: int = 3) -> History:
    records = History()
    for passes in range(1, n_records + 1):
        records.append(
            Record(0.1 * passes, passes, 2 * passes, 7, math.nan, primal=math.nan, dual=-0.5)
        )
    return records


def test_columns_and_records() -> None:
    records = history()
    assert records["epochs"].tolist() == [2, 4, 6]
    assert records[-1].passes == len(records) == 3
    assert [record.passes for record in records] == [1, 2, 3]
    assert set(records.to_dict()) == set(History.columns)
    assert repr(History()) == "<History: no pass>"
    with pytest.raises(KeyError, match="the columns are"):
        records["nonsense"]
