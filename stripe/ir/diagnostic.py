"""What the verifier says, and where it looks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from stripe.ir.block import Block
from stripe.ir.refinement import Refinement
from stripe.ir.traverse import Path


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One violated property: what is wrong, in which statement (its path of numbers), and what would be right."""

    message: str
    path: Path
    name: str
    hint: str = ""

    def __str__(self) -> str:
        place = (
            f"{':'.join(map(str, self.path))} ({self.name})" if self.name else ":".join(map(str, self.path))
        )
        return f"block {place}: {self.message}" + (f"; {self.hint}" if self.hint else "")


@dataclass(frozen=True, slots=True)
class Scope:
    """A block where it stands: its path and the block outside (None for the entry), with the refinements of both."""

    block: Block
    path: Path
    parent: Block | None
    refs: Mapping[str, Refinement]
    outer: Mapping[str, Refinement]

    def say(self, message: str, hint: str = "", number: int | None = None) -> Diagnostic:
        path = self.path if number is None else (*self.path, number)
        return Diagnostic(message, path, self.block.name, hint)


Check: TypeAlias = Callable[[Scope], Iterator[Diagnostic]]
"""A property of a block: all its violations there."""
