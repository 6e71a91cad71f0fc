"""Errors in Tile: place, reason and suggestion."""

from __future__ import annotations

from collections.abc import Iterable

from stripe.ir.errors import StripeError, StripeWarning
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


class TileErrors(StripeError):
    """Several errors of one file. The first gives the place; `str()` shows all, in the order of the file."""

    def __init__(self, errors: tuple[StripeError, ...]) -> None:
        first = errors[0]
        super().__init__(
            first.reason, path=first.path, line=first.line, col=first.col, where=first.where, hint=first.hint,
            source=first.source, length=first.length,
        )  # fmt: skip
        self.errors = errors

    def __str__(self) -> str:
        return "\n".join(map(str, self.errors))


def raise_collected(errors: Iterable[StripeError]) -> None:
    """Raises the collected errors together; returns where there is none."""
    found = tuple(sorted(errors, key=lambda error: (error.line or 0, error.col or 0)))
    if len(found) == 1:
        raise found[0]
    if found:
        raise TileErrors(found)
