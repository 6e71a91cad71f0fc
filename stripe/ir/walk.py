"""Walking blocks and rewriting them on the way; whatever does not change stays the same object."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

from stripe.ir.affine import Affine
from stripe.ir.block import Block, Statement
from stripe.ir.frozen import replace
from stripe.ir.program import Program
from stripe.ir.refinement import Refinement

Path: TypeAlias = tuple[int, ...]
"""Statement numbers from the entry (always 0) down to a statement."""


def path_text(path: Path) -> str:
    """A path in messages: `0.0.2`."""
    return ".".join(map(str, path))


def walk(block: Block, path: Path = (0,)) -> Iterator[tuple[Path, Block]]:
    """The block and all blocks inside it, outer before inner, in program order."""
    yield path, block
    for number, statement in enumerate(block.statements):
        if isinstance(statement, Block):
            yield from walk(statement, (*path, number))


def has_addresses(block: Block) -> bool:
    """Whether an allocation of the block or inside it has an address."""
    return any(ref.offset is not None for _, inner in walk(block) for ref in inner.allocs)


def block_at(root: Program | Block, path: Path) -> Block:
    """The block at `path`, which starts with the number of the root; IndexError or TypeError when there is none."""
    block = root.entry if isinstance(root, Program) else root
    for number in path[1:]:
        inner = block.statements[number]
        if not isinstance(inner, Block):
            raise TypeError(f"statement {number} of {block.name} is no block")
        block = inner
    return block


def replace_at(root: Block, path: Path, function: Callable[[Block], Block]) -> Block:
    """`root` with `function` applied to the block at `path`, which starts with the number of the root."""
    if len(path) == 1:
        return function(root)
    inner = root.statements[path[1]]
    if not isinstance(inner, Block):
        raise TypeError(f"statement {path[1]} of {root.name} is no block")
    return with_statement(root, path[1], replace_at(inner, path[1:], function))


def with_statements(block: Block, statements: Iterable[Statement]) -> Block:
    """`block` with other statements; the same object when they are the same objects."""
    fresh = tuple(statements)
    if len(fresh) == len(block.statements) and all(
        a is b for a, b in zip(fresh, block.statements, strict=True)
    ):
        return block
    return replace(block, statements=fresh)


def with_statement(block: Block, number: int, statement: Statement) -> Block:
    """`block` with another statement in the place of one; the same object when it is the same."""
    if statement is block.statements[number]:
        return block
    before, after = block.statements[:number], block.statements[number + 1 :]
    return replace(block, statements=(*before, statement, *after))


def with_entry(program: Program, entry: Block) -> Program:
    """`program` with another entry; the same object when it is the same."""
    return program if entry is program.entry else replace(program, entry=entry)


def map_statements(block: Block, function: Callable[[Statement], Statement]) -> Block:
    """Applies `function` to each direct statement."""
    return with_statements(block, [function(statement) for statement in block.statements])


def with_main(entry: Block, function: Callable[[Block], Block]) -> Block:
    """`entry` with `function` applied to main; the same object when nothing changed."""
    return map_statements(entry, lambda s: function(s) if isinstance(s, Block) and s.is_main else s)


def rewrite_blocks(block: Block, function: Callable[[Block], Block]) -> Block:
    """Applies `function` to every block of the nest, inner before outer; the same object when nothing changed."""

    def visit(statement: Statement) -> Statement:
        return rewrite_blocks(statement, function) if isinstance(statement, Block) else statement

    return function(map_statements(block, visit))


def rewrite_matching(block: Block, reqs: Iterable[str], function: Callable[[Block], Block]) -> Block:
    """Applies `function` to each outermost block that has all tags of `reqs`; does not descend into a match."""
    words = tuple(reqs)
    if block.words.has_all(words):
        return function(block)

    def visit(statement: Statement) -> Statement:
        return rewrite_matching(statement, words, function) if isinstance(statement, Block) else statement

    return map_statements(block, visit)


def map_views(block: Block, functions: Mapping[str, Callable[[Refinement], Refinement]]) -> Block:
    """Applies each function to the refinement of `block` that it belongs to by name, and to every view of that in the
    blocks inside; the same object when nothing changed. One walk does for all names.
    """

    def visit(statement: Statement) -> Statement:
        if not isinstance(statement, Block):
            return statement
        inner = {r.name: functions[r.source] for r in statement.refinements if r.source in functions}
        return map_views(statement, inner) if inner else statement

    refs = tuple(functions[ref.name](ref) if ref.name in functions else ref for ref in block.refinements)
    if any(a is not b for a, b in zip(refs, block.refinements, strict=True)):
        block = replace(block, refinements=refs)
    return map_statements(block, visit)


def views_moved(statement: Statement, by: Mapping[str, Sequence[Affine | int]]) -> Statement:
    """`statement` with the views of each source in `by` moved, by one distance in elements for each dimension."""
    if not isinstance(statement, Block) or not any(ref.source in by for ref in statement.refinements):
        return statement
    refs = (ref.moved(by[ref.source]) if ref.source in by else ref for ref in statement.refinements)
    return replace(statement, refinements=tuple(refs))
