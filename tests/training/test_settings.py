"""How to train: what makes sense, and what does not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from certsvm.training.settings import Settings


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"tol": -1.0}, "tol must be"),
        ({"tol": np.nan}, "tol must be"),
        ({"max_time": np.inf}, "max_time must be"),
        ({"max_time": -1.0}, "max_time must be"),
        ({"checkpoint_every": np.nan}, "checkpoint_every must be"),
        ({"n_jobs": 0}, "n_jobs must be"),
        ({"max_iter": 0}, "max_iter must be"),
        ({"seed": -1}, "seed must be"),
    ],
)
def test_what_makes_no_sense(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Settings(**parameters)


def test_numbers_of_numpy_become_plain() -> None:
    settings = Settings(max_iter=np.int64(3), seed=np.int32(7), tol=np.float64(1))
    assert type(settings.tol) is float
    assert (type(settings.max_iter), type(settings.seed)) == (int, int)
