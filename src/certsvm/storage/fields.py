"""The kinds of fields that a state may have."""

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
        """The integer."""
        return int(value)

    def checked(self, value: Any, scope: Scope) -> int:
        """The integer."""
        # Not isinstance: a boolean is an int to Python.
        if type(value) is not int:
            scope.fail(f"is {value!r:.40}, not an integer")
        high = scope.limit(self.high)
        if not 0 <= value <= high:
            scope.fail(f"is {value}, not in 0 ... {high}")
        return value


@dataclass(frozen=True)
class number(Field):
    """A float from ``low`` to ``high``, never NaN; infinite only if that is allowed."""

    low: float = -math.inf
    high: float = math.inf
    infinite: bool = False

    def plain(self, value: Any) -> float:
        """The float."""
        return float(value)

    def checked(self, value: Any, scope: Scope) -> float:
        """The float."""
        if type(value) is not float:
            scope.fail(f"is {value!r:.40}, not a float")
        if not self.low <= value <= self.high or (math.isinf(value) and not self.infinite):
            scope.fail(f"is {value}, not a number from {self.low} to {self.high}")
        return value


def positive() -> number:
    """A finite float above zero."""
    # The least float64 above zero.
    return number(low=5e-324)


@dataclass(frozen=True)
class flag(Field):
    """A boolean."""

    def checked(self, value: Any, scope: Scope) -> bool:
        """The boolean."""
        if type(value) is not bool:
            scope.fail(f"is {value!r:.40}, neither true nor false")
        return value


class text(Field):
    """One of the given strings; without any, a short line of text."""

    def __init__(self, *choices: str) -> None:
        self._choices = choices

    def checked(self, value: Any, scope: Scope) -> str:
        """The string."""
        if type(value) is not str or len(value) > _LONGEST_TEXT or not value.isprintable():
            scope.fail(f"is {value!r:.40}, not a line of text")
        if self._choices and value not in self._choices:
            scope.fail(f"is {value!r:.40}, not one of {', '.join(map(repr, self._choices))}")
        return value


class array(Field):
    """An array of a declared shape and type.

    Parameters
    ----------
    *shape : int or str
        Its lengths: numbers, sizes of the problem ("n_rows", "dimension", "m"), or any other name,
        which stands for the same length in all fields of the state. None at all: as the present
        array.
    dtype : type or None, default=float64
        None: that of the present array.
    low, high : number or str
        Limits of all values; "box", C s_k for each row, or the name of an attribute of the owner.
    infinite, nan : bool, default=False
        Whether these are values, too.
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
        self._shape, self._dtype = shape, dtype
        self._low, self._high = low, high
        self._infinite, self._nan = infinite, nan

    def checked(self, value: Any, scope: Scope) -> Any:
        """A copy that compiled code may write to."""
        dtype = np.dtype(self._dtype or scope.present.dtype)
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
        # Of another number of dimensions, any lengths will do to fail.
        actual = value.shape if value.ndim == len(self._shape) else (0,) * len(self._shape)
        return tuple(scope.length(name, n) for name, n in zip(self._shape, actual, strict=True))


@dataclass(frozen=True)
class row_indices(Field):
    """Distinct rows of positive weight.

    Parameters
    ----------
    every : bool, default=False
        Whether they have to be all of them, in any order.
    ascending : bool, default=False
        Whether they have to ascend.
    """

    every: bool = False
    ascending: bool = False

    def checked(self, value: Any, scope: Scope) -> Any:
        """A copy that compiled code may write to."""
        checked = array("chosen", dtype=np.int64, low=0, high=scope.problem.n_rows - 1)
        which = checked.checked(value, scope)
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
        """None, or what the field makes of it."""
        return None if value is None else self.field.plain(value)

    def checked(self, value: Any, scope: Scope) -> Any:
        """None, or what the field makes of it."""
        return None if value is None else self.field.checked(value, scope)


class record(Field):
    """An immutable object, made from its fields."""

    def __init__(self, make: Callable[..., Any], **fields: Field) -> None:
        self._make, self._state = make, State(**fields)

    def plain(self, value: Any) -> dict[str, Any]:
        """Its fields."""
        return self._state.plain(value)

    def checked(self, value: Any, scope: Scope) -> Any:
        """A new object."""
        return self._make(**self._state.checked(value, scope.of_part(scope.present)))


@dataclass(frozen=True)
class each(Field):
    """A list, at least one long, of values of one kind; the fields are named 0, 1, 2 ..."""

    field: Field

    def plain(self, value: Any) -> dict[str, Any]:
        """The values by number."""
        return {str(i): self.field.plain(item) for i, item in enumerate(value)}

    def checked(self, value: Any, scope: Scope) -> list[Any]:
        """The list; the first of the present values says of what type they are."""
        names = [str(i) for i in range(len(value))] if isinstance(value, Mapping) else []
        if not names or set(names) != value.keys():
            scope.fail("is no list")
        first = scope.present[0]
        return [self.field.checked(value[name], scope.of_field(name, first)) for name in names]


class table(Field):
    """A list of records of numbers, kept as one array for each column."""

    def __init__(self, make: Callable[..., Any], **columns: array) -> None:
        self._make, self._columns, self._state = make, columns, State(**columns)

    def plain(self, value: Any) -> dict[str, Any]:
        """The columns."""
        return {
            name: np.array([getattr(item, name) for item in value], dtype=column._dtype)
            for name, column in self._columns.items()
        }

    def checked(self, value: Any, scope: Scope) -> list[Any]:
        """The records."""
        columns = self._state.checked(value, scope.of_part(None))
        values = zip(*(columns[name].tolist() for name in self._columns), strict=True)
        return [self._make(**dict(zip(self._columns, item, strict=True))) for item in values]


@dataclass(frozen=True)
class nested(Field):
    """An object with a state of its own; None where the present object is None.

    Parameters
    ----------
    fresh : str, default=None
        The owner's method that makes the object to be given the state, from the values of the
        fields declared before. None takes the present object.
    """

    fresh: str | None = None

    def plain(self, value: Any) -> Any:
        """Its state."""
        return None if value is None else value.state_dict()

    def checked(self, value: Any, scope: Scope) -> Any:
        """The object."""
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


@dataclass(frozen=True)
class generator(Field):
    """The state of the random numbers, which stay the same object."""

    def plain(self, value: np.random.Generator) -> dict[str, Any]:
        """The numbers of PCG64, those of 128 bits as strings."""
        state: Any = value.bit_generator.state
        return {
            "state": f"{state['state']['state']:032x}",
            "increment": f"{state['state']['inc']:032x}",
            "has_half": bool(state["has_uint32"]),
            "half": int(state["uinteger"]),
        }

    def checked(self, value: Any, scope: Scope) -> np.random.Generator:
        """The generator; its state is assigned with everything else."""
        fields = State(state=text(), increment=text(), has_half=flag(), half=count(2**32 - 1))
        numbers = fields.checked(value, scope.of_part(None))
        state = dict(scope.present.bit_generator.state)
        state["state"] = {
            "state": _of_128_bits(numbers["state"], scope),
            "inc": _of_128_bits(numbers["increment"], scope),
        }
        if state["state"]["inc"] % 2 == 0:
            scope.fail("has an even increment")
        state["has_uint32"], state["uinteger"] = int(numbers["has_half"]), numbers["half"]
        scope.assignments.append((scope.present.bit_generator, "state", state))
        rng: np.random.Generator = scope.present
        return rng


def _of_128_bits(digits: str, scope: Scope) -> int:
    if len(digits) != 32 or not set(digits) <= set("0123456789abcdef"):
        scope.fail("is not made of numbers of 128 bits")
    return int(digits, 16)
