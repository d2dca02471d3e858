"""The kinds of fields that a state may have: each says how a value is saved and checked."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from certsvm.storage.state import Field, Scope, State, Stateful

_LARGEST_COUNT = 2**62
_LONGEST_TEXT = 200


@dataclass(frozen=True)
class count(Field):
    """An integer from 0 to ``high``, which may name an attribute of the owner."""

    high: int | str = _LARGEST_COUNT

    def plain(self, value: Any) -> int:
        return int(value)

    def checked(self, value: Any, scope: Scope) -> int:
        scope.require_type(value, int, "an integer")
        high = scope.limit(self.high)
        if not 0 <= value <= high:
            scope.fail(f"is {value}, not in 0 ... {high}")
        return int(value)


@dataclass(frozen=True)
class number(Field):
    """A float from ``low`` to ``high``, never NaN, and infinite only if ``infinite``."""

    low: float = -math.inf
    high: float = math.inf
    infinite: bool = False

    def plain(self, value: Any) -> float:
        return float(value)

    def checked(self, value: Any, scope: Scope) -> float:
        scope.require_type(value, float, "a float")
        if not self.low <= value <= self.high or (math.isinf(value) and not self.infinite):
            scope.fail(f"is {value}, not a number from {self.low} to {self.high}")
        return float(value)


def positive() -> number:
    """A finite float above zero; 5e-324 is the least of them."""
    return number(low=5e-324)


class flag(Field):
    """A boolean."""

    def checked(self, value: Any, scope: Scope) -> bool:
        scope.require_type(value, bool, "true or false")
        return bool(value)


class text(Field):
    """One of the given strings; any short line of text if none are given."""

    def __init__(self, *choices: str) -> None:
        self._choices = choices

    def checked(self, value: Any, scope: Scope) -> str:
        scope.require_type(value, str, "a line of text")
        if len(value) > _LONGEST_TEXT or not value.isprintable():
            scope.fail(f"is {value!r:.40}, not a line of text")
        if self._choices and value not in self._choices:
            scope.fail(f"is {value!r:.40}, not one of {', '.join(map(repr, self._choices))}")
        return str(value)


class array(Field):
    """An array of a declared shape and type, loaded as a copy that compiled code may write to.

    Parameters
    ----------
    *shape : int or str
        Its lengths: numbers, sizes of the problem ("n_rows", "dimension", "m"), or any other name,
        which stands for the same length in all fields of the state. Without any, the shape of the
        present array.
    dtype : type or None, default=float64
        None means the type of the present array.
    low, high : number or str
        Limits of all values: numbers, "box" (the largest feasible alpha of each row) or an
        attribute of the owner.
    infinite, nan : bool, default=False
        Whether these values are allowed.
    """

    def __init__(
        self,
        *shape: int | str,
        dtype: Any = np.float64,
        low: Any = None,
        high: Any = None,
        infinite: bool = False,
        nan: bool = False,
    ) -> None:
        self._shape, self.dtype = shape, dtype
        self._low, self._high = low, high
        self._infinite, self._nan = infinite, nan

    def checked(self, value: Any, scope: Scope) -> Any:
        dtype = np.dtype(self.dtype or scope.present.dtype)
        if not isinstance(value, np.ndarray) or value.dtype != dtype:
            scope.fail(f"is no array of {dtype}")
        shape = self._expected_shape(value, scope)
        if value.shape != shape:
            scope.fail(f"has the shape {value.shape}, not {shape}")
        if dtype.kind == "f":
            if np.isnan(value).any() and not self._nan:
                scope.fail("has a NaN")
            if np.isinf(value).any() and not self._infinite:
                scope.fail("has an infinite value")
        if (self._low is not None and (value < scope.limit(self._low)).any()) or (
            self._high is not None and (value > scope.limit(self._high)).any()
        ):
            scope.fail("has a value out of range")
        return np.array(value, order="C")

    def _expected_shape(self, value: Any, scope: Scope) -> tuple[int, ...]:
        if not self._shape:
            present: tuple[int, ...] = scope.present.shape
            return present
        # With another number of dimensions the comparison fails for any lengths.
        actual = value.shape if value.ndim == len(self._shape) else (0,) * len(self._shape)
        return tuple(scope.length(name, n) for name, n in zip(self._shape, actual, strict=True))


@dataclass(frozen=True)
class row_indices(Field):
    """Distinct rows of positive weight: all of them if ``every``, in order if ``ascending``."""

    every: bool = False
    ascending: bool = False

    def checked(self, value: Any, scope: Scope) -> Any:
        indices = array("chosen", dtype=np.int64, low=0, high=scope.problem.n_rows - 1)
        which = indices.checked(value, scope)
        times = np.bincount(which, minlength=scope.problem.n_rows)
        if times.max() > 1 or times[scope.problem.weights == 0.0].any():
            scope.fail("has a row twice, or one of weight zero")
        if self.every and which.size != scope.problem.m:
            scope.fail(f"has {which.size} rows, not {scope.problem.m}")
        if self.ascending and (np.diff(which) < 0).any():
            scope.fail("does not ascend")
        return which


@dataclass(frozen=True)
class maybe(Field):
    """None, or a value of the given kind."""

    field: Field

    def plain(self, value: Any) -> Any:
        return None if value is None else self.field.plain(value)

    def checked(self, value: Any, scope: Scope) -> Any:
        return None if value is None else self.field.checked(value, scope)


class record(Field):
    """An immutable object, made from its fields."""

    def __init__(self, make: Callable[..., Any], **fields: Field) -> None:
        self._make, self._state = make, State(**fields)

    def plain(self, value: Any) -> dict[str, Any]:
        return self._state.plain(value)

    def checked(self, value: Any, scope: Scope) -> Any:
        return self._make(**self._state.checked(value, scope.of_part(scope.present)))


@dataclass(frozen=True)
class each(Field):
    """A list of values of one kind, saved as fields 0, 1, 2 ...; it has at least one.

    The first of the present values stands for the present value of every field.
    """

    field: Field

    def plain(self, value: Any) -> dict[str, Any]:
        return {str(i): self.field.plain(item) for i, item in enumerate(value)}

    def checked(self, value: Any, scope: Scope) -> list[Any]:
        names = [str(i) for i in range(len(value))] if isinstance(value, Mapping) else []
        if not names or set(names) != value.keys():
            scope.fail("is no list")
        first = scope.present[0]
        return [self.field.checked(value[name], scope.of_field(name, first)) for name in names]


class table(Field):
    """A list of records of numbers, saved as one array for each column."""

    def __init__(self, make: Callable[..., Any], **columns: array) -> None:
        self._make, self._columns, self._state = make, columns, State(**columns)

    def plain(self, value: Any) -> dict[str, Any]:
        return {
            name: np.array([getattr(item, name) for item in value], dtype=column.dtype)
            for name, column in self._columns.items()
        }

    def checked(self, value: Any, scope: Scope) -> list[Any]:
        columns = self._state.checked(value, scope.of_part(None))
        values = zip(*(columns[name].tolist() for name in self._columns), strict=True)
        return [self._make(**dict(zip(self._columns, item, strict=True))) for item in values]


class columns(Field):
    """Arrays by name, the columns of a table."""

    def __init__(self, **columns: array) -> None:
        self._columns, self._state = columns, State(**columns)

    def plain(self, value: Any) -> dict[str, Any]:
        return {name: value[name].astype(column.dtype) for name, column in self._columns.items()}

    def checked(self, value: Any, scope: Scope) -> dict[str, Any]:
        return self._state.checked(value, scope.of_part(None))


@dataclass(frozen=True)
class nested(Field):
    """A ``Stateful`` object; None if the present object is None.

    Parameters
    ----------
    fresh : str, default=None
        The owner's method that makes the object, given the values of the fields declared before.
        None means the present object.
    """

    fresh: str | None = None

    def plain(self, value: Any) -> Any:
        return None if value is None else value.state_dict()

    def checked(self, value: Any, scope: Scope) -> Any:
        target = scope.present
        if self.fresh is not None:
            target = getattr(scope.owner, self.fresh)(scope.values)
        if target is None:
            if value is not None:
                scope.fail("should not be there")
            return None
        assert isinstance(target, Stateful)
        target.check_state(value, scope.of_part(target))
        return target


class generator(Field):
    """The state of a random number generator, which stays the same object.

    PCG64 has two integers of 128 bits, saved as hexadecimal digits, and may hold half of the last
    64 bits that it made.
    """

    _STATE = State(state=text(), increment=text(), has_half=flag(), half=count(2**32 - 1))

    def plain(self, value: np.random.Generator) -> dict[str, Any]:
        state: Any = value.bit_generator.state
        return {
            "state": f"{state['state']['state']:032x}",
            "increment": f"{state['state']['inc']:032x}",
            "has_half": bool(state["has_uint32"]),
            "half": int(state["uinteger"]),
        }

    def checked(self, value: Any, scope: Scope) -> Any:
        values = self._STATE.checked(value, scope.of_part(None))
        words = values["state"], values["increment"]
        if not all(len(word) == 32 and set(word) <= set("0123456789abcdef") for word in words):
            scope.fail("is not made of numbers of 128 bits")
        state, increment = (int(word, 16) for word in words)
        if increment % 2 == 0:
            scope.fail("has an even increment")
        bit_generator = scope.present.bit_generator
        loaded = {
            **bit_generator.state,
            "state": {"state": state, "inc": increment},
            "has_uint32": int(values["has_half"]),
            "uinteger": values["half"],
        }
        scope.assignments.append((bit_generator, "state", loaded))
        return scope.present
