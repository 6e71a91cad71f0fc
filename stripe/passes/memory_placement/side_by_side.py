"""Buffers of points that run at one time, on units that work side by side: their instances, and pairs that meet."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, takewhile

from stripe.hw.schema import HardwareModel
from stripe.ir import Affine, Block, LiveRange, Nest, Path, buffer_instances, unit_numbers
from stripe.ir.frozen import replace


@dataclass(frozen=True)
class SideBySide:
    """The nests of the buffers to place; for them and the blocks around them the numbers of units that tell points
    apart. Each unit has `registers` of its own."""

    nests: dict[Path, Nest]
    numbers: dict[Path, frozenset[Affine]]
    registers: frozenset[str]

    @staticmethod
    def of(entry: Block, members: Sequence[LiveRange], hardware: HardwareModel | None) -> SideBySide:
        """The nests of `members`, allocations of the program `entry`."""
        around = {live.path[:depth] for live in members for depth in range(1, len(live.path) + 1)}
        nests = {nest.path: nest for nest in Nest.root(entry).walk() if nest.path in around}
        registers = hardware.register_files - hardware.mem_units.keys() if hardware else ()
        return SideBySide(
            nests, {path: unit_numbers(nest) for path, nest in nests.items()}, frozenset(registers)
        )

    def instantiated(self, live: LiveRange) -> LiveRange:
        """The live range with a copy of the buffer for each unit; a buffer with an address has its copies."""
        count = self._instances(live) if live.ref.offset is None and self._is_shared(live) else 1
        return live if count == 1 else replace(live, ref=replace(live.ref, copies=live.ref.copies * count))

    def pairs(self, members: Sequence[LiveRange]) -> Iterator[tuple[int, int]]:
        """The numbers of buffers that points on different units use at one time. Of two buffers of one block that each
        unit has in a memory of its own, none meets that of another unit.
        """
        spread = [n for n, live in enumerate(members) if self._is_shared(live) and self._is_spread(live)]
        for first, second in combinations(spread, 2):
            one, other = members[first], members[second]
            same = one.path == other.path and one.ref.location == other.ref.location
            if self._share_work(one.path, other.path) and not (same and self._instances(one) == 1):
                yield first, second

    def _is_shared(self, live: LiveRange) -> bool:
        return live.ref.location.name not in self.registers

    def _instances(self, live: LiveRange) -> int:
        return buffer_instances(self.nests[live.path], live.ref) if self.numbers[live.path] else 1

    def _is_spread(self, live: LiveRange) -> bool:
        """Whether units share a block around the buffer."""
        return any(self.numbers[live.path[:depth]] for depth in range(1, len(live.path) + 1))

    def _share_work(self, one: Path, other: Path) -> bool:
        """Whether units share a block around the blocks at both paths."""
        depth = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))
        return bool(self.numbers[one[:depth]])
