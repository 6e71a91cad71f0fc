"""The independent checkers of schedule and placement: right programs pass, each broken one is caught."""

from __future__ import annotations

import pytest

from stripe.hw.load import load_hardware
from stripe.hw.schema import HardwareModel
from stripe.ir import Program, parse_program, print_program
from stripe.passes.base import PassContext
from stripe.passes.registry import find_pass
from stripe.verify.machine.schedule import check_placement, check_schedule
from tests.passes.test_memory_placement import chain


@pytest.fixture(scope="module")
def hardware() -> HardwareModel:
    return load_hardware("dsp_conv", {"NUM_SRAM": 1, "SRAM_SIZE_KIB": 1})


@pytest.fixture(scope="module")
def scheduled(hardware: HardwareModel) -> Program:
    """Four buffers of 400 bytes take turns in a memory of 1 KiB, then DRAM is placed."""
    program = parse_program(chain([400, 400, 400, 400]))
    for name, options in (
        ("schedule", {"mem_loc": {"name": "SRAM"}, "xfer_loc": {"name": "DMA"}}),
        ("memory_placement", {"locs": [{"name": "DRAM"}]}),
    ):
        program = find_pass(name).model_validate(options).run(program, PassContext(hardware))
    return program


def messages(program: Program, hardware: HardwareModel) -> str:
    return "\n".join(map(str, [*check_schedule(program, hardware), *check_placement(program, hardware)]))


def test_what_the_passes_make_is_right(scheduled: Program, hardware: HardwareModel) -> None:
    assert messages(scheduled, hardware) == ""


def broken(program: Program, old: str, new: str) -> Program:
    text = print_program(program)
    assert old in text
    return parse_program(text.replace(old, new, 1))


def test_a_missing_dependence_is_found(scheduled: Program, hardware: HardwareModel) -> None:
    text = messages(broken(scheduled, "2[1]: ", "2[0]: "), hardware)
    assert "no dependence orders it after statement 1, both touch 'T0^0'" in text


def test_a_scalar_that_nothing_waits_for_is_found() -> None:
    text = """0: #program block [] ( // scalars
    #user none new@0x00000000 A[0] fp32(1:1)
    #user none new@0x00000000 O[0] fp32(1:1)
) {
  0: #main block [] ( // main
      in A[0] fp32(1:1)
      out O[0]:assign fp32(1:1)
  ) {
    0: $a = load(A)
    1[0]: $b = neg($a)
    2[1]: O = store($b)
  }
}
"""
    assert check_schedule(parse_program(text)) == []
    (found,) = check_schedule(parse_program(text.replace("2[1]", "2[0]")))
    assert "no dependence orders it after statement 1, which defines '$b'" in str(found)


def test_buffers_that_share_bytes_without_waiting_are_found(
    scheduled: Program, hardware: HardwareModel
) -> None:
    line = next(
        line
        for line in print_program(scheduled).splitlines()
        if "T1^0[0] i8(400:1)" in line and "new@" in line
    )
    address = line.split("new@")[1].split("<")[0]
    other = next(
        part for part in print_program(scheduled).splitlines() if "T0^0[0]" in part and "new@" in part
    )
    moved = line.replace(address, other.split("new@")[1].split("<")[0])
    text = messages(broken(scheduled, line, moved), hardware)
    assert "may be alive together and share bytes" in text


def test_what_ends_outside_of_its_memory_is_found(scheduled: Program, hardware: HardwareModel) -> None:
    line = next(
        line for line in print_program(scheduled).splitlines() if "T3^0[0]" in line and "new@" in line
    )
    address = line.split("new@")[1].split("<")[0]
    text = messages(broken(scheduled, line, line.replace(address, "0x00000390")), hardware)
    assert "'T3^0' ends at byte 1312 of SRAM[0], which has 1024" in text


def test_an_unreachable_memory_is_found(scheduled: Program, hardware: HardwareModel) -> None:
    text = print_program(scheduled).replace("<DSP[0]>", "<CONV[0]>")
    text = text.replace("<SRAM[0]>", "<DRAM[0]>")
    assert "no bus leads from DRAM[0] to CONV[0]" in messages(parse_program(text), hardware)


def test_an_address_that_cuts_elements_is_found(hardware: HardwareModel) -> None:
    text = chain([8], dtype="fp32").replace("#tmp none new@0x00000000", "#placed #tmp none new@0x00000104")
    assert check_placement(parse_program(text), hardware) == []
    (found,) = check_placement(parse_program(text.replace("0x00000104", "0x00000106")), hardware)
    assert "'T0' lies at byte 262, its elements take 4" in str(found)


def test_a_placement_that_moves_a_temporary_onto_the_output_is_found(
    scheduled: Program, hardware: HardwareModel
) -> None:
    text = print_program(scheduled)
    line = next(part for part in text.splitlines() if "<DRAM[0]> O[0]" in part and "new@" in part)
    source = next(part for part in text.splitlines() if "<DRAM[0]> I[0]" in part and "new@" in part)
    moved = line.replace(line.split("new@")[1].split("<")[0], source.split("new@")[1].split("<")[0])
    assert "'I' and 'O' may be alive together" in messages(broken(scheduled, line, moved), hardware)
