"""JSON values as frozen dataclasses, checked on the way, and back."""

from collections.abc import Callable, Hashable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints


def as_type(kind: Any, value: Any) -> Any:  # noqa: ANN401 (mypy has no type of types)
    """Read a JSON value as a type: a dataclass or named tuple, or what its fields are made of.

    Raises:
        KeyError: a field without a default is missing.
        TypeError: the value is of another type.
        ValueError: it is shorter or longer than it should be.
    """
    inside = get_args(kind)
    match get_origin(kind):
        case origin if origin is UnionType:  # of something and None
            return None if value is None else as_type(inside[0], value)
        case origin if origin is tuple:
            kinds = (inside[0],) * len(value) if inside[-1] is ... else inside
            return tuple(as_type(each, one) for each, one in zip(kinds, value, strict=True))
        case origin if origin is not None:  # a mapping
            return {name: as_type(inside[1], one) for name, one in value.items()}
    if kind is Any:
        return value
    if is_dataclass(kind) or hasattr(kind, "_fields"):
        needed, hints = _fields(kind)
        given = [name for name in hints if name in needed or name in value]
        make: Callable[..., Any] = kind
        return make(**{name: as_type(hints[name], value[name]) for name in given})
    if not isinstance(value, (int, float) if kind is float else kind) or (
        isinstance(value, bool) and kind is not bool
    ):
        raise TypeError(f"{value!r} stands where a {kind.__name__} should")
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
def _fields(kind: Hashable) -> tuple[frozenset[str], dict[str, Any]]:
    """Give the names of the fields that must be there, and the types of all."""
    hints = get_type_hints(kind)
    if not is_dataclass(kind):
        return frozenset(hints), hints
    needed = (
        each.name
        for each in fields(kind)
        if each.default is MISSING and each.default_factory is MISSING
    )
    return frozenset(needed), hints
