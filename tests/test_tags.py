"""Tags steer passes: other tags on anything change no results, nor the cost on machines that count no vectors."""

from __future__ import annotations

from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import stripe
from stripe.cost.counts.counts import count_program
from stripe.emit.c import emit_c
from stripe.exec.compare import compare
from stripe.exec.compile import compile_program
from stripe.exec.data import random_inputs
from stripe.exec.interp import interpret
from stripe.hw.load import load_hardware
from stripe.ir import Block, Program, Stage, Tags, verify_structural, walk, with_entry
from stripe.ir.frozen import replace
from stripe.passes.base import LOCATED
from stripe.verify.machine.claims import check_claims

WORDS = (
    "cache", "cache_load", "cached", "contraction", "conv", "dot", "dot_tile", "init", "kernel", "parallel", "stencil",
    "swap_in", "thread", "transfer", "transpose", "unroll", "vector", "anything",
)  # fmt: skip
VALUES = (None, None, -2, 0, 1, 3, 6, 8, 16, 24, 5000, True, 2.5, "x")
"""Values of tags; some of which a pass sets none."""
PROGRAMS = {
    "convolution": "function (I[X=34, C=4]: i8, K[F=3, C, O=8]: i8) -> (R) {"
    " [[conv]] T[x, o : 32, O] = +(I[x + f, c] * K[f, c, o]); R = relu(T); }",
    "matmul": "function (A[M=12, K=20]: i8, B[K, N=16]: i8) -> (C) { C[m, n : M, N] = +(A[m, k] * B[k, n]); }",
    "wide_sum": "function (A[M=4, K=20]: i8, B[N=6, K]: i8) -> (C) {"
    " C[m, n : M, N]: i32 = +(A[m, k] * B[n, k]); }",
    "turned": "function (X[M=26, N=25]: i8) -> (O) { O[n, m : N, M] = =(X[m, n]); }",
}
LISTS = {
    "": (),
    "cached": ("autotile{reqs=[kernel],only_po2=true,max_total_size=256}", "cache{reqs=[kernel]}"),
    "scheduled": (
        LOCATED,
        "schedule{mem_loc={name:SRAM},xfer_loc={name:DMA},mem_KiB=64,num_banks=4}",
        "memory_placement",
    ),
    "threads": ("thread{reqs=[kernel],threads=4}", "vectorize{reqs=[kernel],vector_bytes=16}"),
}
machine = cache(load_hardware)


@cache
def compiled(name: str, passes: str) -> Program:
    program = stripe.parse(PROGRAMS[name], language="tile")
    machine = "dsp_conv" if passes == "scheduled" else None
    return stripe.run_passes(program, LISTS[passes], hardware=machine) if LISTS[passes] else program


_SET = st.lists(st.tuples(st.sampled_from(WORDS), st.sampled_from(VALUES)), max_size=3)
_PROGRAMS, _LISTS = st.sampled_from(sorted(PROGRAMS)), st.sampled_from(sorted(LISTS))


@cache
def some(words: tuple[str, ...]) -> st.SearchStrategy[list[str]]:
    return st.lists(st.sampled_from(words), max_size=3)


def other_tags(draw: st.DrawFn, tags: Tags) -> Tags:
    kept = tags.remove(*draw(some(tuple(tags)))) if len(tags) else tags
    for word, value in draw(_SET):
        kept = kept.add(word) if value is None else kept.set(word, value)
    return kept


def retagged(draw: st.DrawFn, block: Block) -> Block:
    """The block, its parts and all inside with other tags."""
    return replace(
        block,
        tags=other_tags(draw, block.tags),
        indices=tuple(replace(i, tags=other_tags(draw, i.tags)) for i in block.indices),
        refinements=tuple(replace(r, tags=other_tags(draw, r.tags)) for r in block.refinements),
        statements=tuple(
            retagged(draw, s) if isinstance(s, Block) else replace(s, tags=other_tags(draw, s.tags))
            for s in block.statements
        ),
    )


@st.composite
def pairs(draw: st.DrawFn) -> tuple[Program, Program]:
    """A program, and the same with other tags."""
    program = compiled(draw(_PROGRAMS), draw(_LISTS))
    return program, with_entry(program, retagged(draw, program.entry))


@settings(max_examples=60)
@given(pairs())
def test_any_tags_have_code(pair: tuple[Program, Program]) -> None:
    assert emit_c(pair[1])


@settings(max_examples=12)
@given(pairs())
def test_results_keep_their_bits(pair: tuple[Program, Program]) -> None:
    program, other = pair
    data = random_inputs(program, 0)
    assert verify_structural(other) == []
    expected = interpret(program, data)
    assert compare(expected, interpret(other, data)) == []
    assert compare(expected, compile_program(other).run(data)) == []


@settings(max_examples=60)
@given(pairs())
def test_the_demands_of_stages_stay(pair: tuple[Program, Program]) -> None:
    program, other = pair
    for stage in Stage:
        assert len(verify_structural(program, stage)) == len(verify_structural(other, stage))
    assert check_claims(other, machine("dsp_conv")) == []


@pytest.mark.long
@settings(max_examples=60)
@given(pairs())
def test_memory_and_cost_stay(pair: tuple[Program, Program]) -> None:
    model = machine("dsp_conv")
    first, second = pair
    assert sizes(first) == sizes(second)
    assert stripe.simulate(first, model).model_dump() == stripe.simulate(second, model).model_dump()
    assert count_program(first) == count_program(second)


def sizes(program: Program) -> list[int]:
    return [ref.bytes * ref.copies for _, block in walk(program.entry) for ref in block.allocs]
