"""Random Stripe programs of structures that lowering never makes, but people and passes do.

Several kernels assign one buffer and merge into it, in turns, with reads between; a main of several points; allocations
in nested blocks; several names of one buffer, and names of names; updates in place, also of tensors that are input and
output; kernels with several stores; narrow dtypes; ranges of 10^9 and more, of which constraints leave a few points;
specials in loops and on parts; quotients by sums that are zero; parts of a buffer with a view each; tensors in blocks.
Programs that do what their meaning forbids are drawn again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from random import Random

from hypothesis import strategies as st

from stripe.exec.data import random_inputs
from stripe.exec.errors import ExecutionError
from stripe.exec.interp import interpret
from stripe.ir import (
    DTYPES,
    Affine,
    Block,
    Direction,
    Index,
    Program,
    Refinement,
    Role,
    Statement,
    Tags,
    map_statements,
    refs_used,
    verify_structural,
    with_directions,
)
from stripe.verify.soundness import check_soundness
from tests.fuzz.structures.draft import KINDS, MERGES, Draft, Group, Scope, Seen
from tests.fuzz.structures.kernels import kernel
from tests.fuzz.structures.names import twins
from tests.fuzz.structures.nests import allocations, statements
from tests.fuzz.structures.packed import packed
from tests.fuzz.structures.parts import parts
from tests.fuzz.structures.points import around, in_another_frame, vast
from tests.fuzz.structures.quotients import quotient
from tests.fuzz.structures.specials import special

ATTEMPTS = 40
_GROUPS: tuple[tuple[float, Callable[[Draft, Scope], Group]], ...] = (
    (0.2, special), (0.12, parts), (0.12, packed), (0.05, quotient),
)  # fmt: skip
"""Structures with buffers of their own, and their shares of the programs."""


@st.composite
def stripe_programs(draw: st.DrawFn, *, schedulable: bool = False) -> Program:
    """A valid program. One number decides about all of it, as hypothesis keeps few choices of one example. Schedules
    refuse a main of several points, two names in main of what is written, and inputs that are outputs: `schedulable`
    has none of them.
    """
    random = Random(draw(st.integers(0, 2**63)))
    for _ in range(ATTEMPTS):
        program = program_of(Draft(random, schedulable))
        if is_valid(program):
            return program
    raise AssertionError("no valid program")


def is_valid(program: Program) -> bool:
    """Whether the program has a meaning: no race, nothing undefined is read, no element assigned twice."""
    if not program.outputs or verify_structural(program):
        return False
    try:
        interpret(program, random_inputs(program, 0))
    except ExecutionError:
        return False
    return not check_soundness(program)


def program_of(draft: Draft) -> Program:
    """Inputs, outputs, temporaries, structures with buffers of their own, and what main does with them."""
    random = draft.random
    draft.points = 1 if draft.schedulable else random.choice((1, 1, 1, 2, 3))
    tensors = _tensors(draft)
    scope = dict(tensors.seen)
    local, more = allocations(draft, scope)
    scope |= local
    groups = [make for chance, make in _GROUPS if random.random() < chance]
    if draft.schedulable:
        groups = [make for make in groups if make is not parts]
    first, last = random.randint(1, 3), random.randint(2, 3)
    found = [*statements(draft, scope, first, 0)]
    for make in groups:
        group = make(draft, scope)
        tensors.allocs += group.allocs
        tensors.views += group.views
        found += group.statements
        scope |= group.seen
    found += [*statements(draft, scope, last, 0), *results(draft, scope)]
    indices = (Index("t", draft.points),) if draft.points > 1 else ()
    main = Block("main", indices, (), (*tensors.views, *more), tuple(found), is_main=True)
    main = varied(draft, main)
    main = map_statements(main, _as_kernel)
    main = with_directions(_without_idle(main))
    used = {ref.source for ref in main.refinements}
    entry = tuple(ref for ref in tensors.allocs if ref.name in used)
    return Program(Block("fuzz", (), (), entry, (main,), tags=Tags.of("program")))


def _tensors(draft: Draft) -> Group:
    """Inputs X and Y, temporaries T, U and V, outputs O and P. With a main of several points some have a part for
    each of them, and others are merged into or read by all."""
    random, points = draft.random, draft.points
    group = Group(draft)
    kind = DTYPES[random.choice(KINDS)]
    size = random.choice((2, 3, 4, 5))
    for name in "XYTUVOP":
        sizes = tuple(random.choice((size, size, size, 1, 3, 6)) for _ in range(random.choice((1, 1, 2))))
        split = points > 1 and random.random() < 0.75
        whole = (points, *sizes) if split else sizes
        dtype = DTYPES[random.choice(KINDS)] if random.random() < 0.1 else kind
        role = Role.TEMPORARY if name in "TUV" else Role.USER
        ref = Refinement.alloc(name, dtype, whole, role=role)
        dims = (replace(ref.dims[0], size=1), *ref.dims[1:]) if split else ref.dims
        access = (Affine.var("t"), *ref.access[1:]) if split else ref.access
        writes = name not in "XY"
        merges = writes and (split or points == 1 or random.random() < 0.6)
        free = split or points == 1
        reads = (free or not merges) and not (draft.schedulable and role is Role.USER and writes)
        seen = Seen(name, dims, dtype, random.choice(MERGES), reads, writes and free, merges)
        group.seen[name] = seen
        group.allocs.append(ref)
        direction = Direction.INOUT if writes else Direction.IN
        group.views.append(Refinement(name, direction, name, access, dtype, dims, seen.agg))
        if not writes or (name in "OP" and not draft.schedulable and random.random() < 0.3):
            draft.defined.add(name)
    return group


def results(draft: Draft, scope: Scope) -> Iterator[Block]:
    """Outputs of what the temporaries hold in the end, as nothing else tells of them."""
    written = {name: seen for name, seen in scope.items() if name not in "XYOP" and name in draft.defined}
    for name in "OP":
        if written and draft.random.random() < 0.7:
            block = kernel(draft, written | {name: replace(scope[name], reads=False)}, scope[name])
            if block is not None:
                yield block


def varied(draft: Draft, main: Block) -> Block:
    """The same with more names, in blocks around blocks, with points under vast ranges."""
    random = draft.random
    changes: list[tuple[float, Callable[[Random, Block], Block]]] = [
        (0.25, around), (0.25, in_another_frame), (0.03, vast),
    ]  # fmt: skip

    def change(statement: Statement) -> Statement:
        if isinstance(statement, Block):
            for chance, rewrite in changes:
                if random.random() < chance:
                    statement = rewrite(random, statement)
        return statement

    def through(block: Block) -> Block:
        block = map_statements(block, lambda s: through(s) if isinstance(s, Block) else s)
        return map_statements(block, change)

    main = through(main)
    return main if draft.schedulable or random.random() < 0.5 else twins(random, main)


def _as_kernel(statement: Statement) -> Statement:
    return (
        replace(statement, tags=statement.tags.add("kernel")) if isinstance(statement, Block) else statement
    )


def _without_idle(block: Block) -> Block:
    """The block without the views that nothing in it uses."""
    block = map_statements(block, lambda s: _without_idle(s) if isinstance(s, Block) else s)
    used = {name for statement in block.statements for name in refs_used(statement)}
    return replace(block, refinements=tuple(ref for ref in block.refinements if ref.name in used))
