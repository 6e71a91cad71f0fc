"""Blocks that two programs share: checked in one, they need no check in the other."""

from __future__ import annotations

from collections.abc import Mapping

from stripe.ir.block import Block, Index
from stripe.ir.program import Program
from stripe.ir.refinement import Refinement


class KnownBlocks:
    """The blocks of a valid program, known again as the same objects in surroundings that are the same for them: the
    indices of the block outside, and the refinements outside that they view.
    """

    def __init__(self, valid: Program) -> None:
        self._valid = valid  # keeps its blocks alive, so that no other object gets their id
        self._around: dict[int, tuple[tuple[Index, ...], Mapping[str, Refinement]]] = {}
        self._enter(valid.entry)

    def _enter(self, block: Block) -> None:
        refs = {ref.name: ref for ref in block.refinements}
        for inner in block.blocks:
            self._around[id(inner)] = block.indices, refs
            self._enter(inner)

    def holds(self, block: Block, parent: Block | None, outer: Mapping[str, Refinement]) -> bool:
        """Whether `block`, standing in `parent` with the refinements `outer`, is one of them."""
        around = self._around.get(id(block))
        if around is None or parent is None or around[0] != parent.indices:
            return False
        return all(around[1].get(ref.source) is outer.get(ref.source) for ref in block.refinements)
