"""Tensors of the user in blocks, with holes where the last block is not full: merged into, updated, read whole."""

from __future__ import annotations

from dataclasses import replace

from stripe.ir import (
    DTYPES,
    Affine,
    Agg,
    Block,
    Direction,
    Index,
    Intrinsic,
    Load,
    LoadIndex,
    Refinement,
    Role,
    Store,
    Tags,
)
from stripe.ir.index_map import IndexMap, PhysicalLayout
from tests.fuzz.structures.draft import KINDS, MERGES, Draft, Group, Scope, Seen
from tests.fuzz.structures.scalars import Body


def packed(draft: Draft, scope: Scope) -> Group:
    """A tensor with a layout, which is mostly input and output, kernels that merge into it, and one that reads it."""
    random = draft.random
    group = Group(draft)
    if draft.points > 1:
        return group
    length, width = random.randint(2, 7), random.randint(2, 4)
    layout = PhysicalLayout(IndexMap.blocked((0,), {0: width}), (length,))
    dtype, agg = DTYPES[random.choice(KINDS)], random.choice(MERGES)
    number = random.choice((agg.identity(dtype), 0, 3))
    pad = dtype.numpy().type(number).item() if random.random() < 0.7 else None
    tensor = group.buffer("B", dtype, (-(-length // width), width), role=Role.USER)
    group.allocs[0] = replace(group.allocs[0], layout=replace(layout, pad=pad))
    result = group.buffer("BR", dtype, (1,), role=Role.TEMPORARY)
    group.views[0] = replace(group.views[0], agg=agg)
    if draft.schedulable:  # which refuse inputs that are outputs
        draft.defined.add("B")
    else:
        is_input = random.random() < 0.75
        if is_input:
            draft.defined.add("B")
        for _ in range(random.choice((1, 1, 2))):
            assigns = "B" not in draft.defined or random.random() < 0.3
            group.statements.append(_update(draft, scope, tensor, layout, Agg.ASSIGN if assigns else agg))
            draft.defined.add("B")
    reads_holes = pad is not None and random.random() < 0.5
    group.statements.append(_read(draft, tensor, result, layout, whole=reads_holes))
    draft.defined.add("BR")
    group.seen["BR"] = result
    return group


def _update(draft: Draft, scope: Scope, tensor: Seen, layout: PhysicalLayout, agg: Agg) -> Block:
    """A store to each logical element, or to each element of all blocks, the identity to those that are holes."""
    random = draft.random
    full = random.random() < 0.5 and agg is not Agg.ASSIGN
    indices, access, element = _domain(tensor, layout, full=full)
    merged = Index("k", random.choice((2, 3)))
    if agg is not Agg.ASSIGN and random.random() < 0.4:
        indices = (*indices, merged)
    body = Body(random, indices, scope, draft.defined)
    if agg is Agg.ASSIGN and tensor.name in draft.defined:
        body.read(tensor, list(access))
    body.read_some(not_of=tensor.name)
    value = body.value(tensor.dtype)
    if full:
        begin = body.constant(agg.identity(tensor.dtype), tensor.dtype)
        place, last = body.scalar(DTYPES["i32"]), body.constant(layout.sizes[0], DTYPES["i32"])
        body.code.append(LoadIndex(place, element))
        inside, chosen = body.scalar(DTYPES["bool"]), body.scalar(tensor.dtype)
        body.code.append(Intrinsic(inside, "cmp_lt", (place, last)))
        body.code.append(Intrinsic(chosen, "cond", (inside, value, begin)))
        value = chosen
    body.code.append(Store(body.view(tensor, Direction.OUT, list(access), agg).name, value))
    tags = ("kernel",) if agg is Agg.ASSIGN else ("kernel", "contraction", f"agg_op_{agg.value}")
    return body.block(f"kernel_{next(draft.numbers)}", (), Tags.of(*tags))


def _read(draft: Draft, tensor: Seen, result: Seen, layout: PhysicalLayout, *, whole: bool) -> Block:
    """A reduction of the elements, with or without the holes."""
    indices, access, _ = _domain(tensor, layout, full=whole)
    agg = result.agg
    dims = tuple(replace(dim, size=1) for dim in tensor.dims)
    refs = (
        Refinement(tensor.name, Direction.IN, tensor.name, access, tensor.dtype, dims),
        Refinement(result.name, Direction.OUT, result.name, (Affine(),), result.dtype, result.dims, agg),
    )
    code = (Load("s0", tensor.name), Store(result.name, "s0"))
    tags = Tags.of("kernel", "contraction", f"agg_op_{agg.value}")
    return Block(f"kernel_{next(draft.numbers)}", indices, (), refs, code, tags=tags)


def _domain(
    tensor: Seen, layout: PhysicalLayout, *, full: bool
) -> tuple[tuple[Index, ...], tuple[Affine, ...], Affine]:
    """Indices over the logical elements or over all of the blocks, the access, and the logical element."""
    if not full:
        at = Affine.var("i0")
        return (Index("i0", layout.sizes[0]),), layout.map.at((at,)), at
    blocks, width = tensor.sizes
    outer, inner = Affine.var("i0"), Affine.var("i1")
    return (Index("i0", blocks), Index("i1", width)), (outer, inner), outer * width + inner
