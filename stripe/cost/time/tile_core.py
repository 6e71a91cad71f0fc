"""Cycles that the tiles of a block take on the core of a processor, for many tile sizes at once.

The rules are those of `stripe.cost.time.cores` for results that registers hold over the whole sum, with a first cache
that has nothing of a tile's operands yet. Tiles at the end of a range are smaller, and counted as they are.
"""

from __future__ import annotations

from itertools import product as combinations
from math import gcd, inf

import numpy as np

from stripe.cost.counts.operations import point_operations
from stripe.cost.counts.tiles import Floats, Ints, TileFootprint, product
from stripe.cost.time.machine import Machine
from stripe.cost.time.rates import missing_rates, rate_cycles
from stripe.hw.graph import parse_unit
from stripe.hw.schema import HardwareModel, MemUnit
from stripe.ir import Block, step, vectors_along
from stripe.ir.lanes import SUM_COPIES

OPERAND_WEIGHT = 0.1
"""Weight of the cycles of operands: caches and loads are shared with more traffic than the rules know."""


class CoreTiles:
    """Cycles of all tiles of a block whose results lie along the index in column `lane`."""

    def __init__(self, block: Block, machine: Machine, name: str, lane: int) -> None:
        unit = machine.model.exec_unit(name)
        self.unit, self.lane = unit, lane
        self.ranges = [index.range for index in block.iterated]
        self.outputs = [TileFootprint(block, ref) for ref in block.outputs]
        self.inputs = [TileFootprint(block, ref) for ref in block.inputs]
        results = {column for footprint in self.outputs for column in footprint.columns}
        self.results = sorted(results)
        self.summed = [column for column in range(len(self.ranges)) if column not in results]
        width = max(footprint.ref.dtype.bytes for footprint in self.outputs)
        self.lanes = max(1, (unit.vector_bytes or width) // width)
        self.of_vector = rate_cycles(point_operations(block), name, unit) * self.lanes
        self.loads_per_cycle = unit.loads_per_cycle or 1.0
        self.near, self.below, self.cache = _first_memory(machine, f"{name}[0]")
        self.names = [index.name for index in block.iterated]
        self._pieces = np.array(
            [vectors_along(size, self.lanes) for size in range(2 * self.lanes)], dtype=np.int64
        )

    def cycles(self, low: Ints, high: Ints) -> Floats:
        """Cycles of all tiles; a lower bound for sizes between `low` and `high`."""
        if low is not high:
            points = float(np.prod(np.asarray(self.ranges, dtype=np.float64)))
            return np.full(len(high), points / self.lanes * self.of_vector)
        total = np.zeros(len(high), dtype=np.float64)
        ranges = np.asarray(self.ranges, dtype=np.int64)
        whole, rest = ranges // high, ranges % high
        for ends in combinations((False, True), repeat=len(self.results)):
            sizes, counts = high.copy(), np.ones(len(high), dtype=np.float64)
            for column, is_rest in zip(self.results, ends, strict=True):
                counts *= (rest[:, column] > 0) if is_rest else whole[:, column]
                sizes[:, column] = np.maximum(1, rest[:, column]) if is_rest else high[:, column]
            if counts.any():
                total += counts * self._tile(sizes)
        return total * product(-(-ranges // high), self.summed)

    def _tile(self, sizes: Ints) -> Floats:
        """Cycles of one tile of these sizes."""
        along = sizes[:, self.lane]
        before = np.maximum(along // self.lanes - 1, 0)  # `_pieces` are of the last whole vector and the rest
        pieces = before + self._pieces[along - before * self.lanes]
        others = [column for column in self.results if column != self.lane]
        results = product(sizes, others) * pieces
        steps = product(sizes, self.summed)
        short = results * steps <= SUM_COPIES
        once = sizes.copy()
        once[:, self.lane] = 1
        single = once.copy()
        single[:, self.summed] = 1
        loads, loaded, filled = (np.zeros(len(sizes)) for _ in range(3))
        needed: list[Floats] = []
        for footprint in self.inputs:
            is_vector = self.lane in footprint.columns
            number = np.where(short, footprint.elements(once) / steps, footprint.elements(single))
            vectors: Floats = number * pieces.astype(np.float64) if is_vector else number.astype(np.float64)
            width = footprint.ref.dtype.bytes
            needed.append(vectors)
            loads += vectors
            loaded += number * (along if is_vector else 1) * width
            filled += footprint.elements(sizes) * width
            if not is_vector and not short.all():
                filled += np.where(short, 0.0, steps * self._conflicts(footprint, sizes))
        held = np.sort(np.reshape(needed, (-1, len(sizes))), axis=0)[:-1].sum(
            axis=0
        )  # the last is loaded as it is used
        values = results + held + 1
        spilled = np.where(short, 0.0, np.maximum(0.0, values - (self.unit.registers or inf)))
        loaded += spilled * (self.unit.vector_bytes or 0)
        loading = np.maximum((loads + spilled) / self.loads_per_cycle, loaded / self.near)
        waiting = np.where(short, 0.0, self.unit.accumulate_latency_cycles)
        core = steps * np.maximum(np.maximum(results * self.of_vector, waiting), loading)
        stored = results * self.lanes * self.outputs[0].ref.dtype.bytes / self.near
        operands = steps * loading + filled / self.below
        return np.maximum(core, operands) + OPERAND_WEIGHT * operands + stored

    def _conflicts(self, footprint: TileFootprint, sizes: Ints) -> Floats:
        """Bytes that each step of the sum fetches again, because the lines of the results share sets of the first
        cache, of which as many stay as it has ways."""
        if self.cache is None or not self.cache.ways:
            return np.zeros(len(sizes))
        line, period = self.cache.line_bytes or 1, self.cache.size // self.cache.ways
        lines, sets = np.ones(len(sizes)), np.ones(len(sizes))
        for column in self.results:
            by = step(footprint.ref, self.names[column])
            if by and abs(by) * footprint.ref.dtype.bytes >= line:
                lines *= sizes[:, column]
                places = period // gcd(abs(by) * footprint.ref.dtype.bytes, period)
                sets *= np.minimum(sizes[:, column], places)
        held = self.cache.ways * np.minimum(sets, period // line)
        return np.maximum(0.0, lines - held) * line


def core_tiles(block: Block, hardware: HardwareModel) -> CoreTiles | None:
    """The tiles of a block on the first core of the machine that computes it; None where the machine has none, or where
    no index moves the results by one element and each operand by one or none."""
    operations = point_operations(block)
    lane = _lane(block)
    names = [
        name
        for name, unit in hardware.exec_units.items()
        if unit.loads_per_cycle is not None and not missing_rates(operations, unit)
    ]
    return CoreTiles(block, Machine.of(hardware), names[0], lane) if names and lane is not None else None


def _lane(block: Block) -> int | None:
    """The column of the index that vectors of results run along. An index that a constraint tests is left out: at
    the rim of a window its vectors are cut, which the cycles of a tile do not have."""
    tested = {name for constraint in block.constraints for name in constraint.affine.names()}
    outputs, inputs = block.outputs, [ref for ref in block.refinements if ref.dir.reads]
    for column, index in reversed(list(enumerate(block.iterated))):
        moves = all(step(ref, index.name) == 1 for ref in outputs)
        free = index.range > 1 and index.name not in tested
        if outputs and moves and free and all(step(ref, index.name) in (0, 1) for ref in inputs):
            return column
    return None


def _first_memory(machine: Machine, unit: str) -> tuple[float, float, MemUnit | None]:
    """Bytes in a cycle from the first cache or memory to a unit, and into that cache; the cache itself."""
    hops = machine.graph.connection(machine.main_memory, unit).hops
    *before, last = hops
    memory = machine.model.mem_units.get(parse_unit(last.source)[0])
    if not before or memory is None or not memory.is_cache:
        return last.bus.bytes_per_cycle, inf, None
    return last.bus.bytes_per_cycle, before[-1].bus.bytes_per_cycle, memory
