"""The pass `package`."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from stripe.ir import Affine, Block, Index, Location, Program, Refinement, Tags, with_entry
from stripe.ir.frozen import replace
from stripe.passes.base import Pass, PassContext, PassExample, PassGroup, Reqs, TagSet


class Package(Pass):
    """Wraps each matching block in a block of one point that passes everything through.

    `{ "reqs": ["kernel"], "package_set": ["packed"] }`:

        #kernel block [x:8] (           #packed block [] (
            in I[x]                         in I[0] (8:1)
            out O[x]              =>        out O[0] (8:1)
        ) { … }                         ) {
                                          0: #kernel block [x:8] (
                                              in I[x]
                                              out O[x]

    The outer block gives later passes a place to allocate, transfer and schedule for the block alone.
    """

    pass_name: ClassVar[str] = "package"
    group: ClassVar[PassGroup] = PassGroup.STRUCTURE
    example: ClassVar[PassExample] = PassExample("reqs=[kernel],package_set=[packed]")

    reqs: Reqs
    package_set: TagSet = Field(default=(), description="tags of the new outer block")

    def run(self, program: Program, context: PassContext) -> Program:
        def wrap(block: Block, parent: Block) -> Block:
            context.applied(block, "wrapped")
            return package_block(block, parent, self.package_set)

        def visit(block: Block) -> Block:
            statements = tuple(
                s
                if not isinstance(s, Block)
                else wrap(s, block)
                if s.words.has_all(self.reqs) and not s.is_main
                else visit(s)
                for s in block.statements
            )
            return (
                block
                if all(a is b for a, b in zip(statements, block.statements, strict=True))
                else replace(block, statements=statements)
            )

        return with_entry(program, visit(program.entry))


def package_block(block: Block, parent: Block, package_set: TagSet) -> Block:
    """`block`, a statement of `parent`, inside a block of one point whose views are the whole sources."""
    sources = dict.fromkeys(ref.source for ref in block.refinements if not ref.is_alloc)
    outer_refs: list[Refinement] = []
    for source in sources:
        views = [ref for ref in block.refinements if ref.source == source]
        whole = parent.ref(source)
        direction = views[0].dir
        for view in views[1:]:
            direction = direction if view.dir is direction else type(direction).INOUT
        agg = next((view.agg for view in views if view.dir.writes), whole.agg)
        outer_refs.append(
            replace(
                whole,
                dir=direction,
                source=source,
                access=(Affine(),) * whole.rank,
                agg=agg,
                location=views[0].location if whole.location.names() else whole.location,
                role=None,
                offset=None,
                copies=1,
                pitch=None,
                tags=Tags(),
            )
        )
    passed = tuple(Index(index.name, 1, index.affine) for index in block.passed)
    inner_indices = tuple(
        replace(index, affine=Affine.var(index.name)) if index.is_passed else index for index in block.indices
    )
    inner = replace(block, indices=inner_indices, deps=())
    return Block(
        block.name,
        tuple(passed),
        (),
        tuple(outer_refs),
        (inner,),
        Location(),
        (),
        block.deps,
        Tags.of(*package_set),
    )
