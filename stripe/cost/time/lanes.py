"""The work of a unit on tiles in instructions: the lanes of its stencils, for many kinds and tile sizes at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import prod
from typing import TypeAlias

import numpy as np

from stripe.cost.counts.tiles import Floats, Ints, TileFootprint, product
from stripe.cost.time.stencils import Match, body_of, find_matches
from stripe.hw.schema import ExecUnit
from stripe.ir import Block

_Lanes: TypeAlias = tuple[tuple[int, int], ...]
"""Points of an instruction by column."""


class TileLanes:
    """The work of a unit on tiles in units of one instruction: a use of a stencil, or a whole tile where none matches.

    `columns` are the columns of the block's indices. `sizes` are the points of an instruction along the columns of its
    indices, -1 for all of the tile, and `idle` the lanes of indices of the stencil that no index takes.
    """

    def __init__(self, columns: Mapping[str, int], match: Match | None) -> None:
        self.sizes: dict[int, int] = {}
        self.idle = 1
        self.stencil = match.stencil if match is not None else None
        if match is None:
            self.sizes = dict.fromkeys(columns.values(), -1)
            return
        for name, rules in zip(match.names, match.stencil.idxs, strict=True):
            if name:
                self.sizes[columns[name]] = rules.size
            else:
                self.idle *= max(1, rules.size)

    @property
    def key(self) -> tuple[object, ...]:
        """Equal for lanes of equal cost, such as two indices of a stencil that are given to each other's place."""
        startup = (self.stencil.startup_cost, self.stencil.cycles) if self.stencil is not None else ()
        return tuple(sorted(self.sizes.items())), self.idle, startup


def columns_of(block: Block) -> dict[str, int]:
    """The column of each index in arrays of sizes."""
    return {index.name: column for column, index in enumerate(block.iterated)}


def find_lanes(block: Block, unit: ExecUnit) -> list[TileLanes]:
    """The ways of the unit's stencils to take the work of a block; none where no stencil computes it."""
    body = body_of(block)
    if isinstance(body, str):
        return []
    columns = columns_of(block)
    matches = [match for stencil in unit.stencils for match in find_matches(block, body, stencil)]
    found = list({lanes.key: lanes for lanes in [TileLanes(columns, match) for match in matches]}.values())
    if len(found) < 2:
        return found
    # Where one wastes no fewer lanes and touches each index in no fewer instructions than another, it is never better.
    whole = np.array([[index.range for index in block.iterated]], dtype=np.int64)
    table = Instructions(found, [index.range for index in block.iterated])
    uses = table.by_index(table.uses(whole, whole))[:, :, 0]
    costs = np.column_stack([1 / table.share(whole)[:, 0], uses])
    no_worse = (costs[None, :, :] <= costs[:, None, :]).all(axis=2)
    better = no_worse & (costs[None, :, :] != costs[:, None, :]).any(axis=2)
    return [lanes for lanes, beaten in zip(found, better.any(axis=1).tolist(), strict=True) if not beaten]


class Instructions:
    """The instructions of tiles by kinds of lanes: results have a row for each kind and a column for each candidate.

    Kinds agree along most indices. So numbers that depend on one index and its lanes are computed once for all kinds
    with them: a *pair* of a column and its lanes.
    """

    def __init__(self, kinds: Sequence[TileLanes], ranges: Sequence[int]) -> None:
        self.kinds, self.ranges = tuple(kinds), tuple(ranges)
        pairs: dict[tuple[int, int], int] = {}
        self._numbers = np.array(
            [
                [
                    pairs.setdefault((column, kind.sizes.get(column, 1)), len(pairs))
                    for column in range(len(ranges))
                ]
                for kind in self.kinds
            ],
            dtype=np.int64,
        ).reshape(len(self.kinds), len(ranges))
        self._pairs = tuple(pairs)
        self._partial = [
            (column, lanes, (self._numbers[:, column] == number).nonzero()[0])
            for number, (column, lanes) in enumerate(self._pairs)
            if lanes not in (-1, 1)
        ]
        self._idle = np.array([[1.0 / kind.idle] for kind in self.kinds])
        self._windows: dict[TileFootprint, dict[_Lanes, list[int]]] = {}

    def uses(self, low: Ints, high: Ints) -> Ints:
        """Instructions along the index of each pair in all tiles, at least, for sizes between `low` and `high`."""
        found = np.empty((len(self._pairs), len(high)), dtype=np.int64)
        for row, (column, lanes) in enumerate(self._pairs):
            whole, size = self.ranges[column], high[:, column]
            if lanes == -1:
                found[row] = -(-whole // size)
            elif low is not high:
                found[row] = np.maximum(-(-whole // np.minimum(lanes, size)), -(-whole // size))
            elif lanes == 1:
                found[row] = whole
            else:
                found[row] = whole // size * -(-size // lanes) + -(-(whole % size) // lanes)
        return found

    def by_index(self, uses: Ints) -> Ints:
        """`uses` of each kind and index."""
        return uses[self._numbers]

    def product(self, uses: Ints, columns: Iterable[int]) -> Floats:
        """The product of `uses` of some indices."""
        found = np.ones((len(self.kinds), uses.shape[1]), dtype=np.float64)
        for column in columns:
            found *= uses[self._numbers[:, column]]
        return found

    def share(self, sizes: Ints) -> Floats:
        """The part of the lanes that has work. Never shrinks as a size grows."""
        found = np.repeat(self._idle, len(sizes), axis=1)
        for column, lanes, rows in self._partial:
            found[rows] *= np.minimum(1.0, sizes[:, column] / lanes)
        return found

    def elements(self, footprint: TileFootprint, high: Ints) -> Floats:
        """Elements of a view that one instruction after the other touches, instructions that differ in an index which
        does not move the view counted once."""
        whole = prod(float(self.ranges[column]) for column in footprint.columns)
        found = np.full((len(self.kinds), len(high)), whole)
        if footprint not in self._windows:
            self._windows[footprint] = self._windows_of(footprint)
        for columns, rows in self._windows[footprint].items():
            sizes = np.ones_like(high)
            for column, lanes in columns:
                sizes[:, column] = high[:, column] if lanes == -1 else np.minimum(lanes, high[:, column])
            found[rows] = whole * footprint.elements(sizes) / product(sizes)
        return found

    def _windows_of(self, footprint: TileFootprint) -> dict[_Lanes, list[int]]:
        """The rows in which points of one instruction share elements of a view, by the lanes along its indices."""
        found: dict[_Lanes, list[int]] = {}
        for row, kind in enumerate(self.kinds):
            inside = {column for column, lanes in kind.sizes.items() if lanes != 1}
            if any(len(inside.intersection(dim.columns.values())) > 1 for dim in footprint.dimensions):
                columns = tuple((column, kind.sizes[column]) for column in sorted(inside & footprint.columns))
                found.setdefault(columns, []).append(row)
        return found
