"""Points of a block in another form: a block around it, other frames of an index, vast ranges."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from stripe.ir import (
    Affine,
    Block,
    Constraint,
    Dim,
    Index,
    LoadIndex,
    Refinement,
    Statement,
    fresh,
)

VAST = (10**9, 3 * 10**9, 2**32, 10**12, 10**18)


def around(random: Random, block: Block) -> Block:
    """A block around this one: it has each view under a name of its own, and runs over an index of it."""
    moved = random.choice((*block.iterated, None))
    over = () if moved is None else (Index("w", moved.range),)
    indices = tuple(replace(i, range=1, affine=Affine.var("w")) if i is moved else i for i in block.indices)
    outer: list[Refinement] = []
    inner: list[Refinement] = []
    for ref in block.refinements:
        if ref.is_alloc:
            inner.append(ref)
            continue
        name = fresh(f"{ref.source}_w" if random.random() < 0.7 else ref.source, {r.name for r in outer})
        if moved is not None and random.random() < 0.5:  # what the index adds is in the view outside
            access = tuple(Affine.var("w") * a.coeff(moved.name) for a in ref.access)
            rest = tuple(a - Affine.var(moved.name) * a.coeff(moved.name) for a in ref.access)
        else:
            access, rest = (Affine(),) * ref.rank, ref.access
        boxes = [a.bounds(block.intervals({"w": (0, moved.range - 1 if moved else 0)})) for a in rest]
        dims = tuple(Dim(high + dim.size, dim.stride) for (_, high), dim in zip(boxes, ref.dims, strict=True))
        if any(low < 0 for low, _ in boxes):
            return block
        outer.append(replace(ref, name=name, access=access, dims=dims))
        inner.append(replace(ref, source=name, access=rest))
    bare = replace(block, indices=indices, refinements=tuple(inner), tags=block.tags.add("inner"))
    return Block(f"{block.name}_w", over, (), tuple(outer), (bare,), tags=block.tags.add("outer"))


def in_another_frame(random: Random, block: Block) -> Block:
    """An index counts backwards or from another number: its values are others, its points the same."""
    if not block.iterated:
        return block
    index = random.choice(block.iterated)
    if random.random() < 0.5:
        return _with_values(block, index, index.range, Affine(index.range - 1) - Affine.var(index.name))
    shift = random.randint(1, 3)
    block = _with_values(block, index, index.range + shift, Affine.var(index.name) - shift)
    more = Constraint(Affine.var(index.name) - shift)
    return replace(block, constraints=(*block.constraints, more))


def vast(random: Random, block: Block) -> Block:
    """An index has a range of 10^9 and more; its values are the first ones, or lie far out."""
    if not block.iterated:
        return block
    index = random.choice(block.iterated)
    size = random.choice(VAST)
    first = random.choice((0, size // 2, size - index.range))
    block = _with_values(block, index, size, Affine.var(index.name) - first)
    low = [Constraint(Affine.var(index.name) - first)] if first else []
    high = Constraint(Affine(first + index.range - 1) - Affine.var(index.name))
    return replace(block, constraints=(*block.constraints, *low, high))


def _with_values(block: Block, index: Index, size: int, value: Affine) -> Block:
    """The block with another range of an index, whose former values are `value`."""
    change = {index.name: value}
    indices = (
        replace(i, range=size) if i is index else replace(i, affine=None if i.affine is None else i.affine)
        for i in block.indices
    )
    refs = (replace(ref, access=tuple(a.subs(change) for a in ref.access)) for ref in block.refinements)

    def inside(statement: Statement) -> Statement:
        if isinstance(statement, LoadIndex):
            return replace(statement, affine=statement.affine.subs(change))
        if isinstance(statement, Block):
            passed = (
                replace(i, affine=i.affine.subs(change)) if i.affine is not None else i
                for i in statement.indices
            )
            return replace(statement, indices=tuple(passed))
        return statement

    return replace(
        block,
        indices=tuple(indices),
        constraints=tuple(Constraint(c.affine.subs(change)) for c in block.constraints),
        refinements=tuple(refs),
        statements=tuple(map(inside, block.statements)),
    )
