"""Writes C at one place: into a function, with the names visible there and the helpers of the file."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace

from stripe.emit.c.dialect import Dialect
from stripe.emit.c.function import FunctionText
from stripe.emit.c.gcc_hazards import GccHazards
from stripe.emit.c.helpers import Helpers
from stripe.emit.c.literals import is_zero_bits, literal, memory_literal
from stripe.emit.loops.bounds import ForLoop
from stripe.emit.loops.plan import is_short
from stripe.emit.loops.scope import Area, CodeScope, Stack
from stripe.ir import Affine, Atom, DType, FloorDiv, Interval

_ANY: Interval = (0, 1 << 62)
"""The interval of a coordinate that a statement has computed."""
_LARGEST = (1 << 63) - 1
"""The largest value of an index."""


def _reach(affine: Affine, intervals: Mapping[str, Interval]) -> int:
    """Upper bound on the magnitude of every part of a sum, by coordinates of which something is known."""
    reach = abs(affine.offset)
    for atom, coefficient in affine.terms:
        if isinstance(atom, str):
            low, high = intervals[atom] if intervals[atom] != _ANY else (0, 0)
        else:
            low, high = Affine(0, ((atom, 1),)).bounds(intervals)
        reach += abs(coefficient) * max(abs(low), abs(high))
    return reach


@dataclass(frozen=True, slots=True)
class Writer:
    """The dialect, the helpers of the file, the names of the place and the function."""

    dialect: Dialect
    helpers: Helpers
    scope: CodeScope
    function: FunctionText
    scalars: dict[str, tuple[str, DType]] = field(default_factory=dict[str, tuple[str, DType]])
    """The variable and the dtype of each scalar of the block."""

    def at(self, scope: CodeScope) -> Writer:
        """The same function at a place inside."""
        return replace(self, scope=scope, scalars={})

    def new_function(self, scope: CodeScope, hazards: GccHazards) -> Writer:
        """A new function, for the block of `scope`."""
        if hazards.contracts:
            self.helpers.need("multiply_add")
        inside = replace(scope, stack=Stack(scope.stack))
        return replace(self, scope=inside, function=FunctionText(self.dialect, hazards), scalars={})

    def line(self, text: str) -> None:
        self.function.line(text)

    def affine(self, affine: Affine) -> str:
        """An affine over variables, which the function then uses; its largest strides come first. A sum: put it in
        parentheses as a factor.
        """
        self.function.use_affine(affine)
        known = self.scope.intervals
        computed = affine.names() - known.keys()
        return self._affine(affine, {**known, **dict.fromkeys(computed, _ANY)} if computed else known)

    def _affine(self, affine: Affine, intervals: Mapping[str, Interval]) -> str:
        if _reach(affine, intervals) > _LARGEST:
            return self._wrapped(affine, intervals)
        terms = sorted(affine.terms, key=lambda term: -abs(term[1]))
        parts = [(c < 0, self._product(atom, abs(c), intervals)) for atom, c in terms]
        if affine.offset or not parts:
            parts.append((affine.offset < 0, str(abs(affine.offset))))
        first = next((place for place, part in enumerate(parts) if not part[0]), 0)
        parts.insert(0, parts.pop(first))
        text = f"-{parts[0][1]}" if parts[0][0] else parts[0][1]
        return text + "".join(f" {'-' if negative else '+'} {part}" for negative, part in parts[1:])

    def _wrapped(self, affine: Affine, intervals: Mapping[str, Interval]) -> str:
        """A sum that an index holds and whose terms it may not hold: they are added modulo 2^64."""
        unsigned = self.dialect.integer(64, signed=False)
        parts = [
            f"{c % (1 << 64)}u*({unsigned})({self._product(atom, 1, intervals)})" for atom, c in affine.terms
        ]
        return f"({self.dialect.index_type})({' + '.join([*parts, f'{affine.offset % (1 << 64)}u'])})"

    def _product(self, atom: Atom, coefficient: int, intervals: Mapping[str, Interval]) -> str:
        if isinstance(atom, str):
            return atom if coefficient == 1 else f"{coefficient}*{atom}"
        low, _ = atom.arg.bounds(intervals)
        arg = self._affine(atom.arg, intervals)
        name, sign, divisor = (
            ("floordiv", "/", atom.divisor) if isinstance(atom, FloorDiv) else ("mod", "%", atom.modulus)
        )
        if low < 0:
            text = f"{self.helpers.need(name)}({arg}, {divisor})"
            return text if coefficient == 1 else f"{coefficient}*{text}"
        text = f"{arg if atom.arg.single_name is not None else f'({arg})'}{sign}{divisor}"
        return text if coefficient == 1 else f"{coefficient}*({text})"

    def condition(self, guards: Sequence[Affine]) -> str:
        """`a >= 0 && b >= 0`."""
        return " && ".join(f"{self.affine(guard)} >= 0" for guard in guards)

    def bounds(self, loop: ForLoop) -> tuple[str, str]:
        """The lower bound of a loop and the upper one, which is not reached."""
        return self._extremum("max", loop.lower), self._extremum("min", loop.upper)

    def _extremum(self, helper: str, bounds: Sequence[Affine]) -> str:
        first, *others = [self.affine(bound) for bound in bounds]
        for text in others:
            first = f"{self.helpers.need(helper)}({first}, {text})"
        return first

    def element(self, area: Area, at: Sequence[Affine] | None = None, *, write: bool = False) -> str:
        """`A[…]`: the element at the coordinates `at` of an area, or at its origin."""
        place = area.origin if at is None else area.at(at)
        if write:
            self.function.store(area.pointer, place)
        return f"{self.function.use(area.pointer, write=write)}[{self.affine(place)}]"

    def loaded(self, element: str, dtype: DType) -> str:
        """The scalar that the element `element` holds."""
        if dtype.kind == "bool":
            return f"{element} != 0"
        return f"{self.helpers.need(f'{dtype.name}_load')}({element})" if dtype.is_narrow else element

    def stored(self, scalar: str, dtype: DType) -> str:
        """The memory form of a scalar variable."""
        return f"{self.helpers.need(f'{dtype.name}_store')}({scalar})" if dtype.is_narrow else scalar

    def literal(self, value: bool | int | float, dtype: DType) -> str:
        return self.helpers.with_headers(literal(value, dtype))

    def memory_literal(self, value: bool | int | float, dtype: DType) -> str:
        return self.helpers.with_headers(memory_literal(value, dtype))

    def let(self, wanted: str, text: str, dtype: DType, *, local: bool = False) -> str:
        """A constant variable like `wanted` of the value `text`; a `local` name is free again after the block."""
        name = (self.scope.names.child() if local else self.scope.names).take(wanted)
        self.line(f"const {self.dialect.scalar_type(dtype)} {name} = {text};")
        return name

    def let_index(self, wanted: str, text: str) -> str:
        """A constant variable for an index, with a name that is free again after the block."""
        name = self.scope.names.child().take(wanted)
        self.line(f"const {self.dialect.index_type} {name} = {text};")
        self.function.declare(name)
        return name

    @contextmanager
    def box(self, sizes: Sequence[int]) -> Generator[tuple[Affine, ...]]:
        """Opens a loop per dimension whose size is not 1; gives the coordinates, 0 for the others."""
        names = self.scope.names.child()
        coordinates: list[Affine] = []
        with ExitStack() as stack:
            for place, size in enumerate(sizes):
                if size == 1:
                    coordinates.append(Affine())
                    continue
                name = names.take(f"i{place}")
                self.function.declare(name)
                stack.enter_context(self.function.loop(name, "0", str(size), is_short=is_short(size)))
                coordinates.append(Affine.var(name))
            yield tuple(coordinates)

    def copy(self, target: Area, source: Area) -> None:
        """Copies all elements of one area to another of the same sizes and dtype."""
        to, start = target.pointer, source.pointer
        if to.strides == start.strides and to.is_dense and target.origin == source.origin == Affine():
            self.helpers.headers.add("string")
            pointers = f"{self.function.use(to, write=True)}, {self.function.use(start)}"
            self.line(f"memcpy({pointers}, {to.elements} * sizeof *{to.name});")
            return
        with self.box(to.sizes) as at:
            left = self.element(target, at, write=True)
            self.line(f"{left} = {self.element(source, at)};")

    def fill(self, area: Area, value: bool | int | float) -> None:
        """Sets all elements of an area to `value`, without touching the gaps between them."""
        pointer = area.pointer
        name = self.function.use(pointer, write=True)
        text = self.memory_literal(value, pointer.dtype)
        if not pointer.is_dense or area.origin != Affine():
            with self.box(pointer.sizes) as at:
                self.line(f"{self.element(area, at, write=True)} = {text};")
        elif is_zero_bits(value):
            self.helpers.headers.add("string")
            self.line(f"memset({name}, 0, {pointer.elements} * sizeof *{name});")
        else:
            with self.box((pointer.elements,)) as (place,):
                self.function.store(pointer, place)
                self.line(f"{name}[{self.affine(place)}] = {text};")
