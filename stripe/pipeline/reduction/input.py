"""Inputs of reduction: a program as text, alone or in a crash reproducer with its pass list."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from pydantic import JsonValue

from stripe.ir import Program, StripeError, parse_program, print_program, verify_structural
from stripe.pipeline.reduction import ir, tile
from stripe.pipeline.reduction.search import Step, fewer, one_changed
from stripe.pipeline.reproducer import Reproducer
from stripe.tile import parse_tile, print_tile
from stripe.verify.soundness import check_memory

Entry = dict[str, JsonValue]
Form = TypeVar("Form")


@dataclass(frozen=True, slots=True)
class ReductionInput:
    """A program in `language` (tile or stripe); `reproducer` holds the program, None for a plain file."""

    text: str
    language: str
    passes: tuple[Entry, ...] = ()
    reproducer: Reproducer | None = None

    @staticmethod
    def of(reproducer: Reproducer) -> ReductionInput:
        return ReductionInput(reproducer.input, reproducer.input_format, reproducer.passes, reproducer)

    @property
    def suffix(self) -> str:
        return f".{self.language}" if self.reproducer is None else ".reproducer.json"

    def render(self) -> str:
        """The text of the file."""
        if self.reproducer is None:
            return self.text
        changes = {"input": self.text, "input_format": self.language, "passes": self.passes}
        return json.dumps(self.reproducer.model_copy(update=changes).model_dump(mode="json"), indent=2) + "\n"


def steps_for(document: ReductionInput) -> Sequence[Step[ReductionInput]]:
    """The changes to try, in order: first the pass list, then the program. Raises StripeError when it does not parse.

    A program that is valid stays so: candidates that are not are left out.
    """
    found: list[Step[ReductionInput]] = [fewer_passes, fewer_options] if document.passes else []
    if document.language == "stripe":
        valid = _memory_safe if _memory_safe(document.text) else _valid_stripe
        return [*found, *(_in_form(step, _parse_stripe, print_program, valid) for step in ir.STEPS)]
    valid = tile.compiles if tile.compiles(document.text) else _parses
    parse_tile(document.text)
    return [*found, *(_in_form(step, parse_tile, print_tile, valid) for step in tile.STEPS)]


def _in_form(
    step: Step[Form], parse: Callable[[str], Form], write: Callable[[Form], str], valid: Callable[[str], bool]
) -> Step[ReductionInput]:
    """A step of programs as a step of documents; a document as long as before and no simpler is tried once at most."""

    def step_of_documents(document: ReductionInput) -> Iterator[ReductionInput]:
        for candidate in step(parse(document.text)):
            text = write(candidate)
            if text != document.text and valid(text):
                yield replace(document, text=text)

    return step_of_documents


def _parse_stripe(text: str) -> Program:
    return parse_program(text, "<reduce>")


def _valid_stripe(text: str) -> bool:
    try:
        return not verify_structural(_parse_stripe(text))
    except StripeError:  # a name or a number that the text cannot hold
        return False


def _memory_safe(text: str) -> bool:
    """Whether a program is valid, stays in its buffers, and reads what it wrote, as far as that can be told."""
    return _valid_stripe(text) and all(finding.unknown for finding in check_memory(_parse_stripe(text)))


def _parses(text: str) -> bool:
    parse_tile(text)  # a printed program parses: anything else is a fault of ours
    return True


def fewer_passes(document: ReductionInput) -> Iterator[ReductionInput]:
    """Without some entries of the pass list."""
    for passes in fewer(document.passes):
        yield replace(document, passes=passes)


def fewer_options(document: ReductionInput) -> Iterator[ReductionInput]:
    """Without one option of an entry, or without one item of an option that is a list."""
    for passes in one_changed(document.passes, _entries_with_fewer_options):
        yield replace(document, passes=passes)


def _entries_with_fewer_options(entry: Entry) -> Iterator[Entry]:
    for name, options in entry.items():
        for kept in _fewer_keys(options) if isinstance(options, dict) else ():
            yield {**entry, name: kept}


def _fewer_keys(options: dict[str, JsonValue]) -> Iterator[JsonValue]:
    for key in options:
        yield {k: v for k, v in options.items() if k != key}
    for key, value in options.items():
        if isinstance(value, list) and len(value) > 1:
            for kept in fewer(value):
                yield {**options, key: list(kept)}
