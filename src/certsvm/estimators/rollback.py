"""A fit that fails leaves the estimator as it was."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


def fitted_attributes(estimator: Any) -> dict[str, Any]:
    """What ``fit`` has set: names that end in an underscore, and what a warm start needs."""
    return {
        name: value
        for name, value in vars(estimator).items()
        if name == "_ends" or (name.endswith("_") and not name.startswith("_"))
    }


@contextmanager
def rollback(estimator: Any) -> Iterator[None]:
    """Put the fitted attributes back if an exception passes: a failed fit changes nothing."""
    before = fitted_attributes(estimator)
    try:
        yield
    except BaseException:
        for name in fitted_attributes(estimator):
            delattr(estimator, name)
        vars(estimator).update(before)
        raise
