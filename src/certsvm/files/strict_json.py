"""JSON that keeps every value exactly, or refuses it.

Floats survive to the last bit. Infinities and NaN, which JSON has no number for, become
``{"$float": "inf"}``, ``{"$float": "-inf"}`` and ``{"$float": "nan"}``. A text with a repeated key,
a NaN literal, a number beyond float64, an integer beyond 64 bits or a lone surrogate is not read.
"""

from __future__ import annotations

import json
import math
from typing import Any

_FLOAT_KEY = "$float"
_NON_FINITE = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}


def to_json(value: Any, where: str) -> bytes:
    """Write a value as compact JSON in UTF-8.

    The value may consist of None, booleans, integers of 64 bits, floats, strings, lists, tuples and
    dicts. Anything else raises a ValueError, in which ``where`` is the name of the value.

    Examples
    --------
    >>> to_json({"C": 0.1, "limit": float("inf")}, "parameters")
    b'{"C":0.1,"limit":{"$float":"inf"}}'
    """
    text = json.dumps(
        encoded(value, where), ensure_ascii=False, allow_nan=False, separators=(",", ":")
    )
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"{where} has a string with a lone surrogate: {error}") from None


def encoded(value: Any, where: str) -> Any:
    """Encode floats that are not finite; raise a ValueError if JSON cannot hold the value."""
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int):
        return _of_64_bits(value, where)
    if isinstance(value, float):
        if math.isfinite(value):
            return value
        return {_FLOAT_KEY: "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"}
    if isinstance(value, list | tuple):
        return [encoded(item, f"{where}[{i}]") for i, item in enumerate(value)]
    if not isinstance(value, dict):
        raise ValueError(f"{where} is of type {type(value).__name__}, which JSON does not have")
    for key in value:
        if not isinstance(key, str) or key == _FLOAT_KEY:
            raise ValueError(f"{where} has the key {key!r}; keys are strings other than '$float'")
    return {key: encoded(item, f"{where}[{key!r}]") for key, item in value.items()}


def from_json(text: bytes) -> Any:
    """Read the output of ``to_json``, with tuples as lists; raise a ValueError if it is not valid.

    Examples
    --------
    >>> from_json(b'{"limit":{"$float":"inf"}}')
    {'limit': inf}
    >>> from_json(b'{"a":1,"a":2}')
    Traceback (most recent call last):
    ...
    ValueError: the key 'a' occurs twice
    """
    try:
        value = json.loads(
            text.decode(), object_pairs_hook=_object, parse_constant=_finite, parse_float=_finite,
            parse_int=_integer,
        )  # fmt: skip
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    # An escaped lone surrogate cannot be encoded.
    if b"\\u" in text:
        json.dumps(value, ensure_ascii=False).encode()
    return value


def _object(pairs: list[tuple[str, Any]]) -> Any:
    members: dict[str, Any] = {}
    for key, value in pairs:
        if key in members:
            raise ValueError(f"the key {key!r} occurs twice")
        members[key] = value
    if _FLOAT_KEY not in members:
        return members
    name = members[_FLOAT_KEY]
    if len(members) != 1 or not isinstance(name, str) or name not in _NON_FINITE:
        raise ValueError(f"{members} is no float")
    return _NON_FINITE[name]


def _integer(text: str) -> int:
    # Python refuses to convert texts of thousands of digits, with advice for programmers.
    return _of_64_bits(int(text) if len(text) <= 20 else 2**64, text[:25])


def _of_64_bits(value: int, where: str) -> int:
    if not -(2**63) <= value < 2**64:
        raise ValueError(f"{where} is an integer of more than 64 bits")
    return value


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text} is not a finite float64")
    return value
