"""What the statements of a block to schedule need: their operands, sizes, and tiles to stream by."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from stripe.ir import Block, Path, Refinement, Statement, reads_of, walk, with_statements, writes_of
from stripe.passes.schedule.banks import Banks
from stripe.rewrite.tile import tile_block


@dataclass(frozen=True, slots=True)
class Operand:
    """A buffer that a statement uses: whole, and how much of it one tile needs."""

    name: str
    reads: bool
    writes: bool
    bytes: int
    tile_bytes: int
    visits: int

    @property
    def streamed_bytes(self) -> int:
        """Bytes that streaming moves: each tile fetches or stores its box anew."""
        return self.tile_bytes * self.visits * (int(self.reads) + int(self.writes))


def operands_of(block: Block, number: int) -> tuple[Operand, ...]:
    """The operands of a statement of `block`, in the order of its views, each once."""
    statement = block.statements[number]
    reads, writes = set(reads_of(statement)), set(writes_of(statement))
    result: list[Operand] = []
    for name in dict.fromkeys((*reads_of(statement), *writes_of(statement))):
        whole = block.ref(name)
        tile, visits = whole.bytes, 1
        if isinstance(statement, Block):
            tile = sum(compact_bytes(ref) for ref in statement.refinements if ref.source == name)
            visits = statement.points
        result.append(Operand(name, name in reads, name in writes, compact_bytes(whole), tile, visits))
    return tuple(result)


@dataclass(frozen=True, slots=True)
class Scratch:
    """A buffer in the near memory that a block allocates for itself. `path` leads from the statement to its block;
    `bytes` counts all `buffers` copies that the pipeline of a block of tiles keeps of it.
    """

    path: Path
    name: str
    bytes: int
    buffers: int


def scratch_of(statement: Statement, memory: str, depth: int, alignment: int) -> tuple[Scratch, ...]:
    """What a statement allocates in the memory of that name and has no address yet. A copy that a transfer fills is
    there `depth` times, so that the next tile can come while this one is worked on.
    """
    if not isinstance(statement, Block):
        return ()
    found: list[Scratch] = []
    for path, block in walk(statement, ()):
        for ref in block.allocs:
            if ref.location.name != memory or "placed" in ref.tags:
                continue
            buffers = depth if "cached" in ref.tags and block.points > 1 else 1
            size = -(-ref.bytes // alignment) * alignment
            found.append(Scratch(path, ref.name, size * buffers, buffers))
    return tuple(found)


def compact_bytes(ref: Refinement) -> int:
    """Bytes of a compact copy."""
    return ref.elements * ref.dtype.bytes


def is_tiled(statement: Statement) -> bool:
    """Whether the statement is a block of tiles: one that holds a block and moves views by its own indices."""
    return isinstance(statement, Block) and any(True for _ in statement.blocks) and statement.points > 1


def tiled_to_fit(block: Block, banks: Banks, depth: int) -> Block | None:
    """A block without blocks inside, in two or more tiles such that `depth` buffers for each view of a tile fit into
    the empty banks; None when even single points do not. Halves, again and again, the tile of the index that saves
    most; the first among equals.
    """
    sizes = {index.name: index.range for index in block.iterated}
    while True:
        tiled = tile_block(block, sizes)
        if tiled.points > 1 and _fits(tiled, banks, depth):
            inner = next(iter(tiled.blocks))
            return with_statements(tiled, [replace(inner, tags=inner.tags.add("streamed_tile"))])
        options = {
            name: _view_bytes(tile_block(block, _halved(sizes, name))) for name in sizes if sizes[name] > 1
        }
        if not options:
            return None
        sizes = _halved(sizes, min(options, key=lambda name: options[name]))


def _fits(tiled: Block, banks: Banks, depth: int) -> bool:
    trial = banks.copy()
    align = banks.alignment
    views = [ref for ref in tiled.refinements if not ref.is_alloc]
    sizes = sorted(
        (-(-ref.elements * ref.dtype.bytes // align) * align * depth for ref in views), reverse=True
    )
    return all(trial.allocate(size, range(banks.count)) is not None for size in sizes)


def _halved(sizes: Mapping[str, int], name: str) -> dict[str, int]:
    return {**sizes, name: -(-sizes[name] // 2)}


def _view_bytes(block: Block) -> int:
    return sum(ref.elements * ref.dtype.bytes for ref in block.refinements if not ref.is_alloc)
