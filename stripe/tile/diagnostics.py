"""Errors in Tile: place, reason and suggestion."""

from __future__ import annotations

from collections.abc import Sequence

from stripe.ir.errors import StripeError, StripeWarning, combine_by_place
from stripe.ir.frozen import frozen
from stripe.ir.span import Span


@frozen
class SourceText:
    """The text of a Tile file, to show lines of it."""

    text: str

    def error(self, reason: str, span: Span, hint: str | None = None) -> StripeError:
        """An error at `span`, with the source line."""
        return StripeError(
            reason, path=span.filename, line=span.line, col=span.column, hint=hint,
            source=self._line(span.line), length=span.length,
        )  # fmt: skip

    def warning(self, reason: str, span: Span, hint: str) -> StripeWarning:
        """A warning at `span`, with the source line."""
        return StripeWarning(
            reason, path=span.filename, line=span.line, col=span.column, hint=hint,
            source=self._line(span.line), length=span.length,
        )  # fmt: skip

    def _line(self, number: int) -> str | None:
        lines = self.text.split("\n", number)
        return lines[number - 1].rstrip("\r") if 0 < number <= len(lines) else None


class CalledError(StripeError):
    """An error inside a function, and the place of its call."""

    def __init__(self, error: StripeError, function: str, call: Span) -> None:
        super().__init__(
            f"{error.reason} (in '{function}', called in line {call.line})", path=error.path, line=error.line,
            col=error.col, where=error.where, hint=error.hint, source=error.source, length=error.length,
        )  # fmt: skip
        self.call = call


class FailedAssertion(Exception):
    """An assertion that does not hold: an error when an output needs the statement, else a warning."""

    def __init__(self, error: StripeError) -> None:
        super().__init__(error.reason)
        self.error = error


class Poisoned(StripeError):
    """A use of a statement whose error has been reported: no second message follows."""

    def __init__(self) -> None:
        super().__init__("depends on a statement with an error")


def raise_collected(errors: Sequence[StripeError]) -> None:
    """Raises the collected errors together, in the order of the file; returns where there is none."""
    if errors:
        raise combine_by_place(errors)
