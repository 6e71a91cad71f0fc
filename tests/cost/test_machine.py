"""Routes through a machine: direct routes, routes over memories, and what is missing."""

from __future__ import annotations

import pytest

from stripe.cost.time.machine import Machine
from stripe.hw import load_hardware
from stripe.hw.graph import STAY
from stripe.hw.trace import Reads, traced
from stripe.ir import ConfigError, Location


def test_a_route_may_pass_memories() -> None:
    machine = Machine(load_hardware("dsp_conv"))
    route = machine.graph.connection("DRAM[0]", "CONV[2]")
    assert route.stages == ("SRAM[0]",)
    assert [hop.sink for hop in route.hops] == ["DMA[0]", "SRAM[0]", "NOC[0]", "CONV[2]"]
    assert route.bytes_per_cycle == 64
    assert machine.graph.connection("DRAM[0]", "CONV[2]") is route


def test_a_route_passes_units_that_compute_only_where_no_memory_leads_on() -> None:
    machine = Machine(load_hardware("systolic"))
    assert machine.graph.connection("HOST[0]", "MXU[0]").stages == ("UB[0]",)
    assert machine.graph.connection("MXU[0]", "HOST[0]").stages == ("ACC[0]", "ACT[0]", "UB[0]")


def test_a_route_through_a_given_unit() -> None:
    machine = Machine(load_hardware("edge_npu"))
    route = machine.route_through("DDR[0]", "DMA[0]", "VTCM[0]")
    assert route.units == ("DMA[0]",)
    assert route.latency_cycles == machine.model.tx_units["DMA"].latency_cycles
    assert machine.graph.connection("VTCM[0]", "VTCM[0]") is STAY


def test_no_route_names_both_ends() -> None:
    model = load_hardware("dsp_conv")
    cut = model.model_copy(update={"buses": tuple(bus for bus in model.buses if bus.name != "conv_in")})
    with pytest.raises(ConfigError, match=r"no bus leads from DRAM\[0\] to CONV\[0\]"):
        Machine(cut).graph.connection("DRAM[0]", "CONV[0]")


def test_a_memory_without_a_number_is_the_nearest() -> None:
    machine = Machine(load_hardware("ref16x16"))
    assert machine.memory_near(Location.of("Wreg"), "PE[37]", writes=False) == "Wreg[37]"
    assert machine.memory_near(Location.of("Orf"), "PE[37]", writes=True) == "Orf[2]"
    assert machine.memory_near(Location(), "PE[37]", writes=False) == "DRAM[0]"


def test_equal_models_are_one_machine_unless_they_record() -> None:
    first = Machine.of(load_hardware("dsp_conv"))
    again = load_hardware("dsp_conv")
    assert again is not first.model
    assert Machine.of(again) is first
    assert Machine.of(first.model) is first
    reads: Reads = {}
    assert Machine.of(traced(again, reads)) is not Machine.of(traced(again, {}))
    assert not reads, "nothing was compared"
    assert Machine.of(load_hardware("dsp_conv", {"NUM_CONV": 2})) is not Machine.of(again)
