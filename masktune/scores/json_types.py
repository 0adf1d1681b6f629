"""JSON values as frozen dataclasses, checked on the way, and back."""

import sys
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from inspect import Parameter, signature
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints


def as_type(kind: Any, value: Any) -> Any:  # noqa: ANN401 (mypy has no type of types)
    """Read a JSON value as a type: a dataclass or named tuple, or what its fields are made of.

    Raises:
        KeyError: a field without a default is missing.
        TypeError: the value is of another type.
        ValueError: it is shorter or longer than it should be, or too large a number.
    """
    origin, inside = get_origin(kind), get_args(kind)
    if origin is UnionType:  # of something and None
        return None if value is None else as_type(inside[0], value)
    if origin is tuple:
        kinds = (inside[0],) * len(value) if inside[-1] is ... else inside
        return tuple(as_type(each, one) for each, one in zip(kinds, value, strict=True))
    if origin is not None:  # a mapping
        return {name: as_type(inside[1], one) for name, one in value.items()}
    if kind is Any:
        return value
    if is_dataclass(kind) or hasattr(kind, "_fields"):
        needed, hints = _fields(kind)
        given = [name for name in hints if name in needed or name in value]
        return kind(**{name: as_type(hints[name], value[name]) for name in given})
    if not isinstance(value, (int, float) if kind is float else kind) or (
        isinstance(value, bool) and kind is not bool
    ):
        raise TypeError(f"{value!r} stands where a {kind.__name__} should")
    if isinstance(value, int) and abs(value) > sys.maxsize:
        raise ValueError("a number is larger than anything can be counted")
    return value


def as_json(value: Any) -> Any:  # noqa: ANN401 (whatever is in a result)
    """Give a value as ``as_type`` reads it; a field with the default None is left out if None."""
    if is_dataclass(value):
        return {
            each.name: as_json(one)
            for each in fields(value)
            if (one := getattr(value, each.name)) is not None or each.default is not None
        }
    if hasattr(value, "_asdict"):
        return as_json(value._asdict())
    if isinstance(value, Mapping):
        return {name: as_json(one) for name, one in value.items()}
    return [as_json(one) for one in value] if isinstance(value, list | tuple) else value


@cache
def _fields(kind: Callable[..., Any]) -> tuple[frozenset[str], dict[str, Any]]:
    """Give the names of the fields that must be there, and the types of all."""
    every = signature(kind).parameters.values()
    return frozenset(e.name for e in every if e.default is Parameter.empty), get_type_hints(kind)
