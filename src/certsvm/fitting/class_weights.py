"""Weights of classes and rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def class_weights(
    class_weight: dict[Any, float] | str | None,
    classes: NDArray[Any],
    y_index: NDArray[np.intp],
    weights: NDArray[np.float64] | None,
) -> NDArray[np.float64]:
    """Factor for each class, in the order of ``classes``.

    "balanced" gives every class the same total, counting rows with their weights, so that a
    row of weight two is the same as two rows.

    Examples
    --------
    >>> class_weights("balanced", np.array(["a", "b"]), np.array([0, 0, 0, 1]), None)
    array([0.66666667, 2.        ])
    """
    if class_weight is None:
        return np.ones(classes.size)
    if class_weight == "balanced":
        totals = np.bincount(y_index, weights=weights, minlength=classes.size).astype(np.float64)
        # A class without weight has no rows to multiply; any factor will do.
        balanced = np.ones(classes.size)
        np.divide(totals.sum(), classes.size * totals, out=balanced, where=totals > 0)
        return balanced
    if not isinstance(class_weight, dict):
        raise ValueError(f'class_weight must be a dict, "balanced" or None, got {class_weight!r}')
    known = classes.tolist()
    unknown = [label for label in class_weight if label not in known]
    # A class may be missing from the data (a fold of a cross-validation); a key that matches
    # nothing while a label has no key is a mistake.
    if unknown and any(label not in class_weight for label in known):
        raise ValueError(
            f"class_weight has keys {unknown!r} that are not labels; the labels are {known!r} "
            "(mind the type: '1' is not 1)"
        )
    factors = np.array([float(class_weight.get(label, 1.0)) for label in known])
    if not (np.isfinite(factors).all() and (factors >= 0).all()):
        raise ValueError(f"class_weight must be finite and not negative, got {class_weight!r}")
    return factors


def weights_of_rows(
    factors: NDArray[np.float64], y_index: NDArray[np.intp], weights: NDArray[np.float64] | None
) -> NDArray[np.float64] | None:
    """The weight of each row: its own times its class's; None if all are one."""
    if weights is None:
        return None if (factors == 1.0).all() else factors[y_index]
    return factors[y_index] * weights


def require_two_classes(
    classes: NDArray[Any], y_index: NDArray[np.intp], weights: NDArray[np.float64] | None
) -> None:
    """Raise unless rows of positive weight belong to two classes at least."""
    present = classes if weights is None else classes[np.unique(y_index[weights > 0])]
    if present.size < 2:
        which = f"only one class, {str(present[0])!r}" if present.size else "no class at all"
        where = "" if weights is None else " among the rows of positive weight"
        raise ValueError(
            f"A classifier needs rows of at least 2 classes, but the data contains {which}{where}."
        )
