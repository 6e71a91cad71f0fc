"""Simulations of whole programs: scheduled ones by hand, unscheduled ones, reports, traces, pictures, speed."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from itertools import pairwise

import pytest

from stripe.cost.report.plot import picture
from stripe.cost.report.report import simulation_json
from stripe.cost.report.schema import SimulationJson
from stripe.cost.report.svg import MUTED
from stripe.cost.report.tables import simulation_tables
from stripe.cost.report.trace import chrome_trace
from stripe.cost.time.pipeline import pipeline_slices
from stripe.cost.time.simulate import Simulation, simulate_program
from stripe.hw import HardwareModel, load_hardware
from stripe.ir import (
    ConfigError,
    Program,
    Stage,
    StripeError,
    parse_program,
    print_program,
    verify_structural,
)
from stripe.pipeline.manager import PassManager
from stripe.pipeline.setup import read_setup
from stripe.tile import compile_tile
from tests.support.programs import load, source
from tests.support.scheduled import tiles

DSP_CONV = load_hardware("dsp_conv")


def report(program: Program, model: HardwareModel = DSP_CONV) -> tuple[Simulation, SimulationJson]:
    found = simulate_program(program, model)
    return found, simulation_json(found, "test")


def network(kernels: int) -> Program:
    """Convolutions with padding and activations, one after the other."""
    body, last = [], "I"
    for layer in range(kernels // 2):
        body.append(f"C{layer}[x, y, o : X, Y, C] = +({last}[x + i - 1, y + j - 1, c] * K[i, j, c, o]);")
        body.append(f"R{layer} = zelu(C{layer});")
        last = f"R{layer}"
    head = "function (I[X=28, Y=28, C=32]: i8, K[KX=3, KY=3, C, C]: i8)"
    return compile_tile(f"{head} -> ({last}) {{ {' '.join(body)} }}", "network")


def test_the_scheduled_programs_are_sound() -> None:
    assert verify_structural(tiles(4), Stage.SCHEDULED) == []


def test_double_buffering_by_hand() -> None:
    """Each transfer takes 100 cycles, each kernel too, and loads and stores share one DMA engine."""
    found, data = report(tiles(4), DSP_CONV)
    assert found.scheduled
    assert found.cycles == 800
    spans = {(c.name, r.start, r.end) for c, r in zip(found.costs, found.runs, strict=True)}
    assert ("kernel_0", 100, 200) in spans
    assert ("kernel_1", 200, 300) in spans
    units = {use.unit: use for use in data.units}
    assert (units["DMA[0]"].busy_cycles, units["DMA[0]"].useful_cycles) == (800, 800)
    assert (units["CONV[0]"].busy_cycles, units["CONV[0]"].stalls["nothing to do"]) == (400, 100)


def test_a_single_buffer_serializes() -> None:
    found, data = report(tiles(4, depth=1), DSP_CONV)
    assert found.cycles == 4 * 300
    units = {use.unit: use for use in data.units}
    assert units["CONV[0]"].stalls["waits for a transfer"] == 700
    assert units["DMA[0]"].stalls["waits for results"] == 400


def test_units_share_the_bus_that_feeds_them() -> None:
    """Alone, each kernel takes 200 cycles for its operands; for 200 cycles both want all of the bus."""
    buses = tuple(
        bus.model_copy(update={"bytes_per_cycle": 32.0}) if bus.name == "conv_in" else bus
        for bus in DSP_CONV.buses
    )
    found, data = report(tiles(2, units=2), DSP_CONV.model_copy(update={"buses": buses}))
    kernels = [(r.start, r.end) for c, r in zip(found.costs, found.runs, strict=True) if not c.transfer]
    assert kernels == [(100, 400), (200, 500)]
    stalls = {use.unit: use.stalls for use in data.units}
    assert stalls["CONV[0]"]["shares bus conv_in"] == pytest.approx(100)
    assert stalls["CONV[1]"]["shares bus conv_in"] == pytest.approx(100)
    assert stalls["CONV[1]"]["operands"] == 100


def test_transfers_of_statements_one_after_the_other_add_up() -> None:
    """The first reads, the second writes: a transfer unit moves in both directions at once only at one time."""
    text = "S[i : N] = +(A[i, j]); B[i, j : N, M] = +(S[i]), j < M;"
    program = compile_tile(f"function (A[N=4096, M=64]) -> (B) {{ {text} }}", "both")
    _, data = report(program, load_hardware("edge_npu"))
    units = {use.unit: use for use in data.units}
    reading = writing = 4096 * 64 * 4 / 32
    assert units["DMA[0]"].busy_cycles == units["DMA[0]"].useful_cycles == reading + writing
    assert units["DMA[0]"].stalls == {"nothing to do": pytest.approx(data.latency_cycles - reading - writing)}


def test_a_main_of_several_points_takes_as_long_as_its_points() -> None:
    """Each transfer has its latency at each point, and caches bring in what each point touches."""
    points, row = load("cost/simulate/main_of_points"), 256 * 4
    model = load_hardware("edge_npu")
    found, _ = report(points, model)
    bus = next(bus for bus in model.buses if bus.name == "ddr_read")
    reading, writing = (
        model.mem_units["DDR"].read_latency_cycles,
        model.mem_units["DDR"].write_latency_cycles,
    )
    load0, _, store0 = found.costs
    route = load0.cycles - 16 * (row / bus.bytes_per_cycle)
    assert route >= 16 * reading > 0
    assert store0.cycles >= 16 * (row / bus.bytes_per_cycle + writing)
    inside = source("cost/simulate/kernels_in_main_of_points")
    flat = inside.replace("main block [z:64]", "main block []").replace(
        "block [i:65536]", "block [z:64, i:65536]"
    )
    for name, direction in (("X", "in"), ("Y", "inout"), ("Z", "out")):
        flat = flat.replace(f"{direction}<[0]> {name}[z, 0]", f"{direction}<[0]> {name}[0, 0]", 1)
    flat = flat.replace("[0, i]", "[z, i]").replace("fp32(1:65536, 65536:1)", "fp32(64:65536, 65536:1)")
    one, other = (report(parse_program(text), load_hardware("x86_avx2"))[1] for text in (inside, flat))
    assert one.latency_cycles == pytest.approx(other.latency_cycles)
    assert one.memories == other.memories


def test_memory_is_alive_from_first_to_last_use() -> None:
    found, data = report(tiles(4), DSP_CONV)
    uses = {use.memory: use for use in data.memories}
    assert uses["DRAM[0]"].peak_bytes == 2 * 4 * 6400
    assert uses["SRAM[0]"].peak_bytes == 2 * 6400
    lives = {life.buffer: (life.start, life.end) for life in found.lives if life.memory == "SRAM[0]"}
    assert lives == {"A0": (0, 500), "B0": (100, 700)}


def test_a_program_that_does_not_fit_is_refused() -> None:
    with pytest.raises(
        StripeError, match=r"SRAM\[0\] has 8,192 bytes, and 12,800 are needed .*A0 6,400"
    ) as caught:
        report(tiles(4), load_hardware("dsp_conv", {"SRAM_SIZE_KIB": 8}))
    assert caught.value.where is not None and caught.value.hint is not None


def test_an_unscheduled_program_runs_one_after_the_other() -> None:
    found, data = report(network(4))
    assert not found.scheduled
    assert data.latency_cycles == pytest.approx(sum(cost.cycles for cost in found.costs))
    assert data.notes[:3] == (
        "no dependences are set: statements run one after the other",
        "2 statements without a location: on CONV, the quickest for them",
        "2 statements without a location: on DSP, the quickest for them",
    )
    exact = (28 * 3 - 2) ** 2 * 32 * 32
    assert data.macs == 2 * exact


def test_reports_add_up() -> None:
    _, data = report(tiles(6, units=2, depth=4))
    assert data.energy_pJ == pytest.approx(sum(data.energy.values()))
    assert sum(s.energy_pJ for s in data.statements) == pytest.approx(
        data.energy_pJ - data.energy.get("leakage", 0.0)
    )
    by_memory = {memory.memory: memory for memory in data.memories}
    assert by_memory["DRAM[0]"].read_bytes == by_memory["DRAM[0]"].written_bytes == 6 * 6400
    buses = {bus.name: bus for bus in data.buses}
    assert buses["dram_read"].bytes == 6 * 6400
    assert buses["conv_in"].bytes == 6 * 6400
    assert all(0 <= unit.utilisation <= 1 for unit in data.units)
    assert {source.path for source in data.unverified} >= {"parameters.NUM_CONV", "parameters.CLOCK_MHZ"}
    assert SimulationJson.model_validate_json(data.model_dump_json()) == data


def test_leakage_is_power_by_time() -> None:
    _, data = report(tiles(2), DSP_CONV.model_copy(update={"leakage_mW": 2.0}))
    assert data.energy["leakage"] == pytest.approx(2.0 * data.latency_us * 1000)


@pytest.mark.parametrize(
    "program", [tiles(5), tiles(3, work=1), network(6)], ids=["even", "moving", "network"]
)
def test_the_roofline_is_a_roof(program: Program) -> None:
    _, data = report(program)
    for statement in data.statements:
        assert statement.sustained_ops_per_cycle <= statement.roof_ops_per_cycle * (1 + 1e-9)
        assert statement.sustained_ops_per_cycle <= statement.ops_per_cycle


def test_kernels_own_the_transfers_of_their_operands() -> None:
    _, data = report(tiles(3))
    kernels = {s.name: s for s in data.statements if s.kind == "kernel"}
    assert [kernel.transfers for kernel in kernels.values()] == [(0, 2), (3, 5), (6, 8)]
    assert kernels["kernel_0"].intensity == 2 * 4 * 6400 / (2 * 6400)
    assert all(not s.transfers for s in data.statements if s.kind == "transfer")


def test_the_trace_has_a_track_for_each_unit_arrows_and_counters() -> None:
    found = simulate_program(tiles(3), DSP_CONV)
    trace = chrome_trace(found)
    events = trace["traceEvents"]
    assert isinstance(events, list)
    kinds: dict[str, list[dict[str, object]]] = {}
    for event in events:
        assert isinstance(event, dict)
        kinds.setdefault(str(event["ph"]), []).append(dict(event))
    tracks = {event["tid"]: event["args"] for event in kinds["M"] if event["name"] == "thread_name"}
    assert list(tracks.values()) == [{"name": "CONV[0]"}, {"name": "DMA[0]"}]
    assert len(kinds["X"]) == 9
    assert {event["id"] for event in kinds["s"]} == {event["id"] for event in kinds["f"]}
    assert len(kinds["s"]) == sum(map(len, found.deps))
    assert {event["name"] for event in kinds["C"]} == {"DRAM[0] bytes", "SRAM[0] bytes", "SRAM[1] bytes"}
    assert all(isinstance(event["ts"], (int, float)) for kind in "XsfC" for event in kinds[kind])
    json.dumps(trace, allow_nan=False)


@pytest.mark.parametrize("program", [tiles(3), network(4)], ids=["scheduled", "network"])
def test_the_picture_is_sound_svg(program: Program) -> None:
    _, data = report(program)
    root = ET.fromstring(picture(data))
    texts = [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]
    assert "Roofline: each kernel a point" in texts
    assert "Energy by component" in texts
    assert "CONV[0]" in texts
    assert picture(data) == picture(data)


def test_a_program_that_only_moves_has_a_picture_too() -> None:
    copy = compile_tile("function (A[N=64]) -> (B) { B = reshape(A, 8, 8); }", "copy")
    _, data = report(copy)
    ET.fromstring(picture(data))
    assert data.operations == 0


@pytest.mark.parametrize(
    "machine", ["dsp_conv", "systolic", "eyeriss", "edge_npu", "x86_avx512", "mobile_gpu"]
)
def test_every_machine_simulates_a_network(machine: str) -> None:
    _, data = report(network(4), load_hardware(machine))
    assert data.latency_cycles > 0
    assert data.energy_pJ >= 0


@pytest.mark.parametrize(
    ("old", "new", "reason", "where"),
    [
        ("block<CONV[0]>", "block<CONVV[0]>", "has no unit 'CONVV'|no unit 'CONVV'", "block kernel_0"),
        ("block<CONV[0]>", "block<CONV[9]>", r"there is no 'CONV\[9\]'", "block kernel_0"),
        ("block<CONV[0]>", "block<SRAM[0]>", r"'SRAM\[0\]' does not compute", "statement 1 (kernel_0)"),
        ("<SRAM[0]>", "<DSP[0]>", r"'DSP\[0\]' is no memory", "'A0' in block main"),
    ],
)
def test_bad_locations(old: str, new: str, reason: str, where: str) -> None:
    text = print_program(tiles(2)).replace(old, new)
    with pytest.raises(ConfigError, match=reason) as caught:
        simulate_program(parse_program(text, "bad"), DSP_CONV)
    assert caught.value.where == where
    assert caught.value.hint or "CONV[9]" in new


def test_main_holds_blocks_alone() -> None:
    text = source("cost/simulate/main_holds_blocks_alone")
    with pytest.raises(StripeError, match="no block tagged main"):
        simulate_program(parse_program(text, "bad"), DSP_CONV)


def test_statements_beside_blocks_cost_what_they_cost_in_a_block() -> None:
    _, beside = report(load("cost/simulate/beside_blocks"))
    _, inside = report(load("cost/simulate/in_blocks"))
    assert beside.operations == inside.operations == 64
    assert beside.latency_cycles == inside.latency_cycles
    assert beside.energy == inside.energy
    assert beside.units == inside.units


def test_statements_on_both_sides_of_a_block_run_one_after_the_other() -> None:
    """What stands behind `load_K` uses a scalar of what stands before it."""
    found, data = report(load("cost/simulate/beside_blocks_in_turn"))
    assert data.operations == 2 * 64
    (cost,) = found.costs
    assert cost.loop is not None
    assert tuple(step.name for step in cost.loop.steps) == (
        "load_I",
        "doubled",
        "load_K",
        "doubled",
        "store_O",
    )
    assert [stage.deps for stage in cost.loop.stages] == [(), (0,), (), (1, 2), (3,)]


def test_a_transfer_without_a_way_names_its_ends() -> None:
    buses = tuple(bus for bus in DSP_CONV.buses if bus.name not in ("sram_drain", "noc_read"))
    with pytest.raises(ConfigError, match=r"no bus leads from SRAM\[0\] to CONV\[0\]") as caught:
        simulate_program(tiles(1), DSP_CONV.model_copy(update={"buses": buses}))
    assert caught.value.where == "statement 1 (kernel_0)"


def test_two_thousand_statements_settle_into_a_rhythm() -> None:
    program = tiles(667)
    found = simulate_program(program, DSP_CONV)
    assert len(found.costs) == 2001
    assert found.cycles == 667 * 200


def test_sixty_kernels_are_reported_one_by_one() -> None:
    program = network(60)
    _, data = report(program)
    assert len(data.statements) == 60


def test_kernels_without_any_dependence_in_the_program_run_on_free_units() -> None:
    program = compile_tile("function (A[N=64, M=64], B[N, M]) -> (C, D) { C = exp(A); D = B * B; }", "two")
    passes = (
        "locate_block{reqs=[kernel],loc={name:DSP,unit:any}},locate_memory{reqs=[program],loc={name:DRAM}},"
        "locate_memory{reqs=[main],loc={name:DRAM}},compute_deps{reqs=[main]}"
    )
    entries, model = read_setup([("passes", passes)], "dsp_conv", {})
    assert model is not None
    found = simulate_program(PassManager(entries, model).run(program), model)
    assert [(run.start, run.units) for run in found.runs] == [(0.0, ("DSP[0]",)), (0.0, ("DSP[1]",))]


def test_labels_of_the_picture_do_not_lie_on_each_other() -> None:
    """Kernels of equal intensity and rate stand on one point of the roofline, and roofs may lie close together."""
    for program in (network(12), network(4), tiles(3)):
        _, data = report(program)
        root = ET.fromstring(picture(data))
        texts = [e for e in root.iter("{http://www.w3.org/2000/svg}text") if e.get("fill") == MUTED]
        below = next(float(e.attrib["y"]) for e in root.iter() if (e.text or "").startswith("Roofline"))
        boxes: list[tuple[float, float, float, float, str]] = []
        for element in texts:
            x, y, size = (float(element.attrib[key]) for key in ("x", "y", "font-size"))
            label = element.text or ""
            wide = 0.5 * size * len(label)
            left = x - {"start": 0.0, "middle": wide / 2, "end": wide}[element.attrib["text-anchor"]]
            if y > below and left < 640:
                boxes.append((left, y - 0.7 * size, left + wide, y, label))
        assert len(boxes) > 4
        for number, (left, top, right, bottom, label) in enumerate(boxes):
            for other in boxes[:number]:
                apart = left >= other[2] or other[0] >= right or top >= other[3] or other[1] >= bottom
                assert apart, (label, other[4])


def test_the_area_is_that_of_all_units() -> None:
    _, data = report(tiles(2))
    assert data.area_mm2 == pytest.approx(DSP_CONV.total_area_mm2)
    assert any(row[0] == "area" for row in simulation_tables(data)[0].rows)
    units = {name: unit.model_copy(update={"area_mm2": 0.0}) for name, unit in DSP_CONV.units.items()}
    without = DSP_CONV.model_copy(
        update={
            kind: {name: units[name] for name in getattr(DSP_CONV, kind)}
            for kind in ("mem_units", "exec_units", "tx_units")
        }
    )
    _, data = report(tiles(2), without)
    assert data.area_mm2 is None
    assert not any(row[0] == "area" for row in simulation_tables(data)[0].rows)


@pytest.mark.parametrize(
    ("name", "buffer", "stages"),
    [
        ("one_copy", "one copy of M", (1, 2)),
        ("one_address", "I and O at one address", (0, 5)),
        ("two_copies", "M in one copy, though I and T have two", (1, 2)),
    ],
)
def test_tiles_take_turns_with_what_is_there_once(name: str, buffer: str, stages: tuple[int, int]) -> None:
    """The first stage of a tile waits for the last one of the tile before that uses the same bytes."""
    found, _ = report(load(f"cost/simulate/{name}"))
    loop = next(cost.loop for cost in found.costs if cost.loop is not None)
    first, last = stages
    slices = pipeline_slices(loop.stages, loop.tiles, loop.depth)
    begins = {each.tile: each.start for each in slices if each.stage == first}
    ends = {each.tile: each.end for each in slices if each.stage == last}
    assert len(begins) > 1
    assert all(begins[tile] >= ends[tile - 1] for tile in begins if tile), buffer


def test_tiles_on_a_unit_each_compute_one_after_the_other() -> None:
    """Tiles in flight take turns, as the checkers of places have it, also where each has an engine of its own."""
    found, _ = report(load("cost/simulate/unit_by_tile"))
    kernel = found.costs[1]
    assert kernel.units.units == ("CONV[0]", "CONV[1]", "CONV[2]", "CONV[3]")
    assert kernel.cycles >= 1024  # the cycles of one engine for all tiles
    assert kernel.own.compute == dict.fromkeys(kernel.units.units, 256)
    assert {kernel.demand[resource] for resource in kernel.demand if resource.name == "CONV"} == {256}
    loop = kernel.loop
    assert loop is not None
    computing = [each for each in pipeline_slices(loop.stages, loop.tiles, loop.depth) if each.stage == 1]
    assert all(later.start >= earlier.end for earlier, later in pairwise(computing))


@pytest.mark.parametrize("name", ["one_tile", "inner_buffers"])
def test_stages_of_a_tile_wait_for_memory(name: str) -> None:
    """A stage whose buffer has the bytes of another one's comes after it, in the order of the text."""
    found, _ = report(load(f"cost/simulate/{name}"))
    loop = next(cost.loop for cost in found.costs if cost.loop is not None)
    slices = pipeline_slices(loop.stages, loop.tiles, loop.depth)
    users = [each for each in sorted(slices) if each.stage in (1, 2)]
    assert [(each.tile, each.stage) for each in users] == [(tile, n) for tile in range(4) for n in (1, 2)]
    assert all(later.start >= earlier.end for earlier, later in pairwise(users))
