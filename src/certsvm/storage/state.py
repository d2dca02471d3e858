"""Declared state: what an object keeps from pass to pass, and what makes it valid.

A class whose objects can be saved declares its fields (``fields``):

    class DCDRun(Run):
        STATE = State(passes=count(), alpha=array("n_rows", low=0.0, high="box"), ...)

``state_dict`` gives plain data: nested dicts of numbers, strings, booleans, None and arrays.
``load_state_dict`` takes such data from an untrusted file. It checks names, types, shapes and
ranges against the problem, and assigns nothing before everything is valid. The data name neither
classes nor functions: which objects there are is decided by the code alone.
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
    """What the value of a field is checked against.

    Attributes
    ----------
    problem : BaseProblem
        Its sizes are those of the arrays.
    owner : object
        Whose state is checked.
    name : str
        Of the field, with the names of the states around it.
    present : object
        The value of the field before loading.
    values : dict
        The fields of the same state that were checked already.
    lengths : dict
        Lengths that no attribute determines, by the name under which fields share them.
    assignments : list
        The attributes to assign once everything is valid.
    """

    problem: Any
    owner: Any
    name: str = "state"
    present: Any = None
    values: dict[str, Any] = field(default_factory=dict)
    lengths: dict[str, int] = field(default_factory=dict)
    assignments: list[tuple[Any, str, Any]] = field(default_factory=list)

    def fail(self, reason: str) -> NoReturn:
        """Raise a StateError about this field."""
        raise StateError(f"{self.name} {reason}")

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
        """A limit in numbers: "box" is C s_k; any other string is an attribute of the owner."""
        if limit == "box":
            return self.problem.C * self.problem.weights
        return getattr(self.owner, limit) if isinstance(limit, str) else limit


class Field(ABC):
    """One declared field."""

    def plain(self, value: Any) -> Any:
        """The value as plain data."""
        return value

    @abstractmethod
    def checked(self, value: Any, scope: Scope) -> Any:
        """The value of plain data, or a StateError."""


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
        """The values of the scope's owner, which has to have just these fields."""
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
    """What the next pass depends on; None where it cannot be saved. What is only said about the
    last pass is no part of it."""

    def state_dict(self) -> dict[str, Any]:
        """The state as plain data. Arrays are not copied: it is valid until the next pass."""
        assert self.STATE is not None
        return self.STATE.plain(self)

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take over a state, if all of it is valid; raise a StateError otherwise."""
        scope = Scope(vars(self)["_problem"], self)
        self.check_state(state, scope)
        for owner, name, value in scope.assignments:
            setattr(owner, name, value)
        for owner in dict.fromkeys(owner for owner, *_ in scope.assignments):
            if isinstance(owner, Stateful):
                owner.state_loaded()

    def check_state(self, state: Any, scope: Scope) -> None:
        """Check a state of this object, and note what is to be assigned."""
        assert self.STATE is not None
        values = self.STATE.checked(state, scope)
        self.require_consistent(state, scope)
        for name, value in values.items():
            scope.assignments.append((self, _attribute(self, name), value))

    def state_loaded(self) -> None:
        """Make what follows from the state, once it is loaded."""

    def require_consistent(self, state: Mapping[str, Any], scope: Scope) -> None:
        """Raise unless the fields of a state, each of them valid, are so together."""


def _attribute(owner: Any, name: str) -> str:
    return f"_{name}" if f"_{name}" in getattr(owner, "__dict__", ()) else name
