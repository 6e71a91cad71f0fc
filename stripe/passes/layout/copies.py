"""Copies of user tensors in and out, for work on temporaries in another layout."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from stripe.ir import (
    Affine,
    Block,
    Edit,
    Index,
    Program,
    Refinement,
    Statement,
    Tags,
    own_aggregation,
    retarget,
    transitive_reduction,
    uses_by_name,
    with_main,
    with_statements,
    writes_of,
)
from stripe.ir.frozen import replace
from stripe.rewrite.copy import Element, beside, copy_block, names_in, temporary, with_temporaries


def with_copies(program: Program, users: Collection[str]) -> tuple[Block, dict[str, str]]:
    """The entry with temporaries in the place of the tensors `users`, not packed yet, and their names."""
    entry = program.entry
    taken = names_in(entry)
    locals_ = {
        ref.name: temporary(ref, "packed", ref.sizes, taken) for ref in entry.allocs if ref.name in users
    }
    if not locals_:
        return entry, {}
    entry = with_temporaries(entry, list(locals_.values()))
    views = {view: locals_[view.source] for view in program.main.refinements if view.source in locals_}
    entry = with_main(entry, lambda main: _copied(main, views))
    return entry, {name: local.name for name, local in locals_.items()}


def _copied(main: Block, views: Mapping[Refinement, Refinement]) -> Block:
    """Main with all its work on `views` done on temporaries, and the copies in and out."""
    renamed = {view.name: local.name for view, local in views.items()}
    used = uses_by_name(main)
    last_write = {name: number for number, s in enumerate(main.statements) for name in writes_of(s)}
    ordered = any(statement.deps for statement in main.statements)
    edit = Edit(main)
    packs: dict[str, int] = {}
    writers: dict[str, list[int]] = {view.name: [] for view in views}
    for number, statement in enumerate(main.statements):
        mine = {view: local for view, local in views.items() if number in used.get(view.name, ())}
        for view, local in mine.items():
            if view.dir.reads and number == used[view.name][0]:
                packs[view.name] = edit.put(_copy("pack", view, local, statement))
        # Users of a temporary wait for the copy into it, the copy out of it for all writers.
        waits = [packs[view.name] for view in mine if view.name in packs] if ordered else []
        place = edit.put(retarget(statement, renamed), replaces=(number,), after=waits)
        for view, local in mine.items():
            if view.name in writes_of(statement):
                writers[view.name].append(place)
            if number == last_write.get(view.name):
                after = writers[view.name] if ordered else ()
                edit.put(_copy("unpack", view, local, statement), after=after)
    changed = edit.result()
    aggs = {local: own_aggregation(main, name) for name, local in renamed.items()}
    refs = (replace(ref, agg=aggs.get(ref.name, ref.agg)) for ref in changed.refinements)
    changed = replace(changed, refinements=tuple(refs))
    deps = transitive_reduction([statement.deps for statement in changed.statements])
    return with_statements(
        changed, [replace(s, deps=d) for s, d in zip(changed.statements, deps, strict=True)]
    )


def _copy(verb: str, view: Refinement, local: Refinement, user: Statement) -> Block:
    """The block that copies a tensor in or out for `user`; the temporary has the same logical shape until it is
    packed."""
    indices = [Index(f"d{dim}", size) for dim, size in enumerate(view.sizes)]
    element = tuple(Affine.var(index.name) for index in indices)
    source, target = (view, local) if verb == "pack" else (local, view)
    return copy_block(
        f"{verb}_{view.name}",
        indices,
        Element(source, element),
        Element(target, element),
        Tags.of("kernel", "layout_copy"),
        location=beside(user),
    )
