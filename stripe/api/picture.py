"""The graph of a block as SVG: nested boxes, with a line for each buffer and a dot where a statement uses it.

The statements of a block stand side by side in their order. A buffer is a line above them, with a hollow dot over each
statement that reads it and a full dot over each that writes it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from stripe.cost.report.svg import INK, MUTED, PAPER, Canvas, color_of
from stripe.ir import Block, Special, reads_of, walk, writes_of

_LINE, _PAD, _GAP = 16.0, 10.0, 12.0
_LETTER = 6.2
"""Width of a letter of the size that is used, in pixels."""


def boxes(block: Block) -> int:
    """The number of boxes in the picture of a block."""
    inner = [found for _, found in walk(block)]
    return len(inner) + sum(isinstance(s, Special) for found in inner for s in found.statements)


def block_picture(block: Block) -> str:
    """The SVG document."""
    box = _figure_of(block)
    canvas = Canvas(box.width + 2 * _PAD, box.height + 2 * _PAD)
    _draw(canvas, box, _PAD, _PAD)
    return canvas.document()


@dataclass(frozen=True, slots=True)
class _Figure:
    """A block or a special: its title, its buffers with their labels, and its parts with the buffers that they use."""

    title: tuple[str, ...]
    buffers: tuple[tuple[str, str], ...] = ()
    parts: tuple[tuple[_Figure, frozenset[str], frozenset[str]], ...] = ()

    @property
    def labels(self) -> float:
        """Width of the labels of the buffers."""
        return _LETTER * max((len(label) for _, label in self.buffers), default=0) + _GAP

    @property
    def width(self) -> float:
        title = _LETTER * max(map(len, self.title))
        inside = self.labels + sum(part.width + _GAP for part, _, _ in self.parts) if self.parts else 0.0
        return max(title, inside) + 2 * _PAD

    @property
    def head(self) -> float:
        """Height of title and buffers."""
        return _PAD + _LINE * (len(self.title) + (len(self.buffers) if self.parts else 0))

    @property
    def height(self) -> float:
        inside = max((part.height for part, _, _ in self.parts), default=0.0)
        return self.head + (inside + _GAP if self.parts else 0.0) + _PAD


def _figure_of(statement: Block | Special) -> _Figure:
    if isinstance(statement, Special):
        return _Figure((statement.op,))
    ranges = ", ".join(
        f"{index.name}:{index.range}" if index.affine is None else f"{index.name} = {index.affine}"
        for index in statement.indices
    )
    place = f" <{statement.location}>" if statement.location else ""
    title = [f"{statement.name}{place}", *([f"[{ranges}]"] if ranges else [])]
    nested = [inner for inner in statement.statements if isinstance(inner, (Block, Special))]
    if not nested:
        title.append(f"{len(statement.statements)} statements")
    buffers: list[tuple[str, str]] = []
    for ref in statement.refinements:
        where = f" <{ref.location}>" if ref.location else ""
        buffers.append((ref.name, f"{ref.name} {ref.dtype}({', '.join(map(str, ref.sizes))}){where}"))
    parts = ((_figure_of(s), frozenset(reads_of(s)), frozenset(writes_of(s))) for s in nested)
    return _Figure(tuple(title), tuple(buffers), tuple(parts))


def _draw(canvas: Canvas, box: _Figure, x: float, y: float) -> None:
    canvas.rect(x, y, box.width, box.height, PAPER, stroke=MUTED)
    for number, text in enumerate(box.title):
        color = MUTED if number else INK
        canvas.text(x + _PAD, y + _LINE * (number + 1), text, size=11, color=color, bold=number == 0)
    if not box.parts:
        return
    first = y + _LINE * (len(box.title) + 1)
    rows = {name: first + _LINE * number for number, (name, _) in enumerate(box.buffers)}
    for name, label in box.buffers:
        color = color_of(name, list(rows))
        canvas.text(x + _PAD, rows[name], label, size=11, color=color)
        canvas.line(x + _PAD + box.labels, rows[name] - 4, x + box.width - _PAD, rows[name] - 4, color)
    left = x + _PAD + box.labels
    for part, reads, writes in box.parts:
        _draw_uses(canvas, rows, reads, writes, left, y + box.head)
        _draw(canvas, part, left, y + box.head)
        left += part.width + _GAP


def _draw_uses(
    canvas: Canvas,
    rows: dict[str, float],
    reads: Iterable[str],
    writes: frozenset[str],
    left: float,
    top: float,
) -> None:
    """A dot on the line of each buffer that a statement uses, joined with its box."""
    for number, name in enumerate(name for name in rows if name in writes or name in reads):
        across, height, color = left + 8 + 8 * number, rows[name] - 4, color_of(name, list(rows))
        canvas.line(across, height, across, top, color)
        canvas.circle(across, height, 4, color, title=f"{'writes' if name in writes else 'reads'} {name}")
        if name not in writes:
            canvas.circle(across, height, 2.5, PAPER)
