"""Whether a program's float sums are exact on data of small integers, and so the same in any order.

Every value's grain (see `stripe.exec.grains`) is followed through the program in one pass in its order, which suffices,
as nothing flows from one point of a block to another.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import prod

import numpy as np

from stripe.exec.grains import ANYTHING, NOTHING, Grain, apply, grain_of_array, most_to_one
from stripe.exec.layout import constant_array
from stripe.ir import (
    DTYPES,
    TRANSCENDENTAL,
    Affine,
    Agg,
    Block,
    Constant,
    DType,
    Interval,
    Intrinsic,
    Load,
    LoadIndex,
    Path,
    Program,
    Refinement,
    Special,
    Statement,
    Store,
    result_dtype,
    walk,
)

MAGNITUDES: tuple[int, ...] = (8, 6, 4, 3, 2, 1)


def order_free(program: Program, magnitude: int | None) -> bool:
    """Whether every float sum and product of the program is exact when its inputs are integers up to `magnitude` in
    size; None for inputs of any value. Then all engines and all orders give the same bits, unless the program uses
    transcendental intrinsics.
    """
    return _walked(program, magnitude).exact


def output_grains(program: Program, magnitude: int | None) -> dict[str, Grain]:
    """What follows for the elements of each output."""
    walker = _walked(program, magnitude)
    return {ref.name: walker.grains[(0,), ref.name] for ref in program.outputs}


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
class _Nest:
    """The indices of a block and of those around it, each under a name of its own, outer ones first; `local` gives
    those that the block knows by its names.
    """

    ranges: dict[str, int]
    local: dict[str, Affine]

    def enter(self, block: Block, depth: int) -> _Nest:
        ranges, local = dict(self.ranges), dict[str, Affine]()
        for index in block.indices:
            if index.affine is not None:
                local[index.name] = index.affine.subs(self.local)
            else:
                name = f"{index.name}@{depth}"
                ranges[name] = index.range
                local[index.name] = Affine.var(name)
        return _Nest(ranges, local)

    def bounds(self, affine: Affine) -> Interval:
        known = {name: (0, size - 1) for name, size in self.ranges.items()}
        return affine.subs(self.local).bounds(known)


@dataclass(frozen=True, slots=True)
class _Place:
    """What a refinement stands for: its allocation, where its origin lies in it, how many indices are around that."""

    root: tuple[Path, str]
    ref: Refinement
    origin: tuple[Affine, ...]
    around: int

    def contributions(self, nest: _Nest) -> int:
        """At most how many points of the nest touch one element while the allocation lives."""
        ranges = dict(list(nest.ranges.items())[self.around :])
        hidden = {
            name
            for affine in self.origin
            for atom, _ in affine.terms
            if not isinstance(atom, str)
            for name in atom.arg.names()
        }
        columns = {n: [a.coeff(n) for a in self.origin] for n in ranges if n not in hidden}
        return most_to_one(ranges, columns)


@dataclass(slots=True)
class _Scope:
    places: dict[str, _Place]
    nest: _Nest
    scalars: dict[str, tuple[Grain, DType]] = field(default_factory=dict[str, tuple[Grain, DType]])
    constants: dict[str, float] = field(default_factory=dict[str, float])


class _Walker:
    def __init__(self, magnitude: int | None, program: Program) -> None:
        self.grains: dict[tuple[Path, str], Grain] = {}
        self.exact = True
        given = ANYTHING if magnitude is None else Grain.within(magnitude, 1.0)
        self.given = {ref.name: given.rounded(ref.dtype) for ref in program.inputs}
        for ref in program.inputs:
            if magnitude is not None and ref.dtype.kind == "uint":
                self.given[ref.name] = Grain(0.0, float(magnitude), 1.0)
        for buffer in program.constants:
            self.given[buffer.name] = grain_of_array(constant_array(buffer).astype(np.float64))

    def visit(self, block: Block, path: Path, outer: Mapping[str, _Place], around: _Nest) -> None:
        nest = around.enter(block, len(path))
        places: dict[str, _Place] = {}
        for ref in block.refinements:
            if ref.is_alloc:
                places[ref.name] = _Place(
                    (path, ref.name), ref, (Affine.constant(0),) * ref.rank, len(nest.ranges)
                )
                self.grains[path, ref.name] = self.given.get(ref.name, NOTHING) if len(path) == 1 else NOTHING
            else:
                places[ref.name] = _moved(outer[ref.source], ref, nest)
        scope = _Scope(places, nest)
        for number, statement in enumerate(block.statements):
            if isinstance(statement, Block):
                self.visit(statement, (*path, number), places, nest)
            else:
                self._statement(block, scope, statement)

    def _statement(self, block: Block, scope: _Scope, statement: Statement) -> None:
        match statement:
            case Load(into, ref):
                place = scope.places[ref]
                scope.scalars[into] = self.grains[place.root], place.ref.dtype
            case LoadIndex(into, affine):
                low, high = scope.nest.bounds(affine)
                scope.scalars[into] = Grain(low, high, 1.0).rounded(DTYPES["i32"]), DTYPES["i32"]
            case Constant(into, value, dtype):
                scope.scalars[into] = grain_of_array(np.asarray([float(value)])).rounded(dtype), dtype
                scope.constants[into] = float(value)
            case Intrinsic(into, op, names, target):
                operands = [scope.scalars[name] for name in names]
                dtype = result_dtype(op, [d for _, d in operands], target)
                divisor = scope.constants.get(names[-1])
                grain = apply(op, [g for g, _ in operands], dtype, divisor)
                scope.scalars[into] = grain.rounded(dtype), dtype
            case Store(ref, value):
                place = scope.places[ref]
                count = place.contributions(scope.nest)
                self._store(place, block.ref(ref).agg, scope.scalars[value][0], count)
            case Special(op, outputs, inputs):
                self._special(op, [scope.places[n] for n in outputs], [scope.places[n] for n in inputs])
            case Block():
                raise AssertionError("blocks are visited, not executed as statements")

    def _store(self, place: _Place, agg: Agg, value: Grain, count: int) -> None:
        old = self.grains[place.root]
        if agg in (Agg.ADD, Agg.MUL):
            grown = old.plus(value, count) if agg is Agg.ADD else old.times(value, count)
            self._merge(place, grown, several=count > 1 or old != NOTHING)
        else:
            self.grains[place.root] = old.joined(value)

    def _merge(self, place: _Place, grown: Grain, *, several: bool) -> None:
        rounded = grown.rounded(place.ref.dtype)
        if rounded.step == 0.0 and place.ref.dtype.is_float and several:
            self.exact = False
        self.grains[place.root] = rounded

    def _special(self, op: str, outputs: Sequence[_Place], inputs: Sequence[_Place]) -> None:
        grain = self.grains[inputs[0].root]
        if op == "scatter":
            count = inputs[0].ref.elements // max(1, prod(outputs[0].ref.sizes[1:]))
            self._merge(outputs[0], self.grains[outputs[0].root].plus(grain, count), several=count > 1)
            return
        for place in outputs:
            produced = Grain(0.0, 1.0, 2.0**-32) if op == "prng_step" and place.ref.dtype.is_float else grain
            self.grains[place.root] = self.grains[place.root].joined(produced.rounded(place.ref.dtype))


def _walked(program: Program, magnitude: int | None) -> _Walker:
    walker = _Walker(magnitude, program)
    walker.visit(program.entry, (0,), {}, _Nest({}, {}))
    return walker


def _moved(source: _Place, ref: Refinement, nest: _Nest) -> _Place:
    moves = [affine.subs(nest.local) for affine in ref.access]
    origin = tuple(a + b for a, b in zip(source.origin, moves, strict=True))
    return _Place(source.root, source.ref, origin, source.around)
