"""Work in parts: a block as a nest over parts that write different elements, and the unit of each part."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod

from stripe.ir import Affine, Block, Location, Tags, with_statements
from stripe.ir.frozen import replace
from stripe.rewrite.pass_in import passed_into
from stripe.rewrite.tile import even_tiles, tile_block

Times = Callable[[Sequence[Sequence[int]], Sequence[int]], Sequence[float]]
"""The times of parts, by their sizes along all iterated indices and the numbers of parts that run at one time."""


def part_tiles(
    block: Block, free: Sequence[str], parts: int, times: Times | None = None
) -> Mapping[str, int]:
    """The tile of each index of `free`, which keep points apart, for at most so many parts: the quickest, then the tile
    with the most parts, the fewest empty points and the fewest indices."""
    split = [block.index(name) for name in free]
    # The tiles of the first indices, with their parts, their points and how many indices they split.
    states: dict[tuple[int, ...], tuple[int, int, int]] = {(): (1, 1, 0)}
    for index in split:
        states = {
            (*chosen, size): (made * count, points * count * size, used + (count > 1))
            for chosen, (made, points, used) in states.items()
            for size in even_tiles(index.range, parts // made)
            for count in [-(-index.range // size)]
        }
        if times is None:
            states = _best_by_parts(states)
    tiles = [{i.name: size for i, size in zip(split, state, strict=True)} for state in states]
    cycles: Sequence[float] = [0.0] * len(tiles)
    if times is not None:
        rows = [[tile.get(index.name, index.range) for index in block.iterated] for tile in tiles]
        cycles = times(rows, [count for count, _, _ in states.values()])
    costs = [
        (time, parts - count, points, used)
        for time, (count, points, used) in zip(cycles, states.values(), strict=True)
    ]
    return tiles[costs.index(min(costs))]


def _best_by_parts(
    states: Mapping[tuple[int, ...], tuple[int, int, int]],
) -> dict[tuple[int, ...], tuple[int, int, int]]:
    """The state of each number of parts with the fewest points, then indices. It stays ahead of the others, however the
    indices that follow are split: these multiply its points and add to its indices as they do with theirs."""
    best: dict[int, tuple[int, ...]] = {}
    for chosen, cost in states.items():
        if cost[0] not in best or cost < states[best[cost[0]]]:
            best[cost[0]] = chosen
    return {chosen: cost for chosen, cost in states.items() if best[cost[0]] == chosen}


def padded_points(block: Block, tiles: Mapping[str, int]) -> int:
    """Points of all parts, points past the end of a range included."""
    sizes = [(index.range, tiles.get(index.name, index.range)) for index in block.iterated]
    return prod(-(-range_ // size) * size for range_, size in sizes)


def in_parts(block: Block, tiles: Mapping[str, int], unit: str = "", idx_tag: str = "") -> Block:
    """The nest over parts of these tiles: the block outside has no tags, the block inside the tags of `block`. With
    `unit` each part runs on the unit of its number, counted with the last index fastest."""
    tiled = tile_block(block, {i.name: tiles.get(i.name, i.range) for i in block.iterated})
    (inner,) = tiled.blocks
    inner = replace(inner, tags=block.tags, comments=block.comments)
    indices = tuple(
        replace(index, tags=index.tags.add(idx_tag)) if idx_tag and index.range > 1 else index
        for index in tiled.indices
    )
    outer = replace(tiled, indices=indices, tags=Tags(), comments=())
    location = tiled.location
    if unit:
        number = Affine()
        for index in tiled.iterated:
            if index.range > 1:
                number = number * index.range + Affine.var(index.name)
        location = Location.of(unit, number)
    if location:
        inner, names = passed_into(inner, sorted(location.names()))
        inner = replace(inner, location=location.subs(names))
    # The parts are on different units of that name.
    around = Location.of(unit) if unit and block.location else Location()
    return with_statements(replace(outer, location=around), [inner])
