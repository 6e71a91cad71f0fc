"""Placed programs: memory at addresses, so that wrong placement shows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from stripe.exec.compile import CompileOptions, compile_program
from stripe.exec.errors import ExecutionError
from stripe.exec.interp import interpret
from stripe.ir import Program, parse_program, print_program, with_entry
from tests.support.programs import checked, load

DATA = {"A": np.arange(1, 9, dtype=np.int16)}


def place(name: str) -> str:
    return "DRAM[0]" if name in "AOP" else "SRAM[0]"


def copy(source: str, target: str, count: int = 8) -> str:
    return f"""block [i:{count}] ( // {source} to {target}
        in<{place(source)}> {source}[i] i16(1:1)
        out<{place(target)}> {target}[i]:assign i16(1:1)
    ) {{
      0: $a = load({source})
      1: {target} = store($a)
    }}"""


def placed(offsets: dict[str, int], *steps: str) -> Program:
    """A in DRAM is an input, O and P are outputs, T and U lie in SRAM at `offsets`; each a vector of 8 i16."""
    user = [f"#placed #user none new@0x{16 * n:08x}<DRAM[0]> {name}[0]" for n, name in enumerate("AOP")]
    temporary = [
        f"#placed none new@0x{offset:08x}<SRAM[0]> {name}[0]:assign i16(8:1)"
        for name, offset in offsets.items()
    ]
    newline = "\n"
    return checked(f"""0: #program block [] (
        {user[0]} i16(8:1)
        {user[1]}:assign i16(8:1)
        {user[2]}:assign i16(8:1)
    ) {{
      0: #main block [] (
          in<DRAM[0]> A[0] i16(8:1)
          out<DRAM[0]> O[0]:assign i16(8:1)
          out<DRAM[0]> P[0]:assign i16(8:1)
          {newline.join(temporary)}
      ) {{
        {newline.join(f"{number}: {step}" for number, step in enumerate(steps))}
      }}
    }}""")


def test_memory_is_shared_by_what_is_not_alive_together() -> None:
    built = placed({"T": 64, "U": 64}, copy("A", "T"), copy("T", "O"), copy("A", "U"), copy("U", "P"))
    got = interpret(built, DATA)
    assert got["O"].tolist() == got["P"].tolist() == DATA["A"].tolist()


def test_overlap_of_what_is_alive_together_shows() -> None:
    built = placed({"T": 0, "U": 12}, copy("A", "T"), copy("A", "U"), copy("T", "O"), copy("U", "P"))
    assert interpret(built, DATA, arenas=False)["O"].tolist() == DATA["A"].tolist()
    with pytest.raises(
        ExecutionError,
        match=r"'T'\[6\], which is unwritten, or overwritten through another buffer in SRAM\[0\]",
    ):
        interpret(built, DATA)
    got = interpret(built, DATA, checks=False)
    assert got["O"].tolist() == [1, 2, 3, 4, 5, 6, 1, 2]
    assert got["P"].tolist() == DATA["A"].tolist()


def test_a_region_that_was_not_transferred() -> None:
    built = placed({"T": 0}, copy("A", "T", 5), copy("T", "O"), copy("A", "P"))
    with pytest.raises(
        ExecutionError, match=r"\(T to O\): error: load of 'T' reads 'T'\[5\], which is unwritten"
    ):
        interpret(built, DATA)


def test_an_output_that_another_buffer_overwrites() -> None:
    built = placed({}, copy("A", "O"), copy("A", "P"))
    refs = [replace(ref, offset=24) if ref.name == "P" else ref for ref in built.entry.refinements]
    bad = with_entry(built, replace(built.entry, refinements=tuple(refs)))
    with pytest.raises(
        ExecutionError, match=r"'O' ends with its element \[4\], .* or overwritten .* \(4 such"
    ):
        interpret(bad, DATA)


def test_a_sum_begins_at_zero_when_it_is_first_used() -> None:
    """S lies where T was: it must not be cleared while T is alive, and must not begin with what T left there."""
    built = load("exec/arenas/sum_over_a_dead_buffer")
    assert interpret(built, DATA)["O"].tolist() == [36]


def test_holes_of_a_tensor_at_an_address_are_undefined() -> None:
    built = load("exec/arenas/hole_at_an_address")
    with pytest.raises(ExecutionError, match=r"reads 'X'\[1, 1\], which is unwritten"):
        interpret(built, {"X": np.arange(3, dtype=np.float32)})


@pytest.mark.parametrize("checks", [True, False])
def test_banks_and_buffers_of_a_tile(checks: bool) -> None:
    """X spreads over two banks; each tile has a buffer in the unit of its number, at one address."""
    built = load("exec/arenas/banks")
    data = DATA["A"].reshape(2, 4)
    got = interpret(built, {"A": data}, checks=checks)["O"]
    assert got.tolist() == (2 * data).tolist()


@pytest.mark.parametrize(("offset", "overlaps"), [(16, False), (15, True), (3, True)])
def test_overlap_of_different_dtypes_is_seen_to_the_byte(offset: int, overlaps: bool) -> None:
    """T holds four fp32 in bytes 0 to 15; one i8 lies at `offset`."""
    built = checked(f"""0: #program block [] (
        #user none new@0x00000000<DRAM[0]> A[0] fp32(4:1)
        #user none new@0x00000000<DRAM[0]> B[0] i8(1:1)
        #user none new@0x00000000<DRAM[0]> O[0]:assign fp32(4:1)
    ) {{
      0: #main block [] (
          in<DRAM[0]> A[0] fp32(4:1)
          in<DRAM[0]> B[0] i8(1:1)
          out<DRAM[0]> O[0]:assign fp32(4:1)
          #placed none new@0x00000000<SRAM[0]> T[0]:assign fp32(4:1)
          #placed none new@0x{offset:08x}<SRAM[0]> U[0]:assign i8(1:1)
      ) {{
        0: block [i:4] (
            in<DRAM[0]> A[i] fp32(1:1)
            out<SRAM[0]> T[i]:assign fp32(1:1)
        ) {{
          0: $a = load(A)
          1: T = store($a)
        }}
        1: block [] (
            in<DRAM[0]> B[0] i8(1:1)
            out<SRAM[0]> U[0]:assign i8(1:1)
        ) {{
          0: $b = load(B)
          1: U = store($b)
        }}
        2: block [i:4] (
            in<SRAM[0]> T[i] fp32(1:1)
            out<DRAM[0]> O[i]:assign fp32(1:1)
        ) {{
          0: $t = load(T)
          1: O = store($t)
        }}
      }}
    }}""")
    data = {"A": np.array([1, 2, 3, 4], np.float32), "B": np.array([-1], np.int8)}
    if overlaps:
        with pytest.raises(ExecutionError, match=rf"'T'\[{offset // 4}\], .* overwritten"):
            interpret(built, data)
    else:
        assert interpret(built, data)["O"].tolist() == [1, 2, 3, 4]


def test_units_by_indices_under_constraints() -> None:
    """`4 - 2*x - y` is no unit at x = 2, y = 1, which the constraint excludes; the memory has five units."""
    program = load("exec/arenas/units_by_indices")
    assert interpret(program, DATA)["O"].tolist() == [1, 2, 3, 4, 5]
    built = compile_program(program, CompileOptions(level="O0"))
    assert built.run(DATA)["O"].tolist() == [1, 2, 3, 4, 5]
    with pytest.raises(ExecutionError, match="units below 0"):
        interpret(parse_program(print_program(program).replace("4 - 2*x - y >= 0", "5 - 2*x - y >= 0")), DATA)
