"""The tables of simulations and counts, as `stripe-sim` prints them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from stripe.config.model import Scalar
from stripe.cost.report.schema import CountsJson, KernelCountsJson, SimulationJson, SourceJson
from stripe.cost.report.table import Table

_MOST_ROWS = 60
_MOST_UNITS = 16


def simulation_tables(report: SimulationJson) -> list[Table]:
    """The tables of a simulation, with rows or without."""
    parts = (_summary, _statements, _units, _buses, _memories, _energy)
    return [part(report) for part in parts]


def simulation_notes(report: SimulationJson) -> list[str]:
    """The lines under the tables."""
    return [*(f"note: {note}" for note in report.notes), *unverified_notes(report.unverified)]


def counts_tables(report: CountsJson) -> list[Table]:
    """The tables of the counts, two for each kernel."""
    return [table for kernel in report.kernels for table in _kernel(kernel, report.halo)]


def _summary(report: SimulationJson) -> Table:
    rate = report.operations / report.latency_us / 1e3 if report.latency_us else 0.0
    # 1 pJ in 1 us is 1 uW.
    power = f"{number(report.energy_pJ / report.latency_us / 1000)} mW" if report.latency_us else ""
    rows = (
        ("inference latency", f"{number(report.latency_cycles)} cycles", f"{number(report.latency_us)} us"),
        ("operations", whole(report.operations), f"{number(rate)} Gop/s"),
        ("multiply-accumulates", whole(report.macs), ""),
        ("energy", energy(report.energy_pJ), power),
        *([("area", f"{number(report.area_mm2)} mm²", "")] if report.area_mm2 is not None else ()),
    )
    return Table(f"{report.input} on {report.machine}, {report.clock_mhz:g} MHz", ("", "", ""), rows)


def _statements(report: SimulationJson) -> Table:
    longest = sorted(report.statements, key=lambda s: (-s.cycles, s.number))[:_MOST_ROWS]
    rows = [
        (
            str(s.number), s.name, ", ".join(s.units) if len(s.units) <= 2 else f"{s.units[0]} to {s.units[-1]}",
            number(s.start_cycle), number(s.end_cycle), number(s.cycles), number(s.microseconds),
            percent(s.compute_cycles * s.utilisation, s.cycles), s.bound, _largest(s.stalls, 1), energy(s.energy_pJ),
        )
        for s in sorted(longest, key=lambda s: s.number)
    ]  # fmt: skip
    title = "statements"
    if len(report.statements) > len(rows):
        title = f"the {len(rows)} longest of {len(report.statements)} statements (--json has all)"
    headers = (
        "", "name", "units", "start", "end", "cycles", "us", "useful", "bound by", "longest stall", "energy",
    )  # fmt: skip
    return Table(title, headers, tuple(rows), left=3, texts=(8, 9))


def _units(report: SimulationJson) -> Table:
    busy = [unit for unit in report.units if unit.busy_cycles > 0]
    seen = Counter[str]()  # the first units of each name before others
    ranks: dict[str, int] = {}
    for unit in busy:
        name = unit.unit.partition("[")[0]
        ranks[unit.unit] = seen[name]
        seen[name] += 1
    shown = {unit.unit for unit in sorted(busy, key=lambda unit: ranks[unit.unit])[:_MOST_UNITS]}
    rows = [
        (
            u.unit, u.kind, percent(u.busy_cycles, report.latency_cycles), f"{100 * u.utilisation:.1f} %",
            _largest(u.stalls, 3),
        )
        for u in busy
        if u.unit in shown
    ]  # fmt: skip
    idle = len(report.units) - len(busy)
    hidden = len(busy) - len(rows)
    title = "units" + (f" ({idle} more did nothing)" if idle else "")
    title += f" ({hidden} more alike are in --json)" if hidden else ""
    return Table(title, ("unit", "kind", "busy", "useful", "stalls, cycles"), tuple(rows), left=2, texts=(4,))


def _buses(report: SimulationJson) -> Table:
    rows = [(b.name, whole(b.bytes), percent(b.busy_cycles, report.latency_cycles)) for b in report.buses]
    title = "buses"
    if len(rows) > _MOST_UNITS:
        title = f"the {_MOST_UNITS} busiest of {len(rows)} buses"
        rows = sorted(rows, key=lambda row: -float(row[2].split()[0]))[:_MOST_UNITS]
    return Table(title, ("bus", "bytes", "busy"), tuple(rows))


def _memories(report: SimulationJson) -> Table:
    rows = [
        (
            m.memory, whole(m.read_bytes), whole(m.written_bytes), whole(m.peak_bytes),
            "" if m.placed_bytes is None else whole(m.placed_bytes), whole(m.capacity_bytes),
        )
        for m in report.memories[:_MOST_UNITS]
    ]  # fmt: skip
    hidden = len(report.memories) - len(rows)
    idle = ", ".join(f"{count} of {name}" for name, count in report.idle_memories.items())
    title = "memories, bytes" + (f" ({idle} hold nothing)" if idle else "")
    title += f" ({hidden} more are in --json)" if hidden else ""
    return Table(title, ("memory", "read", "written", "peak", "placed", "size"), tuple(rows))


def _energy(report: SimulationJson) -> Table:
    rows = [
        (name, energy(value), percent(value, report.energy_pJ))
        for name, value in sorted(report.energy.items(), key=lambda item: -item[1])
    ]
    return Table("energy", ("component", "energy", "share"), tuple(rows))


def _kernel(kernel: KernelCountsJson, halo: str) -> list[Table]:
    rows = tuple(
        (t.operand, t.source, t.sink, _array(t.source, t.elements_read), _array(t.sink, t.elements_written))
        for t in kernel.traffic
    )
    facts = [("multiply-accumulates", whole(kernel.macs)), ("steps (ideal cycles)", whole(kernel.steps))]
    facts += [(f"{memory} bytes held", whole(size)) for memory, size in kernel.held_bytes.items()]
    if kernel.energy_pJ is not None:
        facts.append(("energy, pJ", f"{kernel.energy_pJ:,.2f}"))
        facts += [(f"  of {name}", f"{value:,.2f}") for name, value in kernel.memory_pJ.items()]
    held = [
        (b.name, b.memory, whole(b.elements), whole(b.bytes), "" if b.address is None else whole(b.address))
        for b in kernel.buffers
    ]
    buffers = Table("", ("buffer", "memory", "elements", "bytes", "address"), tuple(held), left=2)
    return [
        Table(f"{kernel.name}, halo: {halo}", ("", ""), tuple(facts)),
        *([buffers] if held else ()),
        Table("", ("operand", "from", "to", "elements read", "elements written"), rows, left=3),
    ]


def _array(memory: str, elements: int) -> str:
    """The array itself stores nothing."""
    return "" if memory == "array" else whole(elements)


def unverified_notes(sources: Sequence[SourceJson]) -> list[str]:
    """One line that names the unverified numbers."""
    names = unverified_names(sources)
    return [f"unverified numbers in the hardware model: {', '.join(names)}"] if names else []


def unverified_names(sources: Sequence[SourceJson]) -> list[str]:
    """The unverified numbers as text, first those that contradict their sources; of those without entry the units."""
    parts = [s.path.split(".")[:2] for s in sources if not s.source]
    missing = Counter(".".join(part for part in place if not part.isdigit()) for place in parts)
    names = [
        f"{s.path} is {_plain(s.value)}, its source says {_plain(s.stated)}"
        for s in sources
        if s.stated is not None
    ]
    names += [
        s.path if s.value is None else f"{s.path} = {_plain(s.value)}"
        for s in sources
        if s.source and s.stated is None
    ]
    return names + [f"{place} ({count} without a source)" for place, count in missing.items()]


def _plain(value: Scalar | None) -> str:
    """A value of a model, whole floats without a point."""
    return f"{value:.15g}" if isinstance(value, float) else str(value)


def _largest(stalls: Mapping[str, float], count: int) -> str:
    ordered = sorted(stalls.items(), key=lambda item: -item[1])
    return ", ".join(f"{cause} {number(cycles)}" for cause, cycles in ordered[:count])


def whole(value: float) -> str:
    """A whole number with commas."""
    return f"{round(value):,}"


def number(value: float) -> str:
    """A number with commas, and decimals where it is small."""
    value = round(value, 9)  # sums of parts of cycles
    if value == 0 or abs(value) >= 1000 or value.is_integer():
        return f"{value:,.0f}"
    return f"{value:,.1f}" if abs(value) >= 100 else f"{value:.3g}"


def percent(part: float, total: float) -> str:
    """A share with one decimal; 0 of nothing."""
    return f"{100 * part / total:.1f} %" if total else "0.0 %"


def energy(picojoules: float, micro: str = "u") -> str:
    """Energy in a unit of fitting size; `micro` is the sign for 10^-6."""
    for factor, unit in ((1e12, "J"), (1e9, "mJ"), (1e6, f"{micro}J"), (1e3, "nJ")):
        if abs(picojoules) >= factor:
            return f"{picojoules / factor:.4g} {unit}"
    return f"{picojoules:.4g} pJ"
