"""Types of arguments, checked where people call."""

from __future__ import annotations

from typing import TypeVar, cast

_Value = TypeVar("_Value")


def require(value: _Value, kind: type | tuple[type, ...], wanted: str, hint: str) -> _Value:
    """The value itself, when it is of one of the types. Raises TypeError that says which value is `wanted`."""
    if not isinstance(value, kind):
        raise TypeError(f"expected {wanted}, got {type(cast(object, value)).__name__}: {hint}")
    return value
