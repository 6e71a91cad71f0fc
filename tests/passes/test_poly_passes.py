"""The passes that ask for exact dependences and bounds."""

from __future__ import annotations

from stripe.ir import parse_program, print_program
from tests.passes.programs import CHAIN, lines_of, run_pass
from tests.support.programs import source

HALVES = source("passes/poly_passes/halves")


def test_compute_deps_sees_regions() -> None:
    result, remarks = run_pass(HALVES, "compute_deps")
    heads = [line.split(":")[0] for line in lines_of(result, "#kernel block")]
    assert heads == ["0", "1", "2[0]", "3[0, 1]"]
    assert str(remarks[0]) == "applied: main: 3 dependences between 4 statements"
    assert run_pass(result, "compute_deps")[0] is result


def test_compute_deps_of_the_statements_of_a_kernel() -> None:
    result, _ = run_pass(CHAIN, "compute_deps", reqs=["square"])
    assert lines_of(result, "load(T", "mul(", "O = store") == [
        "0: $T = load(T)",
        "1[0]: $S = mul($T, $T)",
        "2[1]: O = store($S)",
    ]


def bounded(*constraints: str) -> str:
    lines = "".join(f"        {constraint} >= 0\n" for constraint in constraints)
    return f"""\
0: #program block [] ( // p
    #user none new@0x00000000<[0]> I[0, 0] fp32(10:8, 8:1)
    #user none new@0x00000000<[0]> O[0] fp32(10:1)
) {{
  0: #main block [] ( // main
      in<[0]> I[0, 0] fp32(10:8, 8:1)
      out<[0]> O[0]:assign fp32(10:1)
  ) {{
    0: #init #kernel block [x:10] ( // zero
        out<[0]> O[x]:assign fp32(1:1)
    ) {{
      0: $z = (fp32)0.0
      1: O = store($z)
    }}
    1: #kernel block [#keep k:8, x:10] ( // k
{lines}        in<[0]> I[x, k] fp32(1:8, 1:1)
        out<[0]> O[x]:add fp32(1:1)
    ) {{
      0: $i = load(I)
      1: O = store($i)
    }}
  }}
}}
"""


def test_reduce_constraints_shrinks_ranges() -> None:
    result, remarks = run_pass(
        bounded("-2 + x", "8 - x", "20 - x - k", "3 - floor(k/2)"), "reduce_constraints"
    )
    assert lines_of(result, "#keep", " I[", ">= 0")[1:] == [
        "in<[0]> I[0, 0] fp32(10:8, 8:1)",
        "1: #kernel block [#keep k:8, x:7] ( // k",
        "in<[0]> I[2 + x, k] fp32(1:8, 1:1)",
    ]
    assert str(remarks[0]) == "applied: k: 4 constraints become 0, 80 points 56"


def test_reduce_constraints_keeps_what_is_not_implied() -> None:
    result, _ = run_pass(bounded("9 - x - k", "10 - x - k", "5 - k"), "reduce_constraints")
    assert lines_of(result, "#keep", ">= 0") == [
        "1: #kernel block [#keep k:6, x:10] ( // k",
        "9 - k - x >= 0",
    ]


def test_reduce_constraints_drops_empty_blocks() -> None:
    result, remarks = run_pass(bounded("-5 + x", "4 - x"), "reduce_constraints")
    assert "dropped: it has no point" in str(remarks[0])
    assert "#keep" not in print_program(result)


def test_reduce_constraints_changes_nothing_needlessly() -> None:
    program = parse_program(CHAIN)
    assert run_pass(program, "reduce_constraints")[0] is program
