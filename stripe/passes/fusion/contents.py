"""The contents of a block that grows as it is fused: each name with its place, kept up instead of looked for again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

from stripe.ir import Block, Refinement, scalar_defined
from stripe.passes.fusion.reach import moving_indices


@dataclass(slots=True)
class Contents:
    """The places of the refinements of a block by name and by source, the scalars that it defines, and the indices that
    move its outputs."""

    places: dict[str, int] = field(default_factory=dict[str, int])
    by_source: dict[str, list[int]] = field(default_factory=dict[str, list[int]])
    scalars: dict[str, None] = field(default_factory=dict[str, None])
    moving: set[str] = field(default_factory=set[str])
    statements: int = 0

    @staticmethod
    def of(block: Block) -> Contents:
        contents = Contents()
        contents.grow(block)
        return contents

    def grow(self, block: Block, changed: Iterable[str] = ()) -> None:
        """The same for `block`, which begins with the refinements and the statements that were known; those with the
        names `changed` differ in more than their names and sources."""
        for place in range(len(self.places), len(block.refinements)):
            ref = block.refinements[place]
            self.places[ref.name] = place
            self.by_source.setdefault(ref.source, []).append(place)
            self._note(ref)
        for name in changed:
            self._note(block.refinements[self.places[name]])
        for statement in islice(block.statements, self.statements, None):
            if (name := scalar_defined(statement)) is not None:
                self.scalars[name] = None
        self.statements = len(block.statements)

    def _note(self, ref: Refinement) -> None:
        if ref.dir.writes:
            self.moving |= moving_indices(ref)

    def views(self, refs: Sequence[Refinement], sources: Iterable[str]) -> list[Refinement]:
        """The refinements with one of these sources, in their order; `refs` are those of the block."""
        found = {place for source in sources for place in self.by_source.get(source, ())}
        return [refs[place] for place in sorted(found)]


def shifted(shifts: Mapping[str, tuple[int, ...]], ref: Refinement) -> tuple[int, ...]:
    """The distance of a view from the origin of the view that it became part of."""
    return shifts.get(ref.name, (0,) * ref.rank)
