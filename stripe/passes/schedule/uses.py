"""The needs of the statements of a block to schedule: operands, sizes, scratch buffers, and tiles to stream by."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from stripe.ir import (
    Block,
    Nest,
    Path,
    Refinement,
    buffer_instances,
    reads_of,
    unit_numbers,
    writes_of,
)
from stripe.ir.frozen import replace
from stripe.passes.schedule.banks import Banks
from stripe.passes.schedule.routes import ReachedBanks
from stripe.rewrite.tile import tile_block


@dataclass(frozen=True, slots=True)
class OperandUse:
    """A buffer that a statement uses: the bytes of a compact copy, and of each of the `views` of one of its `visits`
    tiles."""

    name: str
    reads: bool
    writes: bool
    bytes: int
    views: tuple[int, ...]
    visits: int

    @property
    def tile_bytes(self) -> int:
        """Bytes of all views of a tile."""
        return sum(self.views)

    @property
    def streamed_bytes(self) -> int:
        """Bytes that streaming moves: each tile fetches and stores its box anew."""
        return self.tile_bytes * self.visits * (int(self.reads) + int(self.writes))


@dataclass(frozen=True, slots=True)
class Scratch:
    """A buffer in the near memory that a block allocates for itself. `path` leads from the statement to its block;
    `bytes` counts all `copies`: `buffers` that the pipeline of a block of tiles keeps of it, for each of the units
    that work at one time.
    """

    path: Path
    name: str
    bytes: int
    buffers: int
    copies: int


@dataclass(frozen=True, slots=True)
class Needs:
    """The operands of a statement, its scratch buffers, the banks that it reaches, whether its tiles can stream, and
    the instances of each stream: one for each of the units that work at one time."""

    operands: tuple[OperandUse, ...]
    scratch: tuple[Scratch, ...]
    banks: ReachedBanks
    streamable: bool
    instances: int


def operands_of(block: Block, number: int) -> tuple[OperandUse, ...]:
    """The operands of a statement of `block`, in the order of its views, each once."""
    statement = block.statements[number]
    reads, writes = reads_of(statement), writes_of(statement)
    result: list[OperandUse] = []
    for name in dict.fromkeys((*reads, *writes)):
        whole = block.ref(name)
        views, visits = (whole.bytes,), 1
        if isinstance(statement, Block):
            views = tuple(_compact_bytes(ref) for ref in statement.refinements if ref.source == name)
            visits = statement.points
        result.append(OperandUse(name, name in reads, name in writes, _compact_bytes(whole), views, visits))
    return tuple(result)


def scratch_of(statement: Nest, banks: Banks, depth: int) -> tuple[Scratch, ...]:
    """The allocations of a statement in the memory of `banks` that have no address yet. A copy that a copy block fills,
    and what goes from one unit to another, is there `depth` times, so that the next tile can come during the work on a
    tile. Units that share a block have an instance each, in the one bank that the schedule chooses for all of them."""
    found: list[Scratch] = []
    for nest in statement.walk():
        for ref in nest.block.allocs:
            if ref.location.name != banks.memory or ref.offset is not None:
                continue
            moves = "cached" in ref.tags or _is_passed_on(ref, nest.block)
            buffers = depth if moves and nest.block.points > 1 else 1
            copies = buffers * buffer_instances(nest)
            path = nest.path[len(statement.path) :]
            found.append(Scratch(path, ref.name, banks.aligned(ref.bytes) * copies, buffers, copies))
    return tuple(found)


def _is_passed_on(ref: Refinement, block: Block) -> bool:
    """Whether blocks inside on different units use an allocation."""
    users = (inner for inner in block.blocks if any(view.source == ref.name for view in inner.refinements))
    return len({inner.location for inner in users}) > 1


def _compact_bytes(ref: Refinement) -> int:
    return ref.elements * ref.dtype.bytes


def is_tiled(statement: Nest, depth: int) -> bool:
    """Whether the statement is a block of tiles that can stream through `depth` buffers: it holds a block and moves
    views by its own indices. Through one buffer units with a tile each cannot."""
    if statement.block.points == 1 or not any(True for _ in statement.block.blocks):
        return False
    return depth > 1 or all(number.names().isdisjoint(statement.own) for number in unit_numbers(statement))


def stream_instances(statement: Nest, depth: int) -> int:
    """The instances of each stream through `depth` buffers of a block of tiles."""
    return buffer_instances(statement.with_block(replace(statement.block, pipeline_depth=depth)))


def tiled_to_fit(block: Block, banks: Banks, copies: int, least: int) -> Block | None:
    """A block without blocks inside, in `least` or more tiles, where it has so many points, such that `copies` of each
    view of a tile fit into the empty banks; None when the views of single points do not fit. Halves, again and again,
    the tile of the index that saves most; the first among equals."""
    ranges = {index.name: index.range for index in block.iterated}
    sizes = ranges
    while True:
        tiles = math.prod(-(-ranges[name] // size) for name, size in sizes.items())
        if tiles > 1 and tiles >= min(least, block.points):
            trial = banks.copy()
            wanted = sorted((banks.aligned(size) * copies for size in tile_bytes(block, sizes)), reverse=True)
            if all(trial.allocate(size, banks.numbers) is not None for size in wanted):
                return tile_block(block, sizes, inner_set=["streamed_tile"])
        options = {name: sum(tile_bytes(block, _halved(sizes, name))) for name in sizes if sizes[name] > 1}
        if not options:
            return None
        sizes = _halved(sizes, min(options, key=lambda name: options[name]))


def tile_bytes(block: Block, sizes: Mapping[str, int]) -> list[int]:
    """The bytes of each view of a tile of `block`, as `tile_block` makes them, mostly without making the tile."""
    extents = {index.name: 0 if index.is_passed else sizes[index.name] - 1 for index in block.indices}
    result: list[int] = []
    for ref in block.refinements:
        if ref.is_alloc:
            continue
        elements = 1
        for access, dim in zip(ref.access, ref.dims, strict=True):
            moved = 0
            for atom, coefficient in access.terms:
                if not isinstance(atom, str):  # a floor or a remainder, of indices of both blocks perhaps
                    return [_compact_bytes(view) for view in tile_block(block, sizes).refinements]
                moved += abs(coefficient) * extents[atom]
            elements *= moved + dim.size
        result.append(elements * ref.dtype.bytes)
    return result


def _halved(sizes: Mapping[str, int], name: str) -> dict[str, int]:
    return {**sizes, name: -(-sizes[name] // 2)}
