"""The timeline of a simulation's picture: a row for each unit, bus and memory port with work, over the time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, groupby, pairwise

from stripe.cost.report.schema import SimulationJson, StatementJson
from stripe.cost.report.svg import GRID, INK, MUTED, PALETTE, PAPER, Canvas, fitting, short, ticks
from stripe.cost.report.table import summed
from stripe.cost.report.tables import percent

_ROW = 26.0
_LABELS, _SHARES = 120.0, 56.0
_BELOW = 74.0
_MOST_OF_A_KIND = 12
_TRANSFER = "#8593a3"
_BETWEEN = "#d7dee6"
_THIN = 2.5
_PALEST = 0.15


def kernel_colors(report: SimulationJson) -> dict[int, str]:
    """The colour of each kernel, by its number."""
    kernels = [statement.number for statement in report.statements if statement.kind == "kernel"]
    return {number: PALETTE[position % len(PALETTE)] for position, number in enumerate(kernels)}


def bounds(report: SimulationJson) -> str:
    """The resources that bound the statements, as text; those of most cycles first."""
    cycles = summed((statement.bound, statement.cycles) for statement in report.statements)
    total = sum(cycles.values())
    ordered = sorted(cycles.items(), key=lambda item: -item[1])[:3]
    if len(cycles) < 2:
        return "".join(f"bound by {bound}" for bound, _ in ordered)
    return "bound by " + ", ".join(
        f"{bound} for {percent(part, total)} of the work" for bound, part in ordered
    )


@dataclass(frozen=True, slots=True)
class _Occupation:
    """The time, in cycles, in which a statement or a step of its tiles needs a resource, and for which part of it."""

    start: float
    end: float
    share: float
    name: str
    title: str
    fill: str


class Timeline:
    """The rows of a report: units in the machine's order, then buses, then memory ports; of many of a kind the busiest
    ones, of equal ones the first."""

    def __init__(self, report: SimulationJson) -> None:
        self.report = report
        self.shares = _shares(report)
        self.bounding = {name for statement in report.statements for name in _bounding(statement)}
        kinds = groupby(self.shares, key=_kind)
        self.rows: list[str] = []
        self.hidden: dict[str, int] = {}
        for kind, names in kinds:
            known = list(names)
            busiest = sorted(known, key=lambda name: -self.shares[name])[:_MOST_OF_A_KIND]
            self.rows += [name for name in known if name in busiest]
            if len(known) > len(busiest):
                self.hidden[kind] = len(known) - len(busiest)

    @property
    def height(self) -> float:
        """In pixels, with the axis and the legend below the rows."""
        return _ROW * len(self.rows) + _BELOW

    def draw(self, canvas: Canvas, left: float, top: float, width: float) -> None:
        """Draws it with its upper left corner at `left` and `top`."""
        report = self.report
        start, length = left + _LABELS, width - _LABELS - _SHARES
        bottom = top + _ROW * len(self.rows)
        micro = report.latency_us or 1.0
        scale, unit = (1e3, "ms") if micro >= 1e4 else (1.0, "µs")
        for tick in ticks(0.0, micro / scale, 8):
            x = start + length * tick * scale / micro
            canvas.line(x, top, x, bottom, GRID)
            canvas.text(x, bottom + 16, f"{tick:g}", size=10, anchor="middle", color=MUTED)
        canvas.text(start + length + 8, bottom + 16, f"time, {unit}", size=10, color=MUTED)
        canvas.text(start + length + 8, top - 6, "busy", size=10, color=MUTED)
        pixels = length / (report.latency_cycles or 1.0)
        colors = kernel_colors(report)
        uses = _uses(report, frozenset(self.rows), colors)
        places = {name: top + _ROW * row for row, name in enumerate(self.rows)}
        for name, y in places.items():
            label = fitting(name, _LABELS - 8, 11)
            canvas.text(start - 8, y + _ROW / 2 + 4, label, size=11, anchor="end", bold=name in self.bounding)
            share = percent(self.shares[name], 1.0)
            canvas.text(start + length + 8, y + _ROW / 2 + 4, share, size=10, color=MUTED)
            canvas.line(start, y + _ROW, start + length, y + _ROW, GRID)
        for statement in report.statements:
            for name in places.keys() & set(statement.units) if statement.slices else ():
                x, wide = start + statement.start_cycle * pixels, statement.cycles * pixels
                canvas.rect(x, places[name] + 3, wide, _ROW - 6, _BETWEEN, title=_title(statement))
        for name, y in places.items():
            _draw_bars(canvas, _joined(_bars(uses[name], start, pixels)), name, y)
        self._legend(canvas, left, left + width, bottom + 42, list(colors.values()))

    def _legend(self, canvas: Canvas, left: float, right: float, y: float, colors: Sequence[str]) -> None:
        """Colours and paleness in words."""
        kernels = list(dict.fromkeys(colors))[:3]
        swatches: list[tuple[Sequence[tuple[str, float]], str]] = []
        if kernels:
            named = "kernels, each in its colour" if len(colors) > 1 else "kernel"
            swatches.append(([(fill, 1.0) for fill in kernels], named))
        swatches.append(([(_TRANSFER, 1.0)], "transfers"))
        if any(statement.slices for statement in self.report.statements):
            swatches.append(([(_BETWEEN, 1.0)], "kept between the steps of tiles"))
        pale = [((kernels or [_TRANSFER])[0], opacity) for opacity in (1.0, 0.6, 0.3)]
        swatches.append((pale, "the paler, the smaller the part of the time that is used"))
        if self.bounding & set(self.rows):
            swatches.append(((), "bold: bounds a statement"))
        swatches += [((), f"{count} more of {kind} not drawn") for kind, count in self.hidden.items()]
        x = left
        for fills, text in swatches:
            wide = 13 * len(fills) + 22 + 4.8 * len(text)
            if x + wide > right:
                x, y = left, y + 16
            for fill, opacity in fills:
                canvas.rect(x, y - 9, 12, 11, fill, opacity=opacity)
                x += 13
            canvas.text(x + 4, y, text, size=10, color=MUTED)
            x += wide - 13 * len(fills)


def _kind(name: str) -> str:
    """The name of a unit without its number; `bus` of buses."""
    return "buses" if name.startswith("bus ") else name.split("[")[0]


def _shares(report: SimulationJson) -> dict[str, float]:
    """The part of the time for which each resource with work is busy, in the order of the rows."""
    needed = summed(pair for statement in report.statements for pair in statement.busy.items())
    total = report.latency_cycles or 1.0
    units = {unit.unit: unit.busy_cycles / total for unit in report.units if unit.unit in needed}
    buses = {f"bus {bus.name}": bus.utilisation for bus in report.buses if f"bus {bus.name}" in needed}
    ports = {name: cycles / total for name, cycles in sorted(needed.items()) if name not in units | buses}
    return {**units, **buses, **ports}


def _bounding(statement: StatementJson) -> tuple[str, ...]:
    """The resources that bound a statement: its units, where it is computing that does."""
    return statement.units if statement.bound == "compute" else (statement.bound,)


def _title(statement: StatementJson) -> str:
    cycles = short(statement.cycles)
    return f"{statement.number}: {statement.name}, {cycles} cycles, bound by {statement.bound}"


def _uses(
    report: SimulationJson, rows: frozenset[str], colors: Mapping[int, str]
) -> defaultdict[str, list[_Occupation]]:
    """By row, the statements that use it, or the steps of their tiles."""
    found: defaultdict[str, list[_Occupation]] = defaultdict(list)
    for statement in report.statements:
        fill = colors.get(statement.number, _TRANSFER)
        if not statement.slices:
            for name in rows & statement.busy.keys() if statement.cycles else ():
                share = statement.busy[name] / statement.cycles
                found[name].append(
                    _Occupation(
                        statement.start_cycle,
                        statement.end_cycle,
                        share,
                        statement.name,
                        _title(statement),
                        fill,
                    )
                )
            continue
        # where others slowed the statement down, its steps take longer, and need their buses for a smaller part of it
        taken = summed((str(piece.step), piece.end_cycle - piece.start_cycle) for piece in statement.slices)
        needs: list[dict[str, float]] = []
        for number, step in enumerate(statement.steps):
            drawn = taken.get(str(number), 0.0)
            cycles = {
                name: step.cycles if name in statement.units else drawn for name in rows & step.busy.keys()
            }
            needs.append({name: step.busy[name] / part for name, part in cycles.items() if part})
        for piece in statement.slices:
            color = _TRANSFER if piece.kind == "transfer" else fill
            title = f"{statement.number}: {statement.name}, {piece.name} of tile {piece.tile}"
            for name, share in needs[piece.step].items():
                found[name].append(
                    _Occupation(piece.start_cycle, piece.end_cycle, share, piece.name, title, color)
                )
    return found


@dataclass(frozen=True, slots=True)
class _Bar:
    """Work drawn as one bar: its ends, and the pixels of it in which the resource is busy."""

    start: float
    end: float
    busy: float
    use: _Occupation
    uses: int = 1

    @property
    def is_thin(self) -> bool:
        return self.uses > 1 or self.end - self.start < _THIN

    def is_close(self, other: _Bar) -> bool:
        """Whether it looks like a piece of the bar before it."""
        return self.use.fill == other.use.fill and self.start - other.end < 2 * _THIN


def _bars(uses: Iterable[_Occupation], left: float, pixels: float) -> Iterator[_Bar]:
    """Bars of work one after the other. Where several statements use a resource at the same time, their parts add up,
    and the bar has the colour of the largest."""
    coming = sorted(
        (use for use in uses if use.end > use.start and use.share > 0), key=lambda use: -use.start
    )
    active: list[_Occupation] = []
    times = sorted(set(chain.from_iterable((use.start, use.end) for use in coming)))
    for start, end in pairwise(times):
        active = [use for use in active if use.end > start]
        while coming and coming[-1].start <= start:
            active.append(coming.pop())
        if not active:
            continue
        share = min(1.0, sum(use.share for use in active))
        x, wide = left + start * pixels, (end - start) * pixels
        yield _Bar(x, x + wide, share * wide, max(active, key=lambda use: use.share))


def _joined(bars: Iterable[_Bar]) -> list[_Bar]:
    """Pieces of one use as one bar, and neighbours that would be too thin to tell apart."""
    found: list[_Bar] = []
    for bar in bars:
        last = found[-1] if found else None
        if last is not None and last.use is bar.use and last.end >= bar.start - 1e-6:
            found[-1] = _Bar(last.start, bar.end, last.busy + bar.busy, last.use, last.uses)
        elif last is not None and bar.is_thin and last.is_thin and bar.is_close(last):
            found[-1] = _Bar(last.start, bar.end, last.busy + bar.busy, last.use, last.uses + 1)
        else:
            found.append(bar)
    return found


def _draw_bars(canvas: Canvas, bars: Iterable[_Bar], row: str, y: float) -> None:
    for bar in bars:
        wide = max(0.5, bar.end - bar.start)
        share = min(1.0, bar.busy / wide)
        what = bar.use.title if bar.uses == 1 else f"{bar.uses} pieces of work"
        canvas.rect(
            bar.start, y + 3, wide, _ROW - 6, bar.use.fill, title=f"{what}: {row} {percent(share, 1.0)} busy",
            stroke=PAPER if wide > _THIN else "none", opacity=max(_PALEST, share),
        )  # fmt: skip
        label = fitting(bar.use.name, wide - 6, 9) if bar.uses == 1 else ""
        if label:
            canvas.text(bar.start + 3, y + _ROW / 2 + 3, label, size=9, color=PAPER if share > 0.5 else INK)
