"""Errors that a user can cause: each has a place, a reason and a suggestion."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from stripe.exit_status import INPUT_ERROR, OK, USAGE_ERROR


class StripeError(Exception):
    """An error in the user's input. `str()` is the whole message:

        file:3:7: error: reason
          source line
              ^
          hint: what would be right

    `path` is a file; `where` a place that is no line, such as a JSON path or a block's path. `line` and `col`
    count from 1.
    `caret` is the column in `source` to mark when it is not `col` (a rendered line shown for a template's).
    `others` are further errors found in the same go; they print after this one.
    """

    exit_status = INPUT_ERROR
    kind = "error"

    def __init__(
        self,
        reason: str,
        *,
        path: str | None = None,
        line: int | None = None,
        col: int | None = None,
        where: str | None = None,
        hint: str | None = None,
        source: str | None = None,
        length: int = 1,
        caret: int | None = None,
        others: tuple[StripeError, ...] = (),
    ) -> None:
        super().__init__(reason)
        self.reason = reason
        self.path = path
        self.line = line
        self.col = col
        self.where = where
        self.hint = hint
        self.source = source
        self.length = length
        self.caret = col if caret is None else caret
        self.others = others

    @property
    def place(self) -> str:
        """`file:line:col`, or as much of it as is known."""
        parts = [self.path or ""] + [str(n) for n in (self.line, self.col) if n is not None]
        place = ":".join(part for part in parts if part)
        return f"{place}: {self.where}" if place and self.where else place or self.where or ""

    def __str__(self) -> str:
        place = self.place
        lines = [f"{place}: {self.kind}: {self.reason}" if place else f"{self.kind}: {self.reason}"]
        if self.source is not None:
            lines += _caret(self.source, self.caret, self.length)
        if self.hint:
            lines.append(f"  hint: {self.hint}")
        return "\n".join([*lines, *map(str, self.others)])


class ConfigError(StripeError):
    """An error in a pass list, a hardware model or a command line."""

    exit_status = USAGE_ERROR


class StripeWarning(StripeError):
    """A construct of the input that is valid and seldom meant. It is shown as an error is, and never raised."""

    exit_status = OK
    kind = "warning"


_Error = TypeVar("_Error", bound=StripeError)


def combine(errors: Iterable[_Error]) -> _Error:
    """The first of at least one error, with the others inside."""
    first, *others = errors
    first.others = tuple(others)
    return first


def combine_by_place(errors: Iterable[_Error]) -> _Error:
    """As `combine`, in the order of the file."""
    return combine(sorted(errors, key=lambda error: (error.line or 0, error.col or 0)))


_WIDTH = 160  # a longer source line is cut around the caret


def _caret(source: str, col: int | None, length: int) -> list[str]:
    start = max(0, (col or 1) - 1 - _WIDTH // 2)
    shown = source[start : start + _WIDTH].replace("\t", " ")
    if col is None:
        return [f"  {shown}"]
    column = col - 1 - start
    marks = max(1, min(length, len(shown) - column))
    return [f"  {shown}", f"  {' ' * column}{'^' * marks}"]


def closest(name: str, known: Iterable[str]) -> str | None:
    """The known name most similar to `name`; None when none is similar. Swapped letters count as most similar, then the
    only name that goes on behind `name`.
    """
    names = list(known)
    folded = {other.lower(): other for other in names}
    if name.lower() in folded:
        return folded[name.lower()]
    swapped = next((other for other in names if sorted(other) == sorted(name)), None)
    if swapped is not None:
        return swapped
    longer = [other for other in names if name and other.startswith(name)]
    if len(longer) == 1:
        return longer[0]
    import difflib  # for errors alone

    near = difflib.get_close_matches(name, names, n=1, cutoff=0.6)
    return near[0] if near else None


def did_you_mean(name: str, known: Iterable[str], otherwise: str) -> str:
    """A hint that names the nearest known name, or `otherwise` when none is similar."""
    near = closest(name, known)
    return f"did you mean '{near}'?" if near else otherwise
