"""Buffers that vector variables hold: random bodies that load and store them in any order, in C and interpreted."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stripe.emit.c import emit_c
from stripe.exec.compile import CompileOptions, compile_program
from stripe.exec.interp import interpret
from stripe.ir import Program
from tests.support.batch import merge, merge_arrays, split_arrays
from tests.support.programs import build, load
from tests.support.running import run_apart

BUILDS = [
    CompileOptions(level="O1"),
    CompileOptions(level="O3", native=True),
    CompileOptions(level="O1", extra_flags=("-DST_PLAIN",)),
    CompileOptions(level="O1", openmp=True),
]
BINARY = ("add", "sub", "mul", "min", "max")
OPS = (*BINARY, "neg", "relu", "ident")


@st.composite
def straight_lines(draw: st.DrawFn, targets: str) -> list[str]:
    """Updates of T and U in place, each between a load and a use of the value loaded, in any order."""
    lines, scalars = ["$i = load(I)", "$t = load(T)", "$u = load(U)"], ["$i", "$t", "$u"]
    for number in range(draw(st.integers(1, 5))):
        args = [draw(st.sampled_from(scalars)) for _ in range(2)]
        op = draw(st.sampled_from(OPS))
        lines.append(f"$s{number} = {op}({', '.join(args if op in BINARY else args[:1])})")
        target = draw(st.sampled_from(targets))
        lines.append(f"{target} = store($s{number})")
        scalars.append(f"$s{number}")
        if draw(st.booleans()):
            lines.append(f"$l{number} = load({draw(st.sampled_from('TU'))})")
            scalars.append(f"$l{number}")
    return [*lines, f"O = store({draw(st.sampled_from(scalars))})"]


ROOM = 16
"""Elements of a row."""


def block(number: int, refs: Sequence[str], lines: Sequence[str], size: int, *, vector: int = 4) -> str:
    tag = f"#vector={vector} " if vector else ""
    body = "\n".join(f"{place}: {line}" for place, line in enumerate(lines))
    return f"{number}: {tag}block [x:{size}] ( // b{number}\n" + "\n".join(refs) + f"\n) {{\n{body}\n}}"


@st.composite
def programs(draw: st.DrawFn) -> Program:
    """A kernel whose blocks load and store the allocations T and U in place, and merge into S. Rows that are no whole
    vectors may end in a vector that begins in another, unless a block touches a part of them."""
    dtype = draw(st.sampled_from(["i32", "i64", "u32", "fp32"]))
    agg = draw(st.sampled_from(["min", "max"] if dtype == "fp32" else ["add", "mul", "min"]))
    size, lanes = draw(st.sampled_from([12, 13, 7, 11, 15])), draw(st.sampled_from([4, 8]))
    element, buffers = f"{dtype}(1:1)", {"T": "assign", "U": "assign"}
    if draw(st.booleans()):
        buffers["S"] = agg
    first = [f"in I[x] {element}", *(f"out {name}[x]:{how} {element}" for name, how in buffers.items())]
    lines = ["$a = load(I)", "T = store($a)", "$b = neg($a)", "U = store($b)"]
    lines += ["S = store($a)"] if "S" in buffers else []
    blocks = [block(0, first, lines, size, vector=lanes)]
    for number in range(1, 1 + draw(st.integers(1, 3))):
        refs = [f"in I[x] {element}", f"out O[x]:assign {element}"]
        refs += [f"out S[x]:{agg} {element}"] if "S" in buffers else []
        refs += [f"inout {name}[x]:assign {element}" for name in "TU"]
        in_registers = draw(st.sampled_from([True, True, True, True, False]))
        part = draw(st.sampled_from([size, size, size, size - 3, 4]))
        lines = draw(straight_lines("".join(["O", *buffers])))
        blocks.append(block(number, refs, lines, part, vector=lanes if in_registers else 0))
    last = [f"in {name}[x] {element}" for name in buffers]
    last += [f"out {name}_whole[x]:assign {element}" for name in buffers]
    lines = [
        line for name in buffers for line in (f"${name} = load({name})", f"{name}_whole = store(${name})")
    ]
    blocks.append(block(len(blocks), last, lines, size, vector=lanes))
    outputs = ["O", *(f"{name}_whole" for name in buffers)]
    views = [f"in I[{ROOM}*i] {dtype}({ROOM}:1)"]
    views += [f"out {name}[{ROOM}*i]:assign {dtype}({ROOM}:1)" for name in outputs]
    views += [f"none new@0x00000000 {name}[0]:{agg} {dtype}({ROOM}:1)" for name, agg in buffers.items()]
    kernel = "0: #kernel block [i:3] (\n" + "\n".join(views) + "\n) {\n" + "\n".join(blocks) + "\n}"
    whole = 3 * ROOM
    tensors = [f"in I {dtype}({whole})", *(f"inout {name} {dtype}({whole})" for name in outputs)]
    return build("\n".join(tensors), kernel)


@settings(max_examples=8)
@given(st.lists(programs(), min_size=1, max_size=12), st.integers(0, 1000), st.sampled_from(BUILDS))
def test_a_value_loaded_is_that_of_the_load(drawn: list[Program], seed: int, options: CompileOptions) -> None:
    random = np.random.default_rng(seed)
    inputs = [
        {ref.name: random.integers(0, 10, 3 * ROOM).astype(ref.dtype.numpy()) for ref in program.inputs}
        for program in drawn
    ]
    built = compile_program(merge(drawn), options)
    results = split_arrays(run_apart(built, merge_arrays(inputs)), len(drawn))
    for program, data, result in zip(drawn, inputs, results, strict=True):
        for name, expected in interpret(program, data).items():
            assert np.array_equal(result[name], expected), (name, emit_c(program))


@pytest.mark.parametrize("name", ["product", "sums_of_one"])
def test_additions_to_results_keep_their_rounding(name: str) -> None:
    """Products by aggregation, and sums of one product, are no part of a multiply-add with an addition after them."""
    program, random = load(f"emit/tiles/{name}"), np.random.default_rng(1)
    inputs = {ref.name: random.standard_normal(ref.sizes).astype(np.float32) for ref in program.inputs}
    found = compile_program(program, CompileOptions(native=True, level="O3")).run(inputs)
    assert np.array_equal(found["O"], interpret(program, inputs)["O"])


def test_sums_of_negative_zeros_are_zero() -> None:
    program = load("emit/tiles/sums_of_one")
    inputs = {"I": np.full(32, -0.0, np.float32), "Y": np.full(32, 1.0, np.float32)}
    found = compile_program(program).run(inputs)
    for name, expected in interpret(program, inputs).items():
        assert not np.signbit(expected).any()
        assert not np.signbit(found[name]).any(), name
