"""Reads the textual form of Stripe (`grammar/stripe.lark`), the exact inverse of `stripe.ir.text.printer`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NoReturn

from stripe.ir.affine import Affine
from stripe.ir.block import Block, Statement
from stripe.ir.check.diagnostic import Part, parts_of
from stripe.ir.errors import StripeError
from stripe.ir.location import Location
from stripe.ir.program import Program
from stripe.ir.span import Span
from stripe.ir.walk import Path, walk

if TYPE_CHECKING:
    from lark import Token

MAX_NESTING = 200
"""Deepest nesting of brackets that the parser takes: far beyond any program, and safe for recursive passes."""


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
    return parse_with_spans(text, filename).program


def parse_with_spans(text: str, filename: str = "<string>") -> ParsedProgram:
    """As `parse_program`, with the place of each statement."""
    from stripe.ir.text.builder import IrBuilder

    _check_nesting(text, filename)
    builder = IrBuilder(lambda reason, token, hint: _fail(text, filename, reason, token, hint))
    entry, constants = builder.program(_tree(text, filename, "start"))
    program = Program(entry, constants)
    places = {key: Span(filename, *place) for key, place in builder.spans.items()}
    return ParsedProgram(program, _statement_spans(entry, places), _part_spans(program, places))


def parse_affine(text: str) -> Affine:
    """The affine expression that `text` denotes; raises StripeError."""
    return _fragment(text, "affine_only", lambda builder, tree: builder.affine(tree.children[0]))


def parse_location(text: str) -> Location:
    """The location that `text` denotes, such as `DRAM[0]`; raises StripeError."""
    if not text:
        return Location()
    return _fragment(text, "location_only", lambda builder, tree: builder.location(tree.children[0]))


def _fragment(text: str, rule: str, build: Callable[[Any, Any], Any]) -> Any:
    from stripe.ir.text.builder import IrBuilder

    name = "<string>"
    _check_nesting(text, name)
    builder = IrBuilder(lambda reason, token, hint: _fail(text, name, reason, token, hint))
    return build(builder, _tree(text, name, rule))


def _tree(text: str, filename: str, rule: str) -> Any:
    from lark.exceptions import UnexpectedCharacters, UnexpectedEOF, UnexpectedToken

    from stripe.ir.text.grammar import parser

    try:
        return parser("stripe").parse(text, start=rule)  # pyright: ignore[reportUnknownMemberType]
    except UnexpectedToken as error:
        token: Any = error.token
        expected: set[str] = error.accepts or error.expected
        found = "end of the file" if str(token) == "" else f"'{token}'"
        if rule == "start" and expected == {"INT"} and not _PROGRAM_TEXT.search(text[: token.start_pos or 0]):
            raise _token_error(text, filename, f"unexpected {found}", token, _BEGINNING) from None
        raise _token_error(text, filename, f"unexpected {found}", token, _expected_text(expected)) from None
    except UnexpectedCharacters as error:
        place = Span(filename, error.line, error.column)
        found = text[error.pos_in_stream or 0]
        hint = _expected_text(error.allowed or set())
        raise _error(text, place, f"unexpected character {found!r}", hint) from None
    except UnexpectedEOF as error:
        raise _error(
            text, Span(filename, 1, 1), "the text ends too early", _expected_text(set(error.expected))
        ) from None


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


def _token_error(text: str, filename: str, reason: str, token: Token | None, hint: str) -> StripeError:
    line, column = (token.line or 1, token.column or 1) if token is not None else (1, 1)
    return _error(text, Span(filename, line, column), reason, hint)


def _fail(text: str, filename: str, reason: str, token: Token | None, hint: str) -> NoReturn:
    raise _token_error(text, filename, reason, token, hint)


_BRACKET = re.compile(r'"(?:[^"\\\n]|\\.)*"|//[^\n]*|[()\[\]{}]')


def _check_nesting(text: str, filename: str) -> None:
    depth = 0
    for match in _BRACKET.finditer(text):
        if match[0] in ("(", "[", "{"):
            depth += 1
            if depth > MAX_NESTING:
                line = text.count("\n", 0, match.start()) + 1
                column = match.start() - text.rfind("\n", 0, match.start())
                hint = f"brackets may nest {MAX_NESTING} deep; flatten the program"
                raise _error(text, Span(filename, line, column), "nested too deeply", hint)
        elif match[0] in (")", "]", "}"):
            depth -= 1


def _statement_spans(entry: Block, places: Mapping[int, Span]) -> dict[Path, Span]:
    found: dict[Path, Span] = {}

    def visit(statement: Statement, path: Path) -> None:
        found[path] = places[id(statement)]
        if isinstance(statement, Block):
            for number, inner in enumerate(statement.statements):
                visit(inner, (*path, number))

    visit(entry, (0,))
    return found


def _part_spans(program: Program, places: Mapping[int, Span]) -> dict[tuple[Path, Part], Span]:
    found: dict[tuple[Path, Part], Span] = {}
    for path, block in walk(program.entry):
        found.update(((path, part), places[id(thing)]) for part, thing in parts_of(block))
    for number, buffer in enumerate(program.constants):
        found[(), ("constant", number)] = places[id(buffer)]
    return found
