"""Sums of products of bytes in C: a tile of sums as straight code in the loop over their terms.

Compilers make instructions of that loop that multiply bytes and add neighbouring products to sums of 32 bits: all lanes
of a register are partial sums of one result.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field

from typing_extensions import override

from stripe.emit.c.tiles import TileWriter
from stripe.emit.loops.scope import Area
from stripe.emit.loops.tiles import TilePoint, dot_factors
from stripe.ir import DTYPES, Affine, Store


@dataclass(slots=True)
class DotWriter(TileWriter):
    """Writes a tile of dot products. `results` has the variables of the sums, `totals` those of the multiples of the
    factor that keeps its sign, by element.
    """

    results: dict[Affine, str] = field(default_factory=dict[Affine, str])
    totals: dict[Affine, str] = field(default_factory=dict[Affine, str])

    @override
    def open_accumulators(self, level: int, stack: ExitStack) -> None:
        """Declares the sums, which start at 0 and are added to memory when `stack` unwinds to here."""
        for number, first in self.tile.accumulators.items():
            statement = self.plan.block.statements[number]
            assert isinstance(statement, Store)
            if first == level:
                self._open(statement, stack)

    def _open(self, statement: Store, stack: ExitStack) -> None:
        writer, result = self.writer, self.writer.scope.areas[statement.ref]
        signed = self._factors()[1]
        wide, bits = (writer.dialect.scalar_type(DTYPES[name]) for name in ("i32", "u32"))
        writer.helpers.define("dot", self._flip())
        for point in self.tile.points:
            place, other = self.tile.element(result, point), self.tile.element(signed, point)
            if other not in self.totals:
                self.totals[other] = writer.scope.names.take(f"{signed.pointer.name}_sum")
                writer.line(f"{wide} {self.totals[other]} = 0;")
            name = self.results[place] = writer.scope.names.take(f"{statement.ref}_acc")
            writer.line(f"{wide} {name} = 0;")
            element = self._element(result, place, write=True)
            new = f"({bits}){element} + ({bits}){name} - ({bits}){self.totals[other]}"
            stack.callback(writer.line, f"{element} = ({wide})({new});")

    @override
    def copies(self, points: Sequence[TilePoint]) -> None:
        writer, (result,) = self.writer, (s.ref for s in self.plan.block.statements if isinstance(s, Store))
        flipped, signed = self._factors()
        wide = DTYPES["i32"]
        for point in points:
            place, other = self.tile.element(flipped, point), self.tile.element(signed, point)
            a = self._let(
                flipped.pointer.name, f"(st_flipped)({self._element(flipped, place)} ^ ST_FLIP)", wide, 1
            )
            b = self._let(signed.pointer.name, self._element(signed, other), wide, 1)
            total = self.totals[other]
            if (total,) not in self.known:
                self.known[total,] = b
                writer.line(f"{total} += ST_FLIP * {b.text};")
            name = self.results[self.tile.element(writer.scope.areas[result], point)]
            writer.line(f"{name} += {a.text} * {b.text};")

    def _factors(self) -> tuple[Area, Area]:
        """The factor with more elements in the tile, whose sign is flipped, and the other one."""
        factors = dot_factors(self.plan.block)
        assert factors is not None
        areas = [self.writer.scope.areas[name] for name in factors]
        areas.sort(key=lambda area: -len({self.tile.element(area, point) for point in self.tile.points}))
        return areas[0], areas[1]

    def _flip(self) -> str:
        unsigned, signed = (self.writer.dialect.scalar_type(DTYPES[name]) for name in ("u8", "i8"))
        return f"""\
// Instructions of x86 that sum products of fours of bytes take one factor without a sign: with its first bit flipped it
// is larger by ST_FLIP, and the sum by ST_FLIP times the sum of the other factor.
#if defined(__AVX512VNNI__) || defined(__AVXVNNI__)
#define ST_FLIP 128
typedef {unsigned} st_flipped;
#else
#define ST_FLIP 0
typedef {signed} st_flipped;
#endif"""
