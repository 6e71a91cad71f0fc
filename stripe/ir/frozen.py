"""Frozen slotted dataclasses whose objects are made as fast as those of mutable ones.

A pass makes thousands of IR objects. A frozen dataclass sets each field by a call of `object.__setattr__`, which takes
five times as long as an assignment. Here an object is made as one of a twin class with the same slots, which is
mutable, and then becomes one of the frozen class.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, TypeVar, cast

from typing_extensions import dataclass_transform

_Value = TypeVar("_Value")


class HashedOnce:
    """A base of frozen classes whose deep objects are looked up often: the hash is computed once for each object."""

    __slots__ = ("_digest",)

    _digest: int


class _Kept:
    """The default of a field that `replace` keeps."""


@dataclass_transform(frozen_default=True)
def frozen(cls: type[_Value]) -> type[_Value]:
    """`dataclass(frozen=True, slots=True)`; a class that defines `__eq__` keeps it. Fields are plain ones, with or
    without a default value."""
    own_eq = "__eq__" in cls.__dict__
    made = dataclasses.dataclass(frozen=True, slots=True, eq=not own_eq)(cls)
    fields = dataclasses.fields(cast("Any", made))
    names = [field.name for field in fields]
    twin = type(made.__name__, made.__bases__, {"__slots__": made.__dict__["__slots__"]})
    known: dict[str, object] = {
        "_made": made,
        "_twin": twin,
        "_set": object.__setattr__,
        "_new": object.__new__,
    }
    known |= {"_kept": _Kept}
    known |= {f"_default_{field.name}": field.default for field in fields}
    given = "".join(
        f", {field.name}" + (f"=_default_{field.name}" if field.default is not dataclasses.MISSING else "")
        for field in fields
    )
    source = [
        f"def __init__(self{given}):",
        " _set(self, '__class__', _twin)",
        *(f" self.{name} = {name}" for name in names),
        " self.__class__ = _made",
        f"def _replaced(self, *, {', '.join(f'{name}=_kept' for name in names)}):",
        " made = _new(_twin)",
        *(f" made.{name} = self.{name} if {name} is _kept else {name}" for name in names),
        " made.__class__ = _made",
        " return made",
    ]
    methods = ["__init__", "_replaced"]
    if issubclass(made, HashedOnce):
        known["_hash"] = made.__hash__
        source += [
            "def __hash__(self):",
            " try:",
            "  return self._digest",
            " except AttributeError:",
            "  _set(self, '_digest', _hash(self))",
            "  return self._digest",
        ]
        methods.append("__hash__")
    exec("\n".join(source), known)  # as `dataclasses` makes its methods
    for name in methods:
        method = cast("Any", known[name])
        method.__qualname__ = f"{made.__qualname__}.{name}"
        setattr(made, name, method)
    return made


def replace(value: _Value, /, **changes: object) -> _Value:
    """`dataclasses.replace`, quick for classes that are `frozen`."""
    quick: Callable[..., _Value] | None = getattr(value, "_replaced", None)
    return (
        quick(**changes)
        if quick is not None
        else cast("_Value", dataclasses.replace(cast("Any", value), **changes))
    )
