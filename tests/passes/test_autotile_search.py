"""The search of `autotile` against trying all candidates, and its footprints against counting."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from math import inf

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from stripe.cost.counts.tiles import Floats, Ints, TileFootprint
from stripe.hw.schema import Bus, ExecUnit, HardwareModel, MemUnit, TxUnit
from stripe.ir import Affine, Block, Dim, Index, Refinement, parse_affine, row_major
from stripe.ir import Direction as D
from stripe.ir.dtypes import FP32
from stripe.ir.refinement import Agg
from stripe.passes.autotile.autotile import Autotile
from stripe.passes.autotile.search import TileSearch
from stripe.passes.autotile.tiling import Tiling


def view(
    name: str, accesses: tuple[str, ...], size: int = 1, direction: D = D.IN, agg: Agg = Agg.ASSIGN
) -> Refinement:
    dims = tuple(Dim(size, dim.stride) for dim in row_major((64,) * len(accesses)))
    return Refinement(name, direction, name, tuple(map(parse_affine, accesses)), FP32, dims, agg)


def block(refs: tuple[Refinement, ...], **ranges: int) -> Block:
    return Block("b", tuple(Index(name, size) for name, size in ranges.items()), refinements=refs)


def touched(ref: Refinement, tile: dict[str, range]) -> set[tuple[int, ...]]:
    """All elements of a view that the points of a tile touch, one by one."""
    found: set[tuple[int, ...]] = set()
    for point in product(*tile.values()):
        env = dict(zip(tile, point, strict=True))
        origin = [int(affine.evaluate(env)) for affine in ref.access]
        found |= set(product(*(range(o, o + d.size) for o, d in zip(origin, ref.dims, strict=True))))
    return found


@settings(max_examples=80)
@given(
    st.integers(1, 4), st.integers(1, 4), st.integers(1, 3), st.integers(1, 7), st.integers(1, 5), st.data()
)
def test_footprints_of_tiles_and_of_all_tiles_are_exact(
    a: int, b: int, size: int, x_range: int, k_range: int, data: st.DataObject
) -> None:
    ref = view("I", (f"{a}*x - {b}*k", "c"), data.draw(st.sampled_from([1, size])))
    nest = block((ref,), k=k_range, x=x_range, c=3)
    footprint = TileFootprint(nest, ref)
    tile = [data.draw(st.integers(1, index.range)) for index in nest.indices]
    sizes = np.array([tile], dtype=np.int64)
    elements = touched(ref, {i.name: range(t) for i, t in zip(nest.indices, tile, strict=True)})
    assert footprint.is_exact
    assert footprint.elements(sizes)[0] == len(elements)
    pieces = [
        [range(start, min(start + t, i.range)) for start in range(0, i.range, t)]
        for i, t in zip(nest.indices, tile, strict=True)
    ]
    total = sum(len(touched(ref, dict(zip("kxc", piece, strict=True)))) for piece in product(*pieces))
    if sum(1 for dim in ref.dims if dim.size > 1) == 0 or 1 in (a, b):
        assert footprint.total(sizes, sizes)[0] == total
    else:  # three strides have no closed form for cut tiles: full ones are counted
        assert footprint.total(sizes, sizes)[0] >= total


def test_digits_of_a_value_are_counted_exactly() -> None:
    for accesses in (
        ("floor(x/4)", "x mod 4"),
        ("floor((x + y)/4)", "(x + y) mod 4"),
        ("floor(x/6)", "(floor(x/2)) mod 3", "y", "x mod 2"),
        ("2*y + floor(x/6)", "x mod 6"),
    ):
        ref = view("I", accesses)
        footprint = TileFootprint(block((ref,), x=12, y=5), ref)
        for x, y in product((1, 3, 4, 12), (1, 2, 5)):
            count = len(touched(ref, {"x": range(x), "y": range(y)}))
            assert footprint.is_exact
            assert footprint.elements(np.array([[x, y]], dtype=np.int64))[0] == count


def test_other_floors_and_shared_indices_are_counted_as_boxes() -> None:
    for accesses in (("floor(x/4)", "x mod 3"), ("x", "x"), ("floor((x + 3*y)/2)", "y")):
        ref = view("I", accesses)
        nest = block((ref,), x=12, y=5)
        footprint = TileFootprint(nest, ref)
        for x, y in product((1, 3, 4, 12), (1, 2, 5)):
            count = len(touched(ref, {"x": range(x), "y": range(y)}))
            assert not footprint.is_exact
            assert footprint.elements(np.array([[x, y]], dtype=np.int64))[0] >= count


def refs_of(stride: int, pad: int) -> tuple[Refinement, ...]:
    return (
        view("I", (f"{stride}*x + k - {pad}", "c")),
        view("K", ("k", "c", "o")),
        view("O", ("x", "o"), direction=D.OUT, agg=Agg.ADD),
    )


@st.composite
def blocks(draw: st.DrawFn) -> Block:
    sizes = {name: draw(st.integers(1, most)) for name, most in (("c", 6), ("k", 3), ("o", 5), ("x", 12))}
    return block(refs_of(draw(st.integers(1, 3)), draw(st.integers(0, 1))), **sizes)


LIMITS = {
    "max_per_input_size": st.sampled_from([0, 0, 60]),
    "max_output_size": st.sampled_from([0, 0, 100]),
    "max_per_output_size": st.sampled_from([0, 0, 24]),
    "max_total_size": st.sampled_from([0, 100, 300]),
}


@st.composite
def by_lines(draw: st.DrawFn) -> Tiling:
    """Tilings whose cost is by cache lines."""
    options = st.builds(Autotile, cache_width=st.sampled_from([0, 16, 64]), **LIMITS)
    return Tiling(draw(options), draw(blocks()), None)


@st.composite
def by_time(draw: st.DrawFn) -> Tiling:
    """Tilings whose cost is time on a machine."""
    hardware = machine(
        size=draw(st.sampled_from([200, 4096])),
        alignment=draw(st.sampled_from([1, 16])),
        depth=draw(st.integers(1, 2)),
        latency=draw(st.sampled_from([0.0, 3.0])),
    )
    return Tiling(draw(st.builds(Autotile, memory=st.just("NEAR"), **LIMITS)), draw(blocks()), hardware)


def machine(size: int, *, alignment: int = 1, depth: int = 2, latency: float = 0.0) -> HardwareModel:
    both = ({"sources": ("FAR", "NEAR"), "sinks": ("DMA",)}, {"sources": ("DMA",), "sinks": ("FAR", "NEAR")})
    return HardwareModel(
        clock_mhz=1,
        mem_units={
            "FAR": MemUnit(size_KiB=1 << 20, is_host=True),
            "NEAR": MemUnit(size_bytes=size, alignment=alignment),
        },
        exec_units={"UNIT": ExecUnit(ops_per_cycle={"all": 4}, pipeline_depth=depth, latency_cycles=latency)},
        tx_units={"DMA": TxUnit(latency_cycles=latency)},
        buses=tuple(Bus(**ends, bytes_per_cycle=8) for ends in both),
    )


def cost(tiling: Tiling, sizes: Ints) -> Floats:
    return tiling.lower_bound(sizes, sizes)


def tile_search(tiling: Tiling, wanted: int = 10) -> TileSearch:
    candidates = [np.arange(1, size + 1, dtype=np.int64) for size in tiling.ranges]
    return TileSearch(candidates, tiling.ranges, tiling.lower_bound, wanted)


def check_against_all(tiling: Tiling, wanted: int) -> None:
    everything = np.array(list(product(*(range(1, size + 1) for size in tiling.ranges))), dtype=np.int64)
    costs = cost(tiling, everything)
    tiles = np.prod(-(-np.array(tiling.ranges) // everything), axis=1)
    order = np.lexsort((*everything.T[::-1], tiles, costs))
    search = tile_search(tiling, wanted)
    found = search.run()
    valid = [place for place in order if np.isfinite(costs[place])][: search.wanted]
    assert len(found) == len(valid)
    np.testing.assert_allclose([ranked.cost for ranked in found], np.sort(costs[valid]), rtol=1e-9)
    for ranked in found:
        (place,) = np.flatnonzero((everything == np.array(ranked.sizes)).all(axis=1))
        np.testing.assert_allclose(ranked.cost, costs[place], rtol=1e-9)


@settings(max_examples=60)
@given(by_lines())
def test_the_search_finds_the_best_by_cache_lines(tiling: Tiling) -> None:
    check_against_all(tiling, 10)


@settings(max_examples=60)
@given(by_time(), st.sampled_from([3, 10]))
def test_the_search_finds_the_best_by_time(tiling: Tiling, wanted: int) -> None:
    check_against_all(tiling, wanted)


@settings(max_examples=80)
@given(by_lines() | by_time(), st.data())
def test_bounds_are_at_most_the_cost_of_any_member(tiling: Tiling, data: st.DataObject) -> None:
    ends = [sorted((data.draw(st.integers(1, r)), data.draw(st.integers(1, r)))) for r in tiling.ranges]
    members = np.array(list(product(*(range(low, high + 1) for low, high in ends))), dtype=np.int64)
    low, high = (np.array([[pair[side] for pair in ends]], dtype=np.int64) for side in (0, 1))
    least = cost(tiling, members).min()
    assert tiling.lower_bound(low, high)[0] <= least + 1e-9 * abs(least) or np.isinf(least)


def test_ties_go_to_fewer_tiles_then_to_smaller_sizes() -> None:
    candidates = [np.array([3, 4, 6, 12]), np.array([1, 2, 4])]
    found = TileSearch(candidates, [12, 4], lambda low, _: np.zeros(len(low)), 4).run()
    assert [ranked.sizes for ranked in found] == [(12, 4), (6, 4), (12, 2), (4, 4)]


def test_a_large_space_is_pruned() -> None:
    refs = (
        view("I", ("x + i", "y + j", "c")),
        view("K", ("i", "j", "c", "o")),
        view("O", ("x", "y", "o"), direction=D.OUT, agg=Agg.ADD),
    )
    nest = block(refs, c=32, i=3, j=3, o=64, x=1024, y=1024)
    search = tile_search(Tiling(Autotile(memory="NEAR"), nest, machine(131072)))
    assert len(search.run()) == 10
    assert search.size == 32 * 3 * 3 * 64 * 1024 * 1024
    assert search.costed + search.bounded < 2_000_000


def test_a_search_stops_and_says_what_it_has_not_seen() -> None:
    """What it has found fits, and what it has not looked at costs as much as its bound says."""
    names = "abcdef"
    refs = (
        view("I", tuple("abcd")),
        view("K", tuple("cdef")),
        view("O", tuple("abef"), direction=D.OUT, agg=Agg.ADD),
    )
    tiling = Tiling(Autotile(max_total_size=300), block(refs, **dict.fromkeys(names, 7)), None)
    whole = tile_search(tiling)
    best = whole.run()
    stopped = replace(tile_search(tiling), most_steps=200)
    found = stopped.run()
    assert whole.unseen == inf and stopped.costed + stopped.bounded < 5_000
    assert len(found) == 10 and tiling.held(np.array([found[0].sizes]))[0] <= 4 * 300
    assert stopped.unseen <= best[0].cost <= found[0].cost
    assert "tiles that were not looked at cost" in tiling.table(stopped, 7**6, found)
    assert "not looked at" not in tiling.table(whole, 7**6, best)


def test_nothing_fits() -> None:
    nest = block(refs_of(1, 1), c=4, k=3, o=4, x=12)
    assert tile_search(Tiling(Autotile(max_total_size=2), nest, None)).run() == []
    assert tile_search(Tiling(Autotile(memory="NEAR"), nest, machine(3))).run() == []


def test_the_size_of_a_view_joins_its_windows() -> None:
    ref = replace(view("I", ("x",)), dims=(Dim(3, 1),), access=(Affine.var("x"),))
    footprint = TileFootprint(block((ref,), x=10), ref)
    assert footprint.elements(np.array([[4]]))[0] == 6
    assert footprint.total(np.array([[4]]), np.array([[4]]))[0] == 6 + 6 + 4
