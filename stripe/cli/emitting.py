"""`--emit`: a program, or a Tile source, in one of the forms that can be asked for."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from enum import Enum

from stripe.cli.sources import Source
from stripe.ir import ConfigError, Program, Span

SOURCE_FORMS = ("tile", "ast")
"""Forms of the source itself, before lowering."""

PROGRAM_FORMS = ("stripe", "c", "json", "dot")
FORMS = (*PROGRAM_FORMS, *SOURCE_FORMS)


def emit_program(program: Program, form: str) -> str:
    """The program in one of `PROGRAM_FORMS`."""
    if form == "json":
        import json

        from stripe.emit.json_ir import program_json

        return json.dumps(program_json(program), indent=1) + "\n"
    if form == "dot":
        from stripe.emit.dot import block_graph

        return block_graph(program)
    if form == "c":
        from stripe.emit.c import emit_c

        return emit_c(program)
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
        for item in node:
            yield from _tree_lines(label, item, indent)
        return
    if not _is_node(node):
        yield f"{indent}{label}{_plain(node)}"
        return
    values: list[str] = []
    inner: list[tuple[str, object]] = []
    place = ""
    for field in dataclasses.fields(node):
        value: object = getattr(node, field.name)
        if isinstance(value, Span):
            place = f" @{value.line}:{value.column}" if field.name == "span" else place
        elif _is_node(value) or (isinstance(value, tuple) and value):
            inner.append((f"{field.name}: ", value))
        elif value not in (None, (), ""):
            values.append(f"{field.name}={_plain(value)}")
    yield f"{indent}{label}{type(node).__name__}{place}{' ' if values else ''}{' '.join(values)}"
    for name, value in inner:
        yield from _tree_lines(name, value, indent + "  ")


def _is_node(value: object) -> bool:
    return dataclasses.is_dataclass(value) and not isinstance(value, type)


def _plain(value: object) -> str:
    return str(value.value) if isinstance(value, Enum) else repr(value)
