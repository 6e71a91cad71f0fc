"""Making an index of an outer block visible further in, by passing it from block to block."""

from __future__ import annotations

from collections.abc import Callable
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
        block = block_at_path(root, path[: level + 1])
        own = _passed_as(block, name)
        if own is None:
            taken = {index.name for index in block.indices}
            own = name if name not in taken else fresh(f"{name}.o", taken)
            grown = replace(block, indices=(*block.indices, Index(own, 1, Affine.var(name))))
            root = replace_at(root, path[: level + 1], lambda _, grown=grown: grown)
        name = own
    return root, name


def block_at_path(root: Block, path: Path) -> Block:
    """The block at `path` below `root`."""
    for number in path[1:]:
        inner = root.statements[number]
        assert isinstance(inner, Block)
        root = inner
    return root


def _passed_as(block: Block, outer: str) -> str | None:
    """The name under which the index `outer` of the block outside is passed in already."""
    found = (i.name for i in block.passed if i.affine is not None and i.affine.single_name == outer)
    return next(found, None)
