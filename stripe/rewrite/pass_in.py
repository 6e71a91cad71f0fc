"""Indices of outer blocks made visible further in, passed from block to block."""

from __future__ import annotations

from collections.abc import Iterable

from stripe.ir import Affine, Block, Index, Path, block_at, fresh, replace_at
from stripe.ir.frozen import replace


def pass_index(root: Block, path: Path, depth: int, name: str) -> tuple[Block, str]:
    """`root` with index `name` of the block at depth `depth` of `path` passed down to the block at `path`, and its name
    there. A block that has the index already is not changed."""
    for level in range(depth + 1, len(path)):
        grown, names = passed_into(block_at(root, path[: level + 1]), [name])
        root = replace_at(root, path[: level + 1], lambda _, grown=grown: grown)
        name = names[name].single_name or name
    return root, name


def passed_into(block: Block, names: Iterable[str]) -> tuple[Block, dict[str, Affine]]:
    """`block` with the indices `names` of the block outside passed in, and the name of each there."""
    found = {
        index.affine.single_name: Affine.var(index.name)
        for index in block.passed
        if index.affine is not None and index.affine.single_name is not None
    }
    taken = {index.name for index in block.indices}
    added: list[Index] = []
    for name in names:
        if name not in found:
            own = fresh(name if name not in taken else f"{name}.o", taken)
            taken.add(own)
            added.append(Index(own, 1, Affine.var(name)))
            found[name] = Affine.var(own)
    return (replace(block, indices=(*block.indices, *added)) if added else block), found
