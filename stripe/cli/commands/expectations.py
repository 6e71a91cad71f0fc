"""`--verify-diagnostics`: errors, warnings and remarks that comments in the input announce, as MLIR's tests do.

// expected-error@+1 {{unknown pass}}        in the next line; @-1, @above and @below work too, and without @ this line
// expected-remark@unknown {{missed}}        something without a line in this file, such as a remark about a Tile kernel
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from typing_extensions import override

from stripe.frontends.frontend import Loaded, Source
from stripe.ir import StripeError, block_at
from stripe.ir.block import Block
from stripe.passes.base import Remark
from stripe.pipeline.entry import PassEntry
from stripe.pipeline.instrument import Instrument

_EXPECTED = re.compile(
    r"expected-(?P<kind>error|warning|remark)\s*(?:@\s*(?P<place>[+-]\d+|above|below|unknown))?\s*\{\{(?P<text>.*?)\}\}"
)
_MEANT = re.compile(r"expected-\w+[^{}]*\{\{")
"""The beginning of an announcement, rightly spelled or not."""


@dataclass(frozen=True, slots=True)
class Message:
    """A message, announced or produced; `line` is None where it has none in this file."""

    kind: str
    line: int | None
    text: str


class RemarkCollector(Instrument):
    """Keeps remarks, each at the line of the block that it is about, where that is known."""

    def __init__(self, loaded: Loaded, messages: list[Message]) -> None:
        self._messages = messages
        self._lines: dict[str, int] = {}
        for path, span in loaded.spans.items():
            name = _block_name(loaded, path)
            if name:
                self._lines.setdefault(name, span.line)

    @override
    def remark(self, entry: PassEntry, remark: Remark) -> None:
        self._messages.append(Message("remark", self._lines.get(remark.block), f"{entry.name}: {remark}"))


def _block_name(loaded: Loaded, path: tuple[int, ...]) -> str:
    if len(path) == 1:
        return loaded.program.entry.name
    statement = block_at(loaded.program, path[:-1]).statements[path[-1]]
    return statement.name if isinstance(statement, Block) else ""


def error_messages(error: StripeError, source: Source) -> list[Message]:
    """The errors that one exception holds, or a warning; one about another file has no line here."""
    return [
        Message(
            one.kind,
            one.line if one.path == source.name else None,
            f"{one.reason}; {one.hint}" if one.hint else one.reason,
        )
        for one in all_errors(error)
    ]


def all_errors(error: StripeError) -> Iterator[StripeError]:
    """The error, and the errors found in the same go."""
    yield error
    yield from error.others


def expectations(source: Source) -> list[Message]:
    """The diagnostics that the comments of a source announce. Raises StripeError for one that is misspelt."""
    found: list[Message] = []
    for number, line in enumerate(source.text.splitlines(), start=1):
        announced = [*_EXPECTED.finditer(line)]
        if len(announced) < len(_MEANT.findall(line)):
            raise StripeError(
                "this announces no message",
                path=source.name,
                line=number,
                hint="write expected-error, expected-warning or expected-remark, with a place or without, and "
                "{{text}}: expected-error@+1 {{unknown pass}}",
            )
        found += [Message(m["kind"], _line(m["place"], number), m["text"]) for m in announced]
    return found


def _line(place: str | None, number: int) -> int | None:
    if place == "unknown":
        return None
    steps = {None: 0, "above": -1, "below": 1}
    return number + (steps[place] if place in steps else int(place or 0))


def unmet(source: Source, produced: Iterable[Message]) -> list[str]:
    """Announced messages that did not come, and others that did; remarks may go unannounced
    unless the source announces any.
    """
    wanted = expectations(source)
    left = list(produced)
    problems: list[str] = []
    for message in wanted:
        same = (
            m for m in left if (m.kind, m.line) == (message.kind, message.line) and message.text in m.text
        )
        if (found := next(same, None)) is not None:
            left.remove(found)
        else:
            reason = f"expected {message.kind} was not produced: {message.text}"
            problems.append(f"{_place(source, message)}: error: {reason}")
    strict = {"error", "warning", *(message.kind for message in wanted)}
    problems += [
        f"{_place(source, m)}: error: unexpected {m.kind}: {m.text}" for m in left if m.kind in strict
    ]
    return problems


def _place(source: Source, message: Message) -> str:
    return source.name if message.line is None else f"{source.name}:{message.line}"
