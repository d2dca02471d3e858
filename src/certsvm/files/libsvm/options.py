"""Options of the readers, checked before anything is read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from certsvm.files.libsvm.sources import TextSource, name_of
from certsvm.kernels.libsvm import LARGEST_INDEX, IndexRules
from certsvm.parallel import available_processors


@dataclass(frozen=True)
class ParseOptions:
    """How to read one file."""

    file: str
    dtype: np.dtype[Any]
    n_features: int | None
    zero_based: bool | None
    n_jobs: int

    @classmethod
    def checked(
        cls, source: TextSource, dtype: Any, n_features: Any, zero_based: Any, n_jobs: Any,
        name: str | None = None,
    ) -> ParseOptions:  # fmt: skip
        """Validate the options; ``name`` replaces the source's name in messages."""
        if np.dtype(dtype) not in (np.dtype(np.float32), np.dtype(np.float64)):
            raise ValueError(f"dtype must be float32 or float64, got {dtype!r}")
        if not (n_features is None or (is_count(n_features) and n_features <= LARGEST_INDEX)):
            raise ValueError(f"n_features must be None or a whole number >= 0, got {n_features!r}")
        if not (zero_based is None or isinstance(zero_based, bool | np.bool_)):
            raise ValueError(f"zero_based must be True, False or None, got {zero_based!r}")
        if not is_count(n_jobs):
            raise ValueError(f"n_jobs must be a whole number >= 0 (0: all), got {n_jobs!r}")
        return cls(
            name_of(source) if name is None else name,
            np.dtype(dtype),
            None if n_features is None else int(n_features),
            None if zero_based is None else bool(zero_based),
            int(n_jobs) or available_processors(),
        )

    def rules(self, base: int) -> IndexRules:
        """Which indices are allowed, as far as is known before the file is read."""
        high = LARGEST_INDEX if self.n_features is None else self.n_features
        if self.zero_based and self.n_features is not None:
            high -= 1
        # The index n_features is out of range if the file is zero-based, which may be known only
        # at its end.
        undecided = self.zero_based is None and self.n_features is not None
        return IndexRules(
            base, low=int(self.zero_based is False), high=high, notable=high if undecided else -2
        )


def is_count(number: Any) -> bool:
    """Whether this is a whole number >= 0."""
    whole = isinstance(number, int | np.integer) and not isinstance(number, bool)
    return bool(whole and number >= 0)
