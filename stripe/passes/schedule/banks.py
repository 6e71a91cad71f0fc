"""The near memories of a schedule: free ranges per bank, taken and given back in program order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from stripe.ir import Location
from stripe.ir.frozen import replace

WINDOWS = (6, 3, 0)
"""Numbers of ranges, given back last, that an allocation avoids; the first that leaves room is taken. A statement
mostly has three ranges, so that they are of the last two statements, or of the last."""


@dataclass(frozen=True, slots=True)
class BankRange:
    """A range of bytes in one bank of a memory."""

    memory: str
    bank: int
    address: int
    bytes: int

    @property
    def end(self) -> int:
        return self.address + self.bytes

    @property
    def location(self) -> Location:
        return Location.of(self.memory, self.bank)

    def overlaps(self, other: BankRange) -> bool:
        return self.bank == other.bank and self.address < other.end and other.address < self.end


@dataclass(slots=True)
class Banks:
    """Banks of equal size. Ranges that were given back lately are taken again only where nothing else is free, the
    oldest first: the new owner of a range has to wait for the old one. Ranges of several `users` at work at one time
    are not taken again: one user may need them while another one is far ahead.
    """

    memory: str
    count: int
    bytes: int
    alignment: int
    first: int = 0
    users: int = 1
    taken: list[BankRange] = field(default_factory=list[BankRange])
    recent: list[BankRange] = field(default_factory=list[BankRange])

    def copy(self) -> Banks:
        return replace(self, taken=list(self.taken), recent=list(self.recent))

    def aligned(self, size: int) -> int:
        """`size` rounded up to the alignment."""
        return -(-size // self.alignment) * self.alignment

    def reserved(self, size: int) -> int:
        """The bytes of a buffer of `size`: one for each of the users, each aligned."""
        return self.aligned(size) * self.users if self.users > 1 else size

    def allocate(self, size: int, banks: Sequence[int]) -> BankRange | None:
        """A free range in one of `banks`, the emptiest first; None when none is large enough."""
        order = sorted(banks, key=lambda bank: (sum(p.bytes for p in self.taken if p.bank == bank), bank))
        for window in dict.fromkeys(min(window, len(self.recent)) for window in WINDOWS):
            avoided = self.recent[len(self.recent) - window :]
            for bank in order:
                address = self._fit(size, bank, avoided)
                if address is not None:
                    found = BankRange(self.memory, bank, address, size)
                    self.taken.append(found)
                    return found
        return None

    def _fit(self, size: int, bank: int, avoided: Iterable[BankRange]) -> int | None:
        """The start of the smallest hole that holds `size` bytes."""
        busy = sorted((p.address, p.end) for p in (*self.taken, *avoided) if p.bank == bank)
        best: tuple[int, int] | None = None
        start = 0
        for low, high in (*busy, (self.bytes, self.bytes)):
            address = self.aligned(start)
            if address + size <= low and (best is None or low - address < best[0]):
                best = (low - address, address)
            start = max(start, high)
        return best[1] if best is not None else None

    def release(self, range_: BankRange) -> None:
        if self.users > 1:
            return
        self.taken.remove(range_)
        self.recent = [*self.recent, range_][-WINDOWS[0] :]

    @property
    def numbers(self) -> range:
        """The numbers of the banks among the units of the memory."""
        return range(self.first, self.first + self.count)

    @property
    def capacity(self) -> int:
        return self.count * self.bytes
