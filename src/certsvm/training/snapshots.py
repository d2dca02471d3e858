"""The state of objects as plain data: what JSON can say, and arrays.

``take`` goes through an object and all it refers to, and notes numbers, strings, arrays and, for
objects of this package's classes, the class's name and attributes. ``restore`` makes the same
objects again, without calling any of their code. An object that appears twice appears twice
afterwards, too. What is not part of the state but around it (the problem, the threads, the source
of randomness) is given by name at both times.

Functions are not state: None takes their place.
"""

from __future__ import annotations

from importlib import import_module
from types import FunctionType, MethodType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

_PACKAGE = "certsvm."
_SCALARS = {np.dtype(kind).name: kind for kind in (np.float32, np.float64, np.int32, np.int64)}


class Snapshot(NamedTuple):
    """Plain data.

    Attributes
    ----------
    objects : list
        An entry for each object; they refer to each other by position. The first is the one that
        was taken.
    arrays : dict of ndarray
        The arrays, by name.
    """

    objects: list[Any]
    arrays: dict[str, NDArray[Any]]


def take(thing: Any, around: dict[str, Any]) -> Snapshot:
    """The state of an object.

    Parameters
    ----------
    thing : object
        A list, tuple, dict or array, or an object of this package.
    around : dict
        What is referred to by name.

    Examples
    --------
    >>> w = np.ones(2)
    >>> snapshot = take({"w": w, "best": w, "passes": 3}, {})
    >>> snapshot.objects
    [{'dict': {'w': {'at': 1}, 'best': {'at': 1}, 'passes': 3}}, {'array': 'array 1'}]
    >>> again = restore(snapshot, {})
    >>> again["w"] is again["best"]
    True
    """
    return _Taking(around).all_of(thing)


def restore(snapshot: Snapshot, around: dict[str, Any]) -> Any:
    """Make the object again.

    Parameters
    ----------
    snapshot : Snapshot
        Its state.
    around : dict
        What is referred to by name.

    Raises
    ------
    ValueError
        If it is not the state of an object.
    """
    try:
        return _Restoring(snapshot, around).object(0)
    except (AttributeError, ImportError, LookupError, RecursionError, TypeError) as error:
        raise ValueError(f"this is not the state of an object: {error!r}") from None


class _Taking:
    def __init__(self, around: dict[str, Any]) -> None:
        self._around = {id(thing): name for name, thing in around.items()}
        self._places: dict[int, int] = {}
        # What was seen must live, or another object could get its identity.
        self._seen: list[Any] = []
        self._snapshot = Snapshot([], {})

    def all_of(self, thing: Any) -> Snapshot:
        self._value(thing)
        return self._snapshot

    def _value(self, thing: Any) -> Any:
        if id(thing) in self._around:
            return {"around": self._around[id(thing)]}
        if thing is None or type(thing) in (bool, float, str):
            return thing
        if type(thing) is int:
            return thing if abs(thing) < 2**53 else {"int": str(thing)}
        if isinstance(thing, FunctionType | MethodType) or type(thing).__name__.startswith(
            "builtin_function"
        ):
            return None
        if isinstance(thing, type) and issubclass(thing, np.generic):
            return {"type": np.dtype(thing).name}
        if isinstance(thing, np.generic):
            return {"scalar": self._array(np.asarray(thing))}
        if id(thing) not in self._places:
            self._places[id(thing)] = len(self._seen)
            self._seen.append(thing)
            self._snapshot.objects.append(None)
            self._snapshot.objects[self._places[id(thing)]] = self._object(thing)
        return {"at": self._places[id(thing)]}

    def _object(self, thing: Any) -> dict[str, Any]:
        kind = type(thing)
        if isinstance(thing, np.ndarray):
            return {"array": self._array(thing)}
        if kind in (list, tuple):
            return {kind.__name__: [self._value(item) for item in thing]}
        if kind is dict and all(type(key) is str for key in thing):
            return {"dict": {key: self._value(item) for key, item in thing.items()}}
        if not kind.__module__.startswith(_PACKAGE):
            raise TypeError(f"{kind.__name__} is not plain data: its state cannot be saved")
        entry: dict[str, Any] = {"class": f"{kind.__module__}:{kind.__qualname__}"}
        if isinstance(thing, tuple):
            return entry | {"items": [self._value(item) for item in thing]}
        return entry | {"attributes": {k: self._value(v) for k, v in vars(thing).items()}}

    def _array(self, array: NDArray[Any]) -> str:
        name = f"array {len(self._snapshot.arrays) + 1}"
        self._snapshot.arrays[name] = array
        return name


class _Restoring:
    def __init__(self, snapshot: Snapshot, around: dict[str, Any]) -> None:
        self._snapshot = snapshot
        self._around = around
        self._made: dict[int, Any] = {}
        # A tuple cannot contain itself, whatever a file says.
        self._making: set[int] = set()

    def object(self, place: int) -> Any:
        if place in self._made:
            return self._made[place]
        if place in self._making or not 0 <= place < len(self._snapshot.objects):
            raise IndexError(place)
        self._making.add(place)
        entry = self._snapshot.objects[place]
        made: Any
        if "array" in entry:
            made = self._snapshot.arrays[entry["array"]].copy()
        elif "tuple" in entry:
            made = tuple(self._value(item) for item in entry["tuple"])
        elif "list" in entry:
            made = self._made[place] = []
            made.extend(self._value(item) for item in entry["list"])
        elif "dict" in entry:
            made = self._made[place] = {}
            made.update({key: self._value(item) for key, item in entry["dict"].items()})
        elif "items" in entry:
            made = _class(entry["class"])._make(self._value(item) for item in entry["items"])
        else:
            # Noted before its attributes are there: they may refer to it.
            made = self._made[place] = object.__new__(_class(entry["class"]))
            vars(made).update({k: self._value(v) for k, v in entry["attributes"].items()})
        self._made[place] = made
        return made

    def _value(self, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        ((kind, what),) = value.items()
        if kind == "at":
            return self.object(what)
        if kind == "around":
            return self._around[what]
        if kind == "int":
            return int(what)
        if kind == "type":
            return _SCALARS[what]
        if kind == "scalar":
            return self._snapshot.arrays[what][()]
        raise KeyError(kind)


def _class(name: str) -> Any:
    module, _, qualname = name.partition(":")
    if not module.startswith(_PACKAGE):
        raise ValueError(f"{name} is not a class of this package")
    found: Any = import_module(module)
    for part in qualname.split("."):
        found = getattr(found, part)
    # A module of ours may know classes of others.
    if not (isinstance(found, type) and found.__module__.startswith(_PACKAGE)):
        raise ValueError(f"{name} is not a class of this package")
    return found
