"""Whether a program's float sums are exact on data of small integers, and so the same in any order.

Every value is bounded in magnitude and known to be a multiple of a step (a power of two, or 0 for "of anything"): a
float of m mantissa bits holds it exactly while bound / step <= 2^m. One pass over the program in its order suffices, as
nothing flows from one point of a block to another.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import frexp, inf, prod

import numpy as np

from stripe.exec.layout import constant_array
from stripe.ir import (
    DTYPES,
    TRANSCENDENTAL,
    Agg,
    Block,
    Constant,
    DType,
    Interval,
    Intrinsic,
    Load,
    LoadIndex,
    Program,
    Refinement,
    Special,
    Statement,
    Store,
    result_dtype,
    walk,
)
from stripe.ir.traverse import Path

MANTISSA_BITS: Mapping[str, int] = {"fp64": 53, "fp32": 24, "fp16": 11, "bf16": 8}
MAGNITUDES: tuple[int, ...] = (8, 6, 4, 3, 2, 1)


@dataclass(frozen=True, slots=True)
class Grain:
    """|value| <= bound, and value is a multiple of step."""

    bound: float
    step: float

    def joined(self, other: Grain) -> Grain:
        """What holds of either."""
        return Grain(max(self.bound, other.bound), min(self.step, other.step))


def order_free(program: Program, magnitude: int | None) -> bool:
    """Whether every float sum and product of the program is exact when its float inputs are integers up to `magnitude`
    in size; None for inputs of any value. Then all engines and all orders give the same bits, unless the program uses
    transcendental intrinsics.
    """
    walker = _Walker(magnitude, program)
    walker.visit(program.entry, (0,), {}, {}, 1)
    return walker.exact


def best_magnitude(program: Program) -> int:
    """The largest of `MAGNITUDES` with which `order_free` holds; 3 when none does."""
    return next((m for m in MAGNITUDES if order_free(program, m)), 3)


def uses_transcendentals(program: Program) -> bool:
    """Whether results may differ in the last bits between libraries."""
    return any(
        isinstance(statement, Intrinsic) and statement.op in TRANSCENDENTAL
        for _, block in walk(program.entry)
        for statement in block.statements
    )


@dataclass(frozen=True, slots=True)
class _Place:
    """What a refinement stands for: its allocation, where its origin may lie in it, how many points held that."""

    root: tuple[Path, str]
    ref: Refinement
    origin: tuple[Interval, ...]
    points: int


@dataclass(slots=True)
class _Scope:
    places: dict[str, _Place]
    intervals: dict[str, Interval]
    points: int
    scalars: dict[str, tuple[Grain, DType]] = field(default_factory=dict[str, tuple[Grain, DType]])
    constants: dict[str, float] = field(default_factory=dict[str, float])


class _Walker:
    def __init__(self, magnitude: int | None, program: Program) -> None:
        self.input_grain = Grain(inf, 0.0) if magnitude is None else Grain(float(magnitude), 1.0)
        self.grains: dict[tuple[Path, str], Grain] = {}
        self.exact = True
        self.given = {ref.name: self.input_grain for ref in program.inputs}
        for buffer in program.constants:
            self.given[buffer.name] = _grain_of_array(constant_array(buffer).astype(np.float64))

    def visit(
        self,
        block: Block,
        path: Path,
        outer: Mapping[str, _Place],
        intervals: dict[str, Interval],
        points: int,
    ) -> None:
        inner = block.intervals(intervals)
        points *= block.points
        places: dict[str, _Place] = {}
        for ref in block.refinements:
            if ref.is_alloc:
                places[ref.name] = _Place((path, ref.name), ref, ((0, 0),) * ref.rank, points)
                self.grains[path, ref.name] = (self.given if len(path) == 1 else {}).get(
                    ref.name, Grain(0.0, 1.0)
                )
            else:
                places[ref.name] = _moved(outer[ref.source], ref, inner)
        scope = _Scope(places, inner, points)
        for number, statement in enumerate(block.statements):
            if isinstance(statement, Block):
                self.visit(statement, (*path, number), places, inner, points)
            else:
                self._statement(block, scope, statement)

    def _statement(self, block: Block, scope: _Scope, statement: Statement) -> None:
        match statement:
            case Load(into, ref):
                place = scope.places[ref]
                scope.scalars[into] = self.grains[place.root], place.ref.dtype
            case LoadIndex(into, affine):
                low, high = affine.bounds(scope.intervals)
                scope.scalars[into] = Grain(float(max(-low, high)), 1.0), DTYPES["i32"]
            case Constant(into, value, dtype):
                scope.scalars[into] = _rounded(_grain_of_array(np.asarray([float(value)])), dtype), dtype
                scope.constants[into] = float(value)
            case Intrinsic(into, op, names, target):
                operands = [scope.scalars[name] for name in names]
                dtype = result_dtype(op, [d for _, d in operands], target)
                divisor = scope.constants.get(names[-1])
                grain = _apply(op, [g for g, _ in operands], dtype, divisor)
                scope.scalars[into] = _rounded(grain, dtype), dtype
            case Store(ref, value):
                self._store(scope, scope.places[ref], block.ref(ref).agg, scope.scalars[value][0])
            case Special(op, outputs, inputs):
                self._special(op, [scope.places[n] for n in outputs], [scope.places[n] for n in inputs])
            case Block():
                raise AssertionError("blocks are visited, not executed as statements")

    def _store(self, scope: _Scope, place: _Place, agg: Agg, value: Grain) -> None:
        old, dtype = self.grains[place.root], place.ref.dtype
        touched = prod(
            min(size, hi - lo + 1) for size, (lo, hi) in zip(place.ref.sizes, place.origin, strict=True)
        )
        count = -(-(scope.points // place.points) // max(touched, 1))
        if agg is Agg.ADD:
            self._merge(
                place, dtype, Grain(old.bound + count * value.bound, min(old.step, value.step)), count, old
            )
        elif agg is Agg.MUL:
            grown = Grain(
                _power(max(1.0, old.bound, value.bound), count), _power(min(value.step, 1.0), count)
            )
            self._merge(place, dtype, grown, count, old)
        else:
            self.grains[place.root] = old.joined(value)

    def _merge(self, place: _Place, dtype: DType, grown: Grain, count: int, old: Grain) -> None:
        rounded = _rounded(grown, dtype)
        if rounded.step == 0.0 and dtype.is_float and (count > 1 or old.bound):
            self.exact = False
        self.grains[place.root] = rounded

    def _special(self, op: str, outputs: Sequence[_Place], inputs: Sequence[_Place]) -> None:
        grain = self.grains[inputs[0].root]
        if op == "scatter":
            count = inputs[0].ref.elements // max(1, prod(outputs[0].ref.sizes[1:]))
            self._merge(
                outputs[0], outputs[0].ref.dtype, Grain(grain.bound * count, grain.step), count, grain
            )
            return
        for place in outputs:
            produced = Grain(1.0, 2.0**-32) if op == "prng_step" and place.ref.dtype.is_float else grain
            self.grains[place.root] = self.grains[place.root].joined(_rounded(produced, place.ref.dtype))


def _moved(source: _Place, ref: Refinement, intervals: Mapping[str, Interval]) -> _Place:
    moves = [affine.bounds(intervals) for affine in ref.access]
    origin = tuple((lo + a, hi + b) for (lo, hi), (a, b) in zip(source.origin, moves, strict=True))
    return _Place(source.root, source.ref, origin, source.points)


def _rounded(grain: Grain, dtype: DType) -> Grain:
    """The value after it was put into `dtype`: of no known step when it does not fit a float, wrapped in an integer."""
    if dtype.is_float:
        if grain.step == 0.0 or grain.bound / grain.step > 2.0 ** MANTISSA_BITS[dtype.name]:
            return Grain(grain.bound, 0.0)
        return grain
    return Grain(min(grain.bound, 2.0**dtype.bits), max(grain.step, 1.0))


def _power(base: float, exponent: int) -> float:
    try:
        return base**exponent
    except OverflowError:
        return inf


def _grain_of_array(values: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> Grain:
    """The bound of numbers, and the largest power of two that divides them all (0 when one is not finite)."""
    if not np.isfinite(values).all():
        return Grain(inf, 0.0)
    step = 2.0**52
    for value in np.unique(values[values != 0]):
        while value % step and step > 2.0**-60:
            step /= 2
    return Grain(float(np.abs(values).max(initial=0.0)), step if step > 2.0**-60 else 0.0)


def _apply(op: str, args: Sequence[Grain], dtype: DType, divisor: float | None) -> Grain:
    first, last = args[0], args[-1]
    if op in ("add", "sub"):
        return Grain(first.bound + last.bound, min(first.step, last.step))
    if op == "mul":
        return Grain(first.bound * last.bound if first.bound and last.bound else 0.0, first.step * last.step)
    if op in ("ceil", "floor", "round"):
        return Grain(first.bound + 1, max(first.step, 1.0))
    if op == "div" and dtype.is_float:
        if divisor and abs(frexp(divisor)[0]) == 0.5:
            return Grain(first.bound / abs(divisor), first.step / abs(divisor))
        return Grain(first.bound, 0.0)
    if op.startswith("cmp_"):
        return Grain(1.0, 1.0)
    if op.startswith("bit_"):
        return Grain(2.0**dtype.bits, 1.0)
    if op in TRANSCENDENTAL or op == "sqrt":
        return Grain(max(1.0, first.bound), 0.0)
    return _joined(args[1:] if op == "cond" else args)


def _joined(grains: Sequence[Grain]) -> Grain:
    total = grains[0]
    for grain in grains[1:]:
        total = total.joined(grain)
    return total
