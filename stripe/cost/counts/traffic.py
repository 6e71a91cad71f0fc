"""The counts of one kernel: elements that cross from one memory level to the next."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from stripe.cost.counts.operations import Operations

ARRAY = "array"
"""The name of the execution units as source or sink of data."""


@dataclass(frozen=True)
class Traffic:
    """Elements of an operand that go from one memory to another (or to and from the array): `read` at the source,
    `written` at the sink. The two differ where one read serves several copies."""

    operand: str
    source: str
    sink: str
    read: int
    written: int
    element_bytes: int


@dataclass(frozen=True)
class HeldBuffer:
    """A buffer inside a kernel: memory, elements, bytes of all its copies, and address, if it has one."""

    name: str
    memory: str
    elements: int
    bytes: int
    address: int | None


@dataclass(frozen=True)
class KernelCounts:
    """The counts of one kernel. `steps` are the points in time that its blocks take with all parallel units busy."""

    name: str
    path: tuple[int, ...]
    operations: Operations
    steps: int
    traffic: tuple[Traffic, ...]
    held: tuple[tuple[str, int], ...]
    """Bytes that copies take in each memory, the most at one time."""
    buffers: tuple[HeldBuffer, ...] = ()
    energy_pJ: float | None = None
    compute_pJ: float | None = None
    memory_pJ: tuple[tuple[str, float], ...] = ()
    """Energy of the accesses of each memory."""

    @property
    def macs(self) -> int:
        """Multiply-accumulates: a multiply and the add of its result count as one."""
        return self.operations.mac_count

    def find(self, operand: str, source: str, sink: str) -> Traffic:
        """The row of an operand between two memories; KeyError when there is none."""
        for row in self.traffic:
            if (row.operand, row.source, row.sink) == (operand, source, sink):
                return row
        raise KeyError((operand, source, sink))


def rows_in_order(counts: KernelCounts) -> Iterator[Traffic]:
    """The rows by operand, from the far memories to the array."""
    order = {row.operand: number for number, row in reversed(list(enumerate(counts.traffic)))}
    yield from sorted(counts.traffic, key=lambda row: order[row.operand])
