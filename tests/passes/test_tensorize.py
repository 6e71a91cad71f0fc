"""The pass `tensorize`: which indices a stencil takes, and what it leaves alone."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stripe.hw.load import load_hardware
from stripe.ir import ConfigError, Program, StripeError, parse_program, print_program, verify_structural
from stripe.passes.base import PassContext, Remark
from stripe.passes.registry import find_pass
from stripe.tile import compile_tile
from tests.passes.programs import CONV, lines_of, run_pass
from tests.support.programs import source

DOT: dict[str, Any] = {
    "name": "dot_32",
    "combination": "mul",
    "aggregation": "add",
    "idxs": [
        {"name": "i1", "size": 2, "outs": [-1], "ins": [-1, 0]},
        {"name": "c", "size": -1, "outs": [0], "ins": [-1, -1]},
    ],
}
SQUARE: dict[str, Any] = {
    "name": "square",
    "idxs": [
        {"name": "i1", "size": 4, "outs": [-1], "ins": [-1, 0]},
        {"name": "i2", "size": 2, "outs": [-1], "ins": [0, -1]},
        {"name": "c", "size": -1, "outs": [0], "ins": [-1, -1]},
    ],
}

SLIDES = source("passes/tensorize/slides")
REQS = ["agg_op_add", "comb_op_mul"]


def slide_stencils(*, both: bool) -> list[dict[str, Any]]:
    """Slide 18's stencils, the elided index of the second one filled in."""
    first = {"idxs": [{"name": "i1", "size": 32, "outs": [-1], "ins": [-1, 0]}, DOT["idxs"][1]]}
    second = {
        "idxs": [
            {"name": "i1", "size": 4, "outs": [-1], "ins": [-1, 0]},
            {"name": "i2", "size": 4, "outs": [-1], "ins": [0, -1]},
            DOT["idxs"][1],
        ]
    }
    return [first, second] if both else [second]


def tensorized(text: str, **options: Any) -> tuple[Program, list[Remark]]:
    return run_pass(text, "tensorize", interpreted=False, **options)


def test_slide_18_on_the_slides_layer() -> None:
    result, remarks = tensorized(
        SLIDES, reqs=REQS, outer_set=["CONV"], inner_set=["CONV_inner"], stencils=slide_stencils(both=True)
    )
    heads = [line.split(" (")[0] for line in lines_of(result, "CONV")]
    assert heads == [
        "0: #CONV #agg_op_add #comb_op_mul #kernel block "
        "[#stencil #stencil_c ci:1, #stencil #stencil_i1 co:2, kx:3, ky:3, x:1024, y:1024]",
        "0: #CONV_inner #stencil block [#stencil #stencil_c ci:32, #stencil #stencil_i1 co:32, "
        "kx:1, ky:1, x:1, y:1, kx.o = kx, ky.o = ky, x.o = x, y.o = y]",
    ]
    assert "18874368 uses, 100.0 % of the points useful" in str(remarks[0])


def test_slide_19_keeps_the_rest_inside() -> None:
    result, _ = tensorized(SLIDES, reqs=REQS, stencils=slide_stencils(both=False), unmatched="inside")
    outer, inner = (line.split("block ")[1].split(" (")[0] for line in lines_of(result, "stencil"))
    assert (
        outer
        == "[#stencil #stencil_c ci:1, #stencil #stencil_i1 co:16, kx:1, ky:1, #stencil #stencil_i2 x:256, y:1]"
    )
    assert "kx:3, ky:3" in inner
    assert "y:1024" in inner


def test_inputs_match_in_any_order() -> None:
    result, _ = run_pass(CONV, "tensorize", reqs=["conv"], stencils=[DOT])
    assert "#stencil_i1 co:2" in print_program(result)
    swapped = source("passes/tensorize/inputs_match_in_any_order")
    assert "#stencil_i1 co:2" in print_program(
        run_pass(swapped, "tensorize", reqs=["conv"], stencils=[DOT])[0]
    )


def test_padding_counts_and_remainders_stay_right() -> None:
    three = DOT | {"idxs": [DOT["idxs"][0] | {"size": 3}, DOT["idxs"][1]]}
    result, remarks = run_pass(CONV, "tensorize", reqs=["conv"], stencils=[three])
    assert "i1 = x:3, c = ci:4; 24 uses, 83.3 % of the points useful" in str(remarks[0])
    assert result != parse_program(CONV)


def test_strict_declines_remainders_and_tests_inside() -> None:
    result, remarks = run_pass(CONV, "tensorize", reqs=["conv"], stencils=[SQUARE], is_strict_dims=True)
    assert result == parse_program(CONV)
    assert str(remarks[0]) == (
        "missed: conv: not tensorized: square: no indices move the operands as it needs (i1:4, i2:2, c:all) "
        "among ci:4, co:2, k:3, x:10"
    )


def test_of_several_stencils_the_cheapest_wins() -> None:
    costly = DOT | {"name": "costly", "startup_cost": 1000.0}
    _, remarks = run_pass(CONV, "tensorize", reqs=["conv"], stencils=[costly, SQUARE])
    assert "tensorized by square" in str(remarks[0])


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"combination": "add"}, "it combines by add, the block by mul"),
        ({"aggregation": "max"}, "it aggregates by max, the block by add"),
        ({"dtypes": ["i8"]}, "it takes i8, I is fp32"),
        ({"accumulator": "fp64"}, "it sums fp32 in fp64, O is fp32"),
        (
            {"idxs": [{"name": "i", "size": 2, "outs": [1], "ins": [1]}]},
            "it has 1 inputs and 1 outputs, the block 2 and 1",
        ),
        (
            {"idxs": [{"name": "i", "size": 2, "outs": [7], "ins": [1, 1]}]},
            "no indices move the operands as it needs",
        ),
    ],
)
def test_declines(change: dict[str, Any], reason: str) -> None:
    result, remarks = run_pass(CONV, "tensorize", reqs=["conv"], stencils=[DOT | change])
    assert result == parse_program(CONV)
    assert reason in str(remarks[0])


def test_declines_what_is_no_contraction() -> None:
    text = source("passes/tensorize/declines_what_is_no_contraction")
    _, remarks = run_pass(text, "tensorize", reqs=["square"], stencils=[DOT])
    assert "what is stored is not the operation on the loads" in str(remarks[0])


def test_stencils_come_from_the_unit_in_the_hardware_model() -> None:
    located, _ = run_pass(SLIDES, "locate_block", interpreted=False, reqs=REQS, loc={"name": "CONV"})
    hardware = load_hardware("dsp_conv", {})
    instance = find_pass("tensorize").model_validate({"reqs": REQS})
    result = instance.run(located, PassContext(hardware))
    assert verify_structural(result) == []
    assert "#stencil_i1 co:32" in print_program(result)
    with pytest.raises(ConfigError, match="no execution unit 'CNV'"):
        find_pass("tensorize").model_validate({"reqs": REQS, "unit": "CNV"}).run(
            located, PassContext(hardware)
        )
    with pytest.raises(StripeError, match="needs a hardware model"):
        instance.run(located, PassContext())


@settings(deadline=None, max_examples=25)
@given(
    st.integers(1, 5), st.sampled_from([-1, 1, 2, 3]), st.sampled_from(["inside", "outside"]), st.booleans()
)
def test_any_stencil_keeps_the_meaning(size: int, other: int, unmatched: str, strict: bool) -> None:
    stencil = {
        "idxs": [
            {"name": "a", "size": size, "outs": [-1], "ins": [-1, 0]},
            {"name": "b", "size": other, "outs": [0], "ins": [-1, -1]},
        ]
    }
    run_pass(CONV, "tensorize", reqs=["conv"], stencils=[stencil], unmatched=unmatched, is_strict_dims=strict)


@settings(deadline=None, max_examples=25)
@given(
    st.sampled_from(["i8", "u8", "i16"]),
    st.sampled_from(["i8", "u8"]),
    st.sampled_from(["i16", "i32", "i64"]),
    st.sampled_from(["i16", "i32", "i64"]),
    st.integers(1, 5),
)
def test_widened_operands_match_by_the_accumulator(a: str, b: str, result: str, sums: str, size: int) -> None:
    text = (
        f"function (A[M=5, K=6]: {a}, B[K, N=4]: {b}) -> (O) {{ "
        f"[[mine]] O[m, n : M, N]: {result} = +(A[m, k] * B[k, n]); }}"
    )
    program = print_program(compile_tile(text))
    stencil = {**DOT, "accumulator": sums, "idxs": [{**DOT["idxs"][0], "size": size}, DOT["idxs"][1]]}
    changed, remarks = run_pass(program, "tensorize", reqs=["mine"], stencils=[stencil])
    assert (changed != parse_program(program)) == (sums == result), remarks
    if sums != result:
        assert f"it sums {a} in {sums}, O is {result}" in str(remarks[0])
