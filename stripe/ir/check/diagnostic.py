"""Diagnostics of the verifier, and a block with its surroundings as a check sees it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Literal, TypeAlias

from stripe.ir.block import Block, Constraint, Index
from stripe.ir.errors import did_you_mean
from stripe.ir.frozen import frozen
from stripe.ir.refinement import Refinement
from stripe.ir.walk import Path, path_text

Part: TypeAlias = tuple[Literal["index", "constraint", "refinement", "constant"], int]
"""A part of a block or of the program: the third constraint is `("constraint", 2)`."""


def parts_of(block: Block) -> Iterator[tuple[Part, Index | Constraint | Refinement]]:
    """The parts of a block that are no statements."""
    for number, index in enumerate(block.indices):
        yield ("index", number), index
    for number, constraint in enumerate(block.constraints):
        yield ("constraint", number), constraint
    for number, ref in enumerate(block.refinements):
        yield ("refinement", number), ref


@frozen
class Diagnostic:
    """One violated property: the reason, the statement (its path of numbers), and a hint.

    `part` says which part of the block it is about, None for all of it.
    """

    message: str
    path: Path
    name: str
    hint: str = ""
    part: Part | None = None

    def __str__(self) -> str:
        place = path_text(self.path) + (f" ({self.name})" if self.name else "")
        return f"block {place}: {self.message}" + (f"; {self.hint}" if self.hint else "")


@frozen
class CheckedBlock:
    """A block with its path and the block outside (None for the entry), and the refinements of both."""

    block: Block
    path: Path
    parent: Block | None
    refs: Mapping[str, Refinement]
    outer: Mapping[str, Refinement]

    def say(
        self,
        message: str,
        hint: str = "",
        number: int | None = None,
        about: Index | Constraint | Refinement | None = None,
    ) -> Diagnostic:
        """A finding about the statement `number`, about a part of the block, or about the block."""
        path = self.path if number is None else (*self.path, number)
        part = next((part for part, thing in parts_of(self.block) if thing is about), None)
        return Diagnostic(message, path, self.block.name, hint, part)


Check: TypeAlias = Callable[[CheckedBlock], Iterator[Diagnostic]]
"""A property of a block: all its violations there."""


def nearest(name: str, known: Iterable[str]) -> str:
    """A hint that names the known name nearest to `name`, else all of them."""
    names = sorted(known)
    return did_you_mean(name, names, f"known are {', '.join(names)}" if names else "")
