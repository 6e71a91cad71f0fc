"""The pass `unfold`."""

from __future__ import annotations

from typing import ClassVar

from stripe.ir import Block, Nest, unfolded_nest, walk
from stripe.passes.base import NestPass, PassContext, PassExample, PassGroup, Refusal, Reqs


class Unfold(NestPass):
    """Makes loops follow layouts: an index of which floors and remainders read digits becomes these digits.

        #kernel block [c:20, x:48] (                       #kernel block [c.16:2, c.1:16, x:48] (
            in I[floor(c/16), x, c mod 16] (1:768, …   =>      19 - c.1 - 16*c.16 >= 0
            out O[x, c]                                        in I[c.16, x, c.1] (1:768, …
        ) { … }                                                out O[x, c.1 + 16*c.16]

    With c = 16*c.16 + c.1, a digit by its place value, the points stay. A constraint cuts the last block where it is
    not full. Digits that count blocks come outermost where they keep the outputs apart. A window such as
    floor((h + r)/8) keeps its floors, and so do floors that cancel in the address. Of two layouts that read different
    digits of an index, the loop follows one.
    `vectorize`, `thread`, `tensorize`, `autotile`, the simulator and the C code look through floors without this pass.
    """

    pass_name: ClassVar[str] = "unfold"
    refused: ClassVar[str] = "not unfolded"
    group: ClassVar[PassGroup] = PassGroup.STRUCTURE
    example: ClassVar[PassExample] = PassExample(after=("layout{block={0:4}}",))

    reqs: Reqs = ("kernel",)

    def rewrite(self, nest: Nest, context: PassContext) -> Block | Refusal:
        block = unfolded_nest(nest).block
        if block is nest.block:
            return block
        old = {index.name for _, inner in walk(nest.block) for index in inner.iterated}
        new = [index for _, inner in walk(block) for index in inner.iterated if index.name not in old]
        if not new:
            return Refusal("no index has digits that floors and remainders read")
        context.applied(block, f"digits {', '.join(f'{index.name}:{index.range}' for index in new)}")
        return block
