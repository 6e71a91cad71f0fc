"""The search of `autotile` against trying all candidates, and its footprints against counting."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stripe.ir import Affine, Block, Dim, Index, Refinement, parse_affine, row_major
from stripe.ir import Direction as D
from stripe.ir.dtypes import FP32
from stripe.ir.refinement import Agg
from stripe.passes.autotile.cost import (
    FormulaModel,
    Limits,
    MachineModel,
    TileShape,
    Transfer,
    Weights,
    is_read_back,
)
from stripe.passes.autotile.footprint import Footprint
from stripe.passes.autotile.search import Search, hill_climb


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
    footprint = Footprint(nest, ref)
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
        assert footprint.total(sizes)[0] == total
    else:  # three strides have no closed form for cut tiles: full ones are counted
        assert footprint.total(sizes)[0] >= total


def test_floors_remainders_and_shared_indices_are_counted_as_boxes() -> None:
    for accesses in (("floor(x/4)", "x mod 4"), ("x", "x"), ("floor((x + 3*y)/2)", "y")):
        ref = view("I", accesses)
        nest = block((ref,), x=12, y=5)
        footprint = Footprint(nest, ref)
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
def shapes(draw: st.DrawFn) -> TileShape:
    sizes = {name: draw(st.integers(1, most)) for name, most in (("c", 6), ("k", 3), ("o", 5), ("x", 12))}
    nest = block(refs_of(draw(st.integers(1, 3)), draw(st.integers(0, 1))), **sizes)
    limits = Limits(
        max_input_size=draw(st.sampled_from([0, 0, 60])),
        max_per_output_size=draw(st.sampled_from([0, 0, 24])),
        max_total_size=draw(st.sampled_from([0, 100, 300])),
        max_sizes_product=draw(st.sampled_from([0, 0, 40])),
        max_po2_product=draw(st.sampled_from([0, 0, 64])),
        max_count=draw(st.sampled_from([0, 0, 30])),
        odd_size=draw(st.booleans()),
        memory=draw(st.sampled_from([None, 200])),
        alignment=draw(st.sampled_from([1, 16])),
    )
    return TileShape(nest, [Footprint(nest, ref) for ref in nest.refinements], limits)


def formulas() -> st.SearchStrategy[Weights]:
    return st.builds(
        Weights,
        input_cost=st.sampled_from([0.0, 1.0, 3.0]),
        output_cost=st.sampled_from([0.0, 1.0]),
        split_factor=st.sampled_from([0.001, -100.0, 0.5]),
        cache_width=st.sampled_from([0, 16, 64]),
        min_size=st.sampled_from([1, 16]),
        min_out_size=st.sampled_from([1, 8]),
        min_count=st.sampled_from([1, 8]),
        min_out_count=st.sampled_from([1, 4]),
        small_factor_upbound=st.sampled_from([0, 2, 5]),
    )


def machine(shape: TileShape, depth: int, latency: float, weight: float) -> MachineModel:
    transfers = [
        Transfer(footprint, reads, 8.0, latency)
        for footprint in shape.footprints
        for reads in (True, False)
        if (footprint.ref.dir.reads or is_read_back(footprint) if reads else footprint.ref.dir.writes)
    ]
    return MachineModel(shape, transfers, 0.25, latency, depth, weight)


def check_against_all(shape: TileShape, model: FormulaModel | MachineModel, *, few: bool) -> None:
    candidates = [np.arange(1, size + 1, dtype=np.int64) for size in shape.ranges]
    everything = np.array(list(product(*(range(1, size + 1) for size in shape.ranges))), dtype=np.int64)
    cost = model.cost(everything)
    tiles = np.prod(shape.counts(everything), axis=1)
    order = np.lexsort((*everything.T[::-1], tiles, cost))
    search = Search(candidates, shape.ranges, model, 3 if few else 10)
    found = search.run()
    valid = [place for place in order if np.isfinite(cost[place])][: search.wanted]
    assert len(found) == len(valid)
    np.testing.assert_allclose([ranked.cost for ranked in found], np.sort(cost[valid]), rtol=1e-9)
    for ranked in found:
        (place,) = np.flatnonzero((everything == np.array(ranked.sizes)).all(axis=1))
        np.testing.assert_allclose(ranked.cost, cost[place], rtol=1e-9)


@settings(max_examples=60)
@given(shapes(), formulas())
def test_the_search_finds_the_best_by_the_formula(shape: TileShape, weights: Weights) -> None:
    check_against_all(shape, FormulaModel(shape, weights), few=False)


@settings(max_examples=60)
@given(shapes(), st.integers(1, 2), st.sampled_from([0.0, 3.0]), st.sampled_from([0.0, 0.01]), st.booleans())
def test_the_search_finds_the_best_by_time(
    shape: TileShape, depth: int, latency: float, weight: float, few: bool
) -> None:
    check_against_all(shape, machine(shape, depth, latency, weight), few=few)


@settings(max_examples=40)
@given(shapes(), formulas(), st.integers(1, 2), st.data())
def test_bounds_are_at_most_the_cost_of_any_member(
    shape: TileShape, weights: Weights, depth: int, data: st.DataObject
) -> None:
    ends = [sorted((data.draw(st.integers(1, r)), data.draw(st.integers(1, r)))) for r in shape.ranges]
    members = np.array(list(product(*(range(low, high + 1) for low, high in ends))), dtype=np.int64)
    low, high = (np.array([[pair[side] for pair in ends]], dtype=np.int64) for side in (0, 1))
    for model in (FormulaModel(shape, weights), machine(shape, depth, 2.0, 0.01)):
        least = model.cost(members).min()
        assert model.bound(low, high)[0] <= least + 1e-9 * abs(least) or np.isinf(least)


def test_ties_go_to_fewer_tiles_then_to_smaller_sizes() -> None:
    nest = block((view("O", ("x",), direction=D.OUT),), x=12, y=4)
    shape = TileShape(nest, [Footprint(nest, ref) for ref in nest.refinements], Limits())
    model = FormulaModel(shape, Weights(input_cost=0, output_cost=0, split_factor=0))
    candidates = [np.array([3, 4, 6, 12]), np.array([1, 2, 4])]
    found = Search(candidates, shape.ranges, model, 4).run()
    assert [ranked.sizes for ranked in found] == [(12, 4), (6, 4), (12, 2), (4, 4)]


def test_a_large_space_is_pruned() -> None:
    refs = (
        view("I", ("x + i", "y + j", "c")),
        view("K", ("i", "j", "c", "o")),
        view("O", ("x", "y", "o"), direction=D.OUT, agg=Agg.ADD),
    )
    nest = block(refs, c=32, i=3, j=3, o=64, x=1024, y=1024)
    shape = TileShape(nest, [Footprint(nest, ref) for ref in refs], Limits(memory=65536))
    search = Search(
        [np.arange(1, size + 1) for size in shape.ranges], shape.ranges, machine(shape, 2, 0.0, 0.01)
    )
    assert len(search.run()) == 10
    assert search.size == 32 * 3 * 3 * 64 * 1024 * 1024
    assert search.costed + search.bounded < 2_000_000


def test_the_quick_search_grows_past_a_count_limit() -> None:
    nest = block(refs_of(1, 1), c=4, k=3, o=4, x=12)
    shape = TileShape(nest, [Footprint(nest, ref) for ref in nest.refinements], Limits(max_count=4))
    model = FormulaModel(shape, Weights())
    candidates = [np.arange(1, size + 1) for size in shape.ranges]
    quick = hill_climb(Search(candidates, shape.ranges, model))
    best = Search(candidates, shape.ranges, model).run()
    assert quick[0].cost >= best[0].cost
    assert shape.counts(np.array([quick[0].sizes])).prod() <= 4


@pytest.mark.parametrize("limits", [Limits(memory=3), Limits(max_count=1, max_sizes_product=2)])
def test_nothing_fits(limits: Limits) -> None:
    nest = block(refs_of(1, 1), c=4, k=3, o=4, x=12)
    shape = TileShape(nest, [Footprint(nest, ref) for ref in nest.refinements], limits)
    search = Search(
        [np.arange(1, size + 1) for size in shape.ranges], shape.ranges, FormulaModel(shape, Weights())
    )
    assert search.run() == []
    assert hill_climb(replace_counts(search)) == []


def replace_counts(search: Search) -> Search:
    """The same search afresh."""
    return Search(search.candidates, search.ranges, search.model, search.wanted)


def test_the_size_of_a_view_joins_its_windows() -> None:
    ref = replace(view("I", ("x",)), dims=(Dim(3, 1),), access=(Affine.var("x"),))
    footprint = Footprint(block((ref,), x=10), ref)
    assert footprint.elements(np.array([[4]]))[0] == 6
    assert footprint.total(np.array([[4]]))[0] == 6 + 6 + 4
