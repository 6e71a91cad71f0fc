"""Walking and rewriting blocks, and the one substitution helper that all passes share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TypeAlias

from stripe.ir.affine import Affine
from stripe.ir.block import (
    Block,
    Constant,
    Constraint,
    Index,
    Intrinsic,
    Load,
    LoadIndex,
    Special,
    Statement,
    Store,
)
from stripe.ir.program import Program
from stripe.ir.refinement import Agg, Direction, Refinement

Path: TypeAlias = tuple[int, ...]
"""Statement numbers from the entry (always 0) down to a statement."""


def walk(block: Block, path: Path = (0,)) -> Iterator[tuple[Path, Block]]:
    """The block and all blocks inside it, outer before inner, in program order."""
    yield path, block
    for number, statement in enumerate(block.statements):
        if isinstance(statement, Block):
            yield from walk(statement, (*path, number))


def block_at(program: Program, path: Path) -> Block:
    """The block at `path`; IndexError or TypeError when there is none."""
    block = program.entry
    for number in path[1:]:
        inner = block.statements[number]
        if not isinstance(inner, Block):
            raise TypeError(f"statement {number} is no block")
        block = inner
    return block


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


def rewrite_blocks(block: Block, function: Callable[[Block], Block]) -> Block:
    """Applies `function` to every block of the nest, inner before outer; the same object when nothing changed."""

    def visit(statement: Statement) -> Statement:
        return rewrite_blocks(statement, function) if isinstance(statement, Block) else statement

    return function(map_statements(block, visit))


def rewrite_matching(block: Block, reqs: Iterable[str], function: Callable[[Block], Block]) -> Block:
    """Applies `function` to each outermost block that has all tags of `reqs`; does not descend into a match."""
    words = tuple(reqs)
    if block.tags.has_all(words):
        return function(block)

    def visit(statement: Statement) -> Statement:
        return rewrite_matching(statement, words, function) if isinstance(statement, Block) else statement

    return map_statements(block, visit)


def substitute(block: Block, mapping: Mapping[str, Affine]) -> Block:
    """Replaces indices of `block` wherever its inside uses them: constraints, accesses, locations, `load_index` and
    the affines that pass indices to the blocks inside. The list of indices itself stays as it is.
    """
    used = {name: affine for name, affine in mapping.items() if affine.single_name != name}
    if not used:
        return block
    return replace(
        block,
        constraints=tuple(Constraint(c.affine.subs(used)) for c in block.constraints),
        refinements=tuple(substitute_ref(ref, used) for ref in block.refinements),
        location=block.location.subs(used),
        statements=tuple(_substitute_statement(statement, used) for statement in block.statements),
    )


def substitute_ref(ref: Refinement, mapping: Mapping[str, Affine]) -> Refinement:
    """Replaces indices in the access and the location of a refinement."""
    access = tuple(affine.subs(mapping) for affine in ref.access)
    location = ref.location.subs(mapping)
    if location is ref.location and all(a is b for a, b in zip(access, ref.access, strict=True)):
        return ref
    return replace(ref, access=access, location=location)


def _substitute_statement(statement: Statement, mapping: Mapping[str, Affine]) -> Statement:
    if isinstance(statement, LoadIndex):
        return replace(statement, affine=statement.affine.subs(mapping))
    if isinstance(statement, Block) and any(index.is_passed for index in statement.indices):
        return replace(
            statement, indices=tuple(_substitute_index(index, mapping) for index in statement.indices)
        )
    return statement


def _substitute_index(index: Index, mapping: Mapping[str, Affine]) -> Index:
    return index if index.affine is None else replace(index, affine=index.affine.subs(mapping))


def rename_indices(block: Block, names: Mapping[str, str]) -> Block:
    """Renames indices of `block` in its list and in all uses."""
    if not any(index.name in names for index in block.indices):
        return block
    renamed = substitute(block, {old: Affine.var(new) for old, new in names.items()})
    return replace(
        renamed, indices=tuple(replace(i, name=names.get(i.name, i.name)) for i in renamed.indices)
    )


def rename_refinements(block: Block, names: Mapping[str, str]) -> Block:
    """Renames refinements of `block` and their uses by its statements (`source` names in the blocks inside)."""
    if not any(ref.name in names for ref in block.refinements):
        return block
    refs = tuple(
        replace(ref, name=names[ref.name]) if ref.name in names else ref for ref in block.refinements
    )
    return replace(block, refinements=refs, statements=tuple(retarget(s, names) for s in block.statements))


def retarget(statement: Statement, names: Mapping[str, str]) -> Statement:
    """Renames the refinements of the block outside that a statement uses."""
    match statement:
        case Load(_, ref) if ref in names:
            return replace(statement, ref=names[ref])
        case Store(ref, _) if ref in names:
            return replace(statement, ref=names[ref])
        case Special(_, outputs, inputs):
            return replace(
                statement,
                outputs=tuple(names.get(n, n) for n in outputs),
                inputs=tuple(names.get(n, n) for n in inputs),
            )
        case Block():
            refs = tuple(
                replace(r, source=names[r.source]) if r.source in names else r for r in statement.refinements
            )
            return replace(statement, refinements=refs) if refs != statement.refinements else statement
        case _:
            return statement


def rename_scalars(statements: Iterable[Statement], names: Mapping[str, str]) -> tuple[Statement, ...]:
    """Renames scalars in their definitions and uses."""
    return tuple(_rename_scalar(statement, names) for statement in statements)


def _rename_scalar(statement: Statement, names: Mapping[str, str]) -> Statement:
    match statement:
        case Store(_, value):
            return replace(statement, value=names.get(value, value))
        case Intrinsic(into, _, inputs):
            return replace(
                statement, into=names.get(into, into), inputs=tuple(names.get(n, n) for n in inputs)
            )
        case Load(into) | LoadIndex(into) | Constant(into):
            return replace(statement, into=names.get(into, into))
        case _:
            return statement


def reads_of(statement: Statement) -> tuple[str, ...]:
    """Names of the refinements of the enclosing block that a statement reads."""
    match statement:
        case Load(_, ref):
            return (ref,)
        case Special(_, _, inputs):
            return inputs
        case Block():
            return tuple(r.source for r in statement.refinements if r.dir.reads)
        case _:
            return ()


def writes_of(statement: Statement) -> tuple[str, ...]:
    """Names of the refinements of the enclosing block that a statement writes."""
    match statement:
        case Store(ref, _):
            return (ref,)
        case Special(_, outputs, _):
            return outputs
        case Block():
            return tuple(r.source for r in statement.refinements if r.dir.writes)
        case _:
            return ()


def scalar_defined(statement: Statement) -> str | None:
    """The scalar that a statement defines, if any."""
    match statement:
        case Load(into) | LoadIndex(into) | Constant(into) | Intrinsic(into):
            return into
        case _:
            return None


def scalars_used(statement: Statement) -> tuple[str, ...]:
    """The scalars that a statement uses."""
    match statement:
        case Store(_, value):
            return (value,)
        case Intrinsic(_, _, inputs):
            return inputs
        case _:
            return ()


def aggregations_of(block: Block, scalar: str) -> frozenset[Agg]:
    """The aggregations by which a scalar of the block is merged into elements; ASSIGN stands for any other use."""
    uses = (statement for statement in block.statements if scalar in scalars_used(statement))
    return frozenset(block.ref(use.ref).agg if isinstance(use, Store) else Agg.ASSIGN for use in uses)


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


def uses_of(block: Block, name: str) -> tuple[int, ...]:
    """Numbers of the statements of `block` that use its refinement `name`."""
    return tuple(
        number
        for number, statement in enumerate(block.statements)
        if name in reads_of(statement) or name in writes_of(statement) or name in views_of(statement)
    )


def uses_by_name(block: Block) -> dict[str, tuple[int, ...]]:
    """`uses_of` for all refinements of `block` that are used, in one walk over its statements."""
    found: dict[str, list[int]] = {}
    for number, statement in enumerate(block.statements):
        for name in dict.fromkeys((*reads_of(statement), *writes_of(statement), *views_of(statement))):
            found.setdefault(name, []).append(number)
    return {name: tuple(numbers) for name, numbers in found.items()}


def views_of(statement: Statement) -> tuple[str, ...]:
    """Names of the refinements of the enclosing block that a block refines, whatever the direction."""
    return tuple(r.source for r in statement.refinements if r.source) if isinstance(statement, Block) else ()


def keep_statements(block: Block, numbers: Iterable[int]) -> Block:
    """`block` with only the statements of these numbers, in the order given; dependences are renumbered, and those on a
    dropped statement pass to what it depended on.
    """
    kept = list(numbers)
    if kept == list(range(len(block.statements))):
        return block
    place = {old: new for new, old in enumerate(kept)}

    def resolve(deps: Iterable[int]) -> set[int]:
        found: set[int] = set()
        for dep in deps:
            found |= {place[dep]} if dep in place else resolve(block.statements[dep].deps)
        return found

    statements = [block.statements[old] for old in kept]
    return replace(
        block,
        statements=tuple(
            replace(s, deps=tuple(sorted(resolve(s.deps)))) if s.deps else s for s in statements
        ),
    )


def with_directions(block: Block) -> Block:
    """The nest with the direction of each view as its uses demand, inner before outer; unused views stay as
    they are."""
    block = map_statements(block, lambda s: with_directions(s) if isinstance(s, Block) else s)
    read = {name for statement in block.statements for name in reads_of(statement)}
    written = {name for statement in block.statements for name in writes_of(statement)}
    refs = tuple(_redirected(ref, ref.name in read, ref.name in written) for ref in block.refinements)
    same = all(a is b for a, b in zip(refs, block.refinements, strict=True))
    return block if same else replace(block, refinements=refs)


def _redirected(ref: Refinement, read: bool, written: bool) -> Refinement:
    if ref.is_alloc or not (read or written):
        return ref
    direction = Direction.INOUT if read and written else Direction.IN if read else Direction.OUT
    return ref if direction is ref.dir else replace(ref, dir=direction)
