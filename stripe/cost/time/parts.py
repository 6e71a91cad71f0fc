"""Cycles of a block on several units of one name, which share the buses between them and a memory."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from stripe.cost.counts.tiles import Floats, TileFootprint
from stripe.cost.time.lanes import TileLanes, columns_of, find_lanes
from stripe.cost.time.machine import Machine
from stripe.cost.time.stencils import Match
from stripe.cost.time.tile_moves import find_operands
from stripe.cost.time.tile_unit import TileUnit, nest_operations, unit_cycles
from stripe.cost.time.tiles import TileTimes
from stripe.hw.schema import HardwareModel
from stripe.ir import Block


class PartTimes:
    """Cycles of a block on units of one name, on operands in one memory: in parts, or by the uses of a stencil."""

    def __init__(self, block: Block, hardware: HardwareModel, name: str, memory: str) -> None:
        unit = hardware.exec_unit(name)
        cycles, missing = unit_cycles(unit, nest_operations(block))
        self._block = block
        tiles = TileUnit(name, cycles, 0.0, 1, missing, unit.array)
        views = [TileFootprint(block, ref) for ref in block.refinements if not ref.is_alloc]
        operands = find_operands(Machine.of(hardware), views, memory, name)
        self._unit = unit
        self._times = partial(TileTimes, block, (), tiles, 1, operands)

    def of_parts(self, sizes: Sequence[Sequence[int]], parts: Sequence[int]) -> list[float]:
        """The times of parts of these sizes along all iterated indices, so many of which run at the same time."""
        rows = np.array(sizes, dtype=np.int64)
        times = self._times(find_lanes(self._block, self._unit))
        return _digits(times.compute(rows, rows, np.array(parts, dtype=np.float64)))

    def of_matches(self, matches: Sequence[Match], parallel: int) -> list[float]:
        """The times of uses of stencils on each of `parallel` units, each of which has a block like this one."""
        whole = np.array([[index.range for index in self._block.iterated]], dtype=np.int64)
        columns = columns_of(self._block)
        lanes = [TileLanes(columns, match) for match in matches]
        kinds = {each.key: each for each in lanes}
        cycles = _digits(self._times(list(kinds.values())).by_lanes(whole, parallel)[:, 0])
        known = dict(zip(kinds, cycles, strict=True))
        return [known[each.key] for each in lanes]


def _digits(values: Floats) -> list[float]:
    """To 9 digits, so that equal times are equal."""
    return [float(f"{value:.9g}") for value in values.tolist()]
