"""The elements of the entry's buffers that hold a value when a statement of main runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from stripe.ir import Program, Refinement
from stripe.poly.access import Access, accesses
from stripe.poly.footprint import untouched


@dataclass(frozen=True, slots=True)
class DefinedElements:
    """All writes to the buffers of the entry, and the buffers that the program begins with."""

    given: frozenset[str]
    writes: Mapping[str, tuple[Access, ...]]

    @staticmethod
    def of(program: Program) -> DefinedElements:
        """The definitions in a program, found in one walk."""
        writes: dict[str, list[Access]] = {}
        for access in accesses(program.entry):
            if access.is_write and access.buffer.path == (0,):
                writes.setdefault(access.buffer.name, []).append(access)
        given = {ref.name for ref in program.inputs} | {buffer.name for buffer in program.constants}
        return DefinedElements(frozenset(given), {name: tuple(found) for name, found in writes.items()})

    def has_gaps(self, ref: Refinement, before: int | None = None) -> bool:
        """Whether an element of the entry's buffer `ref` is undefined in the end, or when statement `before` of main
        runs."""
        found = self.writes.get(ref.name, ())
        if ref.name in self.given:
            return ref.has_undefined_holes
        earlier = [access for access in found if before is None or access.path[2] < before]
        return not untouched(ref.sizes, earlier).is_empty
