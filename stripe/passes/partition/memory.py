"""Splits of allocations over banks for `partition`: the dimension, and the index that then selects the bank."""

from __future__ import annotations

from dataclasses import dataclass

from stripe.ir import Block, Refinement, Statement, map_statements
from stripe.ir.frozen import replace
from stripe.passes.base import Refusal, TagSet
from stripe.rewrite.banks import Cut, rebanked
from stripe.rewrite.tile import tile_block


@dataclass(frozen=True, slots=True)
class Banked:
    """A block in which an allocation is split over banks, with the numbers."""

    block: Block
    numbers: str


def is_split(ref: Refinement, memory: str) -> bool:
    """Whether an allocation lies in `memory` and may be split over its banks."""
    return (
        ref.bank_dim is None
        and ref.bytes > 0
        and not ref.is_kept
        and [device.name for device in ref.location.devices][-1:] == [memory]
    )


def split_over_banks(
    block: Block, ref: Refinement, banks: int, set_tags: TagSet, idx_tag: str
) -> Banked | Refusal:
    """`block` with its allocation `ref` over at most `banks` banks: along the dimension with the most of them, then
    with the most blocks that walk it. Blocks over banks get `set_tags`, their indices `idx_tag`.
    """
    cuts: list[Cut] = []
    reasons: list[str] = []
    for dim, size in enumerate(ref.sizes):
        part = -(-size // banks)
        if part < size:
            cuts.append(Cut(dim, part, -(-size // part)))
        else:
            reasons.append(f"dimension {dim} has {size} elements")
    walkers = {
        cut: sum(_walking(inner, ref.name, cut.dim) is not None for inner in block.blocks) for cut in cuts
    }
    for cut in sorted(cuts, key=lambda cut: (-cut.banks, -walkers[cut], cut.dim)):
        tiled = _select_banks(block, ref.name, cut, set_tags, idx_tag)
        changed = rebanked(tiled, ref.name, cut)
        if changed is not None:
            selected = sum(a is not b for a, b in zip(block.statements, tiled.statements, strict=True))
            return Banked(
                changed,
                f"dimension {cut.dim} of {ref.sizes[cut.dim]} elements over {cut.banks} of {banks} banks, "
                f"{cut.part} each; {selected} blocks select one by an index",
            )
        reasons.append(f"a view spans banks of {cut.part} along dimension {cut.dim}")
    return Refusal("; ".join(reasons) or "it has no dimension")


def _walking(block: Block, name: str, dim: int) -> str | None:
    """The iterated index that alone, step by step from 0, walks the dimension of the buffer `name` in `block`."""
    names = {
        ref.access[dim].single_name if ref.dims[dim].size == 1 else None
        for ref in block.refinements
        if ref.source == name
    }
    found = next(iter(names)) if len(names) == 1 else None
    return found if found is not None and block.index(found).affine is None else None


def _select_banks(block: Block, name: str, cut: Cut, set_tags: TagSet, idx_tag: str) -> Block:
    """Tiles each block inside that walks the dimension, so that an outer index is the number of the bank."""

    def visit(statement: Statement) -> Statement:
        if not isinstance(statement, Block) or (set_tags and statement.tags.has_all(set_tags)):
            return statement
        index = _walking(statement, name, cut.dim)
        if index is None or statement.index(index).range <= cut.part:
            return statement
        sizes = {i.name: cut.part if i.name == index else i.range for i in statement.iterated}
        tiled = tile_block(statement, sizes)
        indices = tuple(
            replace(i, tags=i.tags.add(idx_tag)) if idx_tag and i.name == index else i for i in tiled.indices
        )
        return replace(tiled, indices=indices, tags=tiled.tags.add(*set_tags))

    return map_statements(block, visit)
