"""The limit on the nesting of brackets in a text."""

from __future__ import annotations

import re

from stripe.ir.errors import StripeError
from stripe.ir.span import LineTable

MAX_NESTING = 200
"""Deepest nesting of brackets: far beyond any program, and safe for recursive passes."""

_BRACKET = re.compile(r'"(?:[^"\\\n]|\\.)*"|//[^\n]*|[()\[\]{}]')


def require_brackets(text: str, filename: str) -> None:
    """Raises StripeError for brackets that nest deeper than `MAX_NESTING`; strings and comments do not count."""
    depth = 0
    for match in _BRACKET.finditer(text):
        if match[0] in ("(", "[", "{"):
            depth += 1
            if depth > MAX_NESTING:
                span = LineTable(text).span(filename, match.start())
                raise StripeError(
                    "nested too deeply",
                    path=filename,
                    line=span.line,
                    col=span.column,
                    source=text.splitlines()[span.line - 1],
                    hint=f"brackets may nest {MAX_NESTING} deep; flatten the text",
                )
        elif match[0] in (")", "]", "}"):
            depth -= 1
