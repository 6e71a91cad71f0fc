"""Stripe: the reader of its textual form."""

from __future__ import annotations

from functools import partial

from stripe.frontends.frontend import Loaded, ReadOptions, Source, refusal
from stripe.ir import (
    Diagnostic,
    ParsedProgram,
    StripeError,
    check_magnitude,
    parse_with_spans,
    verify_structural,
)


def load(source: Source, _options: ReadOptions) -> Loaded:
    """The program that a text denotes. Raises StripeError with all findings, each at its place in the text."""
    parsed = parse_with_spans(source.text, source.name)
    place = partial(_located, parsed, source)
    if found := verify_structural(parsed.program) or check_magnitude(parsed.program):
        raise refusal(found, place)
    return Loaded(parsed.program, spans=parsed.spans, place=place)


def _located(parsed: ParsedProgram, source: Source, diagnostic: Diagnostic) -> StripeError:
    """A finding of the verifier at the place in the text that it is about."""
    span = parsed.spans.get(diagnostic.path)
    if diagnostic.part is not None:
        span = parsed.parts.get((diagnostic.path, diagnostic.part), span)
    where = f"block {diagnostic.name}" if diagnostic.name else None
    if span is None:
        return StripeError(diagnostic.message, path=source.name, where=where, hint=diagnostic.hint or None)
    return StripeError(
        diagnostic.message, path=source.name, line=span.line, col=span.column, where=where,
        hint=diagnostic.hint or None, source=source.text.split("\n")[span.line - 1], length=span.length,
    )  # fmt: skip
