"""The layout in which the elements of a buffer that a tile reads lie in one piece: blocks of the extent of the tiles'
views."""

from __future__ import annotations

from stripe.ir import Affine, Path, Program, Refinement
from stripe.ir.index_map import IndexMap
from stripe.rewrite.refusal import Refusal
from stripe.rewrite.strides import memory_order


def tiled_map(program: Program, path: Path, ref: Refinement, tag: str) -> IndexMap | Refusal:
    """The layout of a buffer of the block at `path` for the blocks of main that have a tag, which alone may use it.

    A dimension along which they view a part has blocks of that part, and the number of the block lies outside all
    other dimensions.
    """
    views = [view for view in program.main.refinements if view.source == ref.name]
    if len(path) != 1 or len(views) != 1 or views[0].sizes != ref.sizes or {*views[0].access} != {Affine()}:
        return Refusal("main does not see all of it by one view")
    name = views[0].name
    users = [
        (block, view) for block in program.main.blocks for view in block.refinements if view.source == name
    ]
    others = [block.name for block, _ in users if tag not in block.tags]
    if others or not users:
        return Refusal(f"{others[0]} is not tagged {tag}" if others else "nothing uses it")
    found = [_blocks(ref, view) for _, view in users]
    if any(blocks != found[0] for blocks in found):
        return Refusal("its tiles have several extents")
    if found[0] is None:
        return Refusal("its tiles do not move by whole extents")
    order = sorted(memory_order(ref), key=lambda dim: dim not in (found[0] or ()))
    return IndexMap.blocked(order, found[0])


def _blocks(ref: Refinement, view: Refinement) -> dict[int, int] | None:
    """The extents of a view in the dimensions of which it covers a part; None where it moves by less than that."""
    blocks: dict[int, int] = {}
    for dim, (affine, size, extent) in enumerate(zip(view.access, ref.sizes, view.sizes, strict=True)):
        if extent == size:
            continue
        steps = (affine.offset, *(factor for _, factor in affine.terms))
        if not affine.is_linear or any(step % extent for step in steps):
            return None
        blocks[dim] = extent
    return blocks
