"""Schedules and placements under the fuzzer: buffers in units by index, both checkers, and corrupted programs.

A program with addresses or dependences has to compute the same in any order that its dependences allow, with its
buffers at their addresses. A corrupted one is refused by the checkers, or that still holds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from random import Random

from hypothesis import strategies as st

from stripe.hw.schema import HardwareModel
from stripe.ir import (
    Affine,
    Block,
    Load,
    Location,
    Program,
    Refinement,
    Stage,
    Store,
    fresh,
    keep_statements,
    replace_at,
    scalar_defined,
    walk,
    with_entry,
)
from stripe.rewrite.locate import move_buffers
from stripe.verify.machine.claims import check_claims
from tests.fuzz.pass_lists import Entry

CORRUPTIONS = 6
ORDERS = 3


@st.composite
def through_units(draw: st.DrawFn, program: Program, hardware: HardwareModel) -> Program:
    """The program with some loaded values stored to a buffer, in a unit by the kernel's indices, and loaded again."""
    memories = list(hardware.mem_units)
    entry = program.entry
    for path, block in walk(entry):
        if "kernel" not in block.tags or draw(st.integers(0, 2)) == 0:
            continue
        memory = draw(st.sampled_from(memories))
        place = Location.of(memory, draw(_units(block, hardware.mem_units[memory].count)))
        for load in [s for s in block.statements if isinstance(s, Load)][: draw(st.integers(1, 2))]:
            entry = replace_at(entry, path, partial(_detour, load=load, location=place))
    return with_entry(program, entry)


def _units(block: Block, count: int) -> st.SearchStrategy[Affine]:
    """Numbers of units over the indices of a block, all of them below `count`."""
    found = [Affine(number) for number in range(min(count, 3))]
    for index in block.iterated:
        name = Affine.var(index.name)
        found += [name.mod(count), (name * 2 + 1).mod(count), Affine(count - 1) - name.mod(count)]
        if index.range < count:
            found += [name, name + 1, Affine(index.range - 1) - name]
    return st.sampled_from(found)


def _detour(block: Block, load: Load, location: Location) -> Block:
    """`block` with the value of `load` stored to a new buffer at `location` and loaded from there."""
    dtype = block.ref(load.ref).dtype
    name = fresh(f"{load.ref}.u", {ref.name for ref in block.refinements})
    local = Refinement.alloc(name, dtype, (1,), location=location)
    scalars = {name for s in block.statements if (name := scalar_defined(s))}
    value = fresh(f"{load.into}.u", scalars)
    number = block.statements.index(load)
    more = (replace(load, into=value), Store(local.name, value), Load(load.into, local.name))
    statements = (*block.statements[:number], *more, *block.statements[number + 1 :])
    return replace(block, refinements=(*block.refinements, local), statements=statements)


@st.composite
def placing_lists(draw: st.DrawFn, hardware: HardwareModel) -> tuple[Entry, ...]:
    """Locations for everything, over several memories, dependences or a schedule, and addresses."""
    memories = list(hardware.mem_units)
    unit = draw(st.sampled_from([*hardware.exec_units]))
    near = draw(st.sampled_from(memories[1:] or memories))
    entries: list[Entry] = [{"locate_block": {"reqs": ["kernel"], "loc": {"name": unit}}}]
    for reqs in ("program", "main"):
        place = {"name": draw(st.sampled_from([memories[0], *memories])), "unit": 0}
        entries.append({"locate_memory": {"reqs": [reqs], "loc": place}})
    if hardware.tx_units and draw(st.booleans()):
        transfer = next(iter(hardware.tx_units))
        entries.append(
            {"schedule": {"mem_loc": {"name": near}, "xfer_loc": {"name": transfer}, "mem_KiB": 1}}
        )
    else:
        entries.append({"compute_deps": {}})
    entries.append({"memory_placement": {"alignment": draw(st.sampled_from([1, 4, 32]))}})
    return tuple({"name": f"place_{number}", **entry} for number, entry in enumerate(entries))


def claims_something(program: Program) -> bool:
    """Whether the program has addresses, dependences or a schedule."""
    placed = any(ref.offset is not None for _, block in walk(program.entry) for ref in block.allocs)
    return placed or any(statement.deps for statement in program.main.statements)


def corrupted(program: Program, random: Random) -> Iterator[tuple[str, Program]]:
    """Programs with another address, another unit or a dependence less, each with a word on the change."""
    allocs = [
        (path, ref) for path, block in walk(program.entry) for ref in block.allocs if ref.offset is not None
    ]
    waiting = [number for number, statement in enumerate(program.main.statements) if statement.deps]
    kinds: list[Callable[[], tuple[str, Program]]] = []

    def address() -> tuple[str, Program]:
        path, ref = random.choice(allocs)
        size = ref.dtype.bytes
        others = [other.address // size * size for _, other in allocs if other.address != ref.address]
        offset = random.choice([*others, size * random.randrange(64)])
        change = replace(ref, offset=offset)

        def put(block: Block) -> Block:
            return replace(block, refinements=tuple(change if r is ref else r for r in block.refinements))

        return f"address of {ref.name}: {offset}", with_entry(program, replace_at(program.entry, path, put))

    def unit() -> tuple[str, Program]:
        path, ref = random.choice(allocs)
        place = Location.of(ref.location.name, random.randrange(4))
        entry = replace_at(program.entry, path, lambda block: move_buffers(block, {ref.name: place}))
        return f"location of {ref.name}: {place}", with_entry(program, entry)

    def dependence() -> tuple[str, Program]:
        number = random.choice(waiting)
        statement = program.main.statements[number]
        gone = random.choice(statement.deps)
        less = replace(statement, deps=tuple(dep for dep in statement.deps if dep != gone))
        return f"dependence of {number} on {gone}", _with_statement(program, number, less)

    kinds += [address, unit] if allocs else []
    kinds += [dependence] if waiting else []
    for _ in range(CORRUPTIONS if kinds else 0):
        yield random.choice(kinds)()


def _with_statement(program: Program, number: int, statement: object) -> Program:
    main = program.main
    statements = tuple(statement if n == number else s for n, s in enumerate(main.statements))
    return _with_main(program, replace(main, statements=statements))


def _with_main(program: Program, main: Block) -> Program:
    old = program.main
    entry = replace(
        program.entry, statements=tuple(main if s is old else s for s in program.entry.statements)
    )
    return with_entry(program, entry)


def in_other_orders(program: Program, random: Random) -> Iterator[Program]:
    """The program with the statements of main in random orders that its dependences allow. Without any dependence, and
    without a schedule, statements run in their order."""
    statements = program.main.statements
    ordered = program.stage >= Stage.SCHEDULED or any(statement.deps for statement in statements)
    for _ in range(ORDERS if ordered and len(statements) > 1 else 0):
        order: list[int] = []
        left = list(range(len(statements)))
        while left:
            ready = [number for number in left if not set(statements[number].deps) - set(order)]
            order.append(random.choice(ready))
            left.remove(order[-1])
        yield _with_main(program, keep_statements(program.main, order))


def refusals(program: Program, hardware: HardwareModel) -> list[str]:
    """The errors that the checkers find in what a program says of the machine."""
    return [str(wrong) for wrong in check_claims(program, hardware)]
