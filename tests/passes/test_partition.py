"""The pass `partition`: work over units, buffers over banks, and what is refused."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import prod
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from stripe.ir import Block, ConfigError, Index, print_program
from stripe.passes.base import PassContext
from stripe.passes.registry import find_pass
from stripe.rewrite.parts import part_tiles
from tests.passes.programs import CHAIN, CONV, SRAM, lines_of, matmul, on, run_pass, tiled
from tests.support.programs import load


def test_work_is_split_over_parts() -> None:
    result, remarks = run_pass(
        matmul(20), "partition", reqs=["matmul"], num_parts=4, set_tags=["parts"], idx_tag="part"
    )
    assert lines_of(result, "block [k") == [
        "0: #parts block [k:1, m:1, #part n:4] ( // matmul",
        "0: #kernel #matmul block [k:5, m:6, n:5] ( // matmul",
    ]
    assert [str(r) for r in remarks] == ["applied: matmul: 4 of 4 parts: n:4; 100.0 % of their points used"]


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        (12, "12 of 12 parts: m:3, n:4; 100.0 %"),
        (7, "7 of 7 parts: n:7; 95.2 %"),
        (1000, "120 of 1000 parts: m:6, n:20"),
    ],
)
def test_the_best_split_is_taken(parts: int, said: str) -> None:
    _, remarks = run_pass(matmul(20), "partition", reqs=["matmul"], num_parts=parts)
    assert said in str(remarks[0])


def test_the_machine_says_how_many_parts_and_where_they_run() -> None:
    result, _ = on("x86_avx512", matmul(20), "partition", reqs=["matmul"], unit="CORE", locate=True)
    assert lines_of(result, "#kernel")[0].startswith(
        "0: #kernel #matmul block<CORE[n.o]> [k:5, m:6, n:10, n.o = n]"
    )
    located, _ = run_pass(matmul(20), "locate_block", reqs=["matmul"], loc={"name": "CORE"})
    _, remarks = on("x86_avx512", located, "partition", reqs=["matmul"])
    assert "2 of 2 parts" in str(remarks[0])


def test_wrong_options_are_errors() -> None:
    for options, message in (
        ({}, "knows no number of parts for 'matmul'"),
        ({"locate": True, "num_parts": 2}, "needs 'unit'"),
        ({"memory": "SRAM"}, "needs a hardware model"),
        ({"unit": "CORE"}, "needs a hardware model"),
    ):
        with pytest.raises(ConfigError, match=message):
            find_pass("partition").model_validate({"reqs": ["matmul"], **options}).run(
                load("passes/partition/wrong_options_are_errors"), PassContext()
            )


def test_nothing_to_split_is_said() -> None:
    _, remarks = run_pass(CHAIN, "partition", reqs=["square"], num_parts=2)
    assert str(remarks[0]) == "missed: square: not partitioned: no index to split into 2 (indices none)"
    done, _ = run_pass(matmul(20), "partition", reqs=["matmul"], num_parts=2, set_tags=["parts", "matmul"])
    assert run_pass(done, "partition", reqs=["matmul"], num_parts=2, set_tags=["parts", "matmul"])[0] is done


BANKS: dict[str, Any] = {"reqs": ["conv"], "memory": "SRAM"}


def test_copies_are_split_over_banks() -> None:
    cached, _ = run_pass(tiled(x=10, ci=2), "cache", reqs=["conv"], dirs=["out"], **SRAM)
    result, remarks = run_pass(cached, "partition", **BANKS, num_parts=2, set_tags=["banked"], idx_tag="bank")
    assert [str(r) for r in remarks] == [
        "applied: conv: O: dimension 0 of 10 elements over 2 of 2 banks, 5 each; 2 blocks select one by an index"
    ]
    assert lines_of(result, "SRAM", "#bank ") == [
        "#cached none new@0x00000000<SRAM[0]> O[0, 0, 0] fp32({2:10}, 5:2, 2:1)",
        "0: #banked block [ci:1, co:1, k:1, #bank x:2] ( // conv",
        "out<SRAM[0]> O[x, 0, 0]:add fp32(1:10, 5:2, 2:1)",
        "out<SRAM[0]> O[0, x, co]:add fp32(1:10, 1:2, 1:1)",
        "1: #banked #cache #cache_store block<DMA[0]> [#bank d0:2, d1:1] ( // store_O",
        "in<SRAM[0]> O[d0, 0, 0] fp32(1:10, 5:2, 2:1)",
        "in<SRAM[0]> O[0, d0, d1] fp32(1:10, 1:2, 1:1)",
    ]


def test_windows_reach_over_the_edge_of_a_bank() -> None:
    cached, _ = run_pass(tiled(x=8), "cache", reqs=["conv"], dirs=["in"], refs=["I"], **SRAM)
    result, remarks = run_pass(cached, "partition", **BANKS, num_parts=5)
    assert "I: dimension 0 of 10 elements over 5 of 5 banks, 2 each" in str(remarks[0])
    assert "in<SRAM[0]> I[floor((k + x)/2), (k + x) mod 2, ci]" in print_program(result)


def test_what_the_program_is_given_keeps_its_layout() -> None:
    located, _ = run_pass(CONV, "locate_memory", reqs=["program"], loc={"name": "SRAM"})
    result, remarks = run_pass(located, "partition", reqs=["program"], memory="SRAM", num_parts=2)
    assert result is located
    assert remarks == []


def test_a_box_over_several_banks_is_refused() -> None:
    cached, _ = run_pass(tiled(x=10), "cache", reqs=["conv"], dirs=["in"], refs=["I"], **SRAM)
    boxes, _ = run_pass(cached, "package", reqs=["cache_load"])
    twice, _ = run_pass(boxes, "partition", **BANKS, num_parts=3)
    assert "{3:" in print_program(twice)
    tiles, _ = run_pass(cached, "autotile", reqs=["cache_load"], fixed={"d0": 4, "d1": 3})
    _, remarks = run_pass(tiles, "partition", **BANKS, num_parts=3)
    assert "I: dimension 0 of 10 elements over 3 of 3 banks, 4 each; 0 blocks select" in str(remarks[0])
    whole, _ = run_pass(cached, "autotile", reqs=["cache_load"], fixed={"d0": 3, "d1": 3})
    refused, remarks = run_pass(whole, "partition", **BANKS, num_parts=3)
    assert refused is whole
    assert "not split over 3 banks: a view spans banks of " in str(remarks[0])


@settings(deadline=None, max_examples=100)
@given(st.lists(st.integers(1, 20), min_size=1, max_size=3), st.integers(1, 60))
def test_no_split_is_better_than_the_one_taken(ranges: list[int], parts: int) -> None:
    """Among all tiles: the most parts, the fewest points, the fewest indices."""

    def cost(sizes: Sequence[int]) -> tuple[int, int, int]:
        counts = [-(-whole // size) for whole, size in zip(ranges, sizes, strict=True)]
        used = sum(count > 1 for count in counts)
        return -prod(counts), prod(count * size for count, size in zip(counts, sizes, strict=True)), used

    block = Block("", tuple(Index(f"i{number}", size) for number, size in enumerate(ranges)))
    found = part_tiles(block, [index.name for index in block.indices], parts)
    allowed = (cost(sizes) for sizes in product(*(range(1, size + 1) for size in ranges)))
    assert cost([*found.values()]) == min(each for each in allowed if -each[0] <= parts)


def test_many_parts_of_many_indices_are_found_at_once() -> None:
    block = Block("", tuple(Index(f"i{number}", size) for number, size in enumerate([64, 56, 56, 7, 9, 100])))
    tiles = part_tiles(block, [index.name for index in block.indices], 1 << 14)
    assert prod(-(-index.range // tiles[index.name]) for index in block.indices) > 0.99 * (1 << 14)


@settings(deadline=None, max_examples=25)
@given(st.integers(1, 10), st.integers(1, 4), st.integers(1, 6))
def test_any_partition_keeps_the_meaning(x: int, ci: int, parts: int) -> None:
    cached, _ = run_pass(tiled(x=x, ci=ci), "cache", reqs=["conv"], **SRAM)
    banked, _ = run_pass(cached, "partition", **BANKS, num_parts=parts)
    run_pass(banked, "partition", reqs=["conv"], num_parts=parts)


@pytest.mark.parametrize("word", ["main", "spatial", "a b", "#x", "1"])
def test_tags_of_indices_are_words(word: str) -> None:
    with pytest.raises(ValidationError, match=r"cannot be a tag|no pass sets as a tag"):
        find_pass("partition").model_validate({"reqs": ["kernel"], "num_parts": 2, "idx_tag": word})
