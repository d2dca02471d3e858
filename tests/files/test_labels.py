"""Labels that are no classes."""

from __future__ import annotations

import numpy as np
import pytest

from certsvm.files.labels import LabelCheck, refuse_label_of_each_row


def test_a_label_for_each_row_is_refused() -> None:
    with pytest.raises(ValueError, match=r"each of the 21 rows has a label of its own.*--label"):
        refuse_label_of_each_row(21, 21)
    for n_rows, n_classes in ((20, 20), (2, 2), (22, 21), (1000, 900)):
        refuse_label_of_each_row(n_rows, n_classes)


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_labels_in_blocks(size: int) -> None:
    def check(y: np.ndarray) -> None:
        labels = LabelCheck()
        for first in range(0, len(y), size):
            labels.add(y[first : first + size])
        labels.finish()

    check(np.arange(20))
    check(np.append(np.arange(500), 499))
    check(np.append(0, np.arange(500)))
    for y in (np.arange(500), np.arange(500).astype(str), np.arange(500) / 7):
        with pytest.raises(ValueError, match="each of the 500 rows"):
            check(y)


def test_so_many_labels_are_not_collected_to_the_end() -> None:
    labels = LabelCheck()
    for first in range(0, 100_000, 10_000):
        labels.add(np.arange(first, first + 10_000))
    with pytest.raises(ValueError, match="label of its own"):
        labels.add(np.arange(100_000, 110_000))
