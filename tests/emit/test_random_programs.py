"""Random nests in C: the interpreter agrees, plain, on threads, with every buffer on the heap, and sanitized."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from stripe.emit.c import COptions, emit_module
from stripe.exec.compile import CompileOptions, compile_program
from stripe.exec.errors import ExecutionError
from stripe.exec.interp import interpret
from stripe.ir import Block, Program, rewrite_blocks, with_entry
from tests.exec.random_programs import programs
from tests.support.batch import Arrays, merge, merge_arrays, split_arrays
from tests.support.compilers import STRICT, sanitized
from tests.support.running import run_apart

BUILDS = [
    CompileOptions(level="O1", extra_flags=STRICT),
    CompileOptions(level="O3", native=True, extra_flags=STRICT),
    CompileOptions("gcc", level="O1", openmp=True, extra_flags=STRICT),
    CompileOptions(level="O2", native=True, openmp=True, reorder=True, extra_flags=STRICT),
    sanitized("O0"),
]


def with_threads(program: Program) -> Program:
    def tag(block: Block) -> Block:
        return replace(block, tags=block.tags.add("thread", "vector")) if block.iterated else block

    return with_entry(program, rewrite_blocks(program.entry, tag))


@settings(max_examples=12)
@given(st.lists(programs(), min_size=1, max_size=12), st.integers(0, 1000), st.sampled_from(BUILDS))
def test_the_interpreter_agrees(drawn: list[Program], seed: int, options: CompileOptions) -> None:
    valid: list[Program] = []
    inputs: list[Arrays] = []
    expected: list[Arrays] = []
    for program in drawn:
        (ref,) = program.inputs
        data = {"A": np.random.default_rng(seed).integers(-9, 10, ref.sizes).astype(np.int32)}
        try:
            expected.append(interpret(program, data))
        except ExecutionError:
            continue
        valid.append(with_threads(program))
        inputs.append(data)
    built = compile_program(merge(valid), options)
    results = split_arrays(run_apart(built, merge_arrays(inputs)), len(valid))
    for program, result, wanted in zip(valid, results, expected, strict=True):
        assert np.array_equal(result["O"], wanted["O"]), emit_module(program, COptions(openmp=True)).source
