"""Declared state: the fields that an object keeps from pass to pass, and when they are valid.

A class whose objects can be saved declares the fields (``fields``):

    class DCDRun(Run):
        STATE = State(passes=count(), alpha=array("n_rows", low=0.0, high="box"), ...)

``state_dict`` gives plain data: nested dicts of numbers, strings, booleans, None and arrays.
``load_state_dict`` takes such data from an untrusted file. It checks names, types, shapes and
ranges against the problem, and assigns nothing unless everything is valid. The data name neither
classes nor functions: the code alone decides which objects there are.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NoReturn


class StateError(ValueError):
    """A state that is not valid for the object it was given to."""


@dataclass(frozen=True)
class Scope:
    """What the value of a field is checked against."""

    problem: Any
    """The ``BaseProblem`` that determines the sizes of arrays."""
    owner: Any
    """The object whose state is checked."""
    name: str = "state"
    """Name of the field, after the names of the states around it."""
    present: Any = None
    """Value of the field before loading."""
    values: dict[str, Any] = field(default_factory=dict)
    """The checked fields of the same state."""
    lengths: dict[str, int] = field(default_factory=dict)
    """The lengths that fields share by a name of their own."""
    assignments: list[tuple[Any, str, Any]] = field(default_factory=list)
    """The attributes to assign once everything is valid."""

    def fail(self, reason: str) -> NoReturn:
        """Raise a StateError about this field."""
        raise StateError(f"{self.name} {reason}")

    def require_type(self, value: Any, required: type, description: str) -> None:
        """Fail unless the value is of this very type; a boolean is no integer."""
        if type(value) is not required:
            self.fail(f"is {value!r:.40}, not {description}")

    def of_part(self, owner: Any) -> Scope:
        """The scope of an object with fields of its own."""
        return replace(self, owner=owner, values={}, lengths={})

    def of_field(self, name: str, present: Any) -> Scope:
        """The scope of a field."""
        return replace(self, name=f"{self.name}.{name}", present=present)

    def length(self, name: int | str, actual: int) -> int:
        """The length called ``name``: the problem's, or the first that a field has."""
        if isinstance(name, int):
            return name
        if name in ("n_rows", "dimension", "m"):
            return int(getattr(self.problem, name))
        return self.lengths.setdefault(name, actual)

    def limit(self, limit: Any) -> Any:
        """A limit as a number: "box" is that of alpha, another string an owner's attribute."""
        if limit == "box":
            return self.problem.loss.box_end(self.problem.C, self.problem.weights)
        return getattr(self.owner, limit) if isinstance(limit, str) else limit


class Field(ABC):
    """A declared field."""

    def plain(self, value: Any) -> Any:
        """Turn the value into plain data."""
        return value

    @abstractmethod
    def checked(self, value: Any, scope: Scope) -> Any:
        """Turn plain data back into the value, or raise a StateError."""


class State:
    """The declared fields of a class; field ``x`` is the attribute ``_x``, or ``x``."""

    def __init__(self, **fields: Field) -> None:
        self._fields = fields

    def plain(self, owner: Any) -> dict[str, Any]:
        """The state of an object."""
        return {
            name: kind.plain(getattr(owner, _attribute(owner, name)))
            for name, kind in self._fields.items()
        }

    def checked(self, state: Any, scope: Scope) -> dict[str, Any]:
        """The values of all fields; the state must have exactly the declared ones."""
        if not isinstance(state, Mapping):
            scope.fail("has no fields")
        for name in self._fields.keys() ^ state.keys():
            scope.fail(f"has an unknown field {name!r}" if name in state else f"lacks {name!r}")
        for name, kind in self._fields.items():
            present = getattr(scope.owner, _attribute(scope.owner, name), None)
            scope.values[name] = kind.checked(state[name], scope.of_field(name, present))
        return scope.values


class Stateful:
    """An object whose state can be saved and loaded.

    Examples
    --------
    >>> from certsvm.storage.fields import count
    >>> class Counter(Stateful):
    ...     STATE = State(passes=count())
    ...     def __init__(self, passes):
    ...         self._problem, self._passes = None, passes
    >>> state = Counter(3).state_dict()
    >>> state
    {'passes': 3}
    >>> counter = Counter(0)
    >>> counter.load_state_dict({"passes": -1})
    Traceback (most recent call last):
    ...
    certsvm.storage.state.StateError: state.passes is -1, not in 0 ... 4611686018427387904
    """

    STATE: ClassVar[State | None] = None
    """Everything that the next pass depends on; None if the state cannot be saved."""

    def state_dict(self) -> dict[str, Any]:
        """The state as plain data; it is valid until the next pass, as arrays are not copied."""
        assert self.STATE is not None
        return self.STATE.plain(self)

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Load a state if all of it is valid; otherwise raise a StateError."""
        scope = Scope(vars(self)["_problem"], self)
        self.check_state(state, scope)
        for owner, name, value in scope.assignments:
            setattr(owner, name, value)
        for owner in dict.fromkeys(owner for owner, *_ in scope.assignments):
            if isinstance(owner, Stateful):
                owner.state_loaded()

    def check_state(self, state: Any, scope: Scope) -> None:
        """Check a state of this object, and note the assignments."""
        assert self.STATE is not None
        values = self.STATE.checked(state, scope)
        self.require_consistent(state, scope)
        for name, value in values.items():
            scope.assignments.append((self, _attribute(self, name), value))

    def state_loaded(self) -> None:
        """Restore attributes that follow from the state, after it is loaded."""

    def require_consistent(self, state: Mapping[str, Any], scope: Scope) -> None:
        """Raise a StateError if the fields, each of them valid, contradict each other."""


def _attribute(owner: Any, name: str) -> str:
    return f"_{name}" if f"_{name}" in getattr(owner, "__dict__", ()) else name
