"""Properties of a function by which gcc rounds otherwise than the program: its options follow from them.

gcc contracts a function as a whole, and makes products where the program has none: `x / 4` becomes `x * 0.25`, `x + x`
becomes `x * 2`. Contracted with a sum, these round once where the program rounds twice. And it makes `-(a*b) - c` of
`-(a*b + c)`, also where the sum is a call of fmaf: a zero has the other sign.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from stripe.emit.loops.plan import BlockPlan
from stripe.emit.loops.products import products
from stripe.ir import (
    INTRINSICS,
    Agg,
    Block,
    Constant,
    Direction,
    Intrinsic,
    Load,
    Nest,
    Refinement,
    Store,
    scalar_defined,
    scalars_used,
    value_key,
)
from stripe.ir.nest import Buffer

Origins: TypeAlias = "frozenset[Buffer | frozenset[Buffer] | None]"
"""The sources of a value: buffers that the function does not write, products by the buffers of their factors, and
None where a compiler may take the value for a product."""
_PRODUCT: Origins = frozenset({None})


@dataclass(slots=True)
class GccHazards:
    """What a function holds that gcc rounds or orders otherwise, unless its options forbid it.

    `contracts`: any product may be rounded together with the sum that takes it, as the program has it. `negates`: sums
    of products may be negated. `has_several_sums`: floats are added or subtracted in several places, or a loop carries
    several sums. `stores_neighbours`: one iteration of a loop stores to several elements of a buffer.
    """

    contracts: bool = False
    negates: bool = False
    has_several_sums: bool = False
    stores_neighbours: bool = False

    @staticmethod
    def of(block: Block, memory: Mapping[str, str]) -> GccHazards:
        """Those of a block as a function of its own, but for what its loops carry and store. `memory` as `contracts`
        has it."""
        return GccHazards(contracts(block, memory), negates(block), adds_repeatedly(block))


def contracts(block: Block, memory: Mapping[str, str]) -> bool:
    """Whether gcc may contract `block`, a function of its own: sums take products in one rounding somewhere inside, and
    nothing else is, or may become, a product of floats that is added to something. `memory` names the memory of each
    view around: two names may be one.
    """
    nests = list(Nest.root(block).walk())
    if not any(products(nest.block) for nest in nests) or any(map(_multiplies, nests)) or negates(block):
        return False
    contents: dict[Buffer, Origins] = {}
    while True:  # loops carry values to statements before
        known = dict(contents)
        if any(_adds_to_product(nest, contents, memory) for nest in nests):
            return False
        if contents == known:
            return True


def negates(block: Block) -> bool:
    """Whether `block`, a function of its own, holds sums of products, and operations that negate or that a compiler may
    take for a negation: `x * -1`, `-0.0 - x`."""
    nests = [nest.block for nest in Nest.root(block).walk()]
    negations = (value_key(-1.0), value_key(-0.0))
    return any(map(products, nests)) and any(
        statement.op == "neg"
        if isinstance(statement, Intrinsic)
        else isinstance(statement, Constant) and value_key(statement.value) in negations
        for nest in nests
        for statement in nest.statements
    )


def adds_repeatedly(block: Block) -> bool:
    """Whether `block`, a function of its own, adds, subtracts or negates floats in more than one place, operations of
    several steps included. gcc 12 makes vectors of sums and differences beside each other, and rounds each together
    with its product, whatever its options say (its bug 107647). It finds products and differences where the program has
    none: `x + x` is one, and `p - q` is made of `p + q * -1.0`. So no sum is asked what it adds.
    """
    return sum(map(_additions, Nest.root(block).walk())) > 1


def _additions(nest: Nest) -> int:
    """The operations of a block on floats that a compiler may take for sums or differences, or make of some."""
    block = nest.block
    casts = {s.dtype for s in block.statements if isinstance(s, Intrinsic) and s.dtype is not None}
    if not any(dtype.is_float for dtype in {*casts, *(ref.dtype for ref in block.refinements)}):
        return 0
    return sum(
        statement.op in ("add", "sub", "neg") or not INTRINSICS[statement.op].exact
        if isinstance(statement, Intrinsic)
        else isinstance(statement, Store) and block.ref(statement.ref).agg is Agg.ADD
        for statement in block.statements
    )


def _multiplies(nest: Nest) -> bool:
    """Whether a block computes products on their own, or operations that take several steps."""
    block, summed = nest.block, products(nest.block)
    return any(
        (statement.op == "mul" and statement.into not in summed) or not INTRINSICS[statement.op].exact
        if isinstance(statement, Intrinsic)
        else isinstance(statement, Store) and block.ref(statement.ref).agg is Agg.MUL
        for statement in block.statements
    )


def _adds_to_product(nest: Nest, contents: dict[Buffer, Origins], memory: Mapping[str, str]) -> bool:
    """Whether the statements of a block add to something that may become a product, `contents` being what the written
    buffers hold, which it extends."""
    block, summed = nest.block, products(nest.block)
    values: dict[str, Origins] = {}
    for statement in block.statements:
        used = [values.get(name, frozenset()) for name in scalars_used(statement)]
        origins: Origins = frozenset[Buffer | frozenset[Buffer] | None]().union(*used)
        match statement:
            case Load(into, ref):
                buffer = _memory_of(nest, ref, memory)
                values[into] = contents.get(buffer, frozenset({buffer}))
            case Intrinsic(into) if into in summed:
                factors = [{each} if isinstance(each, Buffer) else each or () for each in origins]
                values[into] = frozenset({frozenset[Buffer]().union(*factors)})
            case Intrinsic(into, "add" | "sub"):
                if None in origins:
                    return True
                values[into] = origins | (_PRODUCT if _may_be_equal(*used) else frozenset())
            case Intrinsic(into, "div"):
                values[into] = origins | _PRODUCT
            case Store(name, value):
                ref, buffer = block.ref(name), _memory_of(nest, name, memory)
                whole = all(isinstance(each, frozenset) for each in origins)  # a partial sum
                if ref.agg is Agg.ADD and ref.dtype.is_float and value not in summed and not whole:
                    return True  # x + x + x
                contents[buffer] = contents.get(buffer, frozenset()) | origins
            case _:
                if into := scalar_defined(statement):
                    values[into] = origins
    return False


def _memory_of(nest: Nest, ref: str, memory: Mapping[str, str]) -> Buffer:
    """The buffer of a view, one for all names of one memory."""
    buffer = nest.views[ref].buffer
    return buffer if buffer.path else Buffer((), memory[buffer.name])


def _may_be_equal(first: Origins, second: Origins) -> bool:
    """Whether a compiler may find two values to be the same at some points: they have a common origin, or none."""
    return not first.isdisjoint(second) or not (first or second)


def carries_sums(plan: BlockPlan) -> bool:
    """Whether a loop may carry several merges from iteration to iteration in scalar variables.

    One merge in an innermost loop that no compiler makes straight code of is carried alone, unless a compiler merges
    its value term by term. Any other becomes several where a loop around it carries on.
    """
    stores = [statement for statement in plan.block.statements if isinstance(statement, Store)]
    merges = [store for store in stores if _merges(plan.block.ref(store.ref))]
    if plan.tile:
        return bool(merges) and any(point.lanes == 1 for point in (*plan.tile.points, *plan.tile.rest))
    if len(merges) != 1 or not plan.loops:
        return bool(merges)
    return plan.is_short(-1) or _merges_by_term(plan, merges[0].ref)


def _merges(ref: Refinement) -> bool:
    return ref.agg is not Agg.ASSIGN or ref.dir is Direction.INOUT


def _merges_by_term(plan: BlockPlan, name: str) -> bool:
    """Whether a compiler may merge parts of a value one by one into an element that the innermost loop carries:
    terms of integers, and terms that the block adds by itself to what it has loaded."""
    ref = plan.block.ref(name)
    ops = {statement.op for statement in plan.block.statements if isinstance(statement, Intrinsic)}
    if ref.agg is Agg.ASSIGN:
        moves = plan.loops[-1].var in plan.scope.areas[name].origin.names()
        return not moves and not ops.isdisjoint({"add", "sub", "neg", "mul"})
    merged = {"add": {"add", "sub", "neg"}, "mul": {"mul"}}.get(ref.agg.value, set[str]())
    return not ref.dtype.is_float and not ops.isdisjoint(merged)
