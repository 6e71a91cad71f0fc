"""Buffers of points that run at one time, on units that work side by side: their instances, and pairs that meet."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, takewhile

from stripe.hw.schema import HardwareModel
from stripe.ir import Affine, Block, LiveRange, Nest, Path, instances, unit_numbers
from stripe.ir.frozen import replace


@dataclass(frozen=True)
class SideBySide:
    """The nests of the buffers to place, with the numbers of units that tell their points apart. Each unit has
    `registers` of its own."""

    nests: dict[Path, Nest]
    numbers: dict[Path, frozenset[Affine]]
    registers: frozenset[str]

    @staticmethod
    def of(entry: Block, members: Sequence[LiveRange], hardware: HardwareModel | None) -> SideBySide:
        """The nests of `members`, allocations of the program `entry`."""
        homes = {live.path for live in members}
        nests = {nest.path: nest for nest in Nest.root(entry).walk() if nest.path in homes}
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
        spread = [n for n, live in enumerate(members) if self.numbers[live.path] and self._is_shared(live)]
        for first, second in combinations(spread, 2):
            one, other = members[first], members[second]
            alike = one.path == other.path and one.ref.location == other.ref.location
            if not (alike and self._instances(one) == 1) and self._share_work(one.path, other.path):
                yield first, second

    def _is_shared(self, live: LiveRange) -> bool:
        return live.ref.location.name not in self.registers

    def _instances(self, live: LiveRange) -> int:
        return instances(self.nests[live.path], live.ref) if self.numbers[live.path] else 1

    def _share_work(self, one: Path, other: Path) -> bool:
        """Whether units share a block around the blocks at both paths."""
        depth = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))
        around = set(self.nests[one].prefix(depth - 1))
        return any(number.names() & around for number in self.numbers[one] | self.numbers[other])
