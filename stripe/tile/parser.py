"""Reads Tile (`grammar/tile.lark`) into the syntax tree of `stripe.tile.ast`."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

from stripe.ir.errors import StripeError
from stripe.ir.text.brackets import require_brackets
from stripe.tile import ast
from stripe.tile.diagnostics import SourceText
from stripe.tile.syntax_errors import describe_syntax_error


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


def _parse(text: str, filename: str, start: str) -> object:
    from stripe.ir.text.grammar import automaton
    from stripe.ir.text.lalr import NotInGrammar
    from stripe.tile.syntax_builder import SyntaxBuilder

    source = SourceText(text)
    if "\0" in text:
        raise StripeError("this is a binary file, not Tile source", path=filename, hint="name a text file")
    require_brackets(text, filename)
    try:
        return automaton("tile").read(text, start, SyntaxBuilder(source, filename).actions)
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
