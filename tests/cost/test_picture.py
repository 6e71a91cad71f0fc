"""The timeline of the picture: each resource with work has a row, and each row tells how busy it is."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections import defaultdict
from functools import cache
from pathlib import Path

import pytest

from stripe.cost.report.plot import picture
from stripe.cost.report.report import simulation_json
from stripe.cost.report.schema import SimulationJson
from stripe.cost.report.table import summed
from stripe.cost.time.simulate import simulate_program
from stripe.hw import load_hardware
from stripe.ir import Program
from stripe.pipeline.manager import PassManager
from stripe.pipeline.setup import read_setup
from tests.support.compiled import lowered
from tests.support.programs import load
from tests.support.scheduled import tiles

SVG = "{http://www.w3.org/2000/svg}"
CONV = Path(__file__).resolve().parents[2] / "examples" / "conv_bias_relu.tile"
TILED = ("unit_by_tile", "one_copy", "beside_blocks_in_turn")


@cache
def conv() -> SimulationJson:
    entries, model = read_setup([("config", "dsp_conv")], None, {})
    assert model is not None
    return simulation_json(simulate_program(PassManager(entries, model).run(lowered(CONV)), model), CONV.name)


def simulated(program: Program, machine: str = "dsp_conv") -> SimulationJson:
    return simulation_json(simulate_program(program, load_hardware(machine)), "test")


def texts(report: SimulationJson) -> list[str]:
    return [element.text or "" for element in ET.fromstring(picture(report)).iter(f"{SVG}text")]


def drawn(report: SimulationJson) -> dict[str, float]:
    """By row, the part of the time that the bars of work fill, pale ones in part."""
    filled: defaultdict[str, float] = defaultdict(float)
    for rect in ET.fromstring(picture(report)).iter(f"{SVG}rect"):
        title = next((element.text or "" for element in rect.iter(f"{SVG}title")), "")
        if title.endswith(" busy"):
            row = title.rsplit(": ", 1)[1].rsplit(" ", 3)[0]
            filled[row] += float(rect.attrib["width"]) * float(rect.attrib.get("fill-opacity", "1"))
    axis = 1100 - 2 * 24 - 120 - 56
    return {row: pixels / axis for row, pixels in filled.items()}


def test_every_unit_of_a_statement_shows_its_steps() -> None:
    rows = drawn(conv())
    units = [f"CONV[{number}]" for number in range(4)]
    assert rows["CONV[0]"] > 0.9
    assert {rows[unit] for unit in units} == {rows["CONV[0]"]}


def test_every_busy_unit_and_bus_has_a_row_with_its_share_of_the_time() -> None:
    report = conv()
    rows, labels = drawn(report), texts(report)
    busy = {f"bus {bus.name}": bus.utilisation for bus in report.buses}
    busy |= {unit.unit: unit.utilisation for unit in report.units if unit.kind == "transfer"}
    assert busy["bus noc_read"] > 0.9
    for name, share in busy.items():
        assert labels[labels.index(name) + 1] == f"{100 * share:.1f} %"
        assert rows[name] == pytest.approx(share, abs=0.01)


def test_the_picture_names_the_bound_and_tells_its_colours() -> None:
    report = conv()
    bold = [
        e.text for e in ET.fromstring(picture(report)).iter(f"{SVG}text") if e.get("font-weight") == "bold"
    ]
    assert "bus noc_read" in bold
    assert "CONV[0]" not in bold
    labels = texts(report)
    assert "bound by bus noc_read" in labels
    assert {"kernel", "transfers", "kept between the steps of tiles"} <= set(labels)
    assert any("paler" in label for label in labels)


def test_of_many_units_the_first_are_drawn_and_the_others_counted() -> None:
    machine = load_hardware("eyeriss")
    report = simulation_json(simulate_program(lowered(CONV), machine), "test")
    labels = texts(report)
    assert {"PE[0]", "PE[11]", "156 more of PE not drawn"} <= set(labels)
    assert "PE[12]" not in labels
    assert any(label.startswith("bound by ") and " % of the work, bus " in label for label in labels)


def test_a_unit_that_takes_turns_is_drawn_pale() -> None:
    report = simulated(load("cost/simulate/unit_by_tile"))
    rows, whole = drawn(report), report.latency_cycles
    for number in range(4):
        assert rows[f"CONV[{number}]"] == pytest.approx(256 / whole, rel=0.05)


@pytest.mark.parametrize("program", [tiles(3), *(load(f"cost/simulate/{name}") for name in TILED)])
def test_steps_need_what_their_statement_needs(program: Program) -> None:
    report = simulated(program)
    for bus in report.buses:
        assert sum(s.busy.get(f"bus {bus.name}", 0.0) for s in report.statements) == bus.busy_cycles
    for statement in report.statements:
        assert bool(statement.steps) == bool(statement.slices)
        if statement.steps:
            steps = summed(pair for step in statement.steps for pair in step.busy.items())
            for name in (name for name in statement.busy if name.startswith("bus ")):
                assert steps[name] == pytest.approx(statement.busy[name])


def test_steps_are_on_the_units_that_the_statement_took() -> None:
    report = simulated(load("cost/simulate/free_unit"))
    (_, second) = (s for s in report.statements if s.slices)
    assert second.units == ("CONV[1]",)
    assert {piece.unit for piece in second.slices} == {"CONV[1]", "DMA[0]"}
    assert "CONV[1]" in drawn(report)
