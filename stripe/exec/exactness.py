"""Whether a program's float sums are exact on data of small integers, and so the same in any order.

Every value's grain (see `stripe.exec.grains`) is followed through the program in one pass in its order, which suffices,
as nothing flows from one point of a block to another.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from math import prod

import numpy as np

from stripe.exec.grains import ANYTHING, NOTHING, Grain, apply, grain_of_array, most_to_one
from stripe.exec.layout import constant_array
from stripe.ir import (
    DTYPES,
    INTRINSICS,
    Agg,
    Block,
    Buffer,
    Constant,
    DType,
    Intrinsic,
    Load,
    LoadIndex,
    Nest,
    Program,
    Special,
    Statement,
    Store,
    View,
    result_dtype,
    walk,
)

_POSITIVE = ("log", "sqrt", "pow", "acosh")
MAGNITUDES: tuple[int, ...] = (8, 6, 4, 3, 2, 1)


@lru_cache(maxsize=16)  # each set of data that a program runs on asks again
def order_free(program: Program, magnitude: int | None, *, chains: bool = False, step: float = 1.0) -> bool:
    """Whether every float sum and product of the program is exact when its inputs are integers up to `magnitude` in
    size, floats multiples of `step`; None for inputs of any value. Then all engines and all orders give the same bits,
    unless the program uses transcendental intrinsics. With `chains`, operations `add` written one after the other are
    sums as well.
    """
    return walk_grains(program, magnitude, chains=chains, step=step).exact


@lru_cache(maxsize=4)
def best_magnitude(program: Program) -> int:
    """The largest of `MAGNITUDES` with which `order_free` holds; 3 when none does. Of positive numbers 1 alone is too
    little.

    The smallest is asked first: where it fails all others do, as for a network with weights of any value.
    """
    magnitudes = MAGNITUDES[:-1] if takes_positive(program) else MAGNITUDES
    if not order_free(program, magnitudes[-1]):
        return 3
    return next(m for m in magnitudes if m == magnitudes[-1] or order_free(program, m))


def takes_positive(program: Program) -> bool:
    """Whether inputs have to be positive: the program takes logarithms, roots or quotients."""
    ops = {s.op for _, block in walk(program.entry) for s in block.statements if isinstance(s, Intrinsic)}
    return not ops.isdisjoint(_POSITIVE) or _divides_by_data(program)


def _divides_by_data(program: Program) -> bool:
    """Whether a quotient or remainder has a divisor other than a constant."""
    for _, block in walk(program.entry):
        constants = {s.into for s in block.statements if isinstance(s, Constant)}
        for s in block.statements:
            if isinstance(s, Intrinsic) and s.op in ("div", "mod") and s.inputs[1] not in constants:
                return True
    return False


def uses_transcendentals(program: Program) -> bool:
    """Whether results may differ in the last bits between libraries."""
    return any(
        isinstance(statement, Intrinsic) and not INTRINSICS[statement.op].exact
        for _, block in walk(program.entry)
        for statement in block.statements
    )


def _contributions(nest: Nest, view: View) -> int:
    """Upper bound on the points of the nest that touch one element of the view while its allocation lives."""
    around = len(nest.prefix(len(view.buffer.path) - 1))
    ranges = {name: nest.domain.ranges[name][1] + 1 for name in nest.domain.names[around:]}
    hidden = {
        name
        for affine in view.origin
        for atom, _ in affine.terms
        if not isinstance(atom, str)
        for name in atom.arg.names()
    }
    columns = {n: [a.coeff(n) for a in view.origin] for n in ranges if n not in hidden}
    return most_to_one(ranges, columns)


def terms_of_sums(program: Program) -> dict[DType, int]:
    """For each type of floats the largest number of terms of a sum or product by aggregation, at most."""
    found: dict[DType, int] = {}
    for nest in Nest.root(program.entry).walk():
        for store in (statement for statement in nest.block.statements if isinstance(statement, Store)):
            view = nest.views[store.ref]
            if view.ref.dtype.is_float and view.ref.agg in (Agg.ADD, Agg.MUL):
                terms = _contributions(nest, view)
                found[view.ref.dtype] = max(terms, found.get(view.ref.dtype, 0))
    return found


@dataclass(slots=True)
class _Scalars:
    """Grains and dtypes of the scalars of a block, and the values of its constants."""

    grains: dict[str, tuple[Grain, DType]] = field(default_factory=dict[str, tuple[Grain, DType]])
    constants: dict[str, float] = field(default_factory=dict[str, float])


class GrainWalker:
    def __init__(
        self, magnitude: int | None, program: Program, *, chains: bool = False, step: float = 1.0
    ) -> None:
        self.chains = chains
        self.grains: dict[Buffer, Grain] = {}
        self.exact = True
        given = ANYTHING if magnitude is None else Grain.within(magnitude, step)
        self.given = {ref.name: given.rounded(ref.dtype) for ref in program.inputs}
        for ref in program.inputs:
            if magnitude is not None and ref.dtype.kind == "uint":
                self.given[ref.name] = Grain(0.0, float(magnitude), 1.0)
        for buffer in program.constants:
            self.given[buffer.name] = grain_of_array(constant_array(buffer).astype(np.float64))

    def visit(self, nest: Nest) -> None:
        """Notes the grains of all buffers and scalars of a nest, statement by statement."""
        for ref in nest.block.allocs:
            given = self.given.get(ref.name, NOTHING) if nest.depth == 0 else NOTHING
            self.grains[nest.views[ref.name].buffer] = given
        scalars = _Scalars()
        for number, statement in enumerate(nest.block.statements):
            if isinstance(statement, Block):
                self.visit(nest.enter(number))
            else:
                self._statement(nest, scalars, statement)

    def _statement(self, nest: Nest, scalars: _Scalars, statement: Statement) -> None:
        match statement:
            case Load(into, ref):
                view = nest.views[ref]
                scalars.grains[into] = self.grains[view.buffer], view.ref.dtype
            case LoadIndex(into, affine):
                low, high = affine.subs(nest.local).bounds(nest.domain.ranges)
                scalars.grains[into] = Grain(low, high, 1.0).rounded(DTYPES["i32"]), DTYPES["i32"]
            case Constant(into, value, dtype):
                scalars.grains[into] = grain_of_array(np.asarray([float(value)])).rounded(dtype), dtype
                scalars.constants[into] = float(value)
            case Intrinsic(into, op, names, target):
                operands = [scalars.grains[name] for name in names]
                dtype = result_dtype(op, [d for _, d in operands], target)
                divisor = scalars.constants.get(names[-1])
                grain = apply(op, [g for g, _ in operands], dtype, divisor)
                rounded = grain.rounded(dtype)
                if self.chains and op == "add" and dtype.is_float and rounded.step == 0.0:
                    self.exact = False
                scalars.grains[into] = rounded, dtype
            case Store(ref, value):
                view, grain = nest.views[ref], scalars.grains[value][0]
                old, agg, count = self.grains[view.buffer], view.ref.agg, _contributions(nest, view)
                if agg in (Agg.ADD, Agg.MUL):
                    grown = old.plus(grain, count) if agg is Agg.ADD else old.times(grain, count)
                    self._merge(view, grown, several=count > 1 or old != NOTHING)
                else:
                    self.grains[view.buffer] = old.joined(grain)
            case Special(op, outputs, inputs):
                self._special(op, [nest.views[n] for n in outputs], [nest.views[n] for n in inputs])
            case Block():
                raise AssertionError("blocks are visited, not executed as statements")

    def _merge(self, view: View, grown: Grain, *, several: bool) -> None:
        rounded = grown.rounded(view.ref.dtype)
        if rounded.step == 0.0 and view.ref.dtype.is_float and several:
            self.exact = False
        self.grains[view.buffer] = rounded

    def _special(self, op: str, outputs: Sequence[View], inputs: Sequence[View]) -> None:
        grain = self.grains[inputs[0].buffer]
        if op == "scatter":
            count = inputs[0].ref.elements // max(1, prod(outputs[0].ref.sizes[1:]))
            self._merge(outputs[0], self.grains[outputs[0].buffer].plus(grain, count), several=count > 1)
            return
        for view in outputs:
            produced = Grain(0.0, 1.0, 2.0**-32) if op == "prng_step" and view.ref.dtype.is_float else grain
            self.grains[view.buffer] = self.grains[view.buffer].joined(produced.rounded(view.ref.dtype))


def walk_grains(
    program: Program, magnitude: int | None, *, chains: bool = False, step: float = 1.0
) -> GrainWalker:
    """The grains of all buffers, for inputs as `order_free` has them."""
    walker = GrainWalker(magnitude, program, chains=chains, step=step)
    walker.visit(Nest.root(program.entry))
    return walker
