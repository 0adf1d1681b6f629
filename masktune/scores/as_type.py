"""JSON values as frozen dataclasses, checked on the way."""

from collections.abc import Callable, Hashable
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from types import UnionType
from typing import Any, Literal, get_args, get_origin, get_type_hints


def as_type(kind: Any, value: Any) -> Any:  # noqa: ANN401 (mypy has no type of types)
    """Read a JSON value as a type: a dataclass or named tuple, or what its fields are made of.

    Raises:
        KeyError: a field without a default is missing.
        TypeError: the value is of another type.
        ValueError: it is none of those that may be.
    """
    inside = get_args(kind)
    match get_origin(kind):
        case origin if origin is UnionType:  # of something and None
            return None if value is None else as_type(inside[0], value)
        case origin if origin is tuple:
            kinds = (inside[0],) * len(value) if inside[-1] is ... else inside
            return tuple(as_type(each, one) for each, one in zip(kinds, value, strict=True))
        case origin if origin is Literal:
            if value not in inside:
                raise ValueError(f"{value!r} is none of {', '.join(map(repr, inside))}")
            return value
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
