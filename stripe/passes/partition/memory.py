"""How `partition` splits allocations over banks: which dimension, and which index then selects the bank."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from stripe.ir import Block, Path, Refinement, Statement, block_at, map_statements, replace_at, walk
from stripe.passes.base import PassContext, TagSet
from stripe.rewrite.banks import Cut, rebanked
from stripe.rewrite.tile import tile_block


@dataclass(frozen=True, slots=True)
class BankOptions:
    """The options of `partition` that concern memory; see there. `multiple` divides the size of a part."""

    banks: int
    memory: str
    set_tags: TagSet
    idx_tag: str
    multiple: int
    only_even: bool
    min_bytes: int
    dim: int | None = None


def split_over_banks(entry: Block, reqs: Sequence[str], options: BankOptions, context: PassContext) -> Block:
    """`entry` with the allocations of matching blocks split over banks, one after the other."""
    for path in list(_matches(entry, reqs)):
        for ref in block_at(entry, path).allocs:
            if _wanted(ref, options):
                entry = _split_buffer(entry, path, ref, options, context)
    return entry


def _matches(entry: Block, reqs: Sequence[str]) -> Iterator[Path]:
    return (path for path, block in walk(entry) if block.tags.has_all(reqs))


def _wanted(ref: Refinement, options: BankOptions) -> bool:
    return (
        ref.bank_dim is None
        and ref.rank > 0
        and ref.bytes >= max(options.min_bytes, 1)
        and not ref.tags.has_any(("user", "const"))
        and (not options.memory or [d.name for d in ref.location.devices][-1:] == [options.memory])
    )


def _split_buffer(
    entry: Block, path: Path, ref: Refinement, options: BankOptions, context: PassContext
) -> Block:
    block = block_at(entry, path)
    reasons: list[str] = []
    wanted = [dim for dim in range(ref.rank) if options.dim in (None, dim)]
    cuts = {dim: _cut(ref, dim, options) for dim in wanted}
    reasons += [f"dimension {dim} has {ref.dims[dim].size} elements" for dim in wanted if cuts[dim] is None]
    usable = [cut for cut in cuts.values() if cut is not None]
    for cut in sorted(usable, key=lambda cut: (-cut.banks, -_walkers(block, ref.name, cut.dim), cut.dim)):
        tiled = _select_banks(block, ref.name, cut, options)
        changed = rebanked(tiled, ref.name, cut)
        if changed is None:
            reasons.append(f"a view spans banks of {cut.part} along dimension {cut.dim}")
            continue
        context.applied(
            block,
            f"{ref.name}: dimension {cut.dim} of {ref.dims[cut.dim].size} elements over {cut.banks} of "
            f"{options.banks} banks, {cut.part} each; {_selected(block, tiled)} blocks select one by an index",
        )
        return replace_at(entry, path, lambda _, changed=changed: changed)
    context.missed(block, f"{ref.name} is not split over {options.banks} banks: {'; '.join(reasons)}")
    return entry


def _cut(ref: Refinement, dim: int, options: BankOptions) -> Cut | None:
    size = ref.dims[dim].size
    part = -(-size // options.banks)
    part = -(-part // options.multiple) * options.multiple
    while options.only_even and size % part and part < size:
        part += options.multiple
    banks = -(-size // part)
    if banks < 2 or (options.only_even and size % part):
        return None
    return Cut(dim, part, banks)


def _walkers(block: Block, name: str, dim: int) -> int:
    """How many blocks inside walk the dimension with one index of their own."""
    return sum(_walking(inner, name, dim) is not None for inner in block.blocks)


def _walking(block: Block, name: str, dim: int) -> str | None:
    """The iterated index that alone, step by step from 0, walks the dimension of the buffer `name` in `block`."""
    names = {
        ref.access[dim].single_name if ref.dims[dim].size == 1 else None
        for ref in block.refinements
        if ref.source == name
    }
    found = next(iter(names)) if len(names) == 1 else None
    return found if found is not None and block.index(found).affine is None else None


def _select_banks(block: Block, name: str, cut: Cut, options: BankOptions) -> Block:
    """Tiles each block inside that walks the dimension, so that an outer index is the number of the bank."""

    def visit(statement: Statement) -> Statement:
        if not isinstance(statement, Block) or (
            options.set_tags and statement.tags.has_all(options.set_tags)
        ):
            return statement
        index = _walking(statement, name, cut.dim)
        if index is None or statement.index(index).range <= cut.part:
            return statement
        sizes = {i.name: cut.part if i.name == index else i.range for i in statement.iterated}
        tiled = tile_block(statement, sizes)
        indices = tuple(
            replace(i, tags=i.tags.add(options.idx_tag)) if options.idx_tag and i.name == index else i
            for i in tiled.indices
        )
        return replace(tiled, indices=indices, tags=tiled.tags.add(*options.set_tags))

    return map_statements(block, visit)


def _selected(before: Block, after: Block) -> int:
    return sum(a is not b for a, b in zip(before.statements, after.statements, strict=True))
