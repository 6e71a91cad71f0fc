"""Reads the textual form of Stripe (`grammar/stripe.lark`), the exact inverse of `stripe.ir.text.printer`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NoReturn

from stripe.ir.affine import Affine
from stripe.ir.block import Block, Statement
from stripe.ir.check.diagnostic import Part, parts_of
from stripe.ir.errors import StripeError
from stripe.ir.location import Location
from stripe.ir.program import Program
from stripe.ir.span import LineTable, Span
from stripe.ir.text.brackets import require_brackets
from stripe.ir.walk import Path, walk

if TYPE_CHECKING:
    from stripe.ir.text.lalr import Known, Word


@dataclass(frozen=True, slots=True)
class ParsedProgram:
    """A program with the places of its parts in its text: statements by their path of statement numbers from the entry,
    parts of a block by the block's path and their number there, constants under the empty path.
    """

    program: Program
    spans: Mapping[Path, Span] = field(default_factory=dict[Path, Span])
    parts: Mapping[tuple[Path, Part], Span] = field(default_factory=dict[tuple[Path, Part], Span])


def parse_program(text: str, filename: str = "<string>") -> Program:
    """The program that `text` denotes; raises StripeError with line and column."""
    entry, constants = _read(text, filename, "start")[0]
    return Program(entry, constants)


def parse_with_spans(text: str, filename: str = "<string>") -> ParsedProgram:
    """As `parse_program`, with the place of each statement."""
    (entry, constants), places = _read(text, filename, "start")
    program = Program(entry, constants)
    lines = LineTable(text)
    spans = {key: lines.span(filename, begin, length) for key, (begin, length) in places.items()}
    found: dict[tuple[Path, Part], Span] = {}
    for path, block in walk(program.entry):
        found.update(((path, part), spans[id(thing)]) for part, thing in parts_of(block))
    for number, buffer in enumerate(program.constants):
        found[(), ("constant", number)] = spans[id(buffer)]
    return ParsedProgram(program, _statement_spans(entry, spans), found)


def parse_affine(text: str) -> Affine:
    """The affine expression that `text` denotes; raises StripeError."""
    return _read(text, "<string>", "affine_only")[0]


def parse_location(text: str) -> Location:
    """The location that `text` denotes, such as `DRAM[0]`; raises StripeError."""
    return _read(text, "<string>", "location_only")[0] if text else Location()


def _read(text: str, filename: str, rule: str) -> tuple[Any, Mapping[int, tuple[int, int]]]:
    """The value of a rule, and the places of the parts of a program by their id."""
    from stripe.ir.text.builder import IrBuilder
    from stripe.ir.text.grammar import automaton
    from stripe.ir.text.lalr import NotInGrammar

    def fail(reason: str, word: Word, hint: str) -> NoReturn:
        raise _error(text, LineTable(text).span(filename, word[1], max(len(word[0]), 1)), reason, hint)

    require_brackets(text, filename)
    builder = IrBuilder(fail)
    try:
        if len(_known) > _MOST_KNOWN:
            _known.clear()
        return automaton("stripe").read(text, rule, builder.actions, _known), builder.places
    except NotInGrammar:
        raise _syntax_error(text, filename, rule) from None
    except ValueError:  # of int(), which refuses thousands of digits
        if (found := _LONG_NUMBER.search(text)) is None:
            raise
        span = LineTable(text).span(filename, found.start(), found.end() - found.start())
        raise _error(text, span, "the integer is too large", "integers have 64 bits") from None


_known: Known = {}
"""Accesses, locations and dimensions of the texts so far: the results of passes repeat most of those before them."""
_MOST_KNOWN = 10_000
_LONG_NUMBER = re.compile(r"\d{4000,}")


def _syntax_error(text: str, filename: str, rule: str) -> StripeError:
    """The error of a text that does not fit the grammar, as lark explains it."""
    from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken

    from stripe.ir.text.grammar import parser

    try:
        parser("stripe").parse(text, start=rule)  # pyright: ignore[reportUnknownMemberType]
    except UnexpectedToken as error:
        token: Any = error.token
        expected: set[str] = error.accepts or error.expected
        found = "end of the file" if str(token) == "" else f"'{token}'"
        span = Span(filename, token.line or 1, token.column or 1)
        if rule == "start" and expected == {"INT"} and not _PROGRAM_TEXT.search(text[: token.start_pos or 0]):
            return _error(text, span, f"unexpected {found}", _BEGINNING)
        return _error(text, span, f"unexpected {found}", _expected_text(expected))
    except UnexpectedCharacters as error:
        found = text[error.pos_in_stream or 0]
        hint = _expected_text(error.allowed or set())
        return _error(text, Span(filename, error.line, error.column), f"unexpected character {found!r}", hint)
    except UnexpectedInput:
        return _error(text, Span(filename, 1, 1), "the text ends too early", "check its brackets")
    raise AssertionError(f"{filename} fits the grammar and was refused")


_BEGINNING = "a program begins with '0: #program block [] ('"
_PROGRAM_TEXT = re.compile(r"^\s*(?!//)\S", re.MULTILINE)
"""A line that is neither empty nor a comment."""

_TERMINAL_WORDS = {
    "INT": "a number", "SIGNED_INT": "a number", "NAME": "a name", "SCALAR": "a scalar such as $x", "TAG": "a word",
    "OPEN": "'('", "DIR": "'in', 'out', 'inout' or 'none'", "HEX": "an address such as 0x00000000", "COLON": "':'",
    "HASH": "a tag such as #kernel", "LPAR": "'('", "RPAR": "')'", "LSQB": "'['", "RSQB": "']'", "LBRACE": "'{'",
    "RBRACE": "'}'", "COMMA": "','", "EQUAL": "'='", "PLUS": "'+'", "MINUS": "'-'", "STAR": "'*'", "LESSTHAN": "'<'",
    "MORETHAN": "'>'", "__ANON_0": "'>='", "STRING": "a text in double quotes", "SLASH": "'/'", "COMMENT": "a comment",
    "FLOAT": "a number", "$END": "the end of the file", "AT": "'@'", "SIGN": "'-'",
}  # fmt: skip


def _expected_text(terminals: set[str]) -> str:
    words = sorted({_TERMINAL_WORDS.get(terminal, f"'{terminal.lower()}'") for terminal in terminals})
    return f"expected {' or '.join(words)}" if words else ""


def _error(text: str, span: Span, reason: str, hint: str) -> StripeError:
    lines = text.splitlines()
    source = lines[span.line - 1] if 0 < span.line <= len(lines) else ""
    return StripeError(
        reason, path=span.filename, line=span.line, col=span.column, hint=hint or None, source=source or None
    )


def _statement_spans(entry: Block, places: Mapping[int, Span]) -> dict[Path, Span]:
    found: dict[Path, Span] = {}

    def visit(statement: Statement, path: Path) -> None:
        found[path] = places[id(statement)]
        if isinstance(statement, Block):
            for number, inner in enumerate(statement.statements):
                visit(inner, (*path, number))

    visit(entry, (0,))
    return found
