"""Stages of a loop over tiles that wait for one another because their buffers lie in the same bytes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from stripe.cost.time.pieces import Loop, Piece
from stripe.ir import Location, Path, Refinement, buffer_instances, has_addresses


class MemoryWaits(NamedTuple):
    """The stages that a stage waits for: earlier ones of its tile (`deps`), those of the tile that had its buffers
    before (`shares`), and of the tile before, where that is another one (`turns`)."""

    deps: tuple[int, ...]
    shares: tuple[int, ...]
    turns: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _StageBuffer:
    """A buffer that a stage uses: of the loop, with `copies` for tiles, or of a block inside of the stage: none."""

    home: Path
    ref: Refinement
    location: Location
    copies: int

    def overlaps(self, other: _StageBuffer) -> bool:
        """Whether it is another buffer and shares bytes with it."""
        one, two = self.ref, other.ref
        if (self.home, one.name) == (other.home, two.name) or one.offset is None or two.offset is None:
            return False
        meets = one.offset < two.offset + two.reserved_bytes
        return meets and two.offset < one.offset + one.reserved_bytes and self._shares_unit(other)

    def _shares_unit(self, other: _StageBuffer) -> bool:
        if self.location == other.location:
            return True
        if self.location.name != other.location.name:
            return False
        banked = self.ref.bank_dim is not None or other.ref.bank_dim is not None
        levels = zip(reversed(self.location.devices), reversed(other.location.devices), strict=False)
        numbers = [pair for one, two in levels for pair in zip(one.units, two.units, strict=False)]
        return banked or not any((a - b).is_constant and a != b for a, b in numbers)

    def distance(self, other: _StageBuffer) -> int:
        """The number of tiles after which it has the bytes of the other one, or its own; 0 where it never has."""
        one, two = self.ref, other.ref
        if (self.home, one.name) == (other.home, two.name):
            return self.copies
        if not self.overlaps(other):
            return 0
        same = (one.offset, one.bytes, one.copies, one.pitch) == (
            two.offset,
            two.bytes,
            two.copies,
            two.pitch,
        )
        return self.copies if same and self.home == other.home and self.copies else 1


def memory_waits(loop: Loop, depth: int) -> Iterator[MemoryWaits]:
    """For each piece of a loop with `depth` tiles in flight the pieces that it waits for because of a buffer which the
    loop allocates, or a block inside: its own buffer, or another one in the same bytes."""
    used = [list(_used(loop, piece, depth)) for piece in loop.pieces]
    for number, mine in enumerate(used):
        deps = [n for n in range(number) if any(one.overlaps(other) for one in used[n] for other in mine)]
        distances = [[one.distance(other) for one in theirs for other in mine] for theirs in used]
        turns = [n for n, found in enumerate(distances) if any(0 < tiles < depth for tiles in found)]
        shares = [n for n, found in enumerate(distances) if n not in turns and any(found)]
        yield MemoryWaits(tuple(deps), tuple(shares), tuple(turns))


def _used(loop: Loop, piece: Piece, depth: int) -> Iterator[_StageBuffer]:
    views = {ref.source for ref in piece.nest.block.refinements}
    for ref in loop.nest.block.allocs:
        if ref.name in views:
            copies = depth if ref.offset is None else max(1, ref.copies // buffer_instances(loop.nest, ref))
            yield _StageBuffer(loop.nest.path, ref, ref.location.subs(loop.nest.local), copies)
    if has_addresses(piece.nest.block):
        for nest in piece.nest.walk():
            for ref in nest.block.allocs:
                if ref.offset is not None:
                    yield _StageBuffer(nest.path, ref, ref.location.subs(nest.local), 0)
