"""Blocks without their names: alike layers of a network become equal, and what was found for one holds for all."""

from __future__ import annotations

from dataclasses import replace

from stripe.ir import Block, rename_refinements, rename_scalars, scalar_defined


def nameless(block: Block) -> Block:
    """`block` under names that tell nothing: its own, those of its refinements and their sources, and of its scalars.

    Index names stay, and so do tags, locations and all numbers. Blocks inside keep their names.
    """
    refs = {ref.name: f"r{number}" for number, ref in enumerate(block.refinements)}
    scalars = (scalar_defined(statement) for statement in block.statements)
    defined = dict.fromkeys(name for name in scalars if name is not None)
    found = rename_refinements(block, refs)
    return replace(
        found,
        name="",
        refinements=tuple(replace(ref, source="s" if ref.source else "") for ref in found.refinements),
        statements=rename_scalars(found.statements, {name: f"v{n}" for n, name in enumerate(defined)}),
        comments=(),
        deps=(),
    )
