"""Cycles of tiles on a core: beside the simulator, and as bounds of a search."""

from __future__ import annotations

import numpy as np
import pytest

from stripe.cost.time.simulate import simulate_program
from stripe.cost.time.tile_core import OPERAND_WEIGHT, CoreTiles, core_tiles
from stripe.hw import load_hardware
from stripe.ir import Block, walk
from stripe.passes.autotile.autotile import Autotile
from stripe.pipeline.entry import PassEntry
from stripe.pipeline.manager import PassManager
from stripe.pipeline.setup import read_setup
from stripe.tile import compile_tile
from tests.support.programs import build

MODEL = load_hardware("x86_avx512", {"CORES": 1})
CONV = (
    "function (I[Y={m}, X={m}, CI={ci}]: fp32, K[J=3, IX=3, CI, CO={co}]: fp32) -> (O) "
    "{{ O[y, x, co : {n}, {n}, CO] = +(I[y + j, x + i, ci] * K[j, i, ci, co]); }}"
)


def contraction(text: str) -> Block:
    program = compile_tile(text, "test")
    return next(block for _, block in walk(program.entry) if "contraction" in block.tags)


def prices(text: str) -> tuple[Block, CoreTiles]:
    block = contraction(text)
    found = core_tiles(block, MODEL)
    assert found is not None
    return block, found


def simulated(text: str, tile: dict[str, int]) -> float:
    """Cycles of the program that the list `cpu` makes with this tile, without copies of operands."""
    entries, _ = read_setup([("config", "cpu")], MODEL, {})
    fixed = [
        PassEntry(e.name, e.pass_.model_copy(update={"fixed": tile})) if isinstance(e.pass_, Autotile) else e
        for e in entries
        if e.name != "pack"
    ]
    return simulate_program(PassManager(tuple(fixed), MODEL).run(compile_tile(text, "test")), MODEL).cycles


def test_prices_are_near_the_simulation() -> None:
    """Beside the weight of operands: the caches of the whole nest make the rest. What has rests along two
    indices takes more than its price, because bounds of its edges vary."""
    text = CONV.format(m=9, n=7, ci=64, co=128)
    block, found = prices(text)
    tiles = [
        {"y": 7, "x": 1, "co": 32},
        {"y": 1, "x": 7, "co": 32},
        {"y": 7, "x": 1, "co": 16},
        {"y": 1, "x": 1, "co": 32},
        {"y": 3, "x": 4, "co": 32},
        {"y": 2, "x": 3, "co": 64},
    ]
    sizes = np.array([[tile.get(i.name, i.range) for i in block.iterated] for tile in tiles], dtype=np.int64)
    price = found.cycles(sizes, sizes) / (1 + OPERAND_WEIGHT / 2)
    cycles = [simulated(text, tile) for tile in tiles]
    assert cycles[:4] == pytest.approx(price[:4].tolist(), rel=0.12)
    assert cycles[:4] == sorted(cycles[:4])
    assert all(made > 0.9 * asked for made, asked in zip(cycles, price, strict=True))


def test_images_of_seven_rows_get_tiles_without_rests() -> None:
    """The last stage of ResNet-50: 7 x 7 positions, of which tiles of 3 x 4 leave a row and three columns."""
    entries, _ = read_setup([("config", "cpu")], MODEL, {})
    program = compile_tile(CONV.format(m=9, n=7, ci=512, co=512), "test")
    made = PassManager(entries, MODEL).run(program)
    sizes = {i.name: i.range for _, b in walk(made.entry) if "tile_inner" in b.tags for i in b.iterated}
    assert {sizes.get("y", 1), sizes.get("x", 1)} == {1, 7}


def test_lines_that_share_a_set_are_fetched_again() -> None:
    """Pixels of 1024 channels lie 4 KiB apart: all their lines share one set of 12 ways."""
    text = (
        "function (I[Y=14, X=14, C={c}]: fp32, K[C, M=256]: fp32) -> (O) "
        "{{ O[y, x, m : Y, X, M] = +(I[y, x, c] * K[c, m]); }}"
    )
    tiles = [{"y": 14, "x": 1, "m": 32}, {"y": 7, "x": 1, "m": 64}]

    def cycles(channels: int) -> list[float]:
        block, found = prices(text.format(c=channels))
        sizes = np.array([[tile.get(i.name, i.range) for i in block.iterated] for tile in tiles], np.int64)
        return (found.cycles(sizes, sizes) / channels).tolist()

    (many, few), (apart, other) = cycles(1024), cycles(1008)
    assert few == pytest.approx(other, rel=1e-3)
    assert many > 1.01 * apart


def test_a_box_is_never_priced_above_its_members() -> None:
    block, found = prices(CONV.format(m=15, n=13, ci=5, co=40))
    draw = np.random.default_rng(0)
    ranges = np.array([index.range for index in block.iterated])
    low = draw.integers(1, ranges + 1, size=(200, len(ranges)))
    high = draw.integers(low, ranges + 1)
    inside = draw.integers(low, high + 1)
    assert (found.cycles(low, high) <= found.cycles(inside, inside) + 1e-9).all()


def test_results_without_a_lane_have_no_price() -> None:
    text = (
        "function (A[M=64, K=64]: fp32, B[N=64, K]: fp32) -> (C) { C[m, n : M, N] = +(A[m, k] * B[n, k]); }"
    )
    assert core_tiles(contraction(text), MODEL) is None
    assert core_tiles(contraction(CONV.format(m=9, n=7, ci=4, co=16)), load_hardware("dsp_conv")) is None


def test_a_block_without_operands_has_prices() -> None:
    program = build(
        "out O fp32(8 64)",
        """0: #kernel block [m:8, n:64] ( // fill
               out O[m, n]:assign fp32(1:64, 1:1)
           ) {
             0: $c = (fp32)1.0
             1: O = store($c)
           }""",
    )
    (block,) = program.main.blocks
    found = core_tiles(block, MODEL)
    assert found is not None
    sizes = np.array([[8, 64], [1, 16]], dtype=np.int64)
    whole, parts = found.cycles(sizes, sizes)
    assert 0 < whole <= parts < np.inf
