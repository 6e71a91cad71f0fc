"""The pass `constant_tensor`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from stripe.ir import (
    Agg,
    Block,
    Constant,
    DType,
    Load,
    Program,
    Refinement,
    Special,
    Statement,
    Store,
    map_statements,
    scalar_defined,
    uses_of,
    with_entry,
)
from stripe.ir.frozen import replace
from stripe.passes.base import Pass, PassContext, PassExample, PassGroup, Reqs


class ConstantTensor(Pass):
    """Replaces loads from a buffer that holds one constant everywhere by that constant.

        0: block [x:8] (                             0: block [x:8] (
            out T[x]                                     out T[x]
        ) {                                          ) {
          0: $c = (fp32)0.5                            0: $c = (fp32)0.5
          1: T = store($c)                             1: T = store($c)
        }                                            }
        1: block [x:8] (                       =>    1: block [x:8] (
            in I[x]                                      in I[x]
            in T[x]                                      out O[x]
            out O[x]                                 ) {
        ) {                                            0: $i = load(I)
          0: $i = load(I)                              1: $t = (fp32)0.5
          1: $t = load(T)                              2: $o = mul($i, $t)
          2: $o = mul($i, $t)                          3: O = store($o)
          3: O = store($o)                           }
        }

    A buffer holds one constant when every store into it assigns that constant, whose scalar is a constant or a load
    that became one, or when it is a constant of the program with equal elements. Unwritten elements are never read.
    Views without uses are dropped; `dce` then drops the blocks that fill.
    """

    pass_name: ClassVar[str] = "constant_tensor"
    group: ClassVar[PassGroup] = PassGroup.DATA
    example: ClassVar[PassExample] = PassExample(programs=("constant_tensor/fill.stripe",))
    keeps_addresses: ClassVar[bool] = True

    reqs: Reqs = ("all",)

    def run(self, program: Program, context: PassContext) -> Program:
        entry, known = program.entry, dict(_constant_buffers(program))
        given = {ref.name for ref in program.inputs} | {buffer.name for buffer in program.constants}
        # A load that became a constant may fill the next buffer: each round goes one buffer further.
        while (changed := self._replaced(entry, known, frozenset(given), context)) is not entry:
            entry = changed
        return with_entry(program, entry)

    def _replaced(
        self, entry: Block, constants: dict[str, _ConstantValue], given: frozenset[str], context: PassContext
    ) -> Block:
        def visit(block: Block, outside: dict[str, _ConstantValue], matched: bool) -> Block:
            matched = matched or block.words.has_all(self.reqs)
            values = {ref.name: outside[ref.source] for ref in block.refinements if ref.source in outside}
            filled = _filled(block)
            if block is entry:
                filled = {name: value for name, value in filled.items() if name not in given} | constants
            values |= filled
            inner = map_statements(block, lambda s: visit(s, values, matched) if isinstance(s, Block) else s)
            inner = _without_loads(inner, values, context) if matched else inner
            return _without_idle_views(inner, block)

        return visit(entry, {}, matched=False)


@dataclass(frozen=True, slots=True)
class _ConstantValue:
    """A constant: compared by its text, so that two NaNs are one value and 0.0 and -0.0 are two."""

    value: bool | int | float
    dtype: DType

    @property
    def key(self) -> str:
        return f"{self.dtype}{self.value!r}"


def _constant_buffers(program: Program) -> Iterator[tuple[str, _ConstantValue]]:
    """The constants of the program whose elements are all equal to the bit."""
    for buffer in program.constants:
        width = buffer.dtype.bytes
        first = buffer.data[:width]
        if buffer.data != first * (len(buffer.data) // width):
            continue
        import numpy as np

        element = np.frombuffer(first, buffer.dtype.numpy())[0]
        value = float(element) if buffer.dtype.is_float else int(element)
        yield buffer.name, _ConstantValue(bool(value) if buffer.dtype.kind == "bool" else value, buffer.dtype)


def _filled(block: Block) -> dict[str, _ConstantValue]:
    """The allocations of `block` for which every store below it assigns one constant."""
    stored: dict[str, list[_ConstantValue | None]] = {ref.name: [] for ref in block.allocs}
    if stored:
        for name, value in _stores(block):
            stored.get(name, []).append(value)
    found: dict[str, _ConstantValue] = {}
    for name, values in stored.items():
        known = [value for value in values if value is not None]
        if known and len(known) == len(values) and len({value.key for value in known}) == 1:
            found[name] = known[0]
    return found


def _stores(block: Block) -> Iterator[tuple[str, _ConstantValue | None]]:
    """Each store below `block`: the refinement of `block` that it reaches, and the constant that it assigns, if any."""
    for statement in block.statements:
        if isinstance(statement, Store):
            assigned = block.ref(statement.ref).agg is Agg.ASSIGN
            definition = next(s for s in block.statements if scalar_defined(s) == statement.value)
            if assigned and isinstance(definition, Constant):
                yield statement.ref, _ConstantValue(definition.value, definition.dtype)
            else:
                yield statement.ref, None
        elif isinstance(statement, Special):
            yield from ((name, None) for name in statement.outputs)
        elif isinstance(statement, Block):
            sources = {ref.name: ref.source for ref in statement.refinements if not ref.is_alloc}
            yield from ((sources[name], value) for name, value in _stores(statement) if name in sources)


def _without_loads(block: Block, values: dict[str, _ConstantValue], context: PassContext) -> Block:
    """The block with the loads of known values replaced."""
    replaced: dict[str, _ConstantValue] = {}

    def visit(statement: Statement) -> Statement:
        if isinstance(statement, Load) and statement.ref in values:
            value = replaced[statement.ref] = values[statement.ref]
            return Constant(statement.into, value.value, value.dtype, statement.deps, statement.tags)
        return statement

    changed = map_statements(block, visit)
    for name, value in replaced.items():
        context.applied(block, f"loads of {name} became ({value.dtype}){value.value!r}")
    return changed


def _without_idle_views(block: Block, before: Block) -> Block:
    """`block` without the views that it used `before` and does not use now."""
    if block is before:
        return block

    def idle(ref: Refinement) -> bool:
        return not ref.is_alloc and bool(uses_of(before, ref.name)) and not uses_of(block, ref.name)

    kept = tuple(ref for ref in block.refinements if not idle(ref))
    return block if len(kept) == len(block.refinements) else replace(block, refinements=kept)
