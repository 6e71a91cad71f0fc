"""Programs that the tests of passes share, and how they run one pass."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from stripe.exec.interp import interpret
from stripe.hw import load_hardware
from stripe.ir import Program, parse_program, print_program, rewrite_matching, verify_structural, with_entry
from stripe.passes.base import Pass, PassContext, Remark
from stripe.passes.registry import find_pass
from stripe.rewrite.tile import tile_block
from tests.support.programs import source

CHAIN = source("passes/chain")
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
        ref.name: (np.arange(prod(ref.logical_sizes)).reshape(ref.logical_sizes) * 7 % 11 - 5).astype(
            ref.dtype.numpy()
        )
        for ref in before.inputs
    }
    wanted, found = interpret(before, inputs), interpret(after, inputs)
    assert wanted.keys() == found.keys()
    for name, array in wanted.items():
        np.testing.assert_array_equal(found[name], array, err_msg=name)


def lines_of(program: Program, *needles: str) -> list[str]:
    """The printed lines that contain any of `needles`, without indentation."""
    return [line.strip() for line in print_program(program).splitlines() if any(n in line for n in needles)]


CONV = source("passes/cache/conv")
SRAM: dict[str, Any] = {"mem_loc": {"name": "SRAM"}, "xfer_loc": {"name": "DMA"}}


def tiled(text: str = CONV, tag: str = "conv", **sizes: int) -> Program:
    program = parse_program(text)
    return with_entry(program, rewrite_matching(program.entry, [tag], lambda block: tile_block(block, sizes)))


STRIDED = source("passes/cache/strided")


def on(machine: str, program: Program | str, name: str, **options: Any) -> tuple[Program, list[Remark]]:
    """Runs one pass with a shipped hardware model; the results stay the same."""
    source = parse_program(program) if isinstance(program, str) else program
    remarks: list[Remark] = []
    instance = find_pass(name).model_validate(options)
    result = instance.run(source, PassContext(load_hardware(machine, {}), remarks.append))
    assert_same_results(source, result)
    return result, remarks


def chain(sizes: list[int], *, ordered: bool = True, dtype: str = "i8") -> str:
    """I -> T0 -> T1 -> … -> O: each kernel copies the first element and fills its buffer of the given size."""
    names = [f"T{n}" for n in range(len(sizes))]
    head = [f"    #user none new@0x00000000<DRAM[0]> I[0] {dtype}(4:1)"]
    head += [
        f"    #tmp none new@0x00000000<DRAM[0]> {n}[0] {dtype}({s}:1)"
        for n, s in zip(names, sizes, strict=True)
    ]
    head += [f"    #user none new@0x00000000<DRAM[0]> O[0] {dtype}(4:1)"]
    views = [f"      in<DRAM[0]> I[0] {dtype}(4:1)"]
    views += [f"      inout<DRAM[0]> {n}[0]:assign {dtype}({s}:1)" for n, s in zip(names, sizes, strict=True)]
    views += [f"      out<DRAM[0]> O[0]:assign {dtype}(4:1)"]
    body: list[str] = []
    flow = ["I", *names, "O"]
    extent = [4, *sizes, 4]
    for number in range(len(flow) - 1):
        deps = f"[{number - 1}]" if number and ordered else ""
        body += [
            f"    {number}{deps}: #kernel block<DSP[0]> [x:{extent[number + 1]}] ( // k{number}",
            f"        in<DRAM[0]> {flow[number]}[0] {dtype}(1:1)",
            f"        out<DRAM[0]> {flow[number + 1]}[x]:assign {dtype}(1:1)",
            "    ) {",
            f"      0: $v = load({flow[number]})",
            f"      1: {flow[number + 1]} = store($v)",
            "    }",
        ]
    lines = ["0: #program block [] ( // p", *head, ") {", "  0: #main block [] ( // main", *views, "  ) {"]
    return "\n".join([*lines, *body, "  }", "}", ""])


def matmul(size: int) -> str:
    """C[m, n] = sum over k of A[m, k] * B[k, n] with 6 rows, 5 summands and `size` columns."""
    return source("passes/matmul").replace("SIZE", str(size))
