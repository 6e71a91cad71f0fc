"""Refinements, constants and indices that nothing uses any more."""

from __future__ import annotations

from stripe.ir import Affine, Block, Direction, Program, Role, fresh, substitute, uses_by_name, with_main
from stripe.ir.frozen import replace
from stripe.rewrite.tile import used_indices


def user_tensors(entry: Block) -> frozenset[str]:
    """The names of the tensors of the caller; `main` takes the program's signature."""
    return frozenset(ref.name for ref in entry.refinements if ref.role is Role.USER)


def prune_refinements(block: Block, user: frozenset[str]) -> Block:
    """`block` without the refinements that its statements do not use; `main` keeps its views of `user` tensors."""
    main = block.is_main
    used = uses_by_name(block)
    kept = tuple(
        ref
        for ref in block.refinements
        if ref.role is Role.USER or (main and ref.source in user) or ref.name in used
    )
    return block if len(kept) == len(block.refinements) else replace(block, refinements=kept)


def with_interface(entry: Block, program: Program) -> Block:
    """`entry`, a rewritten entry of `program`, with a main that still reads all inputs and writes all outputs."""
    views = [ref for block in entry.blocks for ref in block.refinements]
    lost = {ref.name for ref in program.inputs} - {ref.source for ref in views if ref.dir.reads}
    lost |= {ref.name for ref in program.outputs} - {ref.source for ref in views if ref.dir.writes}

    def signed(main: Block) -> Block:
        refs = [replace(ref, dir=Direction.INOUT) if ref.source in lost else ref for ref in main.refinements]
        taken, seen = {ref.name for ref in refs}, {ref.source for ref in views}
        for ref in program.main.refinements:
            if ref.source in lost - seen:
                refs.append(replace(ref, name=fresh(ref.name, taken)))
                seen.add(ref.source)
        return replace(main, refinements=tuple(refs))

    return with_main(entry, signed) if lost else entry


def drop_constants(program: Program) -> Program:
    """`program` without the data of constants that are no longer allocated."""
    names = {ref.name for ref in program.entry.refinements}
    kept = tuple(buffer for buffer in program.constants if buffer.name in names)
    return program if len(kept) == len(program.constants) else replace(program, constants=kept)


def prune_indices(block: Block) -> Block:
    """`block` without indices of one known value and without unused passed-in ones; blocks inside keep theirs."""
    values: dict[str, Affine] = {}
    for index in block.indices:
        if index.affine is None and index.range == 1:
            values[index.name] = Affine()
        elif index.affine is not None and index.affine.is_constant:
            values[index.name] = index.affine
    if values:
        block = substitute(block, values)
        block = replace(block, indices=tuple(index for index in block.indices if index.name not in values))
        constraints = tuple(
            c for c in block.constraints if not (c.affine.is_constant and c.affine.offset >= 0)
        )
        block = replace(block, constraints=constraints) if constraints != block.constraints else block
    return drop_unused_passed(block)


def drop_unused_passed(block: Block) -> Block:
    """`block` without the passed indices that nothing in it uses; the same object when there are none."""
    if not block.passed:
        return block
    used = used_indices(block)
    kept = tuple(index for index in block.indices if index.affine is None or index.name in used)
    return block if len(kept) == len(block.indices) else replace(block, indices=kept)
