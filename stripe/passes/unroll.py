"""The pass `unroll`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import product
from math import prod
from typing import ClassVar

from pydantic import Field

from stripe.ir import (
    Affine,
    Block,
    Constraint,
    Index,
    Location,
    Program,
    Refinement,
    Statement,
    Tags,
    fresh,
    indices_of,
    moved_down,
    rename_scalars,
    retarget,
    scalar_defined,
    substitute,
    with_entry,
    with_statement,
)
from stripe.ir.frozen import replace
from stripe.passes.base import BlockPass, PassContext, PassExample, PassGroup, Refusal, Reqs
from stripe.rewrite.copy import with_beginnings
from stripe.rewrite.dissolve import dissolve
from stripe.rewrite.prune import with_interface
from stripe.rewrite.tile import used_indices


class Unroll(BlockPass):
    """Writes the body of a block once for each value of its indices, or of some of them.

    `{ "reqs": ["kernel"], "expand_idx": "x" }`:

        #kernel block [x:2, y:8] (                  #kernel block [y:8] (
            in I[x, y] (1:8, 1:1)                       out O[y]:add (1:1)
            out O[y]:add (1:1)            =>            in I_x0 = I[0, y] (1:8, 1:1)
        ) {                                             in I_x1 = I[1, y] (1:8, 1:1)
          0: $i = load(I)                           ) {
          1: O = store($i)                            0: $i = load(I_x0)
        }                                             1: O = store($i)
                                                      2: $i_x1 = load(I_x1)
                                                      3: O = store($i_x1)

    Points that constraints exclude vanish; a copy whose constraints still hold indices runs in a block of its own.
    Constants are folded into accesses, locations, `load_index` and the indices passed to blocks inside.

    With `make_views` the block dissolves: its statements, and a view for each part, become part of the block around it,
    so that passes over its statements (`schedule`) see each part:

        #main block [] ( // main                    #main block [] ( // main
            inout T[0, 0] (2:8, 8:1)                    inout T[0, 0] (2:8, 8:1)
        ) {                                             inout T_b0 = T[0, 0] (1:8, 8:1)
          0: #kernel block [b:2] (                      inout T_b1 = T[1, 0] (1:8, 8:1)
              inout T[b, 0] (1:8, 8:1)      =>      ) {
          ) {                                         0: #kernel block [x:8] (
            0: block [x:8] (                              inout T = T_b0[0, x] (1:8, 1:1)
                inout T[0, x] (1:8, 1:1)              ) { … }
            ) { … }                                   1: #kernel block [x:8] (
          }                                               inout T = T_b1[0, x] (1:8, 1:1)
        }                                             ) { … }
                                                    }
    """

    pass_name: ClassVar[str] = "unroll"
    refused: ClassVar[str] = "not unrolled"
    group: ClassVar[PassGroup] = PassGroup.STRUCTURE
    example: ClassVar[PassExample] = PassExample("reqs=[kernel],max_points=64")

    reqs: Reqs
    expand_idx: str = Field(
        default="", description="the index to expand, or '#tag' of indices; all where empty"
    )
    max_points: int = Field(
        default=64, ge=1, description="leave blocks alone that would be copied more often"
    )

    make_views: bool = Field(
        default=False,
        description="make the copies statements of the block around, which gets a view of each part",
    )

    def run(self, program: Program, context: PassContext) -> Program:
        """As for any pass over blocks; with `make_views` the unrolled blocks dissolve into those around."""
        if not self.make_views:
            return with_beginnings(program, super().run(program, context))

        def visit(parent: Block) -> Block:
            number = 0
            while number < len(parent.statements):
                block, rest = parent.statements[number], len(parent.statements) - number - 1
                if isinstance(block, Block):
                    parent = self._visited(parent, number, block, visit, context)
                number = len(parent.statements) - rest  # behind the copies
            return parent

        entry = with_interface(visit(program.entry), program)
        return with_beginnings(program, with_entry(program, entry))

    def _visited(
        self, parent: Block, number: int, block: Block, visit: Callable[[Block], Block], context: PassContext
    ) -> Block:
        """The block around with its statement `number` dissolved, or visited where it is not asked for."""
        if not block.words.has_all(self.reqs):
            changed = visit(block)
            return parent if changed is block else with_statement(parent, number, changed)
        answer = self._dissolved(parent, number, block, context)
        if isinstance(answer, Refusal):
            context.missed(block, f"{self.refused}: {answer.reason}")
            return parent
        return answer

    def _dissolved(self, parent: Block, number: int, block: Block, context: PassContext) -> Block | Refusal:
        """The block around with the copies of its statement `number` in the place of it."""
        if block.is_main:
            return Refusal("the entry has no statement but main")
        chosen = self._chosen(block)
        if isinstance(chosen, Refusal):
            return chosen
        found = dissolve(with_statement(parent, number, unroll_block(block, chosen)), number)
        if not isinstance(found, Refusal):
            context.applied(block, _summary(chosen))
        return found

    def rewrite(self, block: Block, context: PassContext) -> Block | Refusal:
        chosen = self._chosen(block)
        if isinstance(chosen, Refusal):
            return chosen
        context.applied(block, _summary(chosen))
        return unroll_block(block, chosen)

    def _chosen(self, block: Block) -> tuple[Index, ...] | Refusal:
        """The indices to expand."""
        wanted = self.expand_idx
        chosen = tuple(
            index
            for index in block.iterated
            if (wanted[1:] in index.tags if wanted.startswith("#") else wanted in ("", index.name))
        )
        points = prod(index.range for index in chosen)
        if not chosen:
            return Refusal(f"no index '{wanted}'" if wanted else "no index")
        if points > self.max_points:
            return Refusal(f"{points} points, at most {self.max_points} are allowed")
        bound = block.location.names() & {index.name for index in chosen}
        return Refusal(f"{min(bound)} chooses the unit that runs the block") if bound else chosen


def _summary(chosen: tuple[Index, ...]) -> str:
    points = prod(index.range for index in chosen)
    return f"{', '.join(index.name for index in chosen)} unrolled into {points} copies"


def unroll_block(block: Block, chosen: tuple[Index, ...]) -> Block:
    """`block` with the iterated indices `chosen` written out in lexicographic order."""
    builder = _BodyCopies(block, chosen)
    for values in product(*(range(index.range) for index in chosen)):
        point = {index.name: Affine(value) for index, value in zip(chosen, values, strict=True)}
        builder.add(point, "_".join(f"{i.name}{v}" for i, v in zip(chosen, values, strict=True)))
    return builder.result()


class _BodyCopies:
    """Collects the copies of one body: shared refinements once, the others and all scalars under names of their own."""

    def __init__(self, block: Block, chosen: tuple[Index, ...]) -> None:
        self._block = block
        self._chosen = {index.name for index in chosen}
        self._rest = tuple(index for index in block.indices if index.name not in self._chosen)
        self._common = tuple(c for c in block.constraints if not c.affine.names() & self._chosen)
        """The constraints without a chosen index: they stay on the block."""
        self._refs = [ref for ref in block.refinements if self._is_shared(ref)]
        self._ref_names = {ref.name for ref in self._refs}
        self._statements: list[Statement] = []
        self._scalars: set[str] = set()

    def _is_shared(self, ref: Refinement) -> bool:
        names = indices_of(ref.access) | ref.location.names()
        return not ref.is_alloc and not names & self._chosen

    def add(self, point: Mapping[str, Affine], label: str) -> None:
        """Adds the copy at `point`; its dependences point into the copy itself."""
        body = substitute(self._block, point)
        own = tuple(c for c in body.constraints if c not in self._common)
        if any(c.affine.is_constant and c.affine.offset < 0 for c in own):
            return
        own = tuple(c for c in own if not c.affine.is_constant)
        # the refinements that depend on the point; a guarded copy keeps its allocations inside
        names: dict[str, str] = {}
        for ref, original in zip(body.refinements, self._block.refinements, strict=True):
            if self._is_shared(original) or (ref.is_alloc and own):
                continue
            names[ref.name] = fresh(f"{ref.name}_{label}", self._ref_names)
            self._ref_names.add(names[ref.name])
            self._refs.append(replace(ref, name=names[ref.name]))
        if own:
            self._statements.append(self._guarded(body, own, names))
            return
        scalars: dict[str, str] = {}
        for statement in body.statements:
            name = scalar_defined(statement)
            if name is not None:
                scalars[name] = fresh(f"{name}_{label}", self._scalars) if name in self._scalars else name
                self._scalars.add(scalars[name])
        start = len(self._statements)
        for statement in rename_scalars(body.statements, scalars):
            self._statements.append(moved_down(retarget(statement, names), start))

    def _guarded(self, body: Block, own: tuple[Constraint, ...], names: Mapping[str, str]) -> Block:
        """The copy as a block of one point that takes the remaining indices from outside and holds its constraints."""
        refs = tuple(
            ref
            if ref.is_alloc
            else replace(ref, source=names.get(ref.name, ref.name), access=(Affine(),) * ref.rank)
            for ref in body.refinements
        )
        guarded = replace(
            body,
            indices=(),
            constraints=own,
            refinements=refs,
            deps=(),
            tags=Tags(),
            comments=(),
            location=Location(),
        )
        used = used_indices(guarded)
        passed = tuple(
            Index(index.name, 1, Affine.var(index.name)) for index in self._rest if index.name in used
        )
        return replace(guarded, indices=passed)

    def result(self) -> Block:
        return replace(
            self._block,
            indices=self._rest,
            constraints=self._common,
            refinements=tuple(self._refs),
            statements=tuple(self._statements),
        )
