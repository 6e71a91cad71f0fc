"""The pass `autotile`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal

from pydantic import Field
from typing_extensions import override

from stripe.ir import Block, Program, rewrite_matching, with_entry
from stripe.passes.base import (
    UNIT_NAME,
    DependsOn,
    Pass,
    PassContext,
    PassExample,
    PassGroup,
    Reqs,
    TagReqs,
    TagSet,
    matching,
)


class Autotile(Pass):
    """Splits a block into tiles of the sizes that cost least, of all that keep the limits.

    `{ "reqs": ["conv"], "max_total_size": 512, "outer_set": ["conv"], "inner_set": ["conv_inner"] }`:

        #conv block [k:3, x:1000] (                    #conv block [k:1, x:4] (
            in<DRAM[0]> I[k + x] i8(1:1)                   in<DRAM[0]> I[250*x] i8(252:1)
            in<DRAM[0]> K[k] i8(1:1)               =>      in<DRAM[0]> K[0] i8(3:1)
            out<DRAM[0]> O[x]:add i8(1:1)                  out<DRAM[0]> O[250*x]:add i8(250:1)
        ) { … }                                        ) {
                                                         0: #conv_inner block [k:3, x:250] (
                                                             in<DRAM[0]> I[k + x] i8(1:1)
                                                             in<DRAM[0]> K[k] i8(1:1)
                                                             out<DRAM[0]> O[x]:add i8(1:1)
                                                         ) { … } }

    The elements that a tile touches are counted exactly, halos and strides included. With `memory`, a tile has to fit
    into that memory of the hardware model, `pipeline_depth` times so that transfers overlap with computing. Its cost is
    the cycles of all tiles by the rules of the simulator: partial uses of stencils, folds, filling and draining of an
    array, and the traffic of operands on each bus; and a hundredth of the cycles of transfers, so that of equally quick
    tiles the one that moves less is best. The best few are priced exactly: the rest of the pass list runs on the block
    with its epilogues, and the result is simulated. A tile that the rest refuses, or that overfills a memory, is not
    taken. Without `memory` the cost is the cache lines that all tiles touch for each point, by PlaidML's formula; or
    the cycles of a processor's core with registers, loads, latencies and rests of vectors, as the simulator has them.
    Of sizes that make the same number of tiles the smallest is a candidate; the search over these is complete, and the
    remarks list the best ten. Ties go to fewer tiles, then to smaller sizes of earlier indices. A search without an end
    in sight (blocks of some eight indices) stops after a minute or two with what it has found, and the remark says what
    other tiles cost at least.
    """

    pass_name: ClassVar[str] = "autotile"
    group: ClassVar[PassGroup] = PassGroup.STRUCTURE
    example: ClassVar[PassExample] = PassExample("reqs=[contraction],max_total_size=4096")
    refused: ClassVar[str] = "not tiled"

    reqs: Reqs = ("kernel",)
    exclude: TagReqs = Field(default=(), description="tags that a block may not have")
    outer_set: TagSet = Field(default=(), description="tags that the outer block gets")
    inner_set: TagSet = Field(default=(), description="tags that the inner block gets")

    memory: str = Field(default="", description="memory of the hardware model that a tile has to fit into")
    pipeline_depth: Annotated[int | None, DependsOn("memory")] = Field(
        default=None, ge=1,
        description="with memory: tiles that share it, 2 for double buffering; default: that of the unit",
    )  # fmt: skip
    unit: Annotated[str, DependsOn("memory")] = Field(
        default="", pattern=UNIT_NAME,
        description="with memory: execution unit of the tiles; empty: that of the block, or the quickest",
    )  # fmt: skip
    units: Annotated[Annotated[int, Field(ge=1)] | Literal["all"], DependsOn("memory")] = Field(
        default=1,
        description="with memory: units of the kind that share the work of each tile, as `partition` behind it gives "
        "it to them",
    )
    cache_width: Annotated[int, DependsOn("memory", absent=True)] = Field(
        default=0, ge=0, description="without memory: bytes of a cache line; 0: each element is one"
    )

    cost: Annotated[Literal["lines", "cycles"], DependsOn("memory", absent=True)] = Field(
        default="lines",
        description="without memory: cache lines by PlaidML's formula, or the cycles of a core whose registers hold "
        "the results, where the machine has one",
    )

    only_po2: bool = Field(default=False, description="only sizes that are powers of two, or the whole range")
    only_even: bool = Field(default=False, description="only sizes that divide the range")
    vector_bytes: int = Field(
        default=0,
        ge=0,
        description="an index along which the outputs are contiguous gets whole multiples of this many bytes, or its "
        "whole range; 0: any size",
    )
    acc_idxs: bool = Field(default=True, description="whether indices that no output uses may be tiled")
    fixed: dict[str, Annotated[int, Field(ge=1)]] = Field(
        default_factory=dict[str, int],
        description="the size of an index, by its name, instead of a search; its whole range where that is smaller",
    )

    ranks: dict[str, Annotated[int, Field(ge=0)]] = Field(
        default_factory=dict[str, int],
        description="for a block, by its name: how many better tiles are passed over; `--tune` sets it",
    )

    max_per_input_size: int = Field(
        default=0, ge=0,
        description="most bytes that a tile reads of any view (inout counts too); 0: no limit",
    )  # fmt: skip
    max_output_size: int = Field(
        default=0, ge=0, description="most bytes that a tile writes (inout counts too); 0: no limit"
    )
    max_per_output_size: int = Field(
        default=0,
        ge=0,
        description="most bytes that a tile writes of any view (inout counts too); 0: no limit",
    )
    max_total_size: int = Field(
        default=0, ge=0, description="most bytes of a tile, each view counted once; 0: no limit"
    )

    def run(self, program: Program, context: PassContext) -> Program:
        if self.memory:
            context.need_hardware(f"autotile into the memory '{self.memory}'")
        names = (index.name for block in matching(program, self.reqs) for index in block.iterated)
        context.unknown_names("fixed", "index", self.fixed, names)
        # numpy and the cost model take long to load: only for a list that gets as far as here
        from stripe.passes.autotile.tiler import BlockTiler

        tiler = BlockTiler(self, program, context)

        def tile(block: Block) -> Block:
            excluded = block.words.has_any(self.exclude)
            return block if excluded else self.settled(block, tiler.tiled(block), context)

        return with_entry(program, rewrite_matching(program.entry, self.reqs, tile))

    @override
    def settings(self, program: Program, context: PassContext, count: int) -> Sequence[Sequence[Pass]]:
        """For each block the tiles of the first ranks."""
        blocks = matching(program, self.reqs)
        names = dict.fromkeys(block.name for block in blocks if not block.words.has_any(self.exclude))
        return [
            [self.model_copy(update={"ranks": self.ranks | {name: rank}}) for rank in range(count)]
            for name in names
        ]
