"""Rewriting blocks in their surroundings."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from stripe.ir import Block, Nest, Program, Statement, keep_statements, with_entry, with_statements


def rewrite_nests(program: Program, reqs: Sequence[str], function: Callable[[Nest], Block]) -> Program:
    """Applies `function` to each outermost block with all tags of `reqs`, given with the blocks around it."""

    def visit(nest: Nest) -> Block:
        if nest.block.words.has_all(reqs):
            return function(nest)
        if not any(True for _ in nest.block.blocks):
            return nest.block
        statements: list[Statement] = list(nest.block.statements)
        for number, child in nest.children():
            statements[number] = visit(child)
        return with_statements(nest.block, statements)

    return with_entry(program, visit(Nest.root(program.entry)))


def rewrite_below(nest: Nest, function: Callable[[Nest], Block | None]) -> Block | None:
    """Applies `function` to the innermost block of `nest`, then to the blocks inside the result, each in its new
    surroundings. A block for which `function` gives None is dropped.
    """
    block = function(nest)
    if block is None:
        return None
    fresh = nest.with_block(block)
    statements: list[Statement] = list(block.statements)
    kept = list(range(len(statements)))
    for number, child in fresh.children():
        inner = rewrite_below(child, function)
        if inner is None:
            kept.remove(number)
        else:
            statements[number] = inner
    return keep_statements(with_statements(block, statements), kept)
