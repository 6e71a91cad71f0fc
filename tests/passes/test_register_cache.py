"""The pass `register_cache`: what moves into registers, the inequality, and what stays."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stripe.hw.load import load_hardware
from stripe.hw.schema import ExecUnit, HardwareModel, MemUnit
from stripe.ir import (
    Block,
    ConfigError,
    Program,
    map_statements,
    rewrite_matching,
    verify_structural,
    with_entry,
)
from stripe.passes.base import PassContext, Remark
from stripe.passes.registry import find_pass
from stripe.rewrite.tile import tile_block
from tests.passes.programs import CONV, SRAM, assert_same_results, lines_of, on, run_pass, tiled
from tests.support.programs import load

OPTIONS: dict[str, Any] = {
    "reqs": ["conv"],
    "local_loc": {"name": "SRAM"},
    "register_loc": {"name": "REGS"},
    "comp_parent_tag": "thread",
}


def machine(local: float = 50, size: int = 256) -> HardwareModel:
    """Main memory of latency 100, local memory of latency `local`, `size` bytes of registers of latency 1."""

    def memory(size: int, latency: float) -> MemUnit:
        return MemUnit(size_bytes=size, read_latency_cycles=latency, write_latency_cycles=latency)

    return HardwareModel(
        clock_mhz=1,
        mem_units={"DRAM": memory(1 << 30, 100), "SRAM": memory(1 << 20, local), "REGS": memory(size, 1)},
    )


def moved(
    program: Program, hardware: HardwareModel | None = None, **options: object
) -> tuple[Program, list[Remark]]:
    """The program after the pass, which keeps its meaning."""
    remarks: list[Remark] = []
    instance = find_pass("register_cache").model_validate(OPTIONS | options)
    result = instance.run(program, PassContext(hardware or machine(), remarks.append))
    assert verify_structural(result) == []
    assert_same_results(program, result)
    return result, remarks


def cached(way: str = "in", threads: int = 2, **tiles: int) -> Program:
    """The convolution, tiled, with copies in SRAM, and what computes split over threads."""
    program, _ = run_pass(
        tiled(text=CONV, tag="conv", **(tiles or {"x": 5})), "cache", reqs=["conv"], dirs=[way], **SRAM
    )

    def split(block: Block) -> Block:
        return map_statements(block, lambda s: _threaded(s, threads) if isinstance(s, Block) else s)

    return with_entry(program, rewrite_matching(program.entry, ["conv"], split))


def _threaded(block: Block, threads: int) -> Block:
    if "cache" in block.tags:
        return block
    sizes = {i.name: -(-i.range // threads) if i.name == "x" else i.range for i in block.iterated}
    tiles = tile_block(block, sizes)
    return replace(tiles, tags=tiles.tags.add("thread"))


def test_what_a_thread_reads_moves_into_its_registers() -> None:
    result, remarks = moved(cached())
    assert [str(remark) for remark in remarks] == [
        "applied: conv: I moved from SRAM[0] to REGS[0]: 80 of 256 bytes, 224 uses, 48 copies before, 64 after, "
        "18400 cycles before, 6688 after",
        "applied: conv: K moved from SRAM[0] to REGS[0]: 96 of 256 bytes, 224 uses, 48 copies before, 96 after, "
        "18400 cycles before, 9920 after",
    ]
    assert lines_of(result, "SRAM") == []
    assert lines_of(result, "new@0x00000000<REGS", "#cache_load") == [
        "#cached none new@0x00000000<REGS[0]> I[0, 0] fp32(5:4, 4:1)",
        "#cached none new@0x00000000<REGS[0]> K[0, 0, 0] fp32(3:8, 4:2, 2:1)",
        "0: #cache #cache_load block [d0:5, d1:4, x = x, x.o = x.o] ( // load_I",
        "1: #cache #cache_load block [d0:3, d1:4, d2:2] ( // load_K",
    ]


def test_results_are_collected_in_registers() -> None:
    result, remarks = moved(cached("out"), machine(10), dir="out")
    assert "applied: conv: O moved from SRAM[0] to REGS[0]: 24 of 256 bytes" in str(remarks[0])
    assert lines_of(result, "REGS[0]> O[x, co]:add", "out<DRAM[0]> O_raw[d0, d1]:add")


@pytest.mark.parametrize(
    ("hardware", "options", "reason"),
    [
        (machine(1), {}, "no gain, 80 of 256 bytes, 224 uses, 48 copies before, 64 after"),
        (
            machine(size=64),
            {},
            "80 bytes for each point of conv, beside 0 held, but there are registers of 64 bytes",
        ),
        (machine(), {"comp_parent_tag": "lane"}, "no block tagged 'lane' uses it alone"),
        (machine(), {"dir": "out"}, "0 transfers empty it"),
    ],
)
def test_what_does_not_gain_or_fit_stays(
    hardware: HardwareModel, options: dict[str, Any], reason: str
) -> None:
    program = cached()
    result, remarks = moved(program, hardware, **options)
    assert result is program
    assert str(remarks[0]).startswith("missed: conv: I stays in SRAM[0]: ")
    assert reason in str(remarks[0])


def test_registers_that_are_taken_count() -> None:
    _, remarks = moved(cached(), machine(size=100))
    assert "K stays in SRAM[0]: 96 bytes for each point of conv, beside 80 held" in str(remarks[1])


def test_numbers_come_from_the_machine() -> None:
    near = {"reqs": ["conv"], "local_loc": {"name": "L1"}, "register_loc": {"name": "REGS"}}
    program, _ = run_pass(tiled(x=5), "cache", reqs=["conv"], dirs=["in"], mem_loc={"name": "L1"})
    _, remarks = on("x86_avx512", program, "register_cache", **near)
    assert "I stays in L1[0]: all latencies are 0, so that nothing can gain" in str(remarks[0])
    slow = HardwareModel(
        clock_mhz=1,
        mem_units={
            "DRAM": MemUnit(size_KiB=64, is_host=True, read_latency_cycles=9),
            "L1": MemUnit(size_KiB=1),
        },
        exec_units={"CORE": ExecUnit(ops_per_cycle={"all": 1}, registers=32, vector_bytes=64)},
    )
    _, remarks = moved(program, slow, **near, comp_parent_tag="")
    assert "I stays in L1[0]: no gain, 4 of 2048 bytes" in str(remarks[0])
    with pytest.raises(ConfigError, match="needs a hardware model"):
        find_pass("register_cache").model_validate(near).run(program, PassContext())
    with pytest.raises(ConfigError, match="no unit 'L9'"):
        on("x86_avx512", program, "register_cache", **near | {"local_loc": {"name": "L9"}})
    with pytest.raises(ConfigError, match="no unit with registers"):
        moved(program, slow.model_copy(update={"exec_units": {}}), **near, comp_parent_tag="")


@settings(deadline=None, max_examples=25)
@given(
    st.integers(1, 10), st.integers(1, 4), st.integers(1, 3), st.integers(1, 3), st.sampled_from(["in", "out"]),
    st.integers(0, 200), st.sampled_from(["thread", ""]),
)  # fmt: skip
def test_any_copy_keeps_the_meaning(
    x: int, ci: int, k: int, threads: int, way: str, latency: int, tag: str
) -> None:
    moved(cached(way, threads, x=x, ci=ci, k=k), machine(latency), dir=way, comp_parent_tag=tag)


@pytest.mark.parametrize(
    ("name", "way", "reason"),
    [
        ("written_meanwhile", "in", "X_raw is written meanwhile"),
        ("sent_twice", "out", "its transfer does not send each of its elements once"),
    ],
)
def test_copies_that_keep_values_apart_stay(name: str, way: str, reason: str) -> None:
    program = load(f"passes/register_cache/{name}")
    options = OPTIONS | {"reqs": ["tile"], "local_loc": {"name": "VTCM"}, "dir": way}
    remarks: list[Remark] = []
    instance = find_pass("register_cache").model_validate(options)
    result = instance.run(program, PassContext(load_hardware("edge_npu"), remarks.append))
    assert result == program
    assert reason in str(remarks[0])
