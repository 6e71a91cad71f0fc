"""Uses of refinements and scalars by the statements of a block: reads, writes, views, aggregations."""

from __future__ import annotations

from collections.abc import Collection

from stripe.ir.block import (
    Block,
    Constant,
    Intrinsic,
    Load,
    LoadIndex,
    Special,
    Statement,
    Store,
)
from stripe.ir.frozen import replace
from stripe.ir.refinement import Agg, Direction, Refinement
from stripe.ir.walk import map_statements


def reads_of(statement: Statement) -> tuple[str, ...]:
    """Names of the refinements of the enclosing block that a statement reads."""
    match statement:
        case Load(_, ref):
            return (ref,)
        case Special(_, _, inputs):
            return inputs
        case Block():
            return tuple(r.source for r in statement.refinements if r.dir.reads)
        case _:
            return ()


def writes_of(statement: Statement) -> tuple[str, ...]:
    """Names of the refinements of the enclosing block that a statement writes."""
    match statement:
        case Store(ref, _):
            return (ref,)
        case Special(_, outputs, _):
            return outputs
        case Block():
            return tuple(r.source for r in statement.refinements if r.dir.writes)
        case _:
            return ()


def views_of(statement: Statement) -> tuple[str, ...]:
    """Names of the refinements of the enclosing block that a block refines, whatever the direction."""
    return tuple(r.source for r in statement.refinements if r.source) if isinstance(statement, Block) else ()


def scalar_defined(statement: Statement) -> str | None:
    """The scalar that a statement defines, if any."""
    match statement:
        case Load(into) | LoadIndex(into) | Constant(into) | Intrinsic(into):
            return into
        case _:
            return None


def scalars_used(statement: Statement) -> tuple[str, ...]:
    """The scalars that a statement uses."""
    match statement:
        case Store(_, value):
            return (value,)
        case Intrinsic(_, _, inputs):
            return inputs
        case _:
            return ()


def aggregations_of(block: Block, scalar: str) -> frozenset[Agg]:
    """The aggregations by which a scalar of the block is merged into elements; any other use counts as ASSIGN."""
    uses = (statement for statement in block.statements if scalar in scalars_used(statement))
    return frozenset(block.ref(use.ref).agg if isinstance(use, Store) else Agg.ASSIGN for use in uses)


def refs_used(statement: Statement) -> tuple[str, ...]:
    """Names of the refinements of the enclosing block that a statement reads, writes or views."""
    return tuple(dict.fromkeys((*reads_of(statement), *writes_of(statement), *views_of(statement))))


def uses_of(block: Block, name: str) -> tuple[int, ...]:
    """Numbers of the statements of `block` that use its refinement `name`."""
    return tuple(n for n, statement in enumerate(block.statements) if name in refs_used(statement))


def uses_by_name(block: Block) -> dict[str, tuple[int, ...]]:
    """`uses_of` for all refinements of `block` that are used, in one walk over its statements."""
    found: dict[str, list[int]] = {}
    for number, statement in enumerate(block.statements):
        for name in refs_used(statement):
            found.setdefault(name, []).append(number)
    return {name: tuple(numbers) for name, numbers in found.items()}


def with_directions(block: Block) -> Block:
    """The nest with the direction of each view as its uses demand, inner before outer; unused views stay as
    they are."""
    block = map_statements(block, lambda s: with_directions(s) if isinstance(s, Block) else s)
    read = {name for statement in block.statements for name in reads_of(statement)}
    written = {name for statement in block.statements for name in writes_of(statement)}
    refs = tuple(_redirected(ref, ref.name in read, ref.name in written) for ref in block.refinements)
    same = all(a is b for a, b in zip(refs, block.refinements, strict=True))
    return block if same else replace(block, refinements=refs)


def _redirected(ref: Refinement, read: bool, written: bool) -> Refinement:
    if ref.is_alloc or not (read or written):
        return ref
    direction = Direction.INOUT if read and written else Direction.IN if read else Direction.OUT
    return ref if direction is ref.dir else replace(ref, dir=direction)


def aggregations(block: Block, names: Collection[str] | None = None) -> dict[str, tuple[Agg, ...]]:
    """The aggregations of all stores into each refinement of `block` (or of the ones in `names`), through the blocks
    inside, in the order of first use. A special assigns. Refinements without stores are missing.
    """
    aggs = {ref.name: ref.agg for ref in block.refinements if names is None or ref.name in names}
    found: dict[str, dict[Agg, None]] = {}
    for statement in block.statements:
        if isinstance(statement, Store) and statement.ref in aggs:
            found.setdefault(statement.ref, {})[aggs[statement.ref]] = None
        elif isinstance(statement, Special):
            for name in aggs.keys() & statement.outputs:
                found.setdefault(name, {})[Agg.ASSIGN] = None
        elif isinstance(statement, Block):
            views = {r.name: r.source for r in statement.refinements if r.dir.writes and r.source in aggs}
            inner = aggregations(statement, views.keys()) if views else {}
            for view, source in views.items():
                found.setdefault(source, {}).update(dict.fromkeys(inner.get(view, ())))
    return {name: tuple(merged) for name, merged in found.items() if merged}


def beginnings(block: Block) -> dict[str, Agg]:
    """The aggregation of each refinement at whose identity an allocation starts; ASSIGN where it starts undefined."""
    merged = aggregations(block)
    return {
        ref.name: next((agg for agg in merged.get(ref.name, ()) if agg is not Agg.ASSIGN), Agg.ASSIGN)
        for ref in block.refinements
    }


def own_aggregation(block: Block, name: str) -> Agg:
    """The aggregation by which statements of `block` itself store to its refinement `name`, which a refinement in its
    place needs; ASSIGN where none does."""
    stores = any(isinstance(statement, Store) and statement.ref == name for statement in block.statements)
    return block.ref(name).agg if stores else Agg.ASSIGN


def loaded_refs(block: Block) -> set[str]:
    """Names of the refinements of `block` that a load or a special reads, in `block` or inside."""
    found: set[str] = set()
    for statement in block.statements:
        if isinstance(statement, Block):
            inside = loaded_refs(statement)
            found.update(ref.source for ref in statement.refinements if ref.source and ref.name in inside)
        else:
            found.update(reads_of(statement))
    return found
