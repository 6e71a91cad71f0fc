"""Costs of single statements: exact totals against walking through every point, and times that follow by hand."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import product
from math import ceil

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stripe.cost.time.arrays import systolic_cycles
from stripe.cost.time.machine import Machine
from stripe.cost.time.pieces import Compute, Loop, Move, Piece, piece_of, pieces_below
from stripe.cost.time.rates import vector_share
from stripe.cost.time.statement import Resource, StatementCost
from stripe.cost.time.uneven import tile_points
from stripe.cost.time.workload import CostModel
from stripe.hw import HardwareModel, SystolicArray, load_hardware
from stripe.ir import ConfigError, Location, Nest, Program, parse_location, rewrite_matching, with_entry
from stripe.tile import compile_tile
from tests.support.enumerated import walk_program
from tests.support.tiled import tiled_convolution


def statements(program: Program) -> list[Nest]:
    main = Nest.root(program.entry).enter(0)
    return [nest for _, nest in main.children()]


def costs(program: Program, model: HardwareModel) -> list[StatementCost]:
    found = CostModel(Machine(model))
    return [found.statement(nest, number) for number, nest in enumerate(statements(program))]


def matmul(m: int, n: int, k: int, dtype: str = "i8") -> Program:
    head = f"function (A[M={m}, K={k}]: {dtype}, B[K, N={n}]: {dtype}) -> (C)"
    text = f"{head} {{ C[i, j : M, N] = +(A[i, l] * B[l, j]); }}"
    return compile_tile(text, "mm")


@settings(max_examples=40)
@given(st.integers(3, 9), st.integers(1, 4), st.integers(1, 4))
def test_totals_are_those_of_walking_through_every_point(x: int, tile_x: int, tile_o: int) -> None:
    program = tiled_convolution(x, min(tile_x, x), tile_o)
    (nest,) = statements(program)
    done = walk_program(program)
    pieces = list(pieces_below(piece_of(nest, ("DMA",))))
    operations: Counter[str] = Counter()
    read: Counter[str] = Counter()
    written: Counter[str] = Counter()
    moved = {piece.name: piece.bytes for piece in pieces if isinstance(piece, Move)}
    for piece in pieces:
        if isinstance(piece, Compute):
            operations.update({op: n for (op, _), n in piece.operations.counts.items()})
            for stream in piece.streams:
                (written if stream.writes else read)[stream.buffer] += stream.bytes
    assert moved == done.moved
    assert operations == done.operations
    assert read == done.read
    assert written == done.written


def test_a_tree_of_moves_and_computing() -> None:
    def shape(piece: Piece) -> object:
        if isinstance(piece, Loop):
            return [shape(inner) for inner in piece.pieces]
        return type(piece).__name__

    (nest,) = statements(tiled_convolution(8, 4, 4))
    piece = piece_of(nest, ("DMA",))
    assert shape(piece) == ["Move", "Move", "Compute", "Move"]
    assert isinstance(piece, Loop)
    assert (piece.trips, piece.deps) == (2, ((), (), (0, 1), (2,)))


def test_time_bytes_and_energy_by_hand() -> None:
    """64x64x64 in 8 bits on dsp_conv: 512 operations and 64 bytes of DRAM a cycle."""
    (cost,) = costs(matmul(64, 64, 64), load_hardware("dsp_conv"))
    assert cost.units.name == "CONV"
    assert cost.work.cycles == 2 * 64**3 / 512 == cost.cycles
    assert cost.work.operations.mac_count == 64**3
    assert cost.demand[Resource("bus", "dram_read")] == 2 * 64 * 64 / 64
    assert cost.energy["DRAM read"] == 2 * 64 * 64 * 162.5
    assert cost.energy["compute CONV"] == pytest.approx(64**3 * 0.23)
    assert cost.bytes_at("DRAM") == 3 * 64 * 64


def test_what_moves_more_than_it_computes_is_bound_by_its_bus() -> None:
    program = compile_tile("function (A[N=6400]: i8, B[N]: i8) -> (C) { C = A + B; }", "add")
    (cost,) = costs(program, load_hardware("dsp_conv"))
    assert cost.units.name == "DSP"
    assert cost.cycles == 2 * 6400 / 64
    assert cost.stalls == {"operands": 2 * 6400 / 64 - 6400 / 64}


@settings(max_examples=40)
@given(st.integers(3, 12), st.integers(1, 5), st.integers(1, 4))
def test_points_of_each_tile(x: int, tile_x: int, tile_o: int) -> None:
    (nest,) = statements(tiled_convolution(x, min(tile_x, x), tile_o))
    for inner in nest.walk():
        found = tile_points(inner, nest.domain.names)
        assert found is not None
        counts: Counter[tuple[int, ...]] = Counter()
        for values in product(*(range(high + 1) for _, high in inner.domain.intervals)):
            env = dict(zip(inner.domain.names, values, strict=True))
            if all(constraint.evaluate(env) >= 0 for constraint in inner.domain.constraints):
                counts[tuple(env[name] for name in nest.domain.names)] += 1
        tiles = product(*(range(high + 1) for _, high in nest.domain.intervals))
        assert found.tolist() == [counts[tile] for tile in tiles]


def test_tiles_at_the_edge_take_less() -> None:
    (cost,) = costs(tiled_convolution(20, 8, 4), load_hardware("dsp_conv"))
    loads = [piece.end - piece.start for piece in cost.slices if piece.name == "load_I"]
    assert loads == pytest.approx([9 * 3 / 64, 10 * 3 / 64, 5 * 3 / 64])
    assert cost.notes == ()
    computing = sum(piece.end - piece.start for piece in cost.slices if not piece.transfer)
    assert computing == pytest.approx(cost.work.cycles + cost.stalls.get("operands", 0.0))


@pytest.mark.parametrize(
    ("dataflow", "cycles"),
    [
        ("weight_stationary", 4 * (100 + 2 * 16 + 16 - 2) - 1),
        ("output_stationary", 14 * (20 + 16 + 16 - 2) - 1),
    ],
)
def test_systolic_arrays(dataflow: str, cycles: int) -> None:
    array = SystolicArray.model_validate({"rows": 16, "columns": 16, "dataflow": dataflow})
    assert systolic_cycles(array, reduction=20, pixels=100, filters=30) == cycles


def test_the_first_tpu_on_a_matrix_product() -> None:
    """One tile of weights, 1000 rows: the array fills and drains once."""
    (cost,) = costs(matmul(1000, 256, 256), load_hardware("systolic"))
    assert (cost.units.name, cost.work.rule) == ("MXU", "systolic array")
    assert cost.work.cycles == 1000 + 2 * 256 + 256 - 2 - 1
    assert cost.work.utilisation == pytest.approx(1000 / 1765)


def test_short_vectors_waste_lanes() -> None:
    block = statements(matmul(8, 20, 8, "fp32"))[0].block
    assert vector_share(block, 64) == 20 / 32
    assert vector_share(block, 16) == 1.0
    (cost,) = costs(matmul(8, 20, 8, "fp32"), load_hardware("x86_avx512"))
    assert cost.work.rule == "vectors"
    assert cost.work.utilisation == 20 / 32


def test_a_grid_of_units_works_as_a_whole() -> None:
    (cost,) = costs(matmul(64, 64, 64), load_hardware("eyeriss"))
    assert cost.units.parallel == 12 * 14
    assert cost.work.cycles == pytest.approx(64**3 / (12 * 14))


@pytest.mark.parametrize(("location", "parallel"), [("PE", 168), ("PE[0]", 1), ("PE[167]", 1)])
def test_a_position_of_a_grid_works_alone(location: str, parallel: int) -> None:
    program = matmul(8, 8, 8)
    entry = rewrite_matching(
        program.entry, ("kernel",), lambda b: replace(b, location=parse_location(location))
    )
    (cost,) = costs(with_entry(program, entry), load_hardware("eyeriss"))
    assert cost.units.parallel == parallel
    assert cost.work.cycles == pytest.approx(8**3 / parallel)


def test_units_that_a_location_numbers() -> None:
    program = matmul(8, 8, 8)
    spread = rewrite_matching(
        program.entry,
        ("kernel",),
        lambda b: replace(b, location=parse_location(f"CONV[{b.iterated[0].name}]")),
    )
    with pytest.raises(ConfigError, match=r"runs from 0 to 7, and CONV has 4"):
        costs(with_entry(program, spread), load_hardware("dsp_conv"))
    (cost,) = costs(with_entry(program, spread), load_hardware("dsp_conv", {"NUM_CONV": 8}))
    assert cost.units.numbers == tuple(range(8))
    assert cost.work.cycles == 2 * 8**3 / 512 / 8


def test_a_tiled_kernel_overlaps_transfers() -> None:
    program = tiled_convolution(64, 8, 4)
    model = load_hardware("dsp_conv")
    (cost,) = costs(program, model)
    inside = cost.slices
    assert cost.tiles == 8
    assert {piece.unit for piece in inside} == {"CONV[0]", "DMA[0]"}
    assert max(piece.end for piece in inside) == pytest.approx(cost.cycles)
    alone = sum(piece.end - piece.start for piece in inside)
    assert cost.cycles < alone
    assert cost.cycles >= cost.demand[Resource.unit("DMA[0]")]


def test_what_no_unit_computes_is_said() -> None:
    model = load_hardware("eyeriss")
    narrow = model.exec_units["PE"].model_copy(update={"ops_per_cycle": {"i8": 2.0}})
    model = model.model_copy(update={"exec_units": {"PE": narrow}})
    with pytest.raises(ConfigError, match="no execution unit computes add:fp32, mul:fp32") as caught:
        costs(matmul(8, 8, 8, "fp32"), model)
    assert caught.value.where == "statement 0 (kernel_0)"


def test_what_a_located_unit_lacks_is_said() -> None:
    program = matmul(8, 8, 8, "fp32")
    entry = rewrite_matching(program.entry, ("kernel",), lambda b: replace(b, location=Location.of("MAT", 0)))
    with pytest.raises(ConfigError, match="MAT has no rate for 'mul' of fp32") as caught:
        costs(with_entry(program, entry), load_hardware("edge_npu"))
    assert caught.value.where == "statement 0 (kernel_0): exec_units.MAT.ops_per_cycle"
    assert caught.value.hint == "it has i8, u8, fp16; locate the block on another unit or add a rate"


def test_bursts_round_transfers_up() -> None:
    model = load_hardware("dsp_conv")
    burst = model.tx_units["DMA"].model_copy(update={"burst_bytes": 64, "latency_cycles": 7})
    model = model.model_copy(update={"tx_units": {**model.tx_units, "DMA": burst}})
    (cost,) = costs(tiled_convolution(8, 8, 4), model)
    loads = [piece for piece in cost.slices if piece.name == "load_I"]
    assert [piece.end - piece.start for piece in loads] == [7 + ceil(8 * 3 / 64)]
