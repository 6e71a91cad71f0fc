"""Forms of a Tile source: formatted, and its syntax tree."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from enum import Enum
from typing import ClassVar, cast

from typing_extensions import override

from stripe.emit.targets import SourceTarget
from stripe.ir import Span
from stripe.tile import parse_tile, print_tile

_EMPTY = (None, (), "")


class TileTarget(SourceTarget):
    """The Tile source, formatted."""

    target_name: ClassVar[str] = "tile"

    @override
    def emit_source(self, text: str, name: str) -> str:
        return print_tile(parse_tile(text, name))


class AstTarget(SourceTarget):
    """The syntax tree of the Tile source: a line for each node with its field, class, place and plain values."""

    target_name: ClassVar[str] = "ast"

    @override
    def emit_source(self, text: str, name: str) -> str:
        return "\n".join(_tree_lines("", parse_tile(text, name), "")) + "\n"


def _tree_lines(label: str, node: object, indent: str) -> Iterator[str]:
    """The line of a node, then the lines of the nodes inside, indented."""
    if isinstance(node, tuple):
        for item in cast("tuple[object, ...]", node):
            yield from _tree_lines(label, item, indent)
        return
    fields = _fields(node)
    if fields is None:
        yield f"{indent}{label}{_plain(node)}"
        return
    span = fields.pop("span", None)
    inner = {name: value for name, value in fields.items() if _holds_nodes(value)}
    values = [
        f"{name}={_plain(value)}"
        for name, value in fields.items()
        if name not in inner and value not in _EMPTY
    ]
    place = f" @{span.line}:{span.column}" if isinstance(span, Span) else ""
    yield " ".join([f"{indent}{label}{type(node).__name__}{place}", *values])
    for name, value in inner.items():
        yield from _tree_lines(f"{name}: ", value, indent + "  ")


def _fields(node: object) -> dict[str, object] | None:
    """The fields of a dataclass without the text of the source and spans other than its own; None for plain values."""
    if not dataclasses.is_dataclass(node) or isinstance(node, type):
        return None
    values: dict[str, object] = {field.name: getattr(node, field.name) for field in dataclasses.fields(node)}
    return {
        name: value
        for name, value in values.items()
        if name == "span" or not (name == "source" or isinstance(value, Span))
    }


def _holds_nodes(value: object) -> bool:
    return (isinstance(value, tuple) and value != ()) or _fields(cast("object", value)) is not None


def _plain(value: object) -> str:
    return str(value.value) if isinstance(value, Enum) else repr(value)
