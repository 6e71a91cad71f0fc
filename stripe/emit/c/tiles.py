"""Tiles of vectors in C: the statements of a block once for each vector, with common parts of the copies computed
once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace

from stripe.emit.c.intrinsics import intrinsic
from stripe.emit.c.statements import live_statements, use_operands
from stripe.emit.c.vectors import applied, loaded, multiply_add, splat, stored, vector_type
from stripe.emit.c.writer import Writer
from stripe.emit.loops.plan import BlockPlan, is_short
from stripe.emit.loops.products import products
from stripe.emit.loops.scope import Area
from stripe.emit.loops.tiles import TilePoint, VectorTile
from stripe.ir import (
    DTYPES,
    INTRINSICS,
    Affine,
    Agg,
    Constant,
    DType,
    Intrinsic,
    Load,
    LoadIndex,
    Store,
    result_dtype,
)
from stripe.ir.dtypes import BOOL


@dataclass(frozen=True, slots=True)
class _VectorVariable:
    """A variable that holds `lanes` elements, a scalar for one."""

    text: str
    dtype: DType
    lanes: int


@dataclass(slots=True)
class TileWriter:
    """Writes the statements of a tile. `accumulators` are the variables for elements of stores; `known` has a variable
    for each value that is in scope.
    """

    plan: BlockPlan
    tile: VectorTile
    writer: Writer
    accumulators: dict[tuple[int, Affine], _VectorVariable] = field(
        default_factory=dict["tuple[int, Affine]", "_VectorVariable"]
    )
    known: dict[tuple[object, ...], _VectorVariable] = field(
        default_factory=dict["tuple[object, ...]", "_VectorVariable"]
    )

    def open_accumulators(self, level: int, stack: ExitStack) -> None:
        """Declares the accumulators of a loop; their values go back to memory when `stack` unwinds to here."""
        opened = [number for number, first in self.tile.accumulators.items() if first == level]
        for number in opened:
            statement = self.plan.block.statements[number]
            assert isinstance(statement, Store)
            area = self.writer.scope.areas[statement.ref]
            for point in self.tile.points:
                place = self.tile.element(area, point)
                if (number, place) in self.accumulators:
                    continue
                element, dtype = self._element(area, place, write=True), area.pointer.dtype
                name = self.writer.scope.names.take(f"{statement.ref}_acc")
                c_type = vector_type(dtype, point.lanes, self.writer)
                self.writer.line(f"{c_type} {name} = {loaded(element, dtype, point.lanes, self.writer)};")
                self.accumulators[number, place] = _VectorVariable(name, dtype, point.lanes)
                stack.callback(self.writer.line, stored(element, name, dtype, point.lanes, self.writer))

    def statements(self) -> None:
        """The straight code, with the loop over vectors that remains and its rest."""
        tile, writer = self.tile, self.writer
        if tile.step:
            count = len(range(tile.low, tile.end, tile.step))
            with writer.function.loop(
                tile.var, str(tile.low), str(tile.end), tile.step, is_short=is_short(count)
            ):
                self._inside().copies(tile.points)
            if tile.rest:
                with writer.function.braces(""):
                    self._inside().copies(tile.rest)
        else:
            self.copies(tile.points)

    def _inside(self) -> TileWriter:
        scope = replace(self.writer.scope, names=self.writer.scope.names.child())
        return replace(self, writer=self.writer.at(scope), known={})

    def copies(self, points: Sequence[TilePoint]) -> None:
        """The statements for each of `points`."""
        block, live = self.plan.block, live_statements(self.plan.block)
        summed_products = products(block)
        for point in points:
            values: dict[str, _VectorVariable] = {}
            for number, statement in enumerate(block.statements):
                match statement:
                    case Store():
                        self._store(number, statement, values, point, summed_products.get(statement.value))
                    case Intrinsic(into, _, _, _) if into in summed_products:
                        pass
                    case Load(into, _) | Intrinsic(into, _, _, _) | Constant(into, _, _) | LoadIndex(into, _):
                        if number in live:
                            values[into] = self._value(statement, values, point)
                    case _:
                        raise AssertionError(statement)

    def _value(
        self,
        statement: Load | Intrinsic | Constant | LoadIndex,
        values: Mapping[str, _VectorVariable],
        point: TilePoint,
    ) -> _VectorVariable:
        writer = self.writer
        match statement:
            case Load(into, ref):
                return self._load(into, writer.scope.areas[ref], point)
            case LoadIndex(into, affine):
                dtype = DTYPES["i32"]
                text = writer.affine(self.tile.at(writer.scope.affine(affine), point))
                return self._let(into, f"({writer.dialect.scalar_type(dtype)})({text})", dtype, 1)
            case Constant(into, value, dtype):
                return self._let(into, writer.literal(value, dtype), dtype, 1)
            case Intrinsic(into, op, inputs, target):
                args = [values[name] for name in inputs]
                dtypes = [arg.dtype for arg in args]
                lanes = max(arg.lanes for arg in args)
                if lanes > 1:
                    return self._applied(into, op, args, lanes, target)
                dtype = result_dtype(op, dtypes, target)
                text = intrinsic(op, [arg.text for arg in args], dtypes, dtype, writer)
                use_operands([arg.text for arg in args], text, writer)
                return self._let(into, text, dtype, 1)

    def _applied(
        self, into: str, op: str, args: Sequence[_VectorVariable], lanes: int, target: DType | None
    ) -> _VectorVariable:
        """The operation on vectors, among which bools are masks."""
        numbers = [arg.dtype for arg in args if arg.dtype != BOOL]
        mask = DTYPES[f"i{numbers[-1].bits}"]
        args = [
            replace(arg, text=f"-({self.writer.dialect.scalar_type(mask)}){arg.text}", dtype=mask)
            if arg.dtype == BOOL
            else arg
            for arg in args
        ]
        dtypes = [arg.dtype for arg in args]
        match INTRINSICS[op].result:
            case "bool":
                dtype = mask
            case "cond":
                dtype = dtypes[-1]
            case _:
                dtype = result_dtype(op, dtypes, target)
        wide = [self._wide(arg, lanes) for arg in args]
        return self._let(into, applied(op, wide, dtypes, dtype, lanes, self.writer), dtype, lanes)

    def _load(self, into: str, area: Area, point: TilePoint) -> _VectorVariable:
        lanes = point.lanes if self.tile.is_vector(area) else 1
        place, dtype = self.tile.element(area, point), area.pointer.dtype
        fixed = not any(
            self.writer.scope.areas[ref.name].pointer.may_alias(area.pointer)
            for ref in self.plan.block.outputs
        )
        if area.pointer.registers is None:
            text = loaded(self._element(area, place), dtype, lanes, self.writer)
        else:
            text = area.pointer.registers[place.offset, lanes]
            self.writer.scope.fresh.discard(text)
            if fixed:  # no store of this block changes the variable while its name is in use
                return _VectorVariable(text, dtype, lanes)
        return self._let(into, text, dtype, lanes, shared=fixed)

    def _let(self, into: str, text: str, dtype: DType, lanes: int, *, shared: bool = True) -> _VectorVariable:
        """The variable of the value `text`, declared where there is none yet."""
        key = (text, dtype, lanes)
        if shared and key in self.known:
            return self.known[key]
        name = self.writer.scope.names.take(self.writer.scope.wanted_name(into))
        self.writer.line(f"const {vector_type(dtype, lanes, self.writer)} {name} = {text};")
        value = _VectorVariable(name, dtype, lanes)
        if shared:
            self.known[key] = value
        return value

    def _wide(self, value: _VectorVariable, lanes: int) -> str:
        return value.text if value.lanes == lanes else splat(value.text, value.dtype, lanes, self.writer)

    def _store(
        self,
        number: int,
        statement: Store,
        values: Mapping[str, _VectorVariable],
        point: TilePoint,
        factors: tuple[str, str] | None,
    ) -> None:
        writer, area, lanes = self.writer, self.writer.scope.areas[statement.ref], point.lanes
        place, dtype = self.tile.element(area, point), area.pointer.dtype
        agg = self.plan.block.ref(statement.ref).agg
        held, first = self.accumulators.get((number, place)), False
        if area.pointer.registers is not None:
            held = _VectorVariable(area.pointer.registers[place.offset, lanes], dtype, lanes)
            # A sum of floats begins with its zero, for 0.0 + -0.0 is 0.0.
            first = (
                held.text in writer.scope.fresh
                and not (self.plan.loops[: self.tile.level] or self.plan.guards)
                and not (agg is Agg.ADD and dtype.is_float)
            )
            writer.scope.fresh.discard(held.text)
        element = "" if held else self._element(area, place, write=True)
        if lanes == 1 and not held:
            writer.function.store(area.pointer, place)
        if agg is Agg.ASSIGN or first:
            new = self._wide(values[statement.value], lanes)
        else:
            old = held.text if held else loaded(element, dtype, lanes, writer)
            if factors:
                wide = [self._wide(values[name], lanes) for name in factors]
                new = multiply_add((*wide, old), dtype, lanes, writer)
            else:
                added = self._wide(values[statement.value], lanes)
                if lanes == 1 and not held:
                    old = writer.let(f"{statement.ref}_old", old, dtype)
                new = applied(agg.intrinsic(dtype), (old, added), (dtype, dtype), dtype, lanes, writer)
        writer.line(f"{held.text} = {new};" if held else stored(element, new, dtype, lanes, writer))

    def _element(self, area: Area, place: Affine, *, write: bool = False) -> str:
        return f"{self.writer.function.use(area.pointer, write=write)}[{self.writer.affine(place)}]"
