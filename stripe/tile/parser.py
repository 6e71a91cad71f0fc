"""Reads Tile (`grammar/tile.lark`) into the syntax tree of `stripe.tile.ast`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, cast

from stripe.ir.errors import StripeError
from stripe.ir.span import Span
from stripe.tile import ast
from stripe.tile.diagnostics import SourceText
from stripe.tile.syntax_errors import describe_syntax_error

if TYPE_CHECKING:
    from lark import Token, Tree

    from stripe.tile.tree import Item

MAX_NESTING = 200
"""Deepest nesting of an expression: far beyond any program, and safe for recursive passes."""

Entry = ast.Function | ast.Expr | ast.Contraction

_NESTING = frozenset({"chain", "unary", "cond", "call", "group"})


def parse_tile(text: str, filename: str = "<string>") -> ast.Function:
    """The function that `text` denotes; raises StripeError with line, column and a hint."""
    return cast(ast.Function, _parse(text, filename, "function"))


def parse_entry(text: str, filename: str = "<string>") -> Entry:
    """What any Tile text denotes: a function, or `polynomial …;`, `expression …;`, `contraction …;`."""
    return cast(Entry, _parse(text, filename, "entry"))


def load_tile(path: Path) -> ast.Function:
    """The function in a file; raises StripeError when it cannot be read or is no Tile text."""
    return parse_tile(read_source(path), str(path))


def read_source(path: Path) -> str:
    """The text of a file; raises StripeError for a directory, a missing or binary file, and text that is not UTF-8."""
    try:
        data = path.read_bytes()
    except IsADirectoryError:
        raise StripeError("this is a directory", path=str(path), hint="name a .tile file in it") from None
    except FileNotFoundError:
        raise StripeError(
            "no such file", path=str(path), hint="check the path, or use '-' for stdin"
        ) from None
    except OSError as error:
        reason = f"cannot read the file: {error.strerror or error}"
        raise StripeError(reason, path=str(path), hint="check its permissions") from None
    if b"\0" in data:
        raise StripeError("this is a binary file, not Tile source", path=str(path), hint="name a text file")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        column = error.start - (data.rfind(b"\n", 0, error.start) + 1) + 1
        reason = f"the file is not UTF-8: byte 0x{data[error.start]:02x} cannot be decoded"
        raise StripeError(reason, path=str(path), line=line, col=column, hint="save it as UTF-8") from None


def _parse(text: str, filename: str, start: str) -> object:
    from lark.exceptions import UnexpectedInput

    from stripe.ir.text.grammar import parser
    from stripe.tile.tree import Builder

    source = SourceText(text)
    if "\0" in text:
        raise StripeError("this is a binary file, not Tile source", path=filename, hint="name a text file")
    try:
        tree = cast("Tree[Item]", parser("tile").parse(text, start=start))  # pyright: ignore[reportUnknownMemberType]
    except UnexpectedInput as error:
        raise describe_syntax_error(error, source, filename) from None
    _check_nesting(tree, source, filename)
    return Builder(source, filename).build(tree)


def _check_nesting(tree: Tree[Item], source: SourceText, filename: str) -> None:
    stack: list[tuple[Tree[Item] | Token, int]] = [(tree, 0)]
    while stack:
        node, depth = stack.pop()
        if not hasattr(node, "children"):
            continue
        branch = cast("Tree[Item]", node)
        depth += branch.data in _NESTING
        if depth > MAX_NESTING:
            span = Span(filename, branch.meta.line, branch.meta.column)
            hint = f"expressions may nest {MAX_NESTING} deep; give parts of this one names of their own"
            raise source.error("nested too deeply", span, hint)
        stack.extend((cast("Tree[Item]", child), depth) for child in branch.children if child is not None)
