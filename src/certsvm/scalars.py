"""Numbers from outside, as Python's own.

NumPy computes with a float32 or float16 and a Python float in the narrower type, while bounds and
their rounding allowances are for float64.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any

# Most are; and the command line begins before NumPy is loaded.
_PLAIN = (float, int, bool, str, type(None))


def as_float(value: Any, name: str) -> float:
    """The number as a float; integers have no largest number."""
    try:
        return float(value)
    except OverflowError:
        raise ValueError(f"{name} is too large for float64") from None


def plain(value: Any) -> Any:
    """A number or string of NumPy's as Python's; anything else as it is.

    Examples
    --------
    >>> import numpy as np
    >>> plain(np.float32(0.5)), plain(np.int8(3)), plain(np.bool_(True)), plain("auto")
    (0.5, 3, True, 'auto')
    """
    if type(value) in _PLAIN:
        return value
    import numpy as np

    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    types = ((np.bool_, bool), (np.integer, int), (np.floating, float), (np.str_, str))
    for numpy_type, python_type in types:
        if isinstance(value, numpy_type):
            return python_type(value)
    return value


def set_plain_numbers(instance: Any) -> None:
    """Replace the numbers of NumPy's in the fields of a dataclass, perhaps frozen."""
    for field in fields(instance):
        object.__setattr__(instance, field.name, plain(getattr(instance, field.name)))
