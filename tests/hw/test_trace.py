"""Machines that record which of their fields are read."""

from __future__ import annotations

import contextlib
import copy
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import stripe
from stripe.hw.load import load_hardware
from stripe.hw.schema import ExecUnit, HardwareModel
from stripe.hw.trace import MachineFacts, Reads, traced, unit_graph
from stripe.ir import ConfigError

EXAMPLE = str(Path(__file__).resolve().parents[2] / "examples" / "conv_bias_relu.tile")


def test_a_field_is_recorded_when_it_is_read() -> None:
    reads: Reads = {}
    machine = traced(load_hardware("dsp_conv"), reads)
    assert reads == {}
    assert machine.clock_mhz == 500
    assert machine.mem_units["SRAM"].size == 512 * 1024
    assert isinstance(machine.exec_units["CONV"], ExecUnit)
    assert reads == {
        "clock_mhz": "500.0",
        "mem_units": '["DRAM", "SRAM"]',
        "mem_units.SRAM.size_bytes": "null",
        "mem_units.SRAM.size_KiB": "512.0",
        "exec_units": '["DSP", "CONV"]',
    }


def test_machines_agree_in_the_fields_that_were_read_and_may_differ_in_others() -> None:
    reads: Reads = {}
    assert traced(load_hardware("dsp_conv"), reads).memory("SRAM").count == 4
    assert MachineFacts(load_hardware("dsp_conv", {"NUM_CONV": 1})).agree(reads)
    assert not MachineFacts(load_hardware("dsp_conv", {"NUM_SRAM": 8})).agree(reads)
    assert not MachineFacts(load_hardware("systolic")).agree(reads)


@pytest.mark.parametrize(
    "use",
    [
        lambda m: m == load_hardware("dsp_conv"),
        hash,
        lambda m: m.model_copy(),
        lambda m: m.model_dump(),
        lambda m: m.model_dump_json(),
        dict,
    ],
    ids=["==", "hash", "model_copy", "model_dump", "model_dump_json", "dict"],
)
def test_a_use_of_the_whole_model_records_all_of_it(use: object) -> None:
    reads: Reads = {}
    machine = traced(load_hardware("dsp_conv"), reads)
    assert callable(use)
    with contextlib.suppress(TypeError):  # models with dictionaries have no hash
        use(machine)
    assert "exec_units.CONV.stencils" in reads
    assert "buses.9.pJ_per_byte" in reads


def test_copies_go_on_recording() -> None:
    reads: Reads = {}
    machine = traced(load_hardware("dsp_conv"), reads)
    assert copy.copy(machine).clock_mhz == copy.deepcopy(machine).clock_mhz == 500
    assert list(reads) == ["clock_mhz"]


def test_traced_models_are_equal_to_their_originals() -> None:
    machine = load_hardware("dsp_conv")
    assert traced(machine, {}) == machine
    assert machine == traced(machine, {})
    assert traced(machine, {}) != load_hardware("systolic")


def test_routes_are_recorded_as_questions_with_their_answers() -> None:
    reads: Reads = {}
    graph = unit_graph(traced(load_hardware("dsp_conv"), reads))
    route = graph.connection("SRAM[0]", "CONV[0]")
    assert graph.nearest("SRAM", "CONV[0]", writes=False) == "SRAM[0]"
    assert sorted(reads) == [
        "buses",
        'routes ["connection", "SRAM[0]", "CONV[0]"]',
        'routes ["reads", "SRAM", "CONV[0]"]',
    ]
    assert graph.connection("SRAM[0]", "CONV[0]") is route
    assert [bus.name for bus in route.buses] == ["noc_read", "conv_in"]
    assert "buses.5.name" in reads
    assert MachineFacts(load_hardware("dsp_conv", {"NUM_SRAM": 8})).agree(reads)
    assert not MachineFacts(_wider(load_hardware("dsp_conv"), 2)).agree(reads)
    with pytest.raises(ConfigError, match=r"there is no unit 'SRAM\[9\]'"):
        graph.find_route("SRAM[9]", "CONV[0]")
    assert not MachineFacts(load_hardware("dsp_conv", {"NUM_SRAM": 16})).agree(reads)


def test_machines_with_the_same_units_and_buses_have_one_route() -> None:
    ends = ("DRAM[0]", "CONV[0]")
    route = unit_graph(load_hardware("dsp_conv")).connection(*ends)
    assert unit_graph(load_hardware("dsp_conv", {"CLOCK_MHZ": 400})).connection(*ends) is route
    wider = _wider(load_hardware("dsp_conv"), 2)
    assert unit_graph(wider).connection(*ends).bytes_per_cycle == 2 * route.bytes_per_cycle
    fewer = unit_graph(load_hardware("dsp_conv", {"NUM_SRAM": 1}))
    assert fewer.model.mem_units["SRAM"].count == 1
    with pytest.raises(ConfigError, match=r"there is no unit 'SRAM\[1\]'"):
        fewer.connection("SRAM[1]", "CONV[0]")


_VARIED = st.fixed_dictionaries(
    {
        "NUM_SRAM": st.sampled_from([1, 4]),
        "NUM_CONV": st.sampled_from([1, 2]),
        "SRAM_SIZE_KIB": st.sampled_from([32, 64, 512]),
        "CLOCK_MHZ": st.sampled_from([400, 500]),
    }
)


def _wider(machine: HardwareModel, width: int) -> HardwareModel:
    buses = tuple(b.model_copy(update={"bytes_per_cycle": width * b.bytes_per_cycle}) for b in machine.buses)
    return machine.model_copy(update={"buses": buses})


@pytest.mark.long
@settings(max_examples=12)
@given(_VARIED, _VARIED, st.sampled_from([1, 2]))
def test_a_result_holds_wherever_the_fields_agree(
    first: dict[str, int], second: dict[str, int], width: int
) -> None:
    program = stripe.read(EXAMPLE)
    reads: Reads = {}
    made = stripe.run_passes(program, "dsp_conv", hardware=traced(load_hardware("dsp_conv", first), reads))
    other = _wider(load_hardware("dsp_conv", second), width)
    if MachineFacts(other).agree(reads):
        assert stripe.run_passes(program, "dsp_conv", hardware=other) == made
