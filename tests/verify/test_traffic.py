"""Nobody moves more over a bus, or through the ports of a memory, than these carry: the simulator's timetables keep to
that, and timetables that do not are found.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stripe.cost.report.report import simulation_json
from stripe.cost.time.contention import Task, simulate
from stripe.cost.time.simulate import Simulation, simulate_program
from stripe.hw import HardwareModel, load_hardware
from stripe.tile import compile_tile
from stripe.verify.machine.traffic import TimedTransfer, check_traffic
from tests.support.scheduled import tiles
from tests.support.traffic import traffic_of

DSP_CONV = load_hardware("dsp_conv")
CONVOLUTIONS = (
    "function (I[X=28, Y=28, C=32]: i8, K[KX=3, KY=3, C, C]: i8) -> (R) {\n"
    "  T[x, y, o : X, Y, C] = +(I[x + i - 1, y + j - 1, c] * K[i, j, c, o]);\n"
    "  S[x, y, o : X, Y, C] = +(T[x + i - 1, y + j - 1, c] * K[i, j, c, o]);\n  R = S + T;\n}\n"
)


def with_ports(model: HardwareModel, memory: str, ports: int, port_bytes: int) -> HardwareModel:
    """The model with so many ports on a memory, each of that width."""
    unit = model.mem_units[memory].model_copy(update={"ports": ports, "port_bytes": port_bytes})
    return model.model_copy(update={"mem_units": {**model.mem_units, memory: unit}})


def messages(traffic: list[TimedTransfer], model: HardwareModel) -> str:
    return "\n".join(map(str, check_traffic(traffic, model)))


@pytest.fixture(scope="module")
def double_buffered() -> Simulation:
    """Transfers and kernels of four tiles: two of them use one bank of SRAM at the same time."""
    return simulate_program(tiles(4), DSP_CONV)


@pytest.mark.parametrize("name", ["dsp_conv", "edge_npu", "x86_avx512", "mobile_gpu", "eyeriss"])
def test_simulated_timetables_keep_to_buses_and_ports(name: str) -> None:
    found = simulate_program(compile_tile(CONVOLUTIONS, "two_convolutions"), load_hardware(name))
    assert traffic_of(found)
    assert messages(traffic_of(found), found.model) == ""


def test_ports_that_are_shared_take_longer_and_are_kept_to() -> None:
    """The fifth tile is loaded into the bank on which the first kernel works."""
    program = tiles(5, depth=5, work=16)
    narrow = with_ports(DSP_CONV, "SRAM", 1, 64)
    found = simulate_program(program, narrow)
    assert messages(traffic_of(found), narrow) == ""
    assert found.cycles > simulate_program(program, DSP_CONV).cycles
    assert any(
        "ports of SRAM" in cause for use in simulation_json(found, "test").units for cause in use.stalls
    )


def test_a_timetable_that_overlooks_ports_is_found(double_buffered: Simulation) -> None:
    narrow = with_ports(DSP_CONV, "SRAM", 1, 64)
    text = messages(traffic_of(double_buffered), narrow)
    assert "the ports of SRAM[0] would move" in text


def test_two_ports_serve_what_one_does_not(double_buffered: Simulation) -> None:
    traffic = traffic_of(double_buffered)
    moved = sum(t.bytes * t.memories.count("SRAM[0]") for t in traffic)
    width = int(moved / double_buffered.cycles)  # enough in the mean, not at the busiest time
    assert messages(traffic, with_ports(DSP_CONV, "SRAM", 1, width)) != ""
    assert messages(traffic, with_ports(DSP_CONV, "SRAM", 8, width)) == ""


def test_a_transfer_that_is_cut_short_is_found(double_buffered: Simulation) -> None:
    traffic = traffic_of(double_buffered)
    for number, t in enumerate(traffic):
        if t.name.startswith(("load", "store", "swap")):
            short = replace(t, end=t.start + 0.4 * (t.end - t.start))
            assert "bus " in messages([*traffic[:number], short, *traffic[number + 1 :]], DSP_CONV)


def test_transfers_that_start_all_at_once_are_found(double_buffered: Simulation) -> None:
    early = [replace(t, start=0.0, end=t.end - t.start) for t in traffic_of(double_buffered)]
    assert "bus dram_read would move" in messages(early, DSP_CONV)


TASKS = st.lists(
    st.tuples(st.integers(1, 40), st.sets(st.integers(0, 2), min_size=1), st.integers(0, 3)),
    min_size=1,
    max_size=6,
)


@settings(deadline=None, max_examples=150)
@given(TASKS)
def test_what_the_simulator_shares_evenly_can_be_shared(tasks: list[tuple[int, set[int], int]]) -> None:
    """Tasks of so many bytes over some of three buses, each one after the one so far before it."""
    buses = DSP_CONV.buses[:3]
    made = [
        Task(
            f"t{n}", 0.0, max(size / buses[b].bytes_per_cycle for b in used), (),
            {f"bus {b}": size / buses[b].bytes_per_cycle for b in used}, (n - back,) if 0 < back <= n else (),
        )
        for n, (size, used, back) in enumerate(tasks)
    ]  # fmt: skip
    runs = simulate(made, {})
    traffic = [
        TimedTransfer(t.name, run.start, run.end, float(size), tuple(used), ())
        for t, run, (size, used, _) in zip(made, runs, tasks, strict=True)
    ]
    assert messages(traffic, DSP_CONV) == ""
    last = max(traffic, key=lambda t: t.end)
    if last.bytes / buses[last.buses[0]].bytes_per_cycle >= last.end - last.start - 1e-9:
        late = [replace(t, end=t.start + 0.9 * (t.end - t.start)) if t is last else t for t in traffic]
        assert messages(late, DSP_CONV) != ""


def test_ports_of_a_cache_on_the_way_are_used_too() -> None:
    program, model = compile_tile(CONVOLUTIONS, "two_convolutions"), load_hardware("x86_avx512")
    narrow = with_ports(model, "L1", 1, 1)
    found = simulate_program(program, narrow)
    assert found.cycles > simulate_program(program, model).cycles
    assert messages(traffic_of(found), narrow) == ""
