"""Some statements of a program as a program of their own."""

from __future__ import annotations

from collections.abc import Iterable

from stripe.ir import (
    Affine,
    Block,
    Direction,
    Program,
    Refinement,
    Role,
    fresh,
    keep_statements,
    map_statements,
    refs_used,
    with_directions,
)
from stripe.ir.frozen import replace
from stripe.rewrite.prune import drop_constants


def excerpt(program: Program, numbers: Iterable[int]) -> Program:
    """The program of the statements `numbers` of main. Buffers that other statements use too become tensors of the
    user, so that their contents come from outside and stay for others.
    """
    main, chosen = program.main, sorted(numbers)
    kept = [main.statements[number] for number in chosen]
    used = {name for statement in kept for name in refs_used(statement)}
    others = (statement for number, statement in enumerate(main.statements) if number not in set(chosen))
    # Two names of main may be one buffer.
    buffers = {ref.name: (ref.is_alloc, ref.source or ref.name) for ref in main.refinements}
    crossing = {buffers[name] for statement in others for name in refs_used(statement)}
    outer = {ref.name: ref for ref in program.entry.refinements}
    allocs: list[Refinement] = []
    views: list[Refinement] = []
    for ref in main.refinements:
        if ref.name not in used:
            continue
        crosses = buffers[ref.name] in crossing
        if ref.is_alloc and crosses:
            # An allocation of main that others use as well: the entry has it, and main a view of it.
            name = fresh(ref.name, outer)
            allocs.append(replace(ref, name=name, role=Role.USER))
            origin = (Affine(),) * ref.rank
            ref = replace(ref, dir=Direction.INOUT, source=name, access=origin, offset=None, role=None)
        elif not ref.is_alloc:
            buffer = outer[ref.source]
            allocs.append(replace(buffer, role=Role.USER) if crosses and not buffer.is_kept else buffer)
        views.append(ref)
    small = keep_statements(replace(main, refinements=tuple(views)), chosen)
    entry = map_statements(program.entry, lambda s: small if isinstance(s, Block) and s.is_main else s)
    only = tuple(s for s in entry.statements if s is small)
    entry = with_directions(replace(entry, refinements=tuple(dict.fromkeys(allocs)), statements=only))
    return drop_constants(replace(program, entry=entry))
