"""The pass `autotile` keeps the meaning, and what it reads from a machine."""

from __future__ import annotations

import re
from dataclasses import replace
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stripe.cost.time.simulate import simulate_program
from stripe.cost.time.tile_unit import find_unit, nest_operations
from stripe.hw.engines import Stencil, StencilIndex
from stripe.hw.load import load_hardware
from stripe.hw.schema import Bus, ExecUnit, HardwareModel, MemUnit, TxUnit
from stripe.ir import Block, ConfigError, Index, Location, Tags, print_block, print_program, verify_structural
from stripe.passes.autotile.autotile import Autotile
from stripe.passes.autotile.tiling import Tiling
from stripe.passes.base import PassContext, Remark
from stripe.pipeline.entry import PassEntry
from stripe.pipeline.instrument import Instrument
from stripe.pipeline.manager import PassManager
from stripe.pipeline.passlist import parse_passes
from stripe.pipeline.setup import read_setup
from stripe.rewrite.excerpt import Companies
from stripe.tile import compile_tile
from tests.passes.kernels import kernel, program_of
from tests.passes.programs import assert_same_results, matmul, run_pass
from tests.passes.random_kernels import Made, programs

SHAPES = {"I": (10, 4), "K": (3, 4, 2), "O": (10, 2)}
CONV = kernel(
    "O[x, co] = add mul(I[x + k - 1, ci], K[k, ci, co])",
    {"ci": 4, "co": 2, "k": 3, "x": 10},
    SHAPES,
    where=["x + k - 1", "10 - x - k"],
)


def machine(**memory: int) -> HardwareModel:
    return HardwareModel(
        clock_mhz=100,
        mem_units={
            "DRAM": MemUnit(size_KiB=1024),
            "SRAM": MemUnit(size_bytes=memory.get("size", 256), alignment=memory.get("alignment", 1)),
        },
        exec_units={
            "SLOW": ExecUnit(ops_per_cycle={"all": 2}),
            "MAC": ExecUnit(ops_per_cycle={"mul": 16, "add": 8}, pipeline_depth=2),
        },
        tx_units={"DMA": TxUnit(latency_cycles=memory.get("latency", 0))},
        buses=(
            Bus(sources=("DRAM",), sinks=("DMA",), bytes_per_cycle=4),
            Bus(sources=("DMA",), sinks=("SRAM",), bytes_per_cycle=8),
            Bus(sources=("SRAM",), sinks=("DMA",), bytes_per_cycle=8),
            Bus(sources=("DMA",), sinks=("DRAM",), bytes_per_cycle=2),
        ),
    )


def tiled(
    block: Block, hardware: HardwareModel | None = None, **options: object
) -> tuple[Block, list[Remark]]:
    program = program_of([block], SHAPES, ["O"])
    remarks: list[Remark] = []
    instance = Autotile.model_validate(options)
    result = instance.run(program, PassContext(hardware, remarks.append))
    (found,) = result.main.blocks
    return found, remarks


def test_the_time_of_a_tile_by_hand() -> None:
    fixed = {"ci": 4, "co": 2, "k": 3, "x": 5}
    _, remarks = tiled(CONV, machine(size=4096), memory="SRAM", fixed=fixed)
    # 2 tiles. Bytes of one: I 7*4, K 3*4*2, O 5*2 elements of 4 bytes: 112 + 96 + 40 = 248; of all 192 + 192 + 80, as a
    # row of I at either end lies outside.
    # Route DRAM to SRAM: 4 bytes a cycle, back 2. Moving: (192 + 192)/4 + 80/2 = 136, of one tile 72.
    # Points 240 less 16 that the constraints cut, each a multiply and an add at 16 operations a cycle: 28 cycles, of
    # one tile 14. Two tiles that overlap: max(28 + 72, 136 + 14) = 150.
    assert str(remarks[-1]) == (
        "applied: make_O: 2 tiles of [ci:4, co:2, k:3, x:5], 248 of 2048 bytes of SRAM, 150 cycles on MAC "
        "(28 computing, 136 moving)"
    )
    _, remarks = tiled(CONV, machine(size=4096), memory="SRAM", fixed=fixed, pipeline_depth=1)
    assert "248 of 4096 bytes of SRAM, 164 cycles" in str(remarks[-1])  # 28 + 136


def test_partial_results_come_back() -> None:
    fixed = {"ci": 2, "co": 2, "k": 3, "x": 10}
    _, remarks = tiled(CONV, machine(size=4096), memory="SRAM", fixed=fixed, pipeline_depth=1)
    # I 10*4*4 bytes once, K 96 once, O 80 bytes out twice and in once: (160 + 96)/4 + 2*80/2 + 80/4 = 164.
    assert "(28 computing, 164 moving)" in str(remarks[-1])


def test_latencies_count_for_each_tile() -> None:
    fixed = {"ci": 4, "co": 2, "k": 3, "x": 5}
    hardware = machine(size=4096, latency=10)
    _, remarks = tiled(CONV, hardware, memory="SRAM", fixed=fixed, pipeline_depth=1)
    assert "(28 computing, 196 moving)" in str(remarks[-1])  # 136 + 2 tiles * 3 transfers * 10


def test_room_is_what_the_memory_has_divided_and_aligned() -> None:
    _, remarks = tiled(CONV, machine(size=512, alignment=64), memory="SRAM", pipeline_depth=4)
    assert "of 128 bytes of SRAM" not in str(remarks[-1])
    assert str(remarks[-1]).startswith(
        "missed: make_O: not tiled: the smallest tile [ci:1, co:1, k:1, x:1] takes 192"
    )
    assert "SRAM has 128 (512 for pipeline depth 4)" in str(remarks[-1])


def test_views_that_lie_in_the_memory_take_room_and_no_time() -> None:
    kept = CONV.ref("K")
    resident = tuple(
        ref if ref is not kept else type(ref)(
            ref.name, ref.dir, ref.source, ref.access, ref.dtype, ref.dims, location=Location.of("SRAM", 0)
        )
        for ref in CONV.refinements
    )  # fmt: skip
    block = Block(CONV.name, CONV.indices, CONV.constraints, resident, CONV.statements, tags=CONV.tags)
    fixed = {"ci": 4, "co": 2, "k": 3, "x": 10}
    _, remarks = tiled(block, machine(size=1024), memory="SRAM", fixed=fixed, pipeline_depth=1)
    # (12*4 + 20) * 4 bytes; the 96 of K are not counted with the tile
    assert "272 of 1024 bytes" in str(remarks[-1])
    _, remarks = tiled(block, machine(size=300), memory="SRAM", fixed=fixed, pipeline_depth=1)
    assert "SRAM has 204" in str(remarks[-1])


def test_the_execution_unit_is_where_the_block_lies_or_the_quickest() -> None:
    hardware = machine()
    assert find_unit(hardware, CONV).name == "MAC"
    located = Block(
        CONV.name, CONV.indices, CONV.constraints, CONV.refinements, CONV.statements, Location.of("SLOW", 0)
    )
    found = find_unit(hardware, located)
    assert (found.name, found.cycles_per_point, found.pipeline_depth) == ("SLOW", 1.0, 1)


def test_a_stencil_says_how_long_it_takes() -> None:
    """Outer points hold a use of four by all; the block inside has three of the four, and two other points."""
    hardware = machine()
    rules = (
        StencilIndex(name="i", size=4, outs=(-1,), ins=(-1, -1)),
        StencilIndex(name="c", size=-1, outs=(0,), ins=(-1, -1)),
    )
    stencils = [Stencil(idxs=rules, cycles=7), Stencil(idxs=rules, startup_cost=2)]
    indices = (
        Index("x", 3, stencil="i"),
        Index("ci", 5, stencil="c"),
        Index("k", 2),
        Index("co", 1),
    )
    inner = replace(CONV, indices=indices, tags=Tags.of("stencil"))
    outer = Block("out", (Index("o", 4),), statements=(inner,))
    for stencil, cycles in zip(stencils, (2 * 7, 2 * (4 * 5 + 2) * 2), strict=True):
        unit = ExecUnit(ops_per_cycle={"all": 1}, stencils=(stencil,))
        with_array = hardware.model_copy(update={"exec_units": {**hardware.exec_units, "ARRAY": unit}})
        found = find_unit(with_array, outer)
        assert (found.name, found.cycles_per_point) == ("ARRAY", cycles)


def test_operations_of_inner_blocks_count_for_all_their_points() -> None:
    outer = Block("outer", statements=(CONV,))
    counted = {f"{op}:{dtype.name}": times for (op, dtype), times in nest_operations(outer).counts.items()}
    assert counted == {"mul:fp32": 240, "add:fp32": 240}


def test_unknown_operations_are_said() -> None:
    block = kernel("O[x, co] = assign exp(I[x, co])", {"x": 10, "co": 2}, SHAPES)
    hardware = machine(size=4096)
    del hardware.exec_units["SLOW"]
    _, remarks = tiled(block, hardware, memory="SRAM")
    assert str(remarks[-1]).endswith("; exp:fp32 counted at the slowest speed")


def test_a_block_without_indices_stays() -> None:
    block = kernel("O[0, 0] = assign ident(I[0, 0])", {}, SHAPES)
    found, remarks = tiled(block)
    assert found is block
    assert str(remarks[0]) == "missed: make_O: not tiled: it has no index"


def test_a_program_without_a_match_is_the_same_object() -> None:
    program = program_of([CONV], SHAPES, ["O"])
    assert Autotile(reqs=("absent",)).run(program, PassContext()) is program


OPTIONS = st.fixed_dictionaries(
    {
        "only_po2": st.booleans(),
        "only_even": st.booleans(),
        "acc_idxs": st.booleans(),
        "cache_width": st.sampled_from([0, 16]),
        "max_output_size": st.sampled_from([0, 16, 36]),
        "max_total_size": st.sampled_from([0, 100]),
    }
)


@settings(max_examples=80)
@given(programs(), OPTIONS, st.booleans())
def test_autotile_keeps_the_meaning(made: Made, options: dict[str, object], fused: bool) -> None:
    kernels, shapes, outputs = made
    program = program_of(kernels, shapes, outputs)
    if fused:
        program, _ = run_pass(program, "fusion", interpreted=False, max_recompute=2.0)
    result = Autotile.model_validate(options).run(program, PassContext())
    assert verify_structural(result) == []
    assert_same_results(program, result)


@settings(max_examples=20)
@given(st.integers(1, 4), st.integers(8, 48))
def test_tiles_of_tiles_keep_the_meaning(first: int, second: int) -> None:
    program = program_of([CONV], SHAPES, ["O"])
    once, _ = run_pass(program, "autotile", fixed={"x": first, "ci": 2}, inner_set=["inner"])
    twice, _ = run_pass(once, "autotile", reqs=["inner"], max_output_size=second)
    assert "inner" in print_block(twice.main)


def test_a_memory_needs_a_machine() -> None:
    with pytest.raises(ConfigError, match="needs a hardware model"):
        tiled(CONV, None, memory="SRAM")


@pytest.mark.parametrize(
    ("options", "size"),
    [({}, 50), ({"vector_bytes": 64}, 64), ({"vector_bytes": 128}, 64), ({"vector_bytes": 512}, 100)],
)
def test_vectors_decide_sizes_along_contiguous_outputs(options: dict[str, Any], size: int) -> None:
    limits: dict[str, Any] = {"acc_idxs": False, "cache_width": 64, "fixed": {"m": 1}}
    limits["max_output_size"] = 400 if size == 100 else 320
    result, _ = run_pass(matmul(100), "autotile", **limits, **options)
    assert f"block [k:5, m:1, n:{size}" in print_program(result)


@pytest.mark.parametrize(
    ("ranges", "reason"),
    [
        ({"x": (1 << 24) + 1}, "index x has range 16777217, the search goes up to 16777216"),
        ({"x": 1 << 22, "y": 1 << 22, "z": 1 << 22}, "more than 4611686018427387904 points"),
    ],
)
def test_ranges_that_are_too_large_to_search(ranges: dict[str, int], reason: str) -> None:
    names = ", ".join(ranges)
    shapes = {"A": tuple(ranges.values()), "O": (1,)}
    block = kernel(f"O[0] = add neg(A[{names}])", ranges, shapes)
    program = program_of([block], shapes, ["O"])
    remarks: list[Remark] = []
    assert Autotile().run(program, PassContext(None, remarks.append)) is program
    assert reason in remarks[0].message


PRODUCT = "function (A[M=512, K=64]: i8, B[K, N=256]: i8) -> (C) { C[m, n : M, N] = +(A[m, k] * B[k, n]); }"
IN_SRAM = (
    "locate_block{reqs=[tile],loc={name:CONV}},locate_inner_block{reqs=[tile],loc={name:CONV}},"
    "locate_memory{reqs=[program],loc={name:DRAM}},locate_memory{reqs=[main],loc={name:DRAM}},"
    "cache{reqs=[tile],mem_loc={name:SRAM},xfer_loc={name:DMA}}"
)


def times_of(options: str, **depth: int) -> tuple[float, float, float, int]:
    """Cycles of the simulator, cycles that autotile predicts, those of its transfers, and the number of tiles."""
    hardware = load_hardware("dsp_conv")
    tile = f"autotile{{reqs=[contraction],memory=SRAM,outer_set=[tile],inner_set=[inner]{options}}}"
    program = compile_tile(PRODUCT, "product.tile", {})
    (block,) = program.main.blocks
    placed = PassManager(parse_passes(f"{tile},{IN_SRAM}"), hardware).run(program)
    (inner,) = (inner for outer in placed.main.blocks for inner in outer.blocks if "inner" in inner.tags)
    sizes = np.array([[index.range for index in inner.iterated]], dtype=np.int64)
    times = Tiling(Autotile.model_validate({"memory": "SRAM", **depth}), block, hardware).times
    assert times is not None
    (predicted,), (moved,) = times.time(sizes, sizes)
    count = prod(-(-index.range // size) for index, size in zip(block.iterated, sizes[0], strict=True))
    return simulate_program(placed, hardware).cycles, predicted, moved, count


@pytest.mark.parametrize(
    "options", ["", ",only_even=true", ",fixed={m:64,n:64,k:64}", ",fixed={m:128,n:64,k:16}"]
)
def test_the_time_of_tiles_is_that_of_the_simulator(options: str) -> None:
    """The prediction is longer by at most the transfers of one tile: the first tile waits for reads alone, the last for
    writes alone, and both are counted with all transfers.
    """
    simulated, predicted, moved, count = times_of(options)
    assert count > 1
    assert simulated <= predicted <= simulated + moved / count


def test_the_time_of_one_tile_is_exactly_that_of_the_simulator() -> None:
    simulated, predicted, _, count = times_of(",pipeline_depth=1", pipeline_depth=1)
    assert count == 1
    assert simulated == predicted


def test_the_company_of_a_block_leaves_out_what_waits_for_other_blocks() -> None:
    source = """function (X[N=8, M=8], W[M, M], V[M, M]) -> (Z) {
      A[n, o : N, M] = +(X[n, m] * W[m, o]);
      B = relu(A);
      C[n, o : N, M] = +(B[n, m] * V[m, o]);
      D = C + B;
      Z = relu(D);
    }"""
    program = compile_tile(source)
    companies = Companies(program.main.statements)
    assert companies.of(0) == (0, 1)
    assert companies.of(2) == (2, 3, 4)


def test_a_tile_that_saves_energy_for_hardly_more_time_is_said() -> None:
    """With a narrow network on chip: of the tiles that are priced exactly."""
    entries, model = read_setup([("config", "dsp_conv")], None, {"NOC_BYTES": 256})
    said: list[Remark] = []

    class Remarks(Instrument):
        def remark(self, entry: PassEntry, remark: Remark) -> None:
            said.append(remark)

    text = (Path(__file__).parents[2] / "examples" / "conv_bias_relu.tile").read_text("utf-8")
    PassManager(tuple(entries), model, (Remarks(),)).run(compile_tile(text))
    (found,) = (str(remark) for remark in said if "priced exactly" in remark.message)
    assert re.search(r"; \[[^]]*\] takes [0-4]\.[0-9]% more time and [1-9][0-9]% less energy$", found), found
