"""The pass `fix_strides`."""

from __future__ import annotations

from typing import ClassVar

from stripe.ir import IndexMap, Path, Program, block_at, with_entry
from stripe.ir.factors import prime_factors
from stripe.passes.base import Pass, PassContext, PassGroup, Reqs
from stripe.rewrite.strides import layout_text, mapped, memory_order, movable


class FixStrides(Pass):
    """Gives the small strides to the dimensions that divide best, so that tiles of them are contiguous.

        #tmp none new T[0, 0, 0] (7:448, 64:7, 7:1)
        0: block [a:7, b:64, c:7] (
            out T[a, b, c] (1:448, 1:7, 1:1)
        ) { … }
        =>
        #tmp none new T[0, 0, 0] (7:448, 64:1, 7:64)
        0: block [a:7, b:64, c:7] (
            out T[a, b, c] (1:448, 1:1, 1:64)
        ) { … }

    The dimension with the most prime factors, counted with multiplicity, is contiguous, the next most follows; equals
    keep their order. Only allocations change: tensors of the user keep the layout that the user gave them, and the
    data of constants has a logical order that no stride touches.
    """

    pass_name: ClassVar[str] = "fix_strides"
    group: ClassVar[PassGroup] = PassGroup.DATA

    reqs: Reqs = ("all",)

    def run(self, program: Program, context: PassContext) -> Program:
        entry = program.entry
        chosen: dict[Path, dict[str, IndexMap]] = {}
        for path, ref in movable(entry):
            around = (block_at(entry, path[:depth]) for depth in range(1, len(path) + 1))
            if not any(block.words.has_all(self.reqs) for block in around):
                continue
            present = {dim: place for place, dim in enumerate(memory_order(ref))}
            order = sorted(present, key=lambda dim: (len(prime_factors(ref.sizes[dim])), present[dim]))
            index_map = IndexMap.blocked(order, {})
            strides = index_map.strides(ref.sizes)
            if strides == ref.strides:
                continue
            counts = ", ".join(str(len(prime_factors(size))) for size in ref.sizes)
            context.applied(ref.name, f"strides {layout_text(ref, strides)}; prime factors {counts}")
            chosen.setdefault(path, {})[ref.name] = index_map
        return with_entry(program, mapped(entry, chosen))
