"""Independent check of a timetable: no bus and no memory carries more in a time than its wires and ports can."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from stripe.hw.schema import HardwareModel
from stripe.ir import Diagnostic


@dataclass(frozen=True, slots=True)
class TimedTransfer:
    """Bytes that move between two times, in cycles, over `buses` (their numbers in the model) and through the ports of
    `memories` (`NAME[number]`, as often as each is read or written)."""

    name: str
    start: float
    end: float
    bytes: float
    buses: tuple[int, ...]
    memories: tuple[str, ...]


def check_traffic(traffic: Sequence[TimedTransfer], hardware: HardwareModel) -> list[Diagnostic]:
    """The stretches of a timetable in which a bus or the ports of a memory are overloaded.

    Concurrent transfers share the bytes of each cycle. A feasible sharing exists exactly when in each stretch of time
    the bytes that must move within it are no more than the bus can carry; a message tells the worst stretch.
    """
    found: list[Diagnostic] = []
    for number, bus in enumerate(hardware.buses):
        loads = [(t, t.bytes * t.buses.count(number)) for t in traffic if number in t.buses]
        found += _check_bandwidth(f"bus {bus.name or number}", loads, bus.bytes_per_cycle)
    for memory in dict.fromkeys(memory for t in traffic for memory in t.memories):
        unit = hardware.mem_units[memory.partition("[")[0]]
        if unit.port_bytes is not None:
            loads = [(t, t.bytes * t.memories.count(memory)) for t in traffic if memory in t.memories]
            width = unit.banks * unit.ports * unit.port_bytes
            found += _check_bandwidth(f"the ports of {memory}", loads, width)
    return found


def _check_bandwidth(
    what: str, loads: Sequence[tuple[TimedTransfer, float]], bytes_per_cycle: float
) -> Iterator[Diagnostic]:
    by_end = sorted(loads, key=lambda load: load[0].end)
    worst, stretch, needed = _ROUNDING, (0.0, 0.0, ""), 0.0
    for start in {t.start for t, _ in loads}:
        moved = 0.0
        for t, size in by_end:
            if t.start < start:
                continue
            moved += size
            late = moved / bytes_per_cycle - (t.end - start)
            if late > worst * max(1.0, t.end - start):
                worst, stretch, needed = late / max(1.0, t.end - start), (start, t.end, t.name), moved
    if needed:
        start, end, name = stretch
        room = bytes_per_cycle * (end - start)
        message = f"{what} would move {needed:.0f} bytes from cycle {start:.0f} to {end:.0f}, and can move {room:.0f}"
        yield Diagnostic(message, (0,), name, "let some of it start later")


_ROUNDING = 1e-6
"""Rounding of times: a delay below this part of a stretch is none."""
