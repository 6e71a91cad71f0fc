"""Dependences of the statements that a pass makes, in a program whose statements have theirs."""

from __future__ import annotations

from stripe.ir import Block, Nest, Program, with_entry, with_statement
from stripe.ir.frozen import replace


def completed_dependences(before: Program, after: Program) -> Program:
    """`after` with all dependences of the statements of main, those that it declares included.

    `after` itself where none are missing by the pass in between: where neither program orders its statements
    (`compute_deps` has not run), where the pass left main with the same blocks in the same order, each at the same
    points and with the same views, and where it raised the stage of the program (`schedule` orders what it makes).
    """
    is_ordered = any(statement.deps for program in (before, after) for statement in program.main.statements)
    if not is_ordered or before.stage is not after.stage or _outline(before) == _outline(after):
        return after
    from stripe.poly import with_exact_deps  # isl takes long to load

    number = after.entry.statements.index(after.main)
    main = with_exact_deps(Nest.root(after.entry).enter(number), keep=True)
    return with_entry(after, with_statement(after.entry, number, main))


def _outline(program: Program) -> list[tuple[object, ...]]:
    """The names, points and views of the blocks of main, and its other statements."""
    return [
        (s.name, s.indices, s.constraints, s.refinements) if isinstance(s, Block) else (replace(s, deps=()),)
        for s in program.main.statements
    ]
