"""Conversion of Python values to args of a job, and back by the types that a function declares."""

from __future__ import annotations

import collections.abc
import dataclasses
import functools
import types
from datetime import date
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints
from uuid import UUID

_SIMPLE = {str: str, bool: bool, int: int, float: (int, float)}
_LISTS = (list, collections.abc.Sequence, collections.abc.Iterable, collections.abc.Collection)
_MAPS = (dict, collections.abc.Mapping)


def encode(value: Any) -> Any:
    """Convert a value to JSON.

    Dataclasses become objects; times, UUIDs and decimals become texts; enums become their value.
    """
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: encode(getattr(value, field.name)) for field in dataclasses.fields(value) if field.init}
    if isinstance(value, Enum):
        return encode(value.value)
    if isinstance(value, list | tuple):
        return [encode(one) for one in value]
    if isinstance(value, dict):
        return {key: encode(one) for key, one in value.items()}
    if isinstance(value, date):  # includes datetime
        return value.isoformat()
    return str(value) if isinstance(value, UUID | Decimal) else value


def decode(hint: Any, value: Any, what: str) -> Any:
    """Convert JSON to a declared type. Raise TypeError or ValueError if the value does not match.

    A value is left unchanged where the type sets no rule.
    """
    origin, inner = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return decode(inner[0], value, what)
    if origin in (Union, types.UnionType):
        return _union(inner, value, what)
    if hint is None or hint is types.NoneType:
        return _checked(types.NoneType, value, what)
    if origin in _LISTS:
        return [decode(inner[0], one, f"{what}[{i}]") for i, one in enumerate(_checked(list, value, what))]
    if origin is tuple:
        return _tuple(inner, _checked(list, value, what), what)
    if origin in _MAPS:
        return {key: decode(inner[1], one, f"{what}[{key!r}]") for key, one in _checked(dict, value, what).items()}
    return _plain(hint, value, what) if isinstance(hint, type) and origin is None else value


def _plain(kind: type, value: Any, what: str) -> Any:
    if kind in _SIMPLE:
        return _checked(_SIMPLE[kind], value, what)
    if dataclasses.is_dataclass(kind):
        return _dataclass(kind, _checked(dict, value, what), what)
    if issubclass(kind, date):
        return kind.fromisoformat(_checked(str, value, what))
    if kind in (UUID, Decimal):
        return kind(_checked(str, value, what))
    return kind(value) if issubclass(kind, Enum) else value


def _dataclass(kind: type, value: dict[str, Any], what: str) -> Any:
    """Make a dataclass. Ignore members that it does not have: they are of a newer program."""
    hints = hints_of(kind)
    known = {field.name for field in dataclasses.fields(kind) if field.init}
    return kind(**{name: decode(hints[name], value[name], f"{what}.{name}") for name in known & value.keys()})


def _tuple(inner: tuple[Any, ...], value: list[Any], what: str) -> tuple[Any, ...]:
    if len(inner) == 2 and inner[1] is Ellipsis:
        return tuple(decode(inner[0], one, f"{what}[{i}]") for i, one in enumerate(value))
    if len(inner) != len(value):
        raise TypeError(f"{what} has {len(value)} elements, not {len(inner)}")
    return tuple(decode(hint, one, f"{what}[{i}]") for i, (hint, one) in enumerate(zip(inner, value, strict=True)))


def _union(inner: tuple[Any, ...], value: Any, what: str) -> Any:
    failed: Exception | None = None
    for hint in inner:
        try:
            return decode(hint, value, what)
        except (TypeError, ValueError) as e:
            failed = failed or e
    assert failed
    raise failed


def _checked(kind: Any, value: Any, what: str) -> Any:
    if not isinstance(value, kind):
        name = getattr(kind, "__name__", "float")
        raise TypeError(f"{what} is {value!r:.100}, not {'None' if kind is types.NoneType else name}")
    return value


@functools.lru_cache(maxsize=1024)
def hints_of(thing: Any) -> dict[str, Any]:
    """Return the types that a function or class declares."""
    return get_type_hints(thing, include_extras=True)
