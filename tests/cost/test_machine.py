"""Ways through a machine: direct routes, ways over memories, and what is missing."""

from __future__ import annotations

import pytest

from stripe.cost.time.machine import NOWHERE, Machine
from stripe.hw import load_hardware
from stripe.ir import ConfigError, Location


def test_a_way_may_pass_memories() -> None:
    machine = Machine(load_hardware("dsp_conv"))
    way = machine.way("DRAM[0]", "CONV[2]")
    assert way.stages == ("SRAM[0]",)
    assert [hop.sink for hop in way.hops] == ["DMA[0]", "SRAM[0]", "NOC[0]", "CONV[2]"]
    assert way.bytes_per_cycle == 64
    assert machine.way("DRAM[0]", "CONV[2]") is way


def test_a_way_passes_units_that_compute_only_where_no_memory_leads_on() -> None:
    machine = Machine(load_hardware("systolic"))
    assert machine.way("HOST[0]", "MXU[0]").stages == ("UB[0]",)
    assert machine.way("MXU[0]", "HOST[0]").stages == ("ACC[0]", "ACT[0]", "UB[0]")


def test_a_way_through_a_given_unit() -> None:
    machine = Machine(load_hardware("edge_npu"))
    way = machine.way_through("DDR[0]", "DMA[0]", "VTCM[0]")
    assert way.middle == ("DMA[0]",)
    assert way.latency_cycles == machine.model.tx_units["DMA"].latency_cycles
    assert machine.way("VTCM[0]", "VTCM[0]") is NOWHERE


def test_no_way_names_both_ends() -> None:
    model = load_hardware("dsp_conv")
    cut = model.model_copy(update={"buses": tuple(bus for bus in model.buses if bus.name != "conv_in")})
    with pytest.raises(ConfigError, match=r"no bus leads from DRAM\[0\] to CONV\[0\]"):
        Machine(cut).way("DRAM[0]", "CONV[0]")


def test_a_memory_without_a_number_is_the_nearest() -> None:
    machine = Machine(load_hardware("ref16x16"))
    assert machine.memory_near(Location.of("Wreg"), "PE[37]", writes=False) == "Wreg[37]"
    assert machine.memory_near(Location.of("Orf"), "PE[37]", writes=True) == "Orf[2]"
    assert machine.memory_near(Location(), "PE[37]", writes=False) == "DRAM[0]"
