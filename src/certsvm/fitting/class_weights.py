"""Labels as positions among the classes, and the weights of classes."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

ClassWeight: TypeAlias = dict[Any, float] | str | None
"""Factors for the weights of each class's rows: by label, "balanced", or None for ones."""


def classes_of(y: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """The labels that occur, and the position of each row's label among them.

    Examples
    --------
    >>> classes_of(np.array([3, -1, 3]))
    (array([-1,  3]), array([1, 0, 1]))
    """
    if y.size and y.dtype.kind in "biuf":
        # Two numbers are the usual case, and need no sorting.
        least, largest = y.min(), y.max()
        second = y == largest
        if least < largest and (second | (y == least)).all():
            return np.array([least, largest], dtype=y.dtype), second.astype(np.intp)
    classes = np.unique(y)
    if classes.size == 2:
        return classes, (y == classes[1]).astype(np.intp)
    return classes, np.searchsorted(classes, y)


def positive_classes(n_classes: int) -> list[int]:
    """The class on the positive side of each binary problem, by position."""
    return [1] if n_classes == 2 else list(range(n_classes))


def class_factors(
    class_weight: ClassWeight, classes: NDArray[Any], totals: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Factor for each class, in the order of ``classes``.

    "balanced" gives every class the same total weight, so that a row of weight two is the same as
    two rows.

    Parameters
    ----------
    class_weight : dict, "balanced" or None
        What the user asks for.
    classes : ndarray of shape (n_classes,)
        The labels.
    totals : ndarray of shape (n_classes,)
        The total weight of each class's rows.

    Examples
    --------
    >>> class_factors("balanced", np.array(["a", "b"]), np.array([3.0, 1.0]))
    array([0.66666667, 2.        ])
    """
    if class_weight is None:
        return np.ones(classes.size)
    if isinstance(class_weight, str) and class_weight == "balanced":
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


def factors_in_problem(factors: NDArray[np.float64], positive: int) -> NDArray[np.float64]:
    """Factor for the rows of each class in the problem of one class against the rest.

    With two classes, each keeps its factor. With more, the factor of the positive class multiplies
    its rows, and all others weigh 1, as in liblinear and scikit-learn: a factor moves the boundary
    of its own class and leaves the other problems alone.

    Examples
    --------
    >>> factors_in_problem(np.array([5.0, 2.0, 3.0]), positive=2)
    array([1., 1., 3.])
    """
    if factors.size == 2:
        return factors
    in_problem = np.ones(factors.size)
    in_problem[positive] = factors[positive]
    return in_problem
