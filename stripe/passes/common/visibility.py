"""Blocks by their path, and indices of outer blocks made visible further in, passed from block to block."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from stripe.ir import Affine, Block, Index, Path, fresh, with_statement


def replace_at(root: Block, path: Path, function: Callable[[Block], Block]) -> Block:
    """`root` with `function` applied to the block at `path` (which starts with the root's own number)."""
    if len(path) == 1:
        return function(root)
    number = path[1]
    inner = root.statements[number]
    assert isinstance(inner, Block)
    return with_statement(root, number, replace_at(inner, path[1:], function))


def pass_index(root: Block, path: Path, depth: int, name: str) -> tuple[Block, str]:
    """Passes index `name` of the block at depth `depth` of `path` down to the block at `path`.

    Gives the new root and the name of the index there. A block that is passed that index already is not changed.
    """
    for level in range(depth + 1, len(path)):
        grown, names = passed_into(block_at_path(root, path[: level + 1]), [name])
        root = replace_at(root, path[: level + 1], lambda _, grown=grown: grown)
        name = names[name].single_name or name
    return root, name


def passed_into(block: Block, names: Iterable[str]) -> tuple[Block, dict[str, Affine]]:
    """`block` with the indices `names` of the block outside passed in, and what each is called there."""
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


def block_at_path(root: Block, path: Path) -> Block:
    """The block at `path` below `root`."""
    for number in path[1:]:
        inner = root.statements[number]
        assert isinstance(inner, Block)
        root = inner
    return root
