"""The picture of a simulation, as SVG: timeline, roofline with each kernel as a point, energy by component."""

from __future__ import annotations

from math import log10

from stripe.cost.report.schema import SimulationJson, StatementJson
from stripe.cost.report.svg import GRID, INK, MUTED, PALETTE, Canvas, Labels, decades, fitting, short
from stripe.cost.report.tables import energy
from stripe.cost.report.timeline import Timeline, bounds, kernel_colors

_WIDTH = 1100.0
_MARGIN = 24.0


def picture(report: SimulationJson) -> str:
    """The SVG file."""
    timeline, top = Timeline(report), 76.0
    lower, height = top + timeline.height + 20.0, 340.0
    canvas = Canvas(_WIDTH, lower + height + 24.0)
    micro = report.latency_us
    latency = f"{micro / 1e3:.4g} ms" if micro >= 1e3 else f"{micro:.4g} µs"
    name = report.input.replace("\\", "/").rsplit("/", 1)[-1]
    canvas.text(_MARGIN, 30, f"{name} on {report.machine}", size=17, bold=True)
    canvas.text(_MARGIN, 50, bounds(report), size=12)
    cycles = f"{short(report.latency_cycles)} cycles at {report.clock_mhz:g} MHz"
    facts = f"{latency}, {cycles}, {energy(report.energy_pJ, micro='µ')}"
    canvas.text(_WIDTH - _MARGIN, 30, facts, size=12, anchor="end", color=MUTED)
    timeline.draw(canvas, _MARGIN, top, _WIDTH - 2 * _MARGIN)
    _roofline(canvas, report, _MARGIN, lower, 590.0, height)
    _energies(canvas, report, 660.0, lower, _WIDTH - 684.0, height)
    return canvas.document()


class _LogAxis:
    """From numbers to pixels, logarithmically."""

    def __init__(self, low: float, high: float, start: float, length: float) -> None:
        self.marks = decades(low, high)
        if len(self.marks) < 2:
            self.marks = [self.marks[0] / 10, self.marks[0] * 10]
        self.low, self.high = self.marks[0], self.marks[-1]
        self.start, self.length = start, length

    def at(self, value: float) -> float:
        clipped = min(max(value, self.low), self.high)
        return self.start + self.length * log10(clipped / self.low) / log10(self.high / self.low)


def _roofline(
    canvas: Canvas, report: SimulationJson, left: float, top: float, width: float, height: float
) -> None:
    canvas.text(left, top + 8, "Roofline: each kernel a point", size=13, bold=True)
    kernels = [s for s in report.statements if s.kind == "kernel" and s.sustained_ops_per_cycle > 0]
    moving = [s for s in kernels if s.intensity]
    if not moving:
        canvas.text(left, top + 40, "no kernel computes on data of the main memory", color=MUTED)
        return
    giga = report.clock_mhz / 1e3
    slope = max(s.main_bytes_per_cycle or 0.0 for s in moving)
    peaks = sorted({(s.peak_ops_per_cycle, _names(s)) for s in kernels}, reverse=True)
    ridge = peaks[0][0] / slope
    intensities = [ridge, *(s.intensity for s in moving if s.intensity)]
    rates = [s.sustained_ops_per_cycle * giga for s in kernels]
    x0, y0, x1, y1 = left + 52, top + 24, left + width, top + height - 30
    xs = _LogAxis(min(intensities) / 1.5, max(intensities) * 1.5, x0, x1 - x0)
    ys = _LogAxis(min(rates) / 1.5, peaks[0][0] * giga * 1.5, y1, y0 - y1)
    _axes(canvas, xs, ys)
    start = max(xs.low, ys.low / (slope * giga))
    canvas.line(
        xs.at(start), ys.at(slope * start * giga), xs.at(ridge), ys.at(slope * ridge * giga), INK, 1.5
    )
    labels = Labels(canvas)
    for peak, name in peaks[:4]:
        y = ys.at(peak * giga)
        canvas.line(xs.at(peak / slope), y, x1, y, INK, 1.5)
        text = f"{name} {short(peak * giga)} Gop/s"
        labels.place(
            text, 10, [(x, below, "end") for x in (x1 - 4, x1 - 124, x1 - 244) for below in (y - 5, y + 13)]
        )
    _points(labels, kernels, xs, ys, giga, kernel_colors(report))


def _axes(canvas: Canvas, xs: _LogAxis, ys: _LogAxis) -> None:
    x0, x1, y0, y1 = xs.start, xs.start + xs.length, ys.start + ys.length, ys.start
    for mark in xs.marks:
        canvas.line(xs.at(mark), y0, xs.at(mark), y1, GRID)
        canvas.text(xs.at(mark), y1 + 14, short(mark), size=10, anchor="middle", color=MUTED)
    for mark in ys.marks:
        canvas.line(x0, ys.at(mark), x1, ys.at(mark), GRID)
        canvas.text(x0 - 6, ys.at(mark) + 3, short(mark), size=10, anchor="end", color=MUTED)
    canvas.text(x1, y1 + 28, "operations per byte of main memory", size=10, anchor="end", color=MUTED)
    canvas.text(x0 + 4, y0 - 5, "Gop/s", size=10, color=MUTED)


def _points(
    labels: Labels,
    kernels: list[StatementJson],
    xs: _LogAxis,
    ys: _LogAxis,
    giga: float,
    colors: dict[int, str],
) -> None:
    """Kernels; a kernel whose data are resident needs no byte of the main memory and stands at the right edge. Labels
    that find no free place are left out: each point has its title."""
    edge = xs.start + xs.length
    places: list[tuple[float, float, StatementJson]] = []
    for statement in kernels:
        rate = statement.sustained_ops_per_cycle * giga
        x, y = xs.at(statement.intensity) if statement.intensity else edge, ys.at(rate)
        per_byte = f"{short(statement.intensity)} op/B" if statement.intensity else "nothing from main memory"
        title = f"{statement.name}: {per_byte}, {short(rate)} Gop/s"
        labels.canvas.circle(x, y, 5.5, colors[statement.number], title=title)
        labels.taken.append((x - 5.5, y - 5.5, x + 5.5, y + 5.5))
        places.append((x, y, statement))
    for x, y, statement in places:
        sides = [(x - 9, "end", x - xs.start), (x + 8, "start", edge - x)]
        for beside, anchor, room in sides if x > edge - 90 else reversed(sides):
            label = fitting(statement.name, min(160, room - 8), 9)
            if label and labels.place(label, 9, [(beside, y + up, anchor) for up in (-8, 14, 3, -19, 25)]):
                break


def _names(statement: StatementJson) -> str:
    name, count = statement.units[0].split("[")[0] if statement.units else "", len(statement.units)
    return f"{count} {name}" if count > 1 else name


def _energies(
    canvas: Canvas, report: SimulationJson, left: float, top: float, width: float, height: float
) -> None:
    canvas.text(left, top + 8, "Energy by component", size=13, bold=True)
    parts = sorted(report.energy.items(), key=lambda item: -item[1])
    if not parts:
        canvas.text(left, top + 40, "the model gives no energies", color=MUTED)
        return
    shown, rest = parts[:11], sum(value for _, value in parts[11:])
    if rest:
        shown.append(("others", rest))
    largest = shown[0][1]
    step = min(28.0, (height - 30) / len(shown))
    bars = width - 200
    for row, (name, value) in enumerate(shown):
        y = top + 28 + row * step
        canvas.text(left + 100, y + step / 2 + 1, name, size=11, anchor="end")
        amount, wide = energy(value, micro="µ"), bars * value / largest if largest else 0.0
        canvas.rect(left + 108, y, wide, step - 8, PALETTE[0], title=amount)
        label = f"{amount}, {100 * value / report.energy_pJ:.3g} %"
        canvas.text(left + 114 + wide, y + step / 2 + 1, label, size=10, color=MUTED)
