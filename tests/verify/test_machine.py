"""The independent checkers of schedule and placement: right programs pass, each broken one is caught."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stripe.hw.load import load_hardware
from stripe.hw.schema import HardwareModel
from stripe.ir import (
    DTYPES,
    Affine,
    Block,
    Index,
    Location,
    Nest,
    Program,
    Refinement,
    parse_program,
    print_program,
)
from stripe.passes.base import PassContext
from stripe.passes.memory_placement.units import may_alias, unit_path
from stripe.passes.registry import find_pass
from stripe.poly import statement_deps
from stripe.verify.machine import units
from stripe.verify.machine.claims import check_claims
from stripe.verify.machine.schedule import check_placement, check_schedule
from stripe.verify.machine.units import Place, check_units
from tests.support.programs import load, source


@pytest.fixture(scope="module")
def hardware() -> HardwareModel:
    return load_hardware("dsp_conv", {"NUM_SRAM": 1, "SRAM_SIZE_KIB": 1})


@pytest.fixture(scope="module")
def scheduled(hardware: HardwareModel) -> Program:
    """Four buffers of 400 bytes take turns in a memory of 1 KiB, then DRAM is placed."""
    program = load("verify/machine/scheduled")
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


@pytest.mark.parametrize("element", ["1", "0"], ids=["other element", "one element"])
def test_merges_wait_for_the_first_which_fills_the_buffer(element: str) -> None:
    """Whichever elements they touch; into one element they are no contributions in any order, as each reads it."""
    program = broken(load("verify/machine/merges"), "O[1]", f"O[{element}]")
    assert check_schedule(program) == []
    unordered = broken(program, "1[0]: block", "1: block")
    (found,) = check_schedule(unordered)
    assert "no dependence orders it after statement 0, which fills 'O'" in str(found)
    assert statement_deps(Nest.root(unordered.entry).enter(0)) == ((), (0,))


def test_a_scalar_that_nothing_waits_for_is_found() -> None:
    text = source("verify/machine/scalar_waited_for")
    assert check_schedule(parse_program(text)) == []
    (found,) = check_schedule(load("verify/machine/scalar_not_waited_for"))
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
    text = source("verify/machine/aligned")
    assert check_placement(parse_program(text), hardware) == []
    (found,) = check_placement(load("verify/machine/not_aligned"), hardware)
    assert "'T0' lies at byte 262, its elements take 4" in str(found)


def test_a_placement_that_moves_a_temporary_onto_the_output_is_found(
    scheduled: Program, hardware: HardwareModel
) -> None:
    text = print_program(scheduled)
    line = next(part for part in text.splitlines() if "<DRAM[0]> O[0]" in part and "new@" in part)
    source = next(part for part in text.splitlines() if "<DRAM[0]> I[0]" in part and "new@" in part)
    moved = line.replace(line.split("new@")[1].split("<")[0], source.split("new@")[1].split("<")[0])
    assert "'I' and 'O' may be alive together" in messages(broken(scheduled, line, moved), hardware)


UNITS = Path(__file__).parents[1] / "golden" / "memory_placement" / "units.stripe"


def units_program(**changes: str) -> Program:
    """The program of the golden test with all addresses as memory_placement gives them, and `changes` of addresses."""
    program = (
        find_pass("memory_placement").model_validate({}).run(parse_program(UNITS.read_text()), PassContext())
    )
    text = print_program(program)
    for name, address in changes.items():
        text, count = re.subn(rf"new@0x[0-9a-f]+(<[^>]*> {name}\[)", rf"new@{address}\1", text)
        assert count == 1
    return parse_program(text)


def test_placement_in_units_by_index_is_right() -> None:
    assert check_placement(units_program()) == []


@pytest.mark.parametrize(
    ("name", "address", "other"),
    [
        ("L", "0x00000000", "'T' and 'L'"),  # SRAM[i1] is SRAM[0] at one point
        ("M", "0x00000018", "'L' and 'M'"),  # SRAM[3 - i1] and SRAM[i1] have common units
        ("B", "0x0000000c", "'T' and 'B'"),  # a bank of SRAM[0] is a part of SRAM[0]
        ("L", "0x00000014", "'B' and 'L'"),  # the second copy of B lies there
    ],
)
def test_buffers_whose_units_may_be_one_are_found(name: str, address: str, other: str) -> None:
    found = check_placement(units_program(**{name: address}))
    assert any(f"{other} may be alive together" in str(diagnostic) for diagnostic in found)


def test_units_that_differ_at_all_points_share_addresses() -> None:
    """SRAM[4 + i1] is no unit of the others."""
    assert check_placement(units_program(F="0x00000000")) == []


@settings(deadline=None, max_examples=200)
@given(
    st.lists(st.tuples(st.integers(-3, 3), st.integers(0, 6), st.integers(1, 4)), min_size=2, max_size=2),
    st.integers(1, 2),
)
def test_pass_and_checker_tell_units_apart_and_the_checker_misses_none(
    units: list[tuple[int, int, int]], banks: int
) -> None:
    """Units a + b*i and all numbers that they have: the checker is exact, the pass is never less careful."""
    refs: list[Refinement] = []
    nests: list[Nest] = []
    numbers: list[set[int]] = []
    for factor, offset, extent in units:
        place = Location.of("SRAM", Affine.var("i") * factor + offset)
        ref = replace(Refinement.alloc("T", DTYPES["i8"], (banks,), location=place), bank_dim=0)
        refs.append(ref)
        nests.append(Nest.root(Block("b", indices=(Index("i", extent),), refinements=(ref,))))
        numbers.append({factor * i + offset + bank for i in range(extent) for bank in range(banks)})
    first, second = (Place.of(ref, nest) for ref, nest in zip(refs, nests, strict=True))
    assert first.shares_unit(second) == bool(numbers[0] & numbers[1])
    paths = [unit_path(ref, nest.block.intervals()) for ref, nest in zip(refs, nests, strict=True)]
    assert may_alias(*paths) or not first.shares_unit(second)


def test_a_buffer_that_starts_at_an_identity_lives_from_the_statement_that_begins_it() -> None:
    """Found by fuzzing: the fill comes before the load of the same point. An assigned buffer may take the bytes."""
    (found,) = check_placement(load("verify/machine/identity"))
    assert "'M' and 'N' may be alive together" in str(found) or "'N' and 'M' may be alive together" in str(
        found
    )
    assigned = parse_program(source("verify/machine/identity").replace("M[]:min", "M[]:assign"), "assigned")
    assert list(check_placement(assigned)) == []


LOCATED_KERNEL = "#contraction #kernel block<{}> [i:8, j:4, k:6, one:1] ( // kernel_0\n{}"


@pytest.mark.parametrize(
    ("location", "constraint", "wrong"),
    [
        ("DSP[j]", "", ""),
        ("DSP[3 - j]", "", ""),
        ("DSP[j]/CONV[3]", "", ""),
        ("DSP[i]", "", "DSP[4], and the machine has 4 DSP"),
        ("DSP[i - j]", "", "DSP[4], and the machine has 4 DSP"),
        ("DSP[i]", "3 - i >= 0", ""),  # not by its interval, but at each of its points
        ("DSP[i - j]", "i - j >= 0\n3 - i >= 0", ""),
        ("DSB[0]", "", "DSB, which the machine does not have"),
        ("DSP[0]/CONV[4]", "", "CONV[4], and the machine has 4 CONV"),
    ],
)
def test_units_of_a_block(
    location: str, constraint: str, wrong: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = broken(
        load("matmul"),
        LOCATED_KERNEL.format("", "").replace("block<>", "block"),
        LOCATED_KERNEL.format(location, constraint and constraint + "\n"),
    )
    nests: list[object] = []
    exact = units.nest_at
    monkeypatch.setattr(units, "nest_at", lambda *args: nests.append(args[1]) or exact(*args))
    found = check_units(program.entry, load_hardware("dsp_conv"))
    assert [one.message for one in found] == ([f"the block is located in {wrong}"] if wrong else [])
    assert nests == ([(0, 0, 0)] if wrong or constraint else []), "only where intervals do not decide"


TRUST = Path(__file__).parents[1] / "golden" / "trust"
NEAR_T, NEAR_R, BANKS = "I^0[0, 0] fp32(2:8, 8:1)", "R^0[0, 0] fp32(2:8, 8:1)", "^0[0, 0] fp32({2:8}, 8:1)"


@pytest.mark.parametrize(
    ("changes", "wrong"),
    [
        ({}, "no CONV reaches 'T' and 'R'"),
        ({"SRAM[1]": "SRAM[0]"}, ""),  # CONV[0] reaches both
        ({"SRAM[1]": "SRAM"}, ""),  # as it does where one of them may be in any memory
        ({"SRAM[1]": "SRAM[0]", "<CONV>": "<CONV[1]>"}, "'T': no bus leads from SRAM[0] to CONV[1]"),
        ({"SRAM[1]": "SRAM[0]", NEAR_T: f"I{BANKS}", NEAR_R: f"R{BANKS}"}, ""),  # another unit at each point
        ({"SRAM[1]": "SRAM[0]", NEAR_R: f"R{BANKS}"}, "no CONV reaches 'R' and 'T'"),
    ],
)
def test_one_unit_reaches_all_operands_of_a_block(changes: dict[str, str], wrong: str) -> None:
    text = (TRUST / "no_unit_for_all.stripe").read_text()
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new)
    found = check_claims(parse_program(text), load_hardware(str(TRUST / "Inputs" / "bank_each.json")))
    assert [one.message for one in found][:1] == ([wrong] if wrong else [])


NO_SRAM = "no SRAM holds 'T' for all that use it: "


@pytest.mark.parametrize(
    ("changes", "wrong"),
    [
        ({}, NO_SRAM + "no bus leads from SRAM[0] to CONV[1]; no bus leads from CONV[0] to SRAM[1]"),
        ({"CONV[1]": "CONV"}, NO_SRAM + "no CONV reaches SRAM[0] and the other operands of b; "),
        ({"CONV[0]": "CONV"}, NO_SRAM + "no bus leads from SRAM[0] to CONV[1]; no CONV reaches SRAM[1]"),
        ({"CONV[1]": "CONV", "SRAM[1]": "SRAM"}, ""),  # CONV[0] makes B, too
        ({"CONV[1]": "CONV[0]", "SRAM[1]": "SRAM"}, ""),
        ({"CONV[0]": "CONV[floor(i/32)]", "SRAM[0]": "SRAM"}, "no SRAM holds 'A' for all that use it: "),
    ],
)
def test_a_buffer_in_any_memory_lies_in_one(changes: dict[str, str], wrong: str) -> None:
    text = (TRUST / "any_memory_of_two_units.stripe").read_text()
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new)
    found = check_claims(parse_program(text), load_hardware(str(TRUST / "Inputs" / "bank_each.json")))
    assert [one.message[: len(wrong)] for one in found][:1] == ([wrong] if wrong else [])


OWN_T = "#buffers=2 #placed none new@0x00000200<SRAM> T[0] fp32(8:1)"
NEAR_I = "#placed none new@0x00000000<SRAM[0]> I^0"


@pytest.mark.parametrize(
    ("changes", "wrong"),
    [
        ({}, ""),
        ({"CONV[k]": "CONV"}, ""),
        (
            {"R^0[k, 0]": "R^0[1 - k, 0]", "SRAM[k]> R^0": "SRAM[1 - k]> R^0", "CONV[k]": "CONV"},
            NO_SRAM + "no CONV reaches SRAM[0] and the other operands of a; no CONV reaches SRAM[1] and ",
        ),
        (
            {
                OWN_T: "inout<SRAM> T = M[k, 0]:assign fp32(1:8, 8:1)",
                " T[i]": " T[0, i]",
                "fp32(1:1)": "fp32(1:8, 1:1)",
                NEAR_I: f"#placed none new@0x00000200<SRAM> M[0, 0] fp32(2:8, 8:1)\n{NEAR_I}",
            },
            "no SRAM holds 'M' for all that use it: no bus leads from CONV[1] to SRAM[0]; ",
        ),
    ],
)
def test_a_buffer_in_any_memory_lies_in_one_at_each_point(changes: dict[str, str], wrong: str) -> None:
    text = source("verify/machine/any_memory_of_each_point")
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new)
    found = check_claims(parse_program(text), load_hardware(str(TRUST / "Inputs" / "bank_each.json")))
    assert [one.message[: len(wrong)] for one in found][:1] == ([wrong] if wrong else [])


@pytest.mark.parametrize(
    ("name", "address", "wrong"),
    [
        ("T", "0x00000000", ""),  # copy on copy: a tile stores T when it has computed from I
        ("T", "0x00000140", ""),  # behind both copies of I
        ("T", "0x000000a0", "'I' and 'T' may be alive together and share bytes 160 to 319 of SRAM[0]"),
        ("T", "0x00000050", "'I' and 'T' may be alive together and share bytes 80 to 319 of SRAM[0]"),
        ("M", "0x000000a0", "'I' and 'M' may be alive together and share bytes 160 to 319 of SRAM[0]"),
    ],
)
def test_tiles_in_flight_share_no_bytes(name: str, address: str, wrong: str) -> None:
    text = source("verify/machine/turns_in_flight")
    moved, count = re.subn(rf"new@0x[0-9a-f]+(<SRAM\[0\]> {name}\[)", rf"new@{address}\1", text)
    assert count == 1
    messages = [one.message for one in check_claims(parse_program(moved), load_hardware("dsp_conv"))]
    assert messages[:1] == ([wrong] if wrong else [])
