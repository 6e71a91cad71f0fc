"""`--emit`: a program, or a Tile source, in one of the forms that can be asked for."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from enum import Enum
from typing import cast

from stripe.cli.sources import Source
from stripe.ir import ConfigError, Program, Span

SOURCE_FORMS = ("tile", "ast")
"""Forms of the source itself, before lowering."""

PROGRAM_FORMS = ("stripe", "c", "json", "dot")
FORMS = (*PROGRAM_FORMS, *SOURCE_FORMS)


def emit_program(program: Program, form: str, *, openmp: bool = False) -> str:
    """The program in one of `PROGRAM_FORMS`."""
    if form == "json":
        import json

        from stripe.emit.json_ir import program_json

        return json.dumps(program_json(program), indent=1) + "\n"
    if form == "dot":
        from stripe.emit.dot import block_graph

        return block_graph(program)
    if form == "c":
        from stripe.emit.c.module import emit_c
        from stripe.emit.c.options import EmitOptions

        return emit_c(program, EmitOptions(openmp=openmp))
    from stripe.ir import print_program

    return print_program(program)


def emit_source(source: Source, form: str) -> str:
    """A Tile source in one of `SOURCE_FORMS`: formatted, or its syntax tree."""
    if source.format != "tile":
        raise ConfigError(
            f"--emit {form} shows Tile, and the input is Stripe", path=source.name, hint="give a .tile file"
        )
    from stripe.tile import parse_tile, print_tile

    function = parse_tile(source.text, source.name)
    if form == "tile":
        return print_tile(function)
    return "\n".join(_tree_lines("", function, "")) + "\n"


def _tree_lines(label: str, node: object, indent: str) -> Iterator[str]:
    """One line per node: its field, its class, its place, and its plain values; nodes inside are indented."""
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


_EMPTY = (None, (), "")


def _fields(node: object) -> dict[str, object] | None:
    """The fields of a dataclass, without the text and other places than its own; None for plain values."""
    if not dataclasses.is_dataclass(node) or isinstance(node, type):
        return None
    values: dict[str, object] = {field.name: getattr(node, field.name) for field in dataclasses.fields(node)}
    hidden = {
        name
        for name, value in values.items()
        if name == "source" or (name != "span" and isinstance(value, Span))
    }
    return {name: value for name, value in values.items() if name not in hidden}


def _holds_nodes(value: object) -> bool:
    return (isinstance(value, tuple) and value != ()) or _fields(cast("object", value)) is not None


def _plain(value: object) -> str:
    return str(value.value) if isinstance(value, Enum) else repr(value)
