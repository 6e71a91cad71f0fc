"""The pass `subgroup`: the nest it builds, its search, its limits."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stripe.ir import ConfigError, parse_program
from stripe.passes.base import PassContext
from stripe.passes.registry import find_pass
from tests.passes.programs import CHAIN, lines_of, run_pass
from tests.passes.test_cache import CONV
from tests.passes.test_vectorize import matmul, on

NUMBERS: dict[str, Any] = {
    "subgroup_sizes": [8],
    "max_mem": [256],
    "mem_latency": 400,
    "cache_latency": 40,
    "cache_width": 64,
    "cache_size": 4096,
}


def test_lanes_run_along_the_output_and_share_inputs() -> None:
    result, remarks = run_pass(
        matmul(32), "subgroup", reqs=["matmul"], **NUMBERS, register_loc={"name": "REGS"}
    )
    assert [str(remark) for remark in remarks] == [
        "applied: matmul: 1 groups of 8 lanes along n, tile [k:1, m:6, n:32], 136 bytes a lane, 74 loads, 28 misses, "
        "54.3 cycles an operation"
    ]
    assert lines_of(result, "#subgroup", "#broadcast", "new@0x00000000<REGS[0]>") == [
        "0: #kernel #matmul #subgroup_outer block [k:1, m:1, n:1] ( // matmul",
        "#cached none new@0x00000000<REGS[0]> C[0, 0, 0] fp32({8:24}, 6:4, 4:1)",
        "0: #subgroup_steps block [k:5, m:1, n:1] ( // matmul",
        "#cached none new@0x00000000<REGS[0]> A[0, 0] fp32(6:1, 1:1)",
        "#cached none new@0x00000000<REGS[0]> B[0, 0, 0] fp32({8:4}, 1:4, 4:1)",
        "2: #subgroup_inner block [k:1, m:6, n:4] ( // matmul",
        "0: #subgroup_thread block [k:1, m:1, #subgroup_lane n:8] ( // matmul",
        "#broadcast in<REGS[0]> A[0, 0] fp32(1:1, 1:1)",
    ]


def test_a_sum_may_run_over_the_lanes_too() -> None:
    """With 8 summands a load fetches a row of A for all lanes at once."""
    text = (
        matmul(32)
        .replace("5:1)", "8:1)")
        .replace("6:5,", "6:8,")
        .replace("1:5,", "1:8,")
        .replace("(5:32", "(8:32")
    )
    text = text.replace("k:5", "k:8")
    result, remarks = run_pass(text, "subgroup", reqs=["matmul"], **NUMBERS)
    assert "8 lanes along k, n" in str(remarks[0])
    assert lines_of(result, "#broadcast", " A[")[-1] == "#broadcast in<[0]> A[0, 0, 0] fp32(1:6, 1:1, 1:1)"
    assert lines_of(result, "A[k mod 8, m, floor(k/8)]", "A[d1 mod 8, d0, floor(d1/8)]")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"max_mem": [64]}, "tile [k:1, m:3, n:16]"),
        ({"max_mem": [8]}, "no tile of whole divisors fits (8 lanes of 8 bytes)"),
        ({"subgroup_sizes": [8, 16], "max_mem": [8, 256]}, "16 lanes along n"),
        ({"inner_stmts_limit": 8}, "tile [k:1, m:2, n:16]"),
        ({"min_groups": 4}, "4 groups"),
        ({"mem_latency": 4}, "cycles an operation"),
        ({"cache_latency": 4}, "cycles an operation"),
        ({"cache_width": 32}, "cycles an operation"),
        ({"cache_size": 0}, "cycles an operation"),
        ({"mem_bounded_threshold": 1}, "memory bounded: 54.3 cycles an operation, over 1"),
        ({"outer_set": ["mine"]}, "applied"),
    ],
)
def test_options(options: dict[str, Any], said: str) -> None:
    result, remarks = run_pass(matmul(32), "subgroup", reqs=["matmul"], **NUMBERS | options)
    assert said in str(remarks[0])
    assert not options.get("outer_set") or lines_of(result, "#mine")
    assert not options.get("mem_bounded_threshold") or lines_of(result, "#kernel #matmul #mem_bounded")


@pytest.mark.parametrize(
    ("text", "tag", "reason"),
    [
        (CONV, "conv", "it has 2 constraints"),
        (CHAIN, "sum", "index x.o is passed in"),
        (CHAIN, "square", "no tile of whole divisors fits"),
    ],
)
def test_declines(text: str, tag: str, reason: str) -> None:
    result, remarks = run_pass(text, "subgroup", reqs=[tag], **NUMBERS)
    assert result == parse_program(text)
    assert reason in str(remarks[0])


def test_numbers_come_from_the_machine() -> None:
    _, remarks = on("mobile_gpu", matmul(32), "subgroup", reqs=["matmul"], mem_latency=400, cache_latency=40)
    assert "16 lanes along n" in str(remarks[0])
    _, remarks = on("mobile_gpu", matmul(32), "subgroup", reqs=["matmul"], unit="SHADER", cache="L2")
    assert "0 cycles an operation" in str(remarks[0])


def test_wrong_options_are_errors() -> None:
    for options, message in (
        ({}, "needs a hardware model"),
        ({"subgroup_sizes": [8], "max_mem": [1, 2]}, "2 numbers in max_mem for 1 subgroup_sizes"),
        ({"subgroup_sizes": [8], "max_mem": [8]}, "needs mem_latency"),
    ):
        instance = find_pass("subgroup").model_validate({"reqs": ["matmul"], **options})
        with pytest.raises(ConfigError, match=message):
            instance.run(parse_program(matmul(8)), PassContext())
    with pytest.raises(ConfigError, match="no unit with subgroups"):
        on("x86_avx512", matmul(8), "subgroup", reqs=["matmul"])


def test_it_is_done_once() -> None:
    result, _ = run_pass(matmul(32), "subgroup", reqs=["all"], **NUMBERS)
    again, remarks = run_pass(result, "subgroup", reqs=["subgroup_thread"], **NUMBERS)
    assert again is result
    assert remarks == []


@settings(deadline=None, max_examples=25)
@given(
    st.integers(1, 32),
    st.sampled_from([2, 4, 8]),
    st.integers(8, 400),
    st.integers(1, 200),
    st.integers(0, 500),
)
def test_any_tile_keeps_the_meaning(size: int, lanes: int, held: int, limit: int, cache: int) -> None:
    options = {"subgroup_sizes": [lanes], "max_mem": [held], "inner_stmts_limit": limit, "cache_size": cache}
    run_pass(matmul(size), "subgroup", reqs=["matmul"], **NUMBERS | options)
