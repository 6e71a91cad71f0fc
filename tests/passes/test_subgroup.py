"""The pass `subgroup`: the nest it builds, its search, its limits."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stripe.hw.schema import ExecUnit, HardwareModel, MemUnit
from stripe.ir import ConfigError, Program, parse_program, print_program, verify_structural
from stripe.passes.base import PassContext, Remark
from stripe.passes.registry import find_pass
from tests.passes.programs import CHAIN, CONV, assert_same_results, lines_of, matmul, on
from tests.support.programs import load, source


def gpu(
    lanes: int = 8, registers: int = 64, line: int = 64, cache: int = 4096, latency: float = 400
) -> HardwareModel:
    """Lanes with registers of 4 bytes, a cache of latency 40 and a memory."""
    return HardwareModel(
        clock_mhz=1,
        mem_units={
            "DRAM": MemUnit(size_KiB=1024, read_latency_cycles=latency),
            "L2": MemUnit(size_bytes=cache, line_bytes=line, kind="cache", read_latency_cycles=40),
        },
        exec_units={
            "CPU": ExecUnit(ops_per_cycle={"all": 1}),
            "GPU": ExecUnit(ops_per_cycle={"all": 1}, subgroup=lanes, registers=registers, register_bytes=4),
        },
    )


def grouped(
    text: str, hardware: HardwareModel | None = None, **options: object
) -> tuple[Program, list[Remark]]:
    """The program after the pass, which keeps its meaning."""
    program = parse_program(text)
    remarks: list[Remark] = []
    instance = find_pass("subgroup").model_validate({"reqs": ["matmul"], **options})
    result = instance.run(program, PassContext(hardware or gpu(), remarks.append))
    assert verify_structural(result) == []
    assert_same_results(program, result)
    return result, remarks


def test_lanes_run_along_the_output_and_share_inputs() -> None:
    result, remarks = grouped(matmul(32), register_loc={"name": "REGS"})
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
    text = source("passes/subgroup/sum_of_eight")
    result, remarks = grouped(text)
    assert "8 lanes along k, n" in str(remarks[0])
    assert lines_of(result, "#broadcast", " A[")[-1] == "#broadcast in<[0]> A[0, 0, 0] fp32(1:6, 1:1, 1:1)"
    assert lines_of(result, "A[k mod 8, m, floor(k/8)]", "A[d1 mod 8, d0, floor(d1/8)]")


@pytest.mark.parametrize(
    ("hardware", "said"),
    [
        (gpu(registers=16), "tile [k:1, m:3, n:16]"),
        (gpu(registers=2), "no tile of whole divisors fits (8 lanes of 8 bytes)"),
        (gpu(lanes=16), "16 lanes along n"),
        (gpu(latency=4), "cycles an operation"),
        (gpu(line=32), "cycles an operation"),
        (gpu(cache=64), "cycles an operation"),
    ],
)
def test_the_machine_decides(hardware: HardwareModel, said: str) -> None:
    _, remarks = grouped(matmul(32), hardware)
    assert said in str(remarks[0])


@pytest.mark.parametrize(
    ("text", "tag", "reason"),
    [
        (CONV, "conv", "it has 2 constraints"),
        (CHAIN, "sum", "index x.o is passed in"),
        (CHAIN, "square", "no tile of whole divisors fits"),
    ],
)
def test_declines(text: str, tag: str, reason: str) -> None:
    result, remarks = grouped(text, reqs=[tag])
    assert result == parse_program(text)
    assert reason in str(remarks[0])


def test_a_model_without_latencies_takes_the_largest_tile() -> None:
    _, remarks = on("mobile_gpu", matmul(32), "subgroup", reqs=["matmul"])
    assert "16 lanes along n" in str(remarks[0])
    assert "0 cycles an operation" in str(remarks[0])


def test_machines_without_subgroups_are_refused() -> None:
    with pytest.raises(ConfigError, match="needs a hardware model"):
        find_pass("subgroup").model_validate({"reqs": ["matmul"]}).run(
            load("passes/subgroup/machines_without_subgroups_are_refused"), PassContext()
        )
    with pytest.raises(ConfigError, match="no unit with subgroups"):
        on("x86_avx512", matmul(8), "subgroup", reqs=["matmul"])
    plain = gpu().model_copy(update={"mem_units": {"DRAM": MemUnit(size_KiB=1)}})
    with pytest.raises(ConfigError, match="needs registers, a main memory and a cache"):
        grouped(matmul(8), plain)


def test_it_is_done_once() -> None:
    result, _ = grouped(matmul(32), reqs=["all"])
    again, remarks = grouped(print_program(result), reqs=["subgroup_thread"])
    assert again == result
    assert remarks == []


@settings(deadline=None, max_examples=25)
@given(st.integers(1, 32), st.sampled_from([2, 4, 8]), st.integers(2, 100), st.sampled_from([64, 4096]))
def test_any_tile_keeps_the_meaning(size: int, lanes: int, registers: int, cache: int) -> None:
    grouped(matmul(size), gpu(lanes, registers, cache=cache))
