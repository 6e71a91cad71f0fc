"""The near memories of a schedule: free ranges per bank, taken and given back in program order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

WINDOW = 2
"""Ranges given back lately that are avoided."""


@dataclass(frozen=True, slots=True)
class Place:
    """A range of bytes in one bank."""

    bank: int
    address: int
    bytes: int

    @property
    def end(self) -> int:
        return self.address + self.bytes

    def overlaps(self, other: Place) -> bool:
        return self.bank == other.bank and self.address < other.end and other.address < self.end


@dataclass(slots=True)
class Banks:
    """Banks of equal size. The last `WINDOW` ranges that were given back are taken again only where nothing else is
    free: reusing a range at once would make the new owner wait for the old one.
    """

    count: int
    bytes: int
    alignment: int
    taken: list[Place] = field(default_factory=list["Place"])
    recent: list[Place] = field(default_factory=list["Place"])

    def copy(self) -> Banks:
        return Banks(self.count, self.bytes, self.alignment, list(self.taken), list(self.recent))

    def allocate(self, size: int, banks: Sequence[int]) -> Place | None:
        """A free range in one of `banks`, the emptiest first; None when none is large enough."""
        order = sorted(banks, key=lambda bank: (sum(p.bytes for p in self.taken if p.bank == bank), bank))
        for avoided in (self.recent, []):
            for bank in order:
                address = self._fit(size, bank, avoided)
                if address is not None:
                    place = Place(bank, address, size)
                    self.taken.append(place)
                    return place
            if not self.recent:
                break
        return None

    def _fit(self, size: int, bank: int, avoided: Iterable[Place]) -> int | None:
        """The start of the smallest hole that holds `size` bytes."""
        busy = sorted((p.address, p.end) for p in (*self.taken, *avoided) if p.bank == bank)
        best: tuple[int, int] | None = None
        start = 0
        for low, high in (*busy, (self.bytes, self.bytes)):
            address = -(-start // self.alignment) * self.alignment
            if address + size <= low and (best is None or low - address < best[0]):
                best = (low - address, address)
            start = max(start, high)
        return best[1] if best is not None else None

    def release(self, place: Place) -> None:
        self.taken.remove(place)
        self.recent = [*self.recent, place][-WINDOW:]

    @property
    def capacity(self) -> int:
        return self.count * self.bytes
