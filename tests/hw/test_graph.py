"""Routes through machines, compared with the enumeration of all walks."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stripe.hw import (
    Bus,
    ExecUnit,
    HardwareModel,
    MemUnit,
    TxUnit,
    UnitGraph,
    instances,
    load_hardware,
    parse_unit,
    to_dot,
)
from stripe.ir import ConfigError, parse_location


def _machine(buses: list[Bus]) -> HardwareModel:
    return HardwareModel(
        clock_mhz=1,
        mem_units={
            "M": MemUnit(count=2, size_KiB=1),
            "C": MemUnit(count=2, size_KiB=1, kind="cache"),
        },
        exec_units={"X": ExecUnit(count=2, ops_per_cycle={"all": 1})},
        tx_units={"T": TxUnit(count=2, latency_cycles=2), "U": TxUnit()},
        buses=tuple(buses),
    )


_UNITS = ["M[0]", "M[1]", "C[0]", "C[1]", "X[0]", "X[1]", "T[0]", "T[1]", "U[0]"]
_SIDES = st.lists(st.sampled_from(_UNITS), min_size=1, max_size=2).map(tuple)
_BUSES = st.lists(
    st.builds(
        Bus,
        sources=_SIDES,
        sinks=_SIDES,
        bytes_per_cycle=st.sampled_from([1.0, 2.0, 4.0]),
        latency_cycles=st.sampled_from([0.0, 1.0, 5.0]),
    ),
    min_size=1,
    max_size=9,
)

Walk = tuple[tuple[str, int], ...]


def _walks(model: HardwareModel, source: str, sink: str, walk: Walk = ()) -> Iterator[Walk]:
    """All walks that visit no unit twice (but may end where they began)."""
    unit = walk[-1][0] if walk else source
    for number, bus in enumerate(model.buses):
        if unit not in bus.sources:
            continue
        for end in dict.fromkeys(bus.sinks):
            if end == sink:
                yield (*walk, (end, number))
            elif end[0] in "CTU" and end != source and all(end != seen for seen, _ in walk):
                yield from _walks(model, source, sink, (*walk, (end, number)))


def _rank(model: HardwareModel, walk: Walk) -> tuple[float, float, int, Walk]:
    buses = [model.buses[number] for _, number in walk]
    set_up = sum(2.0 for unit, _ in walk[:-1] if unit[0] == "T")
    width = min(bus.bytes_per_cycle for bus in buses)
    return -width, sum(bus.latency_cycles for bus in buses) + set_up, len(walk), walk


@given(_BUSES, st.sampled_from(_UNITS), st.sampled_from(_UNITS))
def test_the_route_is_the_best_of_all_ways(buses: list[Bus], source: str, sink: str) -> None:
    model = _machine(buses)
    best = min((_rank(model, walk) for walk in _walks(model, source, sink)), default=None)
    route = UnitGraph(model).find_route(source, sink)
    if best is None:
        assert route is None
        return
    assert route is not None
    width, latency, length, walk = best
    assert (-route.bytes_per_cycle, route.latency_cycles, len(route.hops)) == (width, latency, length)
    assert tuple((hop.sink, hop.index) for hop in route.hops) == walk
    assert [hop.source for hop in route.hops] == [source, *(unit for unit, _ in walk[:-1])]
    assert route.units == tuple(unit for unit, _ in walk[:-1])
    assert route.cycles(8) == latency + 8 / -width


@given(_BUSES)
def test_reach_agrees_with_routes(buses: list[Bus]) -> None:
    graph = UnitGraph(_machine(buses))
    for source in _UNITS:
        reached = {sink for sink in _UNITS if graph.find_route(source, sink) is not None}
        assert graph.reached_from(source) == reached


def test_routes_of_the_slides_machine() -> None:
    graph = UnitGraph(load_hardware("dsp_conv", {"NUM_SRAM": 2}))
    route = graph.route("DRAM[0]", "SRAM[1]")
    assert route.units == ("DMA[0]",)
    assert [bus.name for bus in route.buses] == ["dram_read", "sram_fill"]
    assert route.bytes_per_cycle == 64
    assert graph.route("SRAM[0]", "SRAM[1]").units == ("NOC[0]",)
    assert graph.route("DRAM[0]", "DRAM[0]").units == ("DMA[0]",)
    assert graph.memories_of("CONV[0]") == ("SRAM[0]", "SRAM[1]")
    assert graph.find_route("DRAM[0]", "CONV[0]") is None
    with pytest.raises(ConfigError, match=r"no bus leads from DRAM\[0\] to CONV\[0\]"):
        graph.route("DRAM[0]", "CONV[0]")
    with pytest.raises(ConfigError, match=r"there is no unit 'SRAM\[2\]'"):
        graph.route("SRAM[2]", "DRAM[0]")


def test_a_core_reads_through_its_caches() -> None:
    graph = UnitGraph(load_hardware("x86_avx512"))
    route = graph.route("DRAM[0]", "CORE[1]")
    assert route.units == ("L3[0]", "L2[1]", "L1[1]")
    assert graph.memories_of("CORE[1]", "read")[0] == "L1[1]"


def test_weights_come_by_a_queue_and_go_nowhere_else() -> None:
    graph = UnitGraph(load_hardware("systolic"))
    assert "FIFO[0]" in graph.memories_of("MXU[0]", "read")
    assert graph.memories_of("MXU[0]", "write") == ("ACC[0]",)


def test_names_of_units() -> None:
    model = load_hardware("dsp_conv", {"NUM_SRAM": 2})
    assert parse_unit("SRAM[3]") == ("SRAM", 3)
    assert parse_unit(" SRAM[ * ] ") == ("SRAM", None)
    assert instances(model, "SRAM") == ("SRAM[0]", "SRAM[1]")
    assert instances(model, "SRAM[1]") == ("SRAM[1]",)
    for text in ("SRAM[-1]", "SRAM[]", "[0]", "", "SRAM[0][1]", "SRAM[i]", "SRAM[2]", "SRAN[0]"):
        with pytest.raises(ValueError, match=r"no unit|there is no"):
            instances(model, text)


def test_locations_are_checked_against_the_machine() -> None:
    model = load_hardware("dsp_conv", {"NUM_SRAM": 2})
    for text in ("SRAM[1]", "SRAM", "SRAM[x]", "SRAM[0]/CONV[1]"):
        model.require_location(parse_location(text))
    for text, reason, hint in [
        ("SRAM[2]", "there is no 'SRAM[2]': SRAM has 2 units", None),
        ("SRAN[0]", "the machine 'dsp_conv' has no unit 'SRAN'", "did you mean 'SRAM'?"),
        ("SRAM[0, 1]", "'SRAM[0, 1]' has 2 numbers; units are counted by one", None),
    ]:
        with pytest.raises(ConfigError) as caught:
            model.require_location(parse_location(text))
        assert (caught.value.reason, caught.value.hint) == (reason, hint)


def test_drawing() -> None:
    model = load_hardware("dsp_conv", {"NUM_SRAM": 2, "NUM_CONV": 1, "NUM_DSP": 1})
    drawn = to_dot(model)
    assert drawn == to_dot(model)
    assert drawn.startswith('digraph "dsp_conv" {\n')
    assert '"SRAM[1]" [shape=cylinder, fillcolor=lightsteelblue, label="SRAM[1]\\n512 KiB"];' in drawn
    assert '"DRAM[0]" -> "DMA[0]" [label="64 B/cycle\\ndram_read"];' in drawn
    assert '"bus 2" -> "SRAM[0]";' in drawn
    nodes = set(re.findall(r'^  ("[^"]+") \[shape', drawn, re.MULTILINE))
    assert set(re.findall(r'("[^"]+") ->', drawn)) | set(re.findall(r'-> ("[^"]+")', drawn)) <= nodes


def test_drawing_many_units_as_one() -> None:
    drawn = to_dot(load_hardware("dsp_conv", {"NUM_SRAM": 32}))
    assert '"SRAM[0..31]"' in drawn
    assert '"SRAM[0]"' not in drawn
    assert len(to_dot(load_hardware("eyeriss")).splitlines()) < 2000


def test_drawing_quotes_names() -> None:
    model = load_hardware("dsp_conv").model_copy(update={"name": 'a"b\\'})
    assert to_dot(model).startswith('digraph "a\\"b\\\\" {')
