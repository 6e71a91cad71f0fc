"""Traffic below transparent caches, computed by hand."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from stripe.cost.time.simulate import simulate_program
from stripe.hw import HardwareModel, load_hardware
from stripe.ir import Program
from stripe.pipeline.manager import PassManager
from stripe.pipeline.setup import read_setup
from stripe.tile import compile_tile
from tests.support.programs import load

KIB = 1024


def machine(size: int, *, cores: int = 1, private: int = 0, **cache: Any) -> HardwareModel:
    """Cores below one cache of `size` bytes, each with a cache of `private` bytes where that is given."""
    caches = {"CACHE": {"kind": "cache", "size_bytes": size, "line_bytes": 4, **cache}}
    buses = [("RAM", "CACHE", 8.0), ("CACHE", "RAM", 8.0)]
    if private:
        caches["L1"] = {"kind": "cache", "count": cores, "size_bytes": private, "line_bytes": 4}
    for core in range(cores):
        ends = [f"L1[{core}]", f"CORE[{core}]"] if private else [f"CORE[{core}]"]
        for near, far in zip(["CACHE", *ends], ends, strict=False):
            buses += [(near, far, 64.0), (far, near, 64.0)]
    return HardwareModel.model_validate(
        {
            "clock_mhz": 1000,
            "mem_units": {"RAM": {"size_KiB": 4096, "is_host": True}, **caches},
            "exec_units": {"CORE": {"count": cores, "ops_per_cycle": 64}},
            "buses": [{"sources": [a], "sinks": [b], "bytes_per_cycle": rate} for a, b, rate in buses],
        }
    )


def traffic(program: Program, model: HardwareModel) -> dict[tuple[str, str], int]:
    """Bytes between kinds of units."""
    found: Counter[tuple[str, str]] = Counter()
    for cost in simulate_program(program, model).costs:
        for flow in cost.flows:
            found[flow.source.split("[")[0], flow.sink.split("[")[0]] += round(flow.bytes)
    return dict(found)


MATMUL = load("cost/caches/matmul")
"""16 x 16 x 16 in a tile: each view of a tile takes 1 KiB."""


@pytest.mark.parametrize(
    ("size", "read", "written"),
    [
        # No tile fits: operands come for each of 64 tiles, and partial results for all but the first of each sum.
        (3 * KIB - 1, 64 + 64 + 48, 64),
        # A tile fits: along k its results stay.
        (3 * KIB, 64 + 64, 16),
        (9 * KIB - 1, 64 + 64, 16),
        # A sum fits: along j the row of A stays.
        (9 * KIB, 16 + 64, 16),
        # A row of results fits: along i all of B stays.
        (24 * KIB, 16 + 16, 16),
        (1024 * KIB, 16 + 16, 16),
    ],
)
def test_a_streaming_matrix_product(size: int, read: int, written: int) -> None:
    found = traffic(MATMUL, machine(size))
    assert found["RAM", "CACHE"] == read * KIB
    assert found["CACHE", "RAM"] == written * KIB
    # In front of the cache each tile takes what it touches.
    assert found["CACHE", "CORE"] == (64 + 64 + 64) * KIB


ROWS = load("cost/caches/rows")
"""A row of results reads three rows of 34 elements and nine weights."""


def test_a_convolution_keeps_the_rows_that_windows_share() -> None:
    row = 3 * 34 * 4 + 9 * 4 + 32 * 4
    kept = traffic(ROWS, machine(row))
    assert kept["RAM", "CACHE"] == 34 * 34 * 4 + 9 * 4
    assert kept["CACHE", "RAM"] == 32 * 32 * 4
    lost = traffic(ROWS, machine(row - 1))
    assert lost["RAM", "CACHE"] == 32 * (3 * 34 * 4 + 9 * 4)


def test_lines_and_writes_that_read_first() -> None:
    """Lines of 64 bytes: three rows in succession take 7 of them, all rows 73."""
    row = 7 * 64 + 64 + 128
    found = traffic(ROWS, machine(row, line_bytes=64, allocates_on_write=True))
    assert found["RAM", "CACHE"] == 73 * 64 + 64 + 32 * 128
    assert found["CACHE", "RAM"] == 32 * 128
    found = traffic(ROWS, machine(row - 64, line_bytes=64, allocates_on_write=True))
    assert found["RAM", "CACHE"] == 32 * row


SPREAD = load("cost/caches/spread")
"""Two cores: in each of 8 steps a core touches 512 bytes of its own of A and of C, and B, which all steps share."""


def test_a_shared_cache_sees_all_units() -> None:
    both = 2 * (512 + 512) + 512
    fits = traffic(SPREAD, machine(both, cores=2))
    assert fits["RAM", "CACHE"] == 2 * 8 * 512 + 512
    # One core alone would still find B there; both together do not.
    full = traffic(SPREAD, machine(both - 4, cores=2))
    assert full["RAM", "CACHE"] == 2 * 8 * 512 + 8 * 512


def test_private_caches_see_their_own_unit() -> None:
    found = traffic(SPREAD, machine(64 * KIB, cores=2, private=3 * 512))
    assert found["CACHE", "L1"] == 2 * (8 * 512 + 512)
    assert found["RAM", "CACHE"] == 2 * 8 * 512 + 512
    assert traffic(SPREAD, machine(64 * KIB, cores=2, private=32 * KIB)) == found


def test_lines_of_one_set_stay_as_far_as_it_has_ways() -> None:
    """16 rows of 4 KiB in a cache of 32 KiB with 8 ways lie in one set: half of the lines go from column to column."""
    columns = load("cost/caches/columns")
    lines, touched = 16 * 64, 16 * 1024
    whole = traffic(columns, machine(32 * KIB, line_bytes=64))
    assert whole["RAM", "CACHE"] == lines * 64
    conflicts = traffic(columns, machine(32 * KIB, line_bytes=64, ways=8))
    assert conflicts["RAM", "CACHE"] == (lines + (touched - lines) // 2) * 64


def test_the_layer_of_the_mali_document() -> None:
    """The 3x3 layer in workgroups of 4 x 4 positions and 16 channels reads each element of image and filter once."""
    program = compile_tile(Path("examples/sweeps/mali.tile").read_text(encoding="utf-8"), "mali")
    model = load_hardware("mobile_gpu", {"SHADER_CORES": 14})
    values = {"TILE_Y": 4, "TILE_X": 4, "GROUP_Y": 4, "GROUP_Z": 1}
    entries, _ = read_setup([("config", "examples/sweeps/mali_passes.json.j2")], model, values)
    found = simulate_program(PassManager(entries, model).run(program), model)
    reads = sum(flow.bytes for cost in found.costs for flow in cost.flows if flow.source == "DRAM[0]")
    assert round(reads) == 4 * (258 * 258 * 16 + 3 * 3 * 16 * 256) == 4_407_552
    milliseconds = found.cycles / 850e3
    assert 6 < milliseconds < 14.2, "between the peak of the cores and the slowest row of the table"
