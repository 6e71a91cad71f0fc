"""Programs that the tests of passes share, and how they run one pass."""

from __future__ import annotations

from typing import Any

import numpy as np

from stripe.exec.interp import interpret
from stripe.ir import Program, parse_program, print_program, verify_structural
from stripe.passes.base import Pass, PassContext, Remark
from stripe.passes.registry import find_pass

CHAIN = """\
0: #program block [] ( // chain
    #user none new@0x00000000<[0]> I[0, 0] fp32(6:4, 4:1)
    #tmp none new@0x00000000<[0]> T[0] fp32(6:1)
    #user none new@0x00000000<[0]> O[0] fp32(6:1)
) {
  0: #main block [] ( // main
      in<[0]> I[0, 0] fp32(6:4, 4:1)
      inout<[0]> T[0]:assign fp32(6:1)
      out<[0]> O[0]:assign fp32(6:1)
  ) {
    0: #fused #kernel block [x:6, one:1] ( // sum+square
        in<[0]> I[x, one] fp32(1:4, 4:1)
        inout<[0]> T[one + x]:assign fp32(1:1)
        out<[0]> O[x]:assign fp32(1:1)
    ) {
      0: #sum block [k:4, x.o = x] ( // sum
          in<[0]> I[0, k] fp32(1:4, 1:1)
          out<[0]> T[0]:add fp32(1:1)
      ) {
        0: $I = load(I)
        1: T = store($I)
      }
      1: #square block [] ( // square
          in<[0]> T[0] fp32(1:1)
          out<[0]> O[0]:assign fp32(1:1)
      ) {
        0: $T = load(T)
        1: $S = mul($T, $T)
        2: O = store($S)
      }
    }
  }
}
"""
"""O[x] = (sum over k of I[x, k])^2, the two kernels fused over x."""


def run_pass(
    program: Program | str, name: str, *, interpreted: bool = True, **options: Any
) -> tuple[Program, list[Remark]]:
    """Runs one pass on a program (or its text); its remarks come too.

    Checks that the result is valid and computes what the program computed, on small integers.
    """
    source = parse_program(program) if isinstance(program, str) else program
    assert verify_structural(source) == []
    instance: Pass = find_pass(name).model_validate(options)
    remarks: list[Remark] = []
    result = instance.run(source, PassContext(listener=remarks.append))
    assert verify_structural(result) == [], print_program(result)
    if interpreted:
        assert_same_results(source, result)
    return result, remarks


def assert_same_results(before: Program, after: Program) -> None:
    """Interprets both on the same small integers and compares to the bit."""
    inputs = {
        ref.name: (np.arange(ref.elements).reshape(ref.sizes) * 7 % 11 - 5).astype(ref.dtype.numpy())
        for ref in before.inputs
    }
    wanted, found = interpret(before, inputs), interpret(after, inputs)
    assert wanted.keys() == found.keys()
    for name, array in wanted.items():
        np.testing.assert_array_equal(found[name], array, err_msg=name)


def lines_of(program: Program, *needles: str) -> list[str]:
    """The printed lines that contain any of `needles`, without indentation."""
    return [line.strip() for line in print_program(program).splitlines() if any(n in line for n in needles)]
