"""The difference of two simulations as tables: where the time and the energy went."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from stripe.cost.report.schema import SimulationJson
from stripe.cost.report.table import Table, summed
from stripe.cost.report.tables import number

_MOST_ROWS = 30
_HEADERS = ("A", "B", "B - A", "")


def difference_tables(a: SimulationJson, b: SimulationJson, files: tuple[str, str]) -> list[Table]:
    """The two reports, from `files`; then parameters, totals, statements, stalls and energies that differ; the largest
    differences first."""
    reports = zip("AB", files, (a, b), strict=True)
    sources = tuple((letter, file, f"{report.input} on {report.machine}") for letter, file, report in reports)
    totals = {
        "latency, cycles": (a.latency_cycles, b.latency_cycles),
        "latency, us": (a.latency_us, b.latency_us),
        "energy, pJ": (a.energy_pJ, b.energy_pJ),
        "operations": (float(a.operations), float(b.operations)),
    }
    rows = tuple((name, *_numbers(*pair)) for name, pair in totals.items())
    stalls = (summed(stall for s in report.statements for stall in s.stalls.items()) for report in (a, b))
    return [
        Table("", ("", "report", "of"), sources, left=3),
        _parameters(a, b),
        Table("totals", ("", *_HEADERS), rows),
        _statements(a, b),
        _changed("stalls that differ, cycles", *stalls),
        _changed("energy that differs, pJ", a.energy, b.energy),
        _changed("bytes on buses that differ", *({bus.name: bus.bytes for bus in r.buses} for r in (a, b))),
    ]


def _parameters(a: SimulationJson, b: SimulationJson) -> Table:
    names = dict.fromkeys((*a.parameters, *b.parameters))
    values = [(name, a.parameters.get(name), b.parameters.get(name)) for name in names]
    rows = tuple((name, *("" if x is None else str(x) for x in (p, q))) for name, p, q in values if p != q)
    return Table("parameters that differ", ("", "A", "B"), rows)


def _statements(a: SimulationJson, b: SimulationJson) -> Table:
    """Cycles of statements by name; statements of equal names count together."""
    cycles_a, cycles_b = (summed((s.name, s.cycles) for s in report.statements) for report in (a, b))
    bound_a, bound_b = ({s.name: s.bound for s in report.statements} for report in (a, b))
    rows = tuple(
        (name, *_numbers(*pair), bound_a.get(name, "is not there"), bound_b.get(name, "is not there"))
        for name, pair in _differing(cycles_a, cycles_b)
    )
    headers = ("", *_HEADERS, "bound by in A", "bound by in B")
    return Table("statements that differ, cycles", headers, rows, texts=(5, 6))


def _changed(title: str, a: Mapping[str, float], b: Mapping[str, float]) -> Table:
    rows = tuple((name, *_numbers(*pair)) for name, pair in _differing(a, b))
    return Table(title, ("", *_HEADERS), rows)


def _differing(a: Mapping[str, float], b: Mapping[str, float]) -> Iterator[tuple[str, tuple[float, float]]]:
    pairs = {name: (a.get(name, 0.0), b.get(name, 0.0)) for name in dict.fromkeys((*a, *b))}
    changed = [(name, pair) for name, pair in pairs.items() if pair[0] != pair[1]]
    yield from sorted(changed, key=lambda item: (-abs(item[1][1] - item[1][0]), item[0]))[:_MOST_ROWS]


def _numbers(a: float, b: float) -> tuple[str, str, str, str]:
    share = f"{100 * (b / a - 1):+.3g} %" if a else ""
    return number(a), number(b), f"{'+' if b > a else ''}{number(b - a)}", share
