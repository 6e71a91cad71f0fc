"""No unit does more useful work than there is time: also where statements hold blocks for units of several kinds."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stripe.cost.report.report import simulation_json
from stripe.cost.time.simulate import simulate_program
from stripe.hw import load_hardware
from stripe.ir import Program, parse_program
from tests.cost.test_examples import IDLE

MACHINE = load_hardware("dsp_conv")
UNITS = ("", "CONV", "CONV[0]", "CONV[1]", "DSP", "DSP[0]", "DSP[1]")
SIZE = 64

Leaf = tuple[str, int, int, str]
"""A unit, the points of its two indices, and the tags of its first index and itself."""


def leaf(number: int, spec: Leaf) -> str:
    unit, points, work, stencil = spec
    index = f"#stencil #stencil_{stencil} k:{work}" if stencil else f"k:{work}"
    tag, place = "#stencil " if stencil else "", f"<{unit}>" if unit else ""
    return (
        f"      {number}: #kernel {tag}block{place} [{index}, x:{points}] ( // leaf_{number}\n"
        "          in<SRAM[0]> A[x] i8(1:1)\n"
        f"          out<SRAM[0]> O[x]:add i8(1:1)\n"
        "      ) {\n        0: $a = load(A)\n        1: $b = mul($a, $a)\n        2: O = store($b)\n      }\n"
    )


def program_of(statements: list[tuple[list[Leaf], int, set[int]]]) -> Program:
    """Statements of one or more leaves, repeated so many times, and the statements that each waits for."""
    text = "0: #program block [] ( // p\n    #user none new@0x00000000<SRAM[0]> A[0] i8(64:1)\n"
    outs = range(len(statements))
    text += "".join(f"    #user none new@0x00000000<SRAM[0]> O{n}[0] i8(64:1)\n" for n in outs)
    text += ") {\n  0: #main #scheduled block [] ( // main\n      in<SRAM[0]> A[0] i8(64:1)\n"
    text += "".join(f"      out<SRAM[0]> O{n}[0]:add i8(64:1)\n" for n in outs) + "  ) {\n"
    for number, (leaves, trips, deps) in enumerate(statements):
        waits = f"[{', '.join(map(str, sorted(deps)))}]" if deps else ""
        text += (
            f"    {number}{waits}: #kernel block [t:{trips}] ( // fused_{number}\n"
            f"        in<SRAM[0]> A[0] i8(64:1)\n        out<SRAM[0]> O = O{number}[0]:add i8(64:1)\n    ) {{\n"
        )
        text += "".join(leaf(place, spec) for place, spec in enumerate(leaves)) + "    }\n"
    return parse_program(text + "  }\n}\n", "mixed")


LEAVES = st.tuples(
    st.sampled_from(UNITS), st.integers(1, SIZE), st.integers(1, 80), st.sampled_from(["", "", "i1", "c"])
)


@st.composite
def mixed_programs(draw: st.DrawFn) -> Program:
    count = draw(st.integers(1, 4))
    return program_of(
        [
            (
                draw(st.lists(LEAVES, min_size=1, max_size=3)),
                draw(st.integers(1, 5)),
                draw(st.sets(st.integers(0, number - 1), max_size=1)) if number else set(),
            )
            for number in range(count)
        ]
    )


@settings(deadline=None, max_examples=40)
@given(mixed_programs())
def test_useful_cycles_fit_into_the_time(program: Program) -> None:
    found = simulate_program(program, MACHINE)
    for use in simulation_json(found, "test").units:
        assert 0.0 <= use.useful_cycles <= found.cycles * (1 + 1e-9), use
        assert use.busy_cycles + sum(use.stalls.get(cause, 0.0) for cause in IDLE) == pytest.approx(
            found.cycles
        ), use
    for cost in found.costs:
        assert 0.0 < cost.work.utilisation <= 1.0 + 1e-9, cost.name


def test_blocks_inside_two_statements_share_their_unit() -> None:
    """Either statement alone keeps DSP[0] busy for 64 cycles; they may run at the same time, on two engines."""
    one = [("CONV[0]", 64, 1, ""), ("DSP[0]", 64, 32, "")]
    other = [("CONV[1]", 64, 1, ""), ("DSP[0]", 64, 32, "")]
    alone = simulate_program(program_of([(one, 1, set())]), MACHINE)
    both = simulate_program(program_of([(one, 1, set()), (other, 1, set())]), MACHINE)
    assert alone.cycles >= 64
    assert both.cycles >= 128


def test_an_index_larger_than_its_stencil_takes_several_uses() -> None:
    """33 points of an index of which an instruction computes 32 take two of them."""
    found = simulate_program(program_of([([("CONV[0]", 1, 33, "i1")], 1, set())]), MACHINE)
    (cost,) = found.costs
    assert cost.work.utilisation == 33 / 64
