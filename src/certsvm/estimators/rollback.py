"""A fit that fails leaves the estimator as it was."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


def is_fitted_attribute(name: str) -> bool:
    """Whether an attribute of that name is what ``fit`` sets."""
    hidden = name in ("_epochs", "_alpha", "_tensor_alpha")
    return hidden or (name.endswith("_") and not name.startswith("_"))


@contextmanager
def unharmed_by_errors(estimator: Any) -> Iterator[None]:
    """Put the fitted attributes back if an exception passes: a failed fit changes nothing."""

    def fitted() -> dict[str, Any]:
        return {name: value for name, value in vars(estimator).items() if is_fitted_attribute(name)}

    before = fitted()
    try:
        yield
    except BaseException:
        for name in fitted():
            delattr(estimator, name)
        for name, value in before.items():
            setattr(estimator, name, value)
        raise
