"""Drawing as SVG text: the few shapes that the pictures of a simulation need, and axes with round numbers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from html import escape
from math import ceil, floor, log10

INK, MUTED, GRID, PAPER = "#1f2933", "#5f6c7b", "#e3e8ee", "#ffffff"
PALETTE = (
    "#3366a8", "#d1793a", "#4a9a6b", "#b0506f", "#7a64a8", "#8f7a3c", "#3f9aa8", "#a85a3c", "#6b7f2f", "#5d6d9a",
)  # fmt: skip
_ADVANCE = 0.58
"""Width of a letter, in sizes of the font."""

_FONT = "font-family=\"Helvetica, Arial, 'DejaVu Sans', sans-serif\""


@dataclass
class Canvas:
    """A picture of a given size, with the origin at the upper left. All places and lengths are in pixels."""

    width: float
    height: float
    parts: list[str] = field(default_factory=list[str])

    def rect(
        self, x: float, y: float, width: float, height: float, fill: str, *, title: str = "", stroke: str = "none",
        opacity: float = 1.0,
    ) -> None:  # fmt: skip
        inner = f"<title>{escape(title)}</title>" if title else ""
        seen = f' fill-opacity="{opacity:.2f}"' if opacity < 1 else ""
        self.parts.append(
            f'<rect x="{x:.2f}" y="{y:.2f}" width="{max(width, 0.0):.2f}" height="{height:.2f}" fill="{fill}"{seen} '
            f'stroke="{stroke}" stroke-width="0.5">{inner}</rect>'
        )

    def line(self, x1: float, y1: float, x2: float, y2: float, color: str = INK, width: float = 1.0) -> None:
        place = f'x1="{x1:.2f}" y1="{y1:.2f}" x2="{x2:.2f}" y2="{y2:.2f}"'
        self.parts.append(f'<line {place} stroke="{color}" stroke-width="{width}"/>')

    def circle(self, x: float, y: float, radius: float, fill: str, *, title: str = "") -> None:
        inner = f"<title>{escape(title)}</title>" if title else ""
        self.parts.append(
            f'<circle cx="{x:.2f}" cy="{y:.2f}" r="{radius}" fill="{fill}" fill-opacity="0.85" '
            f'stroke="{PAPER}">{inner}</circle>'
        )

    def text(
        self, x: float, y: float, text: str, *, size: float = 11, anchor: str = "start", color: str = INK,
        bold: bool = False,
    ) -> None:  # fmt: skip
        weight = ' font-weight="bold"' if bold else ""
        self.parts.append(
            f'<text x="{x:.2f}" y="{y:.2f}" font-size="{size}" text-anchor="{anchor}" fill="{color}"{weight}>'
            f"{escape(text)}</text>"
        )

    def document(self) -> str:
        """The whole file."""
        size = f'width="{self.width:.0f}" height="{self.height:.0f}" viewBox="0 0 {self.width:.0f} {self.height:.0f}"'
        head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} {_FONT}>'
        paper = f'<rect width="100%" height="100%" fill="{PAPER}"/>'
        return "\n".join(['<?xml version="1.0" encoding="UTF-8"?>', head, paper, *self.parts, "</svg>", ""])


@dataclass(slots=True)
class Labels:
    """Texts on a canvas that do not lie on each other, nor on boxes that are taken (left, top, right, bottom)."""

    canvas: Canvas
    taken: list[tuple[float, float, float, float]] = field(
        default_factory=list[tuple[float, float, float, float]]
    )

    def place(
        self, text: str, size: float, places: Iterable[tuple[float, float, str]], color: str = MUTED
    ) -> bool:
        """Draws the text at the first of the places (x, y, anchor) that is free; false where none is."""
        width = _ADVANCE * size * len(text)
        for x, y, anchor in places:
            left = x - {"start": 0.0, "middle": width / 2, "end": width}[anchor]
            box = (left, y - 0.85 * size, left + width, y + 0.25 * size)
            overlaps = any(
                box[0] < other[2] and other[0] < box[2] and box[1] < other[3] and other[1] < box[3]
                for other in self.taken
            )
            if left >= 0 and box[2] <= self.canvas.width and not overlaps:
                self.taken.append(box)
                self.canvas.text(x, y, text, size=size, anchor=anchor, color=color)
                return True
        return False


def ticks(low: float, high: float, count: int) -> list[float]:
    """Round numbers from `low` to `high`, about `count` of them."""
    if high <= low:
        return [low]
    raw = (high - low) / max(1, count)
    power = 10.0 ** floor(log10(raw))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= raw)
    first = ceil(low / step)
    return [step * number for number in range(first, floor(high / step * (1 + 1e-9)) + 1)]


def decades(low: float, high: float) -> list[float]:
    """Powers of ten that lie in an interval of positive numbers, its ends rounded outwards."""
    return [10.0**power for power in range(floor(log10(low)), ceil(log10(high)) + 1)]


def short(number: float) -> str:
    """A number in at most five or so characters: 1.2k, 35M."""
    for factor, letter in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(number) >= factor:
            return f"{number / factor:.3g}{letter}"
    return f"{number:.3g}"


def fitting(text: str, width: float, size: float = 10) -> str:
    """As much of a text as fits into `width` pixels, or nothing."""
    room = int(width / (_ADVANCE * size))
    if len(text) <= room:
        return text
    return text[: room - 1] + "…" if room >= 4 else ""


def color_of(name: str, names: Sequence[str]) -> str:
    """The colour of one of several names."""
    return PALETTE[names.index(name) % len(PALETTE)]
