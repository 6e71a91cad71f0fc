"""The search of the pass `subgroup` for the indices that run over lanes and the tile of each lane."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod

from stripe.hw.schema import MemUnit
from stripe.ir import Block, Intrinsic, Refinement, indices_of, step
from stripe.ir.factors import divisors
from stripe.rewrite.refusal import Refusal

MOST_STATEMENTS = 1024
"""Intrinsics and stores at most that a lane runs for a tile."""


@dataclass(frozen=True, slots=True)
class LaneMachine:
    """Threads in lockstep with their registers, the memory of the tensors, and the cache before it."""

    lanes: int
    register_bytes: int
    memory: MemUnit
    cache: MemUnit


@dataclass(frozen=True, slots=True)
class LaneView:
    """A view: elements by which a step of each index moves it, and by index and dimension the coefficients."""

    name: str
    bytes: int
    is_output: bool
    steps: Mapping[str, int]
    coefficients: tuple[Mapping[str, int], ...]
    contiguous: int | None

    @staticmethod
    def of(ref: Refinement) -> LaneView:
        """A view whose access is linear in the block's own indices."""
        coefficients = tuple(
            {name: affine.coeff(name) for name in sorted(affine.names())} for affine in ref.access
        )
        moved = sorted(indices_of(ref.access))
        steps = {name: step(ref, name) or 0 for name in moved}
        contiguous = next((dim for dim, stride in enumerate(ref.strides) if stride == 1), None)
        return LaneView(ref.name, ref.dtype.bytes, ref.dir.writes, steps, coefficients, contiguous)

    def extents(self, tile: Mapping[str, int]) -> list[int]:
        """The box of one tile."""
        return [
            1 + sum(abs(factor) * (tile[name] - 1) for name, factor in table.items())
            for table in self.coefficients
        ]

    def lines(self, tile: Mapping[str, int], width: int) -> int:
        """Cache lines under the box of one tile, its rows beginning at a line."""
        rows, row = 1, 1
        for dim, extent in enumerate(self.extents(tile)):
            if dim == self.contiguous:
                row = extent
            else:
                rows *= extent
        return rows * -(-row * self.bytes // max(width, self.bytes))


@dataclass(frozen=True, slots=True)
class _TileCandidate:
    """Points of each index, which of them run over the lanes, and the index whose lanes are the threads."""

    lanes: int
    tile: Mapping[str, int]
    wide: tuple[str, ...]
    thread: str


@dataclass(frozen=True, slots=True)
class LaneTile(_TileCandidate):
    """A tile with its cost: subgroups, bytes that a lane holds, loads of a subgroup and how many of them miss."""

    groups: int
    lane_bytes: int
    cost: float
    loads: int
    misses: int

    def __str__(self) -> str:
        tile = ", ".join(f"{name}:{size}" for name, size in self.tile.items())
        return (
            f"{self.groups} groups of {self.lanes} lanes along {', '.join(self.wide)}, tile [{tile}], "
            f"{self.lane_bytes} bytes a lane, {self.loads} loads, {self.misses} misses, "
            f"{self.cost:.3g} cycles an operation"
        )


def search(block: Block, machine: LaneMachine) -> LaneTile | Refusal:
    """The cheapest tile whose share of each lane fits into its registers. Ties go to the larger tile, then to names."""
    refusal = _unfit(block)
    if refusal is not None:
        return refusal
    views = [LaneView.of(ref) for ref in block.refinements]
    (output,) = (view for view in views if view.is_output)
    ranges = {index.name: index.range for index in block.iterated}
    statements = sum(isinstance(statement, Intrinsic) for statement in block.statements) + 1
    found: list[LaneTile] = []
    for tile, wide in _tiles(ranges, machine.lanes, MOST_STATEMENTS // statements):
        # the threads run along the one wide index of the output, contiguous there and wherever it occurs
        own = [name for name in wide if output.steps.get(name)]
        if len(own) != 1 or any(view.steps.get(own[0], 0) not in (0, 1) for view in views):
            continue
        # each other wide index has to deal out the elements of some input
        if {lane_index(view.steps, wide, own[0]) for view in views} >= set(wide):
            chosen = _TileCandidate(machine.lanes, tile, wide, own[0])
            found.append(_costed(views, ranges, chosen, machine, statements))
    fitting = [tile for tile in found if tile.lane_bytes <= machine.register_bytes]
    if not fitting:
        lanes = f"{machine.lanes} lanes of {machine.register_bytes} bytes"
        return Refusal(f"no tile of whole divisors fits ({lanes})")
    return min(fitting, key=lambda t: (t.cost, -prod(t.tile.values()), tuple(t.tile.values())))


def _unfit(block: Block) -> Refusal | None:
    """The reason why no subgroup can work on the block; None when one can."""
    if block.constraints:
        return Refusal(f"it has {len(block.constraints)} constraints")
    if block.passed:
        return Refusal(f"index {block.passed[0].name} is passed in")
    if len(block.outputs) != 1:
        return Refusal(f"it has {len(block.outputs)} outputs, not one")
    if block.allocs or any(not a.is_linear for ref in block.refinements for a in ref.access):
        return Refusal("its accesses are not linear, or it has memory of its own")
    return None


def _tiles(
    ranges: Mapping[str, int], lanes: int, most: int
) -> Iterator[tuple[dict[str, int], tuple[str, ...]]]:
    """Every tile of whole divisors with at most `most` points for a lane, and the indices that run over the lanes."""
    states: list[tuple[dict[str, int], tuple[str, ...], int]] = [({}, (), 1)]
    for name, size in ranges.items():
        grown: list[tuple[dict[str, int], tuple[str, ...], int]] = []
        for tile, wide, points in states:
            for divisor in divisors(size):
                if points * divisor <= most:
                    grown.append(({**tile, name: divisor}, wide, points * divisor))
                if size % (divisor * lanes) == 0 and len(wide) < 2:
                    own = points * divisor if not wide else points * divisor * lanes
                    if own <= most:
                        grown.append(({**tile, name: divisor * lanes}, (*wide, name), own))
        states = grown
    return ((tile, wide) for tile, wide, _ in states if wide)


def lane_index(steps: Mapping[str, int], wide: Sequence[str], thread: str) -> str | None:
    """The index that deals out the elements of a view to the lanes: the index of the threads where it moves the view,
    else a wide index that is contiguous in it."""
    if steps.get(thread):
        return thread
    return next((name for name in wide if steps.get(name) == 1), None)


def _elements(view: LaneView, chosen: _TileCandidate) -> int:
    """Elements that one lane holds of the view's tile: its share where they are dealt out, else all of them."""
    total = prod(view.extents(chosen.tile))
    dealt = lane_index(view.steps, chosen.wide, chosen.thread) is not None
    return -(-total // chosen.lanes) if dealt else total


def _costed(
    views: Sequence[LaneView],
    ranges: Mapping[str, int],
    chosen: _TileCandidate,
    machine: LaneMachine,
    statements: int,
) -> LaneTile:
    """The choice with its cost: cycles of waiting for memory for each operation of a lane."""
    (output,) = (view for view in views if view.is_output)
    inputs = [view for view in views if not view.is_output]
    tile = chosen.tile
    summed = [name for name in ranges if not output.steps.get(name)]
    steps = prod(ranges[name] // tile[name] for name in summed)
    whole = {name: ranges[name] if name in summed else size for name, size in tile.items()}
    loads = steps * sum(_elements(o, chosen) for o in inputs) + _elements(output, chosen)
    held = sum(prod(o.extents(whole)) * o.bytes for o in inputs)
    if held <= machine.cache.size:
        lines = sum(o.lines(whole, machine.cache.line_bytes) for o in inputs)
    else:
        lines = steps * sum(o.lines(tile, machine.cache.line_bytes) for o in inputs)
    misses = lines + output.lines(tile, machine.cache.line_bytes)
    hits = max(0, loads - misses)
    operations = steps * prod(tile.values()) * statements / machine.lanes
    cost = (
        misses * machine.memory.read_latency_cycles + hits * machine.cache.read_latency_cycles
    ) / operations
    groups = prod(size // tile[name] for name, size in ranges.items() if name not in summed)
    lane_bytes = sum(_elements(o, chosen) * o.bytes for o in views)
    return LaneTile(chosen.lanes, tile, chosen.wide, chosen.thread, groups, lane_bytes, cost, loads, misses)
