"""Sums of products of bytes in C: a tile of sums as straight code in the loop over their terms.

Compilers make instructions of that loop that multiply neighbouring numbers and add their products to sums of 32 bits:
all lanes of a register are partial sums of one result.

- x86 with VNNI sums products of fours of bytes, one factor without a sign. That factor has its first bit flipped,
  which makes it larger by 128, so that 128 times the other factor is summed as well, by the same instruction. gcc 12
  takes products for those of 16 bits where both factors of the first product in the loop are used again; so each such
  sum loads its own 128.
- Other x86 sums products of pairs of 16 bits. gcc sees them only where a product may have more than 16 bits, that is
  where it does not know that a factor came from a byte. Vectors of 16-bit products, which it makes otherwise, take
  twice the time.
- Arm, and clang on all processors, make the best of plain products of bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field

from typing_extensions import override

from stripe.emit.c.tiles import TileWriter
from stripe.emit.loops.products import dot_factors
from stripe.emit.loops.scope import Area
from stripe.emit.loops.tiles import TilePoint, interval
from stripe.ir import DTYPES, Affine, Store

_STEP = 64
"""Elements between the places from which two sums of a factor load: their loads differ."""


@dataclass(slots=True)
class DotWriter(TileWriter):
    """Writes a tile of dot products. `results` has the variables of the sums, `totals` those of the multiples of the
    factor that keeps its sign, by element. `zero` is the variable of a 0 that the compiler does not know.
    """

    results: dict[Affine, str] = field(default_factory=dict[Affine, str])
    totals: dict[Affine, str] = field(default_factory=dict[Affine, str])
    zero: str = ""

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
        wide, bits, half = (writer.dialect.scalar_type(DTYPES[name]) for name in ("i32", "u32", "i16"))
        writer.helpers.define("dot", self._forms())
        if not self.zero:
            self.zero = writer.scope.names.take("zero")
            writer.line(f"const {half} {self.zero} = ST_ZERO;")
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
        wide, loop = DTYPES["i32"], self.plan.loops[self.tile.level - 1]
        size = interval(loop)[1] + _STEP * len(self.totals)
        writer.helpers.define(f"signs_{size}", self._signs(size))
        for point in points:
            place, other = self.tile.element(flipped, point), self.tile.element(signed, point)
            factor = f"(st_factor)(({self._element(flipped, place)} ^ ST_FLIP) + {self.zero})"
            a = self._let(flipped.pointer.name, factor, wide, 1)
            b = self._let(signed.pointer.name, self._element(signed, other), wide, 1)
            total = self.totals[other]
            if (total,) not in self.known:
                self.known[total,] = b
                own = Affine.var(loop.var) + _STEP * list(self.totals).index(other)
                writer.line(f"{total} += ST_SIGNS_{size}({writer.affine(own)}) * {b.text};")
            name = self.results[self.tile.element(writer.scope.areas[result], point)]
            writer.line(f"{name} += {a.text} * {b.text};")

    def _factors(self) -> tuple[Area, Area]:
        """The factor with more elements in the tile, whose sign is flipped, and the other one."""
        factors = dot_factors(self.plan.block)
        assert factors is not None
        areas = [self.writer.scope.areas[name] for name in factors]
        areas.sort(key=lambda area: -len({self.tile.element(area, point) for point in self.tile.points}))
        return areas[0], areas[1]

    def _forms(self) -> str:
        unsigned, signed, half = (self.writer.dialect.scalar_type(DTYPES[n]) for n in ("u8", "i8", "i16"))
        return f"""\
// One factor of products of bytes, for the instructions that sum such products: bytes without a sign, with their
// first bit flipped; numbers of 16 bits, with a zero added that hides the bytes that they were; or bytes.
#if defined(__AVX512VNNI__) || defined(__AVXVNNI__)
#define ST_FLIP 128
#define ST_ZERO 0
typedef {unsigned} st_factor;
#elif defined(__SSE2__) && !defined(__clang__)
#define ST_FLIP 0
#define ST_ZERO st_zero
typedef {half} st_factor;
static const volatile {half} st_zero = 0;
#else
#define ST_FLIP 0
#define ST_ZERO 0
typedef {signed} st_factor;
#endif"""

    def _signs(self, size: int) -> str:
        unsigned, name = self.writer.dialect.scalar_type(DTYPES["u8"]), f"st_signs_{size}"
        return f"""\
#if ST_FLIP
__extension__ static const {unsigned} {name}[{size}] = {{[0 ... {size - 1}] = ST_FLIP}};
#define ST_SIGNS_{size}(n) {name}[n]
#else
#define ST_SIGNS_{size}(n) 0
#endif"""
