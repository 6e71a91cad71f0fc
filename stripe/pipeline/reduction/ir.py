"""Smaller programs in the IR: fewer statements, blocks, refinements, constraints and tags; smaller ranges and sizes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from stripe.ir import (
    Affine,
    Block,
    Dim,
    Direction,
    Index,
    Location,
    Path,
    Program,
    Refinement,
    Role,
    Stage,
    Tags,
    keep_statements,
    map_statements,
    map_views,
    reads_of,
    replace_at,
    rewrite_blocks,
    row_major,
    scalar_defined,
    scalars_used,
    substitute,
    views_of,
    walk,
    with_directions,
    with_entry,
    writes_of,
)
from stripe.pipeline.reduction.search import Item, Step, cuts, one_changed, smaller_numbers

_KEPT_TAGS = frozenset({"program"})


def fewer_statements(program: Program) -> Iterator[Program]:
    """Without some statements, and without refinements that nothing uses then."""
    paths = [
        (*path, number)
        for path, block in walk(program.entry)
        for number, statement in enumerate(block.statements)
        if not (isinstance(statement, Block) and statement.is_main)
    ]
    for cut in cuts(len(paths)):
        gone = {paths[n] for n in cut}
        yield _cleaned(with_entry(program, _without(program.entry, (0,), gone)))


def _without(block: Block, path: Path, gone: set[Path]) -> Block:
    """The nest without the statements at the paths `gone`, and without users of scalars that lose their definition."""
    statements = [
        _without(s, (*path, n), gone) if isinstance(s, Block) and (*path, n) not in gone else s
        for n, s in enumerate(block.statements)
    ]
    block = replace(block, statements=tuple(statements))
    defined: set[str] = set()
    kept: list[int] = []
    for number, statement in enumerate(statements):
        empty = isinstance(statement, Block) and not statement.statements and not statement.is_main
        if (*path, number) in gone or empty or not defined.issuperset(scalars_used(statement)):
            continue
        kept.append(number)
        defined.update(filter(None, [scalar_defined(statement)]))
    return keep_statements(block, kept)


def _cleaned(program: Program) -> Program:
    """Without unused refinements; temporaries that are no longer both written and read become inputs or outputs."""
    entry = with_directions(_without_unused(program.entry))
    main = replace(program, entry=entry).main
    one_way = {
        ref.source for ref in main.refinements if ref.dir in (Direction.IN, Direction.OUT) and ref.source
    }
    refs = tuple(
        replace(ref, role=Role.USER) if ref.name in one_way and ref.role is Role.TEMPORARY else ref
        for ref in entry.refinements
    )
    names = {ref.name for ref in refs}
    constants = tuple(constant for constant in program.constants if constant.name in names)
    return Program(replace(entry, refinements=refs), constants)


def _without_unused(block: Block) -> Block:
    block = map_statements(block, lambda s: _without_unused(s) if isinstance(s, Block) else s)
    used: set[str] = set()
    for statement in block.statements:
        used.update(reads_of(statement), writes_of(statement), views_of(statement))
    return replace(block, refinements=tuple(ref for ref in block.refinements if ref.name in used))


def fewer_constraints(program: Program) -> Iterator[Program]:
    return _fewer(program, lambda block: block.constraints, lambda b, kept: replace(b, constraints=kept))


def fewer_tags(program: Program) -> Iterator[Program]:
    """Without some tags of blocks and statements, but for those that structure demands."""

    def removable(block: Block) -> tuple[str, ...]:
        return tuple(word for word in block.tags if word not in _KEPT_TAGS)

    def rebuilt(block: Block, kept: tuple[str, ...]) -> Block:
        return replace(block, tags=block.tags.remove(*(set(removable(block)) - set(kept))))

    return _fewer(program, removable, rebuilt)


def _fewer(
    program: Program,
    items_of: Callable[[Block], tuple[Item, ...]],
    rebuilt: Callable[[Block, tuple[Item, ...]], Block],
) -> Iterator[Program]:
    """Without runs of the items that blocks have."""
    total = sum(len(items_of(block)) for _, block in walk(program.entry))
    for cut in cuts(total):
        count = 0

        def visit(block: Block, cut: frozenset[int] = cut) -> Block:
            nonlocal count
            items = items_of(block)
            kept = tuple(item for n, item in enumerate(items, count) if n not in cut)
            count += len(items)
            return block if len(kept) == len(items) else rebuilt(block, kept)

        yield with_entry(program, rewrite_blocks(program.entry, visit))


def plainer(program: Program) -> Iterator[Program]:
    """Without comments, dependences, locations, tags of refinements: each kind as a whole."""

    def bare_refs(block: Block, change: Callable[[Refinement], Refinement]) -> Block:
        return replace(block, refinements=tuple(map(change, block.refinements)))

    def no_tags(ref: Refinement) -> Refinement:
        return replace(ref, tags=Tags(), offset=None, copies=1, pitch=None)

    changes: list[Callable[[Block], Block]] = [
        lambda b: replace(b, comments=()),
        lambda b: map_statements(b, lambda s: replace(s, deps=())),
        lambda b: bare_refs(replace(b, location=Location()), lambda r: replace(r, location=Location())),
        lambda b: bare_refs(b, no_tags),
        lambda b: replace(b, stage=Stage.TILED, pipeline_depth=None),
    ]
    for change in changes:
        yield with_entry(program, rewrite_blocks(program.entry, change))


def smaller_ranges(program: Program) -> Iterator[Program]:
    """With one index of a smaller range; then with one of range 1 taken as 0."""
    for path, block in walk(program.entry):
        for indices in one_changed(block.indices, _with_smaller_range):
            yield _at(program, path, lambda b, indices=indices: replace(b, indices=indices))
    for path, block in walk(program.entry):
        for index in block.iterated:
            if index.range == 1:
                rest = tuple(i for i in block.indices if i is not index)
                fixed = substitute(block, {index.name: Affine(0)})
                yield _at(program, path, lambda _, fixed=fixed, rest=rest: replace(fixed, indices=rest))


def _with_smaller_range(index: Index) -> Iterator[Index]:
    for number in () if index.is_passed else smaller_numbers(index.range, 1):
        yield replace(index, range=number)


def smaller_sizes(program: Program) -> Iterator[Program]:
    """With one number smaller wherever it is the size of an allocation, of a view or the range of an index."""
    numbers = {size for _, block in walk(program.entry) for ref in block.refinements for size in ref.sizes}
    for number in sorted(numbers, reverse=True):
        for less in smaller_numbers(number, 1):
            yield with_entry(
                program, rewrite_blocks(program.entry, lambda b, n=number, m=less: _resized(b, n, m))
            )


def _resized(block: Block, number: int, less: int) -> Block:
    """Called for inner blocks first, so that an allocation gives its new strides to views that have their sizes."""
    indices = tuple(replace(i, range=less) if i.range == number else i for i in block.indices)
    refs = tuple(
        replace(ref, dims=tuple(Dim(less, d.stride) if d.size == number else d for d in ref.dims))
        for ref in block.refinements
    )
    block = replace(block, indices=indices, refinements=refs)
    for ref in refs:
        if ref.is_alloc:
            strides = [dim.stride for dim in row_major(ref.sizes)]
            block = map_views(block, {ref.name: lambda view, strides=strides: view.with_strides(strides)})
    return block


def simpler_accesses(program: Program) -> Iterator[Program]:
    """With one access that is 0, or that has no offset."""
    for path, block in walk(program.entry):
        for refs in one_changed(block.refinements, _with_simpler_access):
            yield _at(program, path, lambda b, refs=refs: replace(b, refinements=refs))


def _with_simpler_access(ref: Refinement) -> Iterator[Refinement]:
    for access in one_changed(ref.access, lambda affine: (Affine(0), affine - affine.offset)):
        yield replace(ref, access=access)


def _at(program: Program, path: Path, change: Callable[[Block], Block]) -> Program:
    return with_entry(program, replace_at(program.entry, path, change))


STEPS: tuple[Step[Program], ...] = (
    fewer_statements, plainer, fewer_tags, fewer_constraints, smaller_sizes, smaller_ranges, simpler_accesses,
)  # fmt: skip
