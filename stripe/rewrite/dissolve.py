"""A block of one point dissolved: its statements, and its views, become part of the block around it."""

from __future__ import annotations

from stripe.ir import (
    Affine,
    Block,
    Direction,
    Refinement,
    Statement,
    fresh,
    reads_of,
    retarget,
    splice,
    substitute,
    views_moved,
    views_of,
    writes_of,
)
from stripe.ir.frozen import replace
from stripe.rewrite.refusal import Refusal


def dissolve(parent: Block, number: int) -> Block | Refusal:
    """`parent` with the statements of its block `number` in the place of it, through views that `parent` itself has.

    The block has one point, so that its buffers live as long as before. Its tags, its location and its dependences go
    to its statements. (Those that they have among themselves come behind the pass, see `pipeline/dependences.py`.)
    """
    block = parent.statements[number]
    assert isinstance(block, Block)
    if block.points > 1 or block.passed or block.constraints:
        return Refusal("it still has indices or constraints")
    block = replace(substitute(block, {index.name: Affine() for index in block.indices}), indices=())
    if not all(isinstance(statement, Block) for statement in block.statements):
        return Refusal("it has statements that are no blocks")
    if not parent.is_main and any(statement.deps for statement in parent.statements):
        return Refusal(f"statements of {parent.name} have dependences, and it is not main")
    names, moved, views = _raised(parent, block)
    origins = {name: view.access for name, view in moved.items()}
    sources = {name: view.source for name, view in moved.items()}

    def inside(statement: Statement) -> Statement:
        assert isinstance(statement, Block)
        changed = retarget(views_moved(statement, origins), names | sources)
        assert isinstance(changed, Block)
        location = statement.location or block.location
        return replace(changed, tags=block.tags | statement.tags, location=location, deps=())

    spliced = splice(parent, {number: [inside(statement) for statement in block.statements]})
    statements = spliced.statements
    read = {name for statement in statements for name in reads_of(statement)}
    written = {name for statement in statements for name in writes_of(statement)}
    seen = read | written | {name for statement in statements for name in views_of(statement)}
    gone = {ref.source for ref in block.refinements} - seen
    kept = (ref for ref in parent.refinements if ref.is_alloc or ref.name not in gone)
    # A view that statements of several blocks share takes the directions of all of them.
    shown = (
        replace(ref, dir=Direction.INOUT)
        if not ref.is_alloc
        and (ref.name in read or ref.dir.reads)
        and (ref.name in written or ref.dir.writes)
        else ref
        for ref in (*kept, *views)
    )
    return replace(spliced, refinements=tuple(shown))


def _raised(parent: Block, block: Block) -> tuple[dict[str, str], dict[str, Refinement], list[Refinement]]:
    """The names in `parent` of the views of `block`, views of allocations of `parent`, and new views for the others."""
    taken = {ref.name for ref in parent.refinements}
    names: dict[str, str] = {}
    moved: dict[str, Refinement] = {}
    views: list[Refinement] = []
    known = [ref for ref in parent.refinements if not ref.is_alloc]
    for ref in block.refinements:
        outer = None if ref.is_alloc else parent.ref(ref.source)
        if outer is not None and outer.dims == ref.dims and all(affine == Affine() for affine in ref.access):
            names[ref.name] = outer.name
            continue
        if outer is not None and outer.is_alloc:
            moved[ref.name] = ref  # a block has no views of its own allocations
            continue
        if outer is not None:
            ref = replace(ref.moved(outer.access), source=outer.source, agg=outer.agg)
            place = ref.source, ref.access, ref.dims, ref.agg
            same = next((v for v in known if (v.source, v.access, v.dims, v.agg) == place), None)
            if same is not None:
                names[ref.name] = same.name
                continue
        name = ref.name if ref.name not in taken else fresh(ref.name, taken)
        taken.add(name)
        names[ref.name] = name
        views.append(replace(ref, name=name))
    return names, moved, views
