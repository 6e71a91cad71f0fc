"""Nests: blocks around kernels, which see parts of buffers and allocate their own."""

from __future__ import annotations

from dataclasses import replace

from stripe.ir import (
    Affine,
    Block,
    Direction,
    Index,
    Refinement,
    Statement,
    Tags,
    fresh,
)
from tests.fuzz.structures.draft import MERGES, Draft, Scope, Seen, few_points
from tests.fuzz.structures.kernels import kernel


def statements(draft: Draft, scope: Scope, wanted: int, depth: int) -> tuple[Statement, ...]:
    """Some blocks, among them nests within nests."""
    random = draft.random
    found: list[Statement] = []
    for _ in range(wanted):
        nested = depth < 2 and random.random() < 0.4
        block = nest(draft, scope, depth) if nested else kernel(draft, scope)
        if block is not None:
            found.append(block)
    return tuple(found)


def nest(draft: Draft, scope: Scope, depth: int) -> Block | None:
    """A block around others: it sees some buffers in parts by its indices, and the others whole."""
    random = draft.random
    indices = tuple(
        Index(name, random.choice((2, 3, 4, 5))) for name in ("x", "y")[: random.choice((0, 1, 1, 2))]
    )
    inner: Scope = {}
    refs: list[Refinement] = []
    for seen in random.sample(list(scope.values()), min(len(scope), random.randint(2, 4))):
        access = [Affine()] * len(seen.dims)
        sizes = list(seen.sizes)
        left = {index.name: index.range for index in indices}
        for dim in random.sample(range(len(sizes)), len(sizes)):
            fitting = [name for name, size in left.items() if size <= sizes[dim]]
            if fitting and random.random() < 0.8:
                name = random.choice(fitting)
                part = sizes[dim] // left.pop(name)
                access[dim] = Affine.var(name) * part
                sizes[dim] = part
        free = not left
        merges = seen.merges and (free or random.random() < 0.6)
        dims = tuple(replace(dim, size=size) for dim, size in zip(seen.dims, sizes, strict=True))
        inner[seen.name] = replace(
            seen,
            dims=dims,
            writes=seen.writes and free,
            merges=merges,
            reads=seen.reads and (free or not merges),
        )
        direction = Direction.INOUT if seen.writes or seen.merges else Direction.IN
        refs.append(Refinement(seen.name, direction, seen.name, tuple(access), seen.dtype, dims, seen.agg))
    local, more = allocations(draft, inner)
    if not any(seen.merges or seen.writes for seen in inner.values()):
        return None
    inside = statements(draft, inner | local, random.randint(1, 4), depth + 1)
    if not inside:
        return None
    constraints = few_points(draft, indices) if random.random() < 0.15 else ()
    tags = Tags.of(*random.choice((("outer",), ("kernel",), ("tile", "outer"), ())))
    return Block(f"nest_{next(draft.numbers)}", indices, constraints, (*refs, *more), inside, tags=tags)


def allocations(draft: Draft, scope: Scope) -> tuple[Scope, list[Refinement]]:
    """Some allocations of a block."""
    random = draft.random
    found: Scope = {}
    refs: list[Refinement] = []
    for _ in range(random.choice((0, 0, 1, 1, 2))):
        name = fresh("L", {*scope, *found})
        dtype = random.choice(list(scope.values())).dtype
        sizes = tuple(random.choice((1, 2, 3, 4)) for _ in range(random.choice((1, 1, 2))))
        ref = Refinement.alloc(name, dtype, sizes)
        found[name] = Seen(name, ref.dims, dtype, random.choice(MERGES))
        refs.append(ref)
        draft.defined.discard(name)
    return found, refs
