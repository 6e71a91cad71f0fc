"""Reason and suggestion for a Tile text that does not parse."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, cast

from stripe.ir.errors import StripeError
from stripe.ir.span import Span
from stripe.tile.diagnostics import SourceText

if TYPE_CHECKING:
    from lark import Token
    from lark.exceptions import UnexpectedInput

_WORDS = {
    "ID": "a name that begins with an upper-case letter", "IDXID": "a lower-case name", "INT": "an integer",
    "FLOAT": "a number", "LSQB": "'['", "RSQB": "']'", "LPAR": "'('", "RPAR": "')'", "LBRACE": "'{'", "RBRACE": "'}'",
    "COMMA": "','", "SEMICOLON": "';'", "COLON": "':'", "QMARK": "'?'", "EQUAL": "'='", "PLUS": "'+'", "MINUS": "'-'",
    "STAR": "'*'", "SLASH": "'/'", "LESSTHAN": "'<'", "MORETHAN": "'>'", "CIRCUMFLEX": "'^'", "VBAR": "'|'",
    "AMPERSAND": "'&'", "TILDE": "'~'", "FUNCTION": "'function'", "DEFAULT": "'default'",
    "NO_DEFRACT": "'no_defract'", "POLYNOMIAL": "'polynomial'", "EXPRESSION": "'expression'",
    "CONTRACTION": "'contraction'", "ARROW": "'->'", "OPEN_ATTRIBUTE": "'[['", "CLOSE_ATTRIBUTE": "']]'",
    "EQ": "'=='", "$END": "the end of the file",
}  # fmt: skip

_OPERATORS = frozenset(
    "PLUS MINUS STAR SLASH LESSTHAN MORETHAN CIRCUMFLEX VBAR AMPERSAND TILDE QMARK EQ NE LE GE SHL SHR".split()
)

_AGGREGATIONS = frozenset("+*><")

_CHARACTER_HINTS = {
    ".": "a float has digits on both sides of the point: 1.0, 0.5",
    "%": "for the remainder write mod(a, b)",
    "!": "for 'not' write ~x or compare with '=='; 'unequal' is '!='",
    '"': "Tile has no strings",
    "'": "a name may end with one apostrophe; nothing else uses it",
}


_TYPOGRAPHIC = {
    "×": "write '*'", "·": "write '*'", "÷": "write '/'", "−": "write '-'", "–": "write '-'", "≤": "write '<='",
    "≥": "write '>='", "≠": "write '!='", "→": "write '->'", "\u00a0": "this is a no-break space; write a plain one",
}  # fmt: skip


def describe_syntax_error(error: UnexpectedInput, source: SourceText, filename: str) -> StripeError:
    """The StripeError for an error of the parser."""
    from lark.exceptions import UnexpectedCharacters, UnexpectedToken

    if isinstance(error, UnexpectedToken):
        token = cast("Token", error.token)  # pyright: ignore[reportUnknownMemberType]
        expected = {str(name) for name in error.accepts or error.expected}
        if token.type == "$END":
            lines = source.text.rstrip().split("\n")
            reason = "the file ends too early" if source.text.strip() else "the file is empty"
            return source.error(reason, Span(filename, len(lines), len(lines[-1]) + 1), _expected(expected))
        span = Span(filename, token.line or 1, token.column or 1, max(1, len(token)))
        before = source.text[: token.start_pos or 0].rstrip()
        if str(token) in _AGGREGATIONS and before.endswith("=") and "FLOAT" in expected:
            hint = "to aggregate, say over which indices: O[i, … : N, …] = +(…), or O[] = +(…) for a single number"
            return source.error(f"unexpected '{token}'", span, hint)
        return source.error(f"unexpected '{token}'", span, _hint(token.type, str(token), expected))
    if isinstance(error, UnexpectedCharacters):
        character = str(cast(object, error.char))  # pyright: ignore[reportUnknownMemberType]
        allowed = {str(name) for name in cast("set[str]", error.allowed or ())}
        hint = _CHARACTER_HINTS.get(character) or _expected(allowed)
        if not character.isascii():
            what = "names are made of ASCII letters, digits and '_'" if character.isalnum() else hint
            hint = _TYPOGRAPHIC.get(character, what)
        return source.error(
            f"unexpected character {character!r}", Span(filename, error.line, error.column), hint
        )
    return source.error(
        "the text cannot be parsed", Span(filename, 1, 1), "check its brackets and separators"
    )


def _hint(terminal: str, text: str, expected: set[str]) -> str:
    if terminal == "IDXID" and "ID" in expected and "IDXID" not in expected:
        word = text.lstrip("$")
        return (
            f"names of tensors and dimensions begin with an upper-case letter; '#{word}' makes any word one"
        )
    if terminal == "ID" and "IDXID" in expected and "ID" not in expected:
        return f"expected a lower-case name here; '${text.lstrip('#')}' makes any word one"
    if text in ("&", "|") and "ID" in expected and "AMPERSAND" not in expected:
        return f"there is no '{text * 2}'; '{text}' works on bools too"
    if (
        terminal in _OPERATORS
        and "RPAR" in expected
        and "MINUS" not in expected
        and expected & {"EQ", "QMARK"}
    ):
        return (
            "a contraction combines two tensors by * or + or ==; compute the rest in a statement of its own"
        )
    if "SEMICOLON" in expected and terminal in ("ID", "IDXID", "RBRACE", "OPEN_ATTRIBUTE"):
        return "a statement ends with ';', the last one too"
    return _expected(expected)


def _expected(terminals: Iterable[str]) -> str:
    names = set(terminals)
    shown = names if len(names & _OPERATORS) <= 2 else names - _OPERATORS
    words = sorted(_WORDS.get(name, f"'{name.lower()}'") for name in shown)
    if shown != names:
        words.append("an operator")
    return f"expected {' or '.join(words)}" if words else "check the brackets before this place"
