"""The pass `memory_placement`: nothing alive at one time overlaps, and little memory is taken."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stripe.hw.load import load_hardware
from stripe.ir import (
    ConfigError,
    LiveRange,
    Program,
    Refinement,
    Role,
    Stage,
    interference,
    parse_program,
    peak_bytes,
    print_program,
)
from stripe.ir.dtypes import I8
from stripe.passes.base import PassContext
from stripe.passes.memory_placement.packing import Item, pack
from stripe.passes.registry import find_pass
from stripe.pipeline.manager import PassManager
from stripe.pipeline.passlist import parse_passes
from stripe.verify.machine.schedule import check_placement
from tests.passes.programs import chain, lines_of, run_pass
from tests.support.programs import load, source


def placed(text: str | Program, **options: Any) -> tuple[Program, str]:
    result, remarks = run_pass(text, "memory_placement", locs=[{"name": "DRAM"}], **options)
    return result, str(remarks[0])


def test_a_chain_reuses_memory_after_two_steps() -> None:
    result, remark = placed(chain([64, 64, 64, 64]))
    assert remark == "applied: DRAM[0]: 6 buffers in 136 bytes; lower bound 136, 0.0 % above it"
    offsets = [line.split("new@")[1].split("<")[0] for line in lines_of(result, "#tmp")]
    assert offsets[0] == offsets[2] != offsets[1] == offsets[3]
    assert check_placement(result) == []


def test_the_program_is_placed_when_all_its_buffers_are() -> None:
    scheduled = chain([64, 64]).replace("#main", "#main #scheduled")
    assert placed(scheduled)[0].stage is Stage.PLACED
    assert "#main #placed block" in print_program(placed(scheduled)[0])
    assert run_pass(scheduled, "memory_placement", locs=[{"name": "SRAM"}])[0].stage is Stage.SCHEDULED
    assert placed(chain([64, 64]))[0].stage is Stage.TILED


def test_without_dependences_nothing_is_shared() -> None:
    text = chain([64, 64, 64, 64], ordered=False)
    result, _ = placed(text)
    assert len({line.split("new@")[1].split("<")[0] for line in lines_of(result, "#tmp")}) == 4


def test_addresses_are_aligned() -> None:
    result, _ = placed(chain([3, 5, 7]), alignment=16)
    offsets = [int(line.split("new@")[1].split("<")[0], 16) for line in lines_of(result, "none new")]
    assert all(offset % 16 == 0 for offset in offsets)


def test_dtypes_align_their_elements() -> None:
    result, _ = placed(chain([3, 5], dtype="fp64"), alignment=1)
    offsets = [int(line.split("new@")[1].split("<")[0], 16) for line in lines_of(result, "none new")]
    assert all(offset % 8 == 0 for offset in offsets)


def test_buffers_inside_kernels_take_their_turn() -> None:
    text = source("passes/memory_placement/buffer_inside_a_kernel")
    _, remark = placed(text)
    assert remark == "applied: DRAM[0]: 6 buffers in 48 bytes; lower bound 48, 0.0 % above it"


def test_what_does_not_fit_is_an_error_with_the_sizes() -> None:
    text = source("passes/memory_placement/too_large")
    hardware = load_hardware("dsp_conv", {"NUM_SRAM": 1, "SRAM_SIZE_KIB": 256})
    instance = find_pass("memory_placement").model_validate({})
    with pytest.raises(ConfigError, match="take 400008 bytes, it has 262144"):
        instance.run(parse_program(text), PassContext(hardware))


def test_it_is_idempotent_and_needs_locations() -> None:
    once, _ = placed(chain([64, 64, 64]))
    assert placed(once)[0] is once
    unlocated = load("passes/memory_placement/no_locations")
    assert run_pass(unlocated, "memory_placement")[0] is unlocated


def test_what_is_localized_afterwards_loses_its_address() -> None:
    once, _ = placed(chain([64, 64]))
    local, _ = run_pass(once, "localize", reqs=["program"])
    assert not any("#placed" in line for line in lines_of(local, "#tmp none")) or local is once
    again, _ = placed(local)
    assert check_placement(again) == []


@st.composite
def interval_problems(draw: st.DrawFn) -> tuple[list[Item], list[list[int]], int]:
    """Items alive over intervals of time; the bound is the peak."""
    spans = draw(
        st.lists(st.tuples(st.integers(0, 8), st.integers(0, 4), st.integers(1, 50)), min_size=1, max_size=12)
    )
    items = [Item(size, 1) for _, _, size in spans]
    alive = [range(start, start + length + 1) for start, length, _ in spans]
    conflicts = [
        [m for m in range(len(alive)) if m != n and set(alive[m]) & set(alive[n])] for n in range(len(alive))
    ]
    peak = max(sum(i.bytes for i, span in zip(items, alive, strict=True) if t in span) for t in range(14))
    return items, conflicts, peak


@settings(deadline=None, max_examples=60)
@given(interval_problems())
def test_packing_never_overlaps_and_stays_near_the_bound(
    problem: tuple[list[Item], list[list[int]], int],
) -> None:
    items, conflicts, bound = problem
    offsets = pack(items, conflicts, frozenset(), {}, bound)
    for n, neighbours in enumerate(conflicts):
        for m in neighbours:
            assert offsets[n] + items[n].bytes <= offsets[m] or offsets[m] + items[m].bytes <= offsets[n]
    assert max(o + i.bytes for o, i in zip(offsets, items, strict=True)) <= 1.34 * bound


@pytest.mark.long
@settings(deadline=None, max_examples=60)
@given(interval_problems(), st.data())
def test_what_is_always_alive_is_packed_as_if_it_were_in_every_list(
    problem: tuple[list[Item], list[list[int]], int], data: st.DataObject
) -> None:
    items, conflicts, bound = problem
    always = frozenset(n for n in range(len(items)) if data.draw(st.booleans()))
    sparse = [[m for m in near if m not in always and n not in always] for n, near in enumerate(conflicts)]
    full = [
        [m for m in range(len(items)) if m != n and (m in always or n in always or m in sparse[n])]
        for n in range(len(items))
    ]
    assert pack(items, sparse, always, {}, bound) == pack(items, full, frozenset(), {}, bound)


@st.composite
def live_buffers(draw: st.DrawFn) -> list[LiveRange]:
    """Live ranges of `main`, with any dependences, and of blocks inside, whose statements run in order."""
    count = draw(st.integers(1, 7))
    before: list[int] = []
    for number in range(count):
        deps = draw(st.sets(st.integers(0, number - 1))) if number else set[int]()
        before.append(sum(1 << dep for dep in deps))
        for dep in deps:
            before[number] |= before[dep]
    main, inside = tuple(before), tuple((1 << n) - 1 for n in range(3))
    found: list[LiveRange] = []
    for number in range(draw(st.integers(1, 9))):
        role = Role.USER if draw(st.integers(0, 5)) == 0 else None
        ref = Refinement.alloc(f"T{number}", I8, (draw(st.integers(1, 9)),), role=role)
        uses = draw(st.frozensets(st.integers(0, count - 1), max_size=3))
        if draw(st.booleans()):
            found.append(LiveRange((0,), (0,), ref, (uses,), (main,)))
            continue
        child = draw(st.integers(0, count - 1))
        inner = draw(st.frozensets(st.integers(0, 2), max_size=2))
        found.append(LiveRange((0, child), (0, child), ref, (frozenset({child}), inner), (main, inside)))
    return found


def _waits(first: LiveRange, second: LiveRange) -> bool:
    """Whether all statements of `second` wait for all of `first`, where the two meet."""
    depth = int(len(first.home) == len(second.home) == 2 and first.home == second.home)
    waits = first.waits[depth]
    return all(waits[b] >> a & 1 for a in first.uses[depth] for b in second.uses[depth])


@settings(deadline=None, max_examples=300)
@given(live_buffers())
def test_buffers_overlap_unless_all_statements_of_one_wait_for_all_of_the_other(
    buffers: list[LiveRange],
) -> None:
    lists = interference(buffers)
    for n, first in enumerate(buffers):
        others = [(m, second) for m, second in enumerate(buffers) if m != n]
        meets = [
            m for m, b in others if not (first.always or b.always or _waits(first, b) or _waits(b, first))
        ]
        assert lists[n] == meets


@settings(deadline=None, max_examples=100)
@given(live_buffers())
def test_the_peak_is_a_lower_bound(buffers: list[LiveRange]) -> None:
    used = [buffer for buffer in buffers if buffer.always or all(buffer.uses)]
    always = frozenset(n for n, buffer in enumerate(used) if buffer.always)
    items = [Item(buffer.ref.bytes, 1) for buffer in used]
    offsets = pack(items, interference(used), always, {}, 0)
    peak = peak_bytes(used)
    assert max((o + i.bytes for o, i in zip(offsets, items, strict=True)), default=0) >= peak
    assert peak >= sum(buffer.ref.bytes for buffer in used if buffer.always)


def test_points_of_main_have_no_order() -> None:
    """A buffer of one point may be alive with any buffer of another."""
    program = load("passes/memory_placement/main_repeated")
    passes = (
        "locate_block{reqs=[kernel],loc={name:DMA}},locate_memory{reqs=[program],loc={name:DRAM}},"
        "compute_deps,memory_placement"
    )
    placed = PassManager(parse_passes(passes)).run(program)
    assert check_placement(placed, None) == []
