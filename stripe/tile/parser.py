"""Reads Tile (`grammar/tile.lark`) into the syntax tree of `stripe.tile.ast`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import cast

from stripe.ir.errors import StripeError
from stripe.ir.text.brackets import check_brackets
from stripe.tile import ast
from stripe.tile.diagnostics import SourceText
from stripe.tile.syntax_errors import describe_syntax_error

Entry = ast.Function | ast.Expr | ast.Contraction


def parse_tile(text: str, filename: str = "<string>") -> ast.Function:
    """The function that `text` denotes: its only one, else that without a name, else that called `main`. The others of
    the file are its `callees`. Raises StripeError with line, column and a hint.
    """
    functions = parse_functions(text, filename)
    mains = [function for function in functions if not function.name] or [
        function for function in functions if function.name == "main" or len(functions) == 1
    ]
    if len(mains) != 1:
        reason = "the file has " + (
            "several functions without a name" if mains else "no function to begin with"
        )
        hint = "one function of a file has no name, or is called main; it may call the others"
        raise SourceText(text).error(reason, (mains or functions)[-1].span, hint)
    (main,) = mains
    return replace(main, callees=tuple(function for function in functions if function is not main))


def parse_functions(text: str, filename: str = "<string>") -> tuple[ast.Function, ...]:
    """All functions of a file. Raises StripeError, also for two with one name."""
    functions = cast("tuple[ast.Function, ...]", _parse(text, filename, "file"))
    names = [function.name for function in functions]
    for place, function in enumerate(functions):
        if function.name and function.name in names[:place]:
            reason = f"the function '{function.name}' is defined twice"
            raise SourceText(text).error(reason, function.span, "rename one of them")
    return functions


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
    from stripe.ir.text.grammar import automaton
    from stripe.ir.text.lalr import NotInGrammar
    from stripe.tile.tree import Builder

    source = SourceText(text)
    if "\0" in text:
        raise StripeError("this is a binary file, not Tile source", path=filename, hint="name a text file")
    check_brackets(text, filename)
    try:
        return automaton("tile").read(text, start, Builder(source, filename).actions)
    except NotInGrammar:
        raise _syntax_error(source, filename, start) from None


def _syntax_error(source: SourceText, filename: str, start: str) -> StripeError:
    """The error of a text that does not fit the grammar, as lark explains it."""
    from lark.exceptions import UnexpectedInput

    from stripe.ir.text.grammar import parser

    try:
        parser("tile").parse(source.text, start=start)  # pyright: ignore[reportUnknownMemberType]
    except UnexpectedInput as error:
        return describe_syntax_error(error, source, filename)
    raise AssertionError(f"{filename} fits the grammar and was refused")
