"""The pass `scalarize`."""

from __future__ import annotations

from typing import ClassVar

from stripe.ir import (
    Agg,
    Block,
    Constant,
    Edit,
    Intrinsic,
    Load,
    Refinement,
    Role,
    Special,
    Store,
    beginnings,
    fresh,
    map_statements,
    rename_scalars,
    scalar_defined,
    uses_of,
)
from stripe.ir.frozen import replace
from stripe.passes.base import BlockPass, PassContext, PassExample, PassGroup, Reqs


class Scalarize(BlockPass):
    """Replaces buffers of one element by scalars, in the matching blocks and all inside them.

        block [x:8] (                                  block [x:8] (
            in I[x]                                        in I[x]
            none new T[0] (1:1)                            out O[x]
            out O[x]                            =>     ) {
        ) {                                              0: $a = load(I)
          0: $a = load(I)                                1: $b = exp($a)
          1: T = store($a)                               2: O = store($b)
          2: $t = load(T)
          3: $b = exp($t)
          4: O = store($b)
        }

    A buffer stays when a block inside or a special uses it, or when it is read before it holds a value.
    """

    pass_name: ClassVar[str] = "scalarize"
    group: ClassVar[PassGroup] = PassGroup.STRUCTURE
    example: ClassVar[PassExample] = PassExample(after=("fusion,localize",))

    reqs: Reqs = ("main",)

    def rewrite(self, block: Block, context: PassContext) -> Block:
        block = scalarize_block(block, context)
        return map_statements(block, lambda s: self.rewrite(s, context) if isinstance(s, Block) else s)


def scalarize_block(block: Block, context: PassContext) -> Block:
    """Replaces the one-element buffers of `block` itself."""
    begins = beginnings(block)
    for ref in block.allocs:
        if ref.elements != 1 or ref.role in (Role.USER, Role.CONSTANT):
            continue
        statements = [block.statements[number] for number in uses_of(block, ref.name)]
        if any(isinstance(statement, Block | Special) for statement in statements):
            context.missed(block, f"{ref.name} stays a buffer: a block inside or a special uses it")
            continue
        agg = begins[ref.name]
        if agg is Agg.ASSIGN and statements and isinstance(statements[0], Load):
            context.missed(block, f"{ref.name} stays a buffer: it is read before it is written")
            continue
        block = _forward(block, ref, agg)
        context.applied(block, f"{ref.name} became a scalar")
    return block


def _forward(block: Block, ref: Refinement, agg: Agg) -> Block:
    """Stores into `ref` define its current scalar, merged by the aggregation; loads read that."""
    current: str | None = None
    taken = {name for s in block.statements if (name := scalar_defined(s)) is not None}
    renamed: dict[str, str] = {}
    edit = Edit(block)
    for number, original in enumerate(block.statements):
        (statement,) = rename_scalars([original], renamed)
        if isinstance(statement, Store) and statement.ref == ref.name:
            if current is None or ref.agg is Agg.ASSIGN:
                current = statement.value
            else:
                merged = fresh(f"{ref.name}_{ref.agg.value}", taken)
                taken.add(merged)
                operation = Intrinsic(merged, ref.agg.intrinsic(ref.dtype), (current, statement.value))
                edit.put(operation, replaces=(number,))
                current = merged
        elif isinstance(statement, Load) and statement.ref == ref.name:
            if current is None:
                current = fresh(f"{ref.name}_{agg.value}", taken)
                taken.add(current)
                edit.put(Constant(current, agg.identity(ref.dtype), ref.dtype), replaces=(number,))
            renamed[statement.into] = current
        else:
            edit.put(statement, replaces=(number,))
    kept = tuple(other for other in block.refinements if other.name != ref.name)
    return replace(edit.result(), refinements=kept)
